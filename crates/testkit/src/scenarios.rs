//! Scenarios: what users do to a cluster, and what they then see. Each is played in virtual time and on a real
//! control plane.

mod buffering;
mod choosing;
mod consolidating;
mod disrupting;
mod drifting;
mod failing;
mod leaving;
pub mod manifests;
mod overlaying;
mod provisioning;
mod repairing;
mod restarting;
mod standing;

use crate::stage::Stage;

/// What users do and see.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What it shows, as a sentence without spaces.
    pub name: &'static str,
    /// How long it takes on a real cluster.
    pub pace: Pace,
    /// Plays it on a cluster without pools.
    pub play: fn(&mut dyn Stage),
}

/// How long a scenario takes on a real cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Some seconds: it is always played.
    Fast,
    /// A minute or more: it is played when asked for.
    Slow,
    /// So long that it is played in virtual time only.
    Virtual,
}

macro_rules! scenarios {
    ($($pace:ident $module:ident::$name:ident,)*) => {
        /// All scenarios.
        pub const ALL: &[Scenario] =
            &[$(Scenario { name: stringify!($name), pace: Pace::$pace, play: $module::$name }),*];
    };
}

scenarios! {
    Fast provisioning::pods_that_wait_get_a_node_and_the_node_goes_with_them,
    Fast provisioning::small_pods_share_a_node,
    Fast provisioning::a_node_that_exists_is_used_before_one_is_launched,
    Fast provisioning::nodes_bear_what_their_pool_says,
    Fast provisioning::a_claim_is_ready_once_its_node_is,
    Slow provisioning::a_node_waits_for_its_startup_taint,
    Slow provisioning::a_hundred_pods_of_ten_deployments_run,
    Slow provisioning::pods_that_are_deleted_before_the_launch_leave_no_node,
    Slow provisioning::nodes_that_register_late_take_their_pods,
    Fast provisioning::the_overhead_of_daemons_is_counted,
    Fast provisioning::daemons_with_limit_ranges_are_counted,
    Fast provisioning::pods_of_a_stateful_set_run,
    Slow provisioning::a_job_ends_and_its_node_goes,
    Fast choosing::one_pod_per_node_needs_as_many_nodes,
    Fast choosing::pods_with_the_same_host_port_are_apart,
    Fast choosing::a_pod_chooses_its_zone,
    Fast choosing::a_pod_chooses_its_architecture,
    Fast choosing::a_pod_chooses_its_capacity_type,
    Fast choosing::pods_are_spread_over_zones,
    Fast choosing::pods_that_want_to_be_together_are,
    Fast choosing::a_wish_that_cannot_be_granted_is_dropped,
    Fast choosing::tainted_nodes_take_only_pods_that_tolerate_it,
    Fast choosing::the_heavier_pool_comes_first,
    Fast choosing::the_instance_type_can_be_required,
    Fast choosing::a_claimed_volume_decides_about_the_zone,
    Fast choosing::a_volume_that_exists_decides_about_the_zone,
    Fast failing::a_pod_that_fits_nowhere_says_so_and_hinders_nobody,
    Fast failing::limits_hold,
    Fast failing::a_limit_of_nodes_holds,
    Fast failing::restricted_labels_are_refused,
    Fast failing::an_invalid_pool_says_so_and_hinders_nobody,
    Fast failing::a_missing_node_class_is_told_and_waited_for,
    Fast failing::a_node_class_that_is_not_ready_is_told_and_waited_for,
    Virtual failing::a_node_that_never_registers_is_given_up_and_replaced,
    Slow failing::an_instance_that_vanishes_takes_its_claim_along,
    Slow leaving::a_deleted_node_is_drained_in_order,
    Fast leaving::a_deleted_claim_takes_its_node_along,
    Slow leaving::a_deleted_pool_takes_its_nodes_along,
    Slow leaving::a_budget_of_pods_holds_up_the_drain_until_it_allows_it,
    Slow leaving::the_grace_period_of_a_node_ends_all_waiting,
    Fast leaving::a_leaving_node_takes_no_pods_and_no_traffic,
    Slow leaving::an_old_node_is_replaced,
    Slow leaving::a_pod_that_must_not_be_disrupted_holds_up_the_drain,
    Fast disrupting::an_empty_node_stays_while_it_may_not_be_consolidated,
    Fast disrupting::a_protected_node_stays,
    Fast disrupting::a_budget_of_zero_keeps_empty_nodes,
    Fast disrupting::an_empty_node_that_gets_a_pod_stays,
    Slow disrupting::a_pool_counts_what_it_has,
    Slow repairing::a_broken_node_goes_once_its_replacement_is_there,
    Slow repairing::a_node_that_needs_a_reboot_is_drained_booted_and_used_again,
    Slow repairing::a_node_that_must_not_be_repaired_stays,
    Slow repairing::too_many_broken_nodes_stop_repair,
    Slow repairing::a_budget_of_zero_keeps_broken_nodes,
    Slow consolidating::a_node_that_is_too_large_is_replaced_by_a_cheaper_one,
    Slow consolidating::nodes_whose_pods_fit_elsewhere_go_together,
    Slow consolidating::a_node_with_a_pod_that_must_not_be_disrupted_stays,
    Fast drifting::a_drifted_node_is_replaced_before_it_goes,
    Slow drifting::drifted_nodes_are_replaced_as_fast_as_the_budget_allows,
    Slow drifting::an_operator_that_is_killed_while_nodes_are_replaced_leaves_none_behind,
    Virtual drifting::a_node_whose_replacement_never_registers_is_as_before,
    Virtual drifting::a_node_whose_replacement_never_gets_ready_is_as_before,
    Slow restarting::an_operator_that_is_killed_at_any_moment_launches_nothing_twice,
    Slow restarting::an_operator_that_is_killed_while_nodes_leave_finishes_afterwards,
    Fast restarting::pods_that_wait_while_there_is_no_operator_are_served_afterwards,
    Slow buffering::room_is_kept_taken_at_once_and_kept_anew,
    Fast buffering::room_goes_with_its_buffer,
    Slow buffering::room_in_percent_follows_its_deployment,
    Fast buffering::a_buffer_without_its_template_says_so_and_others_work,
    Slow buffering::buffers_that_come_and_go_quickly_leave_nothing,
    Slow buffering::room_stays_while_the_operator_is_replaced,
    Slow standing::a_static_pool_is_scaled_up_and_down,
    Slow standing::a_static_pool_replaces_what_it_loses_and_keeps_its_limit,
    Fast overlaying::an_overlay_makes_another_type_the_cheapest,
    Fast overlaying::an_overlay_adds_a_resource_that_pods_ask_for,
    Fast overlaying::an_overlay_in_conflict_says_so_and_the_other_works,
}
