//! Metrics of the core.

use super::MetricKind::{Counter, Gauge, Histogram, Summary};
use super::{DEFAULT_BUCKETS, DURATION_BUCKETS, OBJECTIVES, exponential, metrics};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// How long nodes live, from a quarter of an hour to a month.
const LIFETIME_BUCKETS: &[f64] = &[
    0.25 * HOUR,
    0.5 * HOUR,
    0.75 * HOUR,
    HOUR,
    2.0 * HOUR,
    4.0 * HOUR,
    6.0 * HOUR,
    8.0 * HOUR,
    10.0 * HOUR,
    12.0 * HOUR,
    16.0 * HOUR,
    20.0 * HOUR,
    DAY,
    2.0 * DAY,
    3.0 * DAY,
    5.0 * DAY,
    10.0 * DAY,
    15.0 * DAY,
    20.0 * DAY,
    25.0 * DAY,
    30.0 * DAY,
];

const INSTANCE_TERMINATION_BUCKETS: &[f64] = &exponential::<11>(1.0, 2.0);
const TERMINATION_BUCKETS: &[f64] = &exponential::<12>(1.0, 2.0);
const REBOOT_BUCKETS: &[f64] = &exponential::<8>(10.0, 2.0);
const SCORE_BUCKETS: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];

metrics! {
    /// All metrics of the core.
    ALL;
    /// Which version is running; always 1.
    BUILD_INFO = "karpenter_build_info", Gauge, ["version", "goversion", "goarch", "commit"], Stable;

    /// NodeClaims created.
    NODECLAIMS_CREATED = "karpenter_nodeclaims_created_total", Counter,
        ["reason", "nodepool", "min_values_relaxed"], Stable;
    /// NodeClaims terminated.
    NODECLAIMS_TERMINATED = "karpenter_nodeclaims_terminated_total", Counter,
        ["nodepool", "capacity_type", "zone"], Stable;
    /// NodeClaims disrupted.
    NODECLAIMS_DISRUPTED = "karpenter_nodeclaims_disrupted_total", Counter,
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], Alpha;
    /// Pods that must move because their NodeClaim is disrupted.
    PODS_DISRUPTION_INITIATED = "karpenter_pods_disruption_initiated_total", Counter,
        ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], Alpha;
    /// NodeClaims disrupted because their node was broken.
    NODECLAIMS_UNHEALTHY_DISRUPTED = "karpenter_nodeclaims_unhealthy_disrupted_total", Counter,
        ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"], Alpha;
    /// Seconds from the termination of an instance until it is gone.
    NODECLAIMS_INSTANCE_TERMINATION_DURATION = "karpenter_nodeclaims_instance_termination_duration_seconds",
        Histogram(INSTANCE_TERMINATION_BUCKETS), ["nodepool"], Beta;
    /// Seconds from the deletion of a NodeClaim until it is gone.
    NODECLAIMS_TERMINATION_DURATION = "karpenter_nodeclaims_termination_duration_seconds",
        Histogram(TERMINATION_BUCKETS), ["nodepool"], Beta;

    /// Nodes that joined the cluster.
    NODES_CREATED = "karpenter_nodes_created_total", Counter, ["nodepool", "zone"], Stable;
    /// Nodes that left the cluster.
    NODES_TERMINATED = "karpenter_nodes_terminated_total", Counter, ["nodepool", "zone"], Stable;
    /// Nodes drained.
    NODES_DRAINED = "karpenter_nodes_drained_total", Counter, ["nodepool"], Alpha;
    /// Seconds from the deletion of a node until it is gone.
    NODES_TERMINATION_DURATION = "karpenter_nodes_termination_duration_seconds", Summary(OBJECTIVES),
        ["nodepool"], Beta;
    /// Seconds that nodes lived.
    NODES_LIFETIME_DURATION = "karpenter_nodes_lifetime_duration_seconds", Histogram(LIFETIME_BUCKETS),
        ["nodepool"], Alpha;
    /// Reboots that ended, by result: succeeded, provider_error, recovery_timeout or invalid_request.
    NODES_REBOOTS = "karpenter_nodes_reboots_total", Counter, ["result"], Beta;
    /// Seconds from the request for a reboot until it ended.
    NODES_REBOOT_DURATION = "karpenter_nodes_reboot_duration_seconds", Histogram(REBOOT_BUCKETS), ["result"], Beta;
    /// Seconds that rebooted nodes took to come back.
    NODES_REBOOT_RECOVERY_DURATION = "karpenter_nodes_reboot_recovery_duration_seconds",
        Histogram(REBOOT_BUCKETS), [], Beta;

    /// Evictions asked for, by the answer's HTTP status.
    PODS_EVICTION_REQUESTS = "karpenter_pods_eviction_requests_total", Counter, ["code"], Alpha;
    /// Pods that left a node because it was drained.
    PODS_DRAINED = "karpenter_pods_drained_total", Counter, ["reason"], Alpha;

    /// Seconds that scheduling simulations took.
    SCHEDULER_SCHEDULING_DURATION = "karpenter_scheduler_scheduling_duration_seconds",
        Histogram(DURATION_BUCKETS), ["controller"], Stable;
    /// Pods that a simulation has still to place.
    SCHEDULER_QUEUE_DEPTH = "karpenter_scheduler_queue_depth", Gauge, ["controller", "scheduling_id"], Beta;
    /// Seconds that a simulation has been running.
    SCHEDULER_UNFINISHED_WORK = "karpenter_scheduler_unfinished_work_seconds", Gauge,
        ["controller", "scheduling_id"], Alpha;
    /// Pods that no node can be computed for.
    SCHEDULER_IGNORED_PODS = "karpenter_scheduler_ignored_pods_count", Gauge, [], Alpha;
    /// Pods for which no place was found.
    SCHEDULER_UNSCHEDULABLE_PODS = "karpenter_scheduler_unschedulable_pods_count", Gauge, ["controller"], Alpha;
    /// Pending pods by the zone that they must be in.
    SCHEDULER_PENDING_PODS_BY_ZONE = "karpenter_scheduler_pending_pods_by_effective_zone_count", Gauge,
        ["controller", "zone"], Alpha;
    /// Seconds from the first sight of a pod until something was decided for it.
    PODS_SCHEDULING_DECISION_DURATION = "karpenter_pods_scheduling_decision_duration_seconds",
        Histogram(DURATION_BUCKETS), [], Alpha;

    /// Nodes in the cluster state.
    CLUSTER_STATE_NODE_COUNT = "karpenter_cluster_state_node_count", Gauge, [], Stable;
    /// Whether the cluster state is up to date: 1 or 0.
    CLUSTER_STATE_SYNCED = "karpenter_cluster_state_synced", Gauge, [], Stable;
    /// Seconds for which the cluster state has not been up to date.
    CLUSTER_STATE_UNSYNCED_TIME = "karpenter_cluster_state_unsynced_time_seconds", Gauge, [], Stable;
    /// Objects that cannot be read, by kind.
    CLUSTER_STATE_UNREADABLE = "karpenter_cluster_state_unreadable_objects", Gauge, ["kind"], Alpha;
    /// Seconds for which the watch of a kind has failed; no series for kinds whose watch works.
    CLUSTER_STATE_STALE_TIME = "karpenter_cluster_state_stale_time_seconds", Gauge, ["kind"], Alpha;
    /// Whether garbage collection has stopped rather than end something by mistake: 1 or 0.
    GARBAGE_COLLECTION_STOPPED = "karpenter_garbage_collection_stopped", Gauge, ["controller", "reason"], Alpha;

    /// Seconds that deciding what to disrupt took.
    DISRUPTION_EVALUATION_DURATION = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        Histogram(DURATION_BUCKETS), ["reason", "consolidation_type"], Beta;
    /// Disruptions decided.
    DISRUPTION_DECISIONS = "karpenter_voluntary_disruption_decisions_total", Counter,
        ["decision", "reason", "consolidation_type"], Stable;
    /// Disruptions decided, by NodePool.
    DISRUPTION_DECISIONS_BY_NODEPOOL = "karpenter_voluntary_disruption_decisions_by_nodepool_total", Counter,
        ["nodepool", "decision", "reason", "consolidation_type"], Alpha;
    /// Nodes terminated before their replacement could be launched.
    DISRUPTION_TERMINATE_FIRST = "karpenter_voluntary_disruption_terminate_first_decisions_total", Counter,
        ["nodepool", "reason", "terminate_first_reason"], Alpha;
    /// The part of the nodes that could be consolidated that the last pass has looked at.
    DISRUPTION_COVERAGE = "karpenter_voluntary_disruption_coverage_ratio", Gauge, ["consolidation_type"], Alpha;
    /// Nodes that could be disrupted.
    DISRUPTION_ELIGIBLE_NODES = "karpenter_voluntary_disruption_eligible_nodes", Gauge, ["reason"], Beta;
    /// Consolidations that took too long to compute.
    DISRUPTION_CONSOLIDATION_TIMEOUTS = "karpenter_voluntary_disruption_consolidation_timeouts_total", Counter,
        ["consolidation_type"], Beta;
    /// Consolidations that did not hold up when looked at again.
    DISRUPTION_FAILED_VALIDATIONS = "karpenter_voluntary_disruption_failed_validations_total", Counter,
        ["consolidation_type"], Alpha;
    /// Disruptions that could not be carried out.
    DISRUPTION_QUEUE_FAILURES = "karpenter_voluntary_disruption_queue_failures_total", Counter,
        ["decision", "reason", "consolidation_type"], Beta;
    /// How savings compare with disruption, of moves under the policy Balanced.
    CONSOLIDATION_SCORE = "karpenter_consolidation_score", Histogram(SCORE_BUCKETS),
        ["decision", "nodepool", "policy"], Alpha;
    /// Consolidation moves considered.
    CONSOLIDATION_MOVES = "karpenter_consolidation_moves_total", Counter, ["decision", "nodepool", "policy"], Alpha;

    /// Nodes that the budgets of a NodePool allow to be disrupted.
    NODEPOOLS_ALLOWED_DISRUPTIONS = "karpenter_nodepools_allowed_disruptions", Gauge, ["nodepool", "reason"], Stable;
    /// Nodes that count as disrupted already.
    NODEPOOLS_NODES_CONSUMING_BUDGETS = "karpenter_nodepools_nodes_consuming_budgets", Gauge,
        ["nodepool", "reason"], Alpha;
    /// Limits of a NodePool.
    NODEPOOLS_LIMIT = "karpenter_nodepools_limit", Gauge, ["resource_type", "nodepool"], Stable;
    /// What a NodePool has.
    NODEPOOLS_USAGE = "karpenter_nodepools_usage", Gauge, ["resource_type", "nodepool"], Stable;
    /// What a NodePool costs per hour.
    NODEPOOLS_COST = "karpenter_nodepools_cost_total", Gauge, ["nodepool"], Alpha;
    /// Nodes whose cost could not be found out.
    NODEPOOLS_COST_TRACKER_ERRORS = "karpenter_nodepools_cost_tracker_errors_total", Counter, ["nodepool"], Alpha;

    /// What pods can use of a node.
    NODES_ALLOCATABLE = "karpenter_nodes_allocatable", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// What the pods on a node request, without daemons.
    NODES_TOTAL_POD_REQUESTS = "karpenter_nodes_total_pod_requests", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// What the pods on a node are limited to, without daemons.
    NODES_TOTAL_POD_LIMITS = "karpenter_nodes_total_pod_limits", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// What the daemons on a node request.
    NODES_TOTAL_DAEMON_REQUESTS = "karpenter_nodes_total_daemon_requests", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// What the daemons on a node are limited to.
    NODES_TOTAL_DAEMON_LIMITS = "karpenter_nodes_total_daemon_limits", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// What pods cannot use of a node.
    NODES_SYSTEM_OVERHEAD = "karpenter_nodes_system_overhead", Gauge,
        ["node_name", "phase", "managed", "resource_type"] + WellKnown, Beta;
    /// Seconds that a node has lived.
    NODES_CURRENT_LIFETIME = "karpenter_nodes_current_lifetime_seconds", Gauge,
        ["node_name", "phase", "managed"] + WellKnown, Alpha;
    /// Share of all nodes that pods request, in percent.
    CLUSTER_UTILIZATION = "karpenter_cluster_utilization_percent", Gauge, ["resource_type"], Alpha;

    /// Where a pod is and how it does; always 1.
    PODS_STATE = "karpenter_pods_state", Gauge, [
        "name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type",
        "instance_type", "phase", "ready", "managed"
    ], Beta;
    /// Seconds from the creation of a pod until it is ready.
    PODS_STARTUP_DURATION = "karpenter_pods_startup_duration_seconds", Summary(OBJECTIVES), [], Stable;
    /// Seconds for which a pod has not become ready.
    PODS_UNSTARTED_TIME = "karpenter_pods_unstarted_time_seconds", Gauge, ["name", "namespace"], Alpha;
    /// Seconds from the creation of a pod until it has a node.
    PODS_BOUND_DURATION = "karpenter_pods_bound_duration_seconds", Histogram(DURATION_BUCKETS),
        ["dynamic_resources"], Alpha;
    /// Seconds for which a pod has had no node.
    PODS_UNBOUND_TIME = "karpenter_pods_unbound_time_seconds", Gauge,
        ["name", "namespace", "dynamic_resources"], Alpha;
    /// Seconds from the decision for a pod until it has a node.
    PODS_PROVISIONING_BOUND_DURATION = "karpenter_pods_provisioning_bound_duration_seconds",
        Histogram(DURATION_BUCKETS), ["dynamic_resources"], Alpha;
    /// Seconds from the decision for a pod for which it has had no node.
    PODS_PROVISIONING_UNBOUND_TIME = "karpenter_pods_provisioning_unbound_time_seconds", Gauge,
        ["name", "namespace", "dynamic_resources"], Alpha;
    /// Seconds from the decision for a pod until it is ready.
    PODS_PROVISIONING_STARTUP_DURATION = "karpenter_pods_provisioning_startup_duration_seconds",
        Histogram(DURATION_BUCKETS), [], Alpha;
    /// Seconds from the decision for a pod for which it has not become ready.
    PODS_PROVISIONING_UNSTARTED_TIME = "karpenter_pods_provisioning_unstarted_time_seconds", Gauge,
        ["name", "namespace"], Alpha;
    /// Seconds for which nothing has been decided for a pod.
    PODS_PROVISIONING_SCHEDULING_UNDECIDED_TIME =
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds", Gauge, ["name", "namespace"], Alpha;

    /// Nodes on which the deletion cost of pods is about to be written.
    POD_DELETION_COST_PENDING_NODES = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", Gauge,
        ["nodepool"], Alpha;
    /// Writes of the deletion cost of pods.
    POD_DELETION_COST_WRITES = "karpenter_pod_deletion_cost_pod_annotation_writes_total", Counter, ["result"], Alpha;

    /// Seconds that calls to the cloud provider took.
    CLOUDPROVIDER_DURATION = "karpenter_cloudprovider_duration_seconds", Histogram(DEFAULT_BUCKETS),
        ["controller", "method", "provider"], Beta;
    /// Calls to the cloud provider that failed.
    CLOUDPROVIDER_ERRORS = "karpenter_cloudprovider_errors_total", Counter,
        ["controller", "method", "provider", "error", "nodepool"], Beta;
}
