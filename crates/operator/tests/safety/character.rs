//! What random clusters are like.

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::scenarios::manifests::{pool, with};

/// What a cluster is like, as far as it matters to what may happen to it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Character {
    /// Whether not all pods may have a place.
    pub(crate) is_limited: bool,
    /// Whether there may be more pods than have a place, so that they take it from each other.
    pub(crate) is_contested: bool,
    /// Whether machines fail to come up.
    pub(crate) has_weather: bool,
    /// Whether nodes break, and are repaired.
    pub(crate) is_repaired: bool,
    /// Whether nodes grow too old.
    pub(crate) expires: bool,
    /// Whether there is a pool of a fixed size.
    pub(crate) has_fixed: bool,
    /// Whether there is a second pool.
    pub(crate) has_second: bool,
    has_spot: bool,
    is_bounded: bool,
}

impl Character {
    pub(crate) fn new(random: &mut Pcg64Mcg) -> Self {
        let mut maybe = |probability| random.random_bool(probability);
        let is_limited = maybe(0.35);
        Self {
            is_limited,
            is_contested: is_limited && maybe(0.5),
            has_weather: maybe(0.5),
            // What is lost by force may find no place within a limit.
            is_repaired: maybe(0.4) && !is_limited,
            expires: maybe(0.3) && !is_limited,
            has_fixed: maybe(0.3),
            has_second: maybe(0.4),
            has_spot: maybe(0.4),
            is_bounded: maybe(0.5),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.gates.spot_to_spot_consolidation = self.has_spot;
        settings.gates.static_capacity = self.has_fixed;
        settings.gates.node_repair = self.is_repaired;
        settings
    }

    /// The names of the pools whose size follows their pods.
    pub(crate) fn pools(&self) -> Vec<&'static str> {
        if self.has_second { vec!["default", "second"] } else { vec!["default"] }
    }

    /// What nodes of a pool must be like, with so many processors.
    pub(crate) fn requirements(&self, processors: &[&str]) -> Value {
        let bought: &[&str] = if self.has_spot { &["spot", "on-demand"] } else { &["on-demand"] };
        json!([
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": bought},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": processors},
        ])
    }

    /// A pool with rules of all kinds.
    pub(crate) fn pool(&self, name: &str, random: &mut Pcg64Mcg) -> Value {
        let mut one_of = |choices: &[Value]| choices[random.random_range(0..choices.len())].clone();
        let policy = one_of(&[
            json!("WhenEmptyOrUnderutilized"),
            json!("WhenEmptyOrUnderutilized"),
            json!("WhenEmptyOrUnderutilized"),
            json!("WhenEmptyOrUnderutilized"),
            json!("Balanced"),
            json!("Balanced"),
            json!("WhenEmpty"),
        ]);
        let budgets = one_of(&[
            json!([{"nodes": "1"}]),
            json!([{"nodes": "2"}]),
            json!([{"nodes": "30%"}]),
            json!([{"nodes": "100%"}]),
            json!([{"nodes": "4"}]),
            json!([{"nodes": "1", "reasons": ["Drifted"]}, {"nodes": "50%"}]),
            json!([{"nodes": "0", "schedule": "6 * * * *", "duration": "3m"}, {"nodes": "2"}]),
            json!([{"nodes": "0", "reasons": ["Underutilized"], "schedule": "4 * * * *", "duration": "30m"},
                {"nodes": "100%", "reasons": ["Empty", "Underutilized"]}, {"nodes": "3"}]),
        ]);
        // Small nodes, so that there are several.
        let mut template = json!({"requirements": self.requirements(&["1", "2"])});
        if self.is_bounded {
            template["terminationGracePeriod"] = one_of(&[json!("40s"), json!("2m")]);
        }
        if self.expires {
            template["expireAfter"] = one_of(&[json!("6m"), json!("15m")]);
        }
        let mut spec = json!({
            "disruption": {
                "consolidationPolicy": policy,
                "consolidateAfter": one_of(&[json!("0s"), json!("30s")]),
                "budgets": budgets,
            },
            "template": {"spec": template},
        });
        if name == "fixed" {
            spec["replicas"] = json!(2);
            spec["limits"] = json!({"nodes": "4"});
        } else if self.is_limited {
            spec["limits"] = one_of(&[json!({"cpu": "16"}), json!({"cpu": "9"}), json!({"nodes": "8"})]);
        }
        with(pool(name), &json!({"spec": spec}))
    }
}
