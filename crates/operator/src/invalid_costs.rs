//! Logs what pods say of their eviction that cannot be understood, once for each pod and value.

use cluster::costs::{Costs, InvalidCost};
use cluster::state::{Change, Object};

use crate::Context;

/// What a pod says from now on that cannot be understood.
fn news(change: &Change, costs: Costs) -> Option<InvalidCost> {
    let invalid = |side: &Option<Object>| match side {
        Some(Object::Pod(pod)) => costs.stated(pod).err(),
        _ => None,
    };
    let invalid_now = invalid(&change.new)?;
    (invalid(&change.old).as_ref() != Some(&invalid_now)).then_some(invalid_now)
}

/// Logs from now on.
pub(crate) fn listen(context: &Context) {
    let costs = Costs { pod_deletion_cost: !context.settings.gates.pod_deletion_cost_management };
    context.cluster.listen(Box::new(move |change, _| {
        if let Some(invalid) = news(change, costs) {
            tracing::error!(Pod = %change.key(), error = %invalid, "ignoring what a pod says of its eviction");
        }
    }));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Logged, Operated};

    #[test]
    fn a_cost_that_makes_no_sense_is_logged_once_for_each_value() {
        let logged = Logged::start();
        let mut cluster = Operated::by(|context| {
            super::listen(context);
            Vec::new()
        });
        let pod = |annotations: serde_json::Value| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "w", "namespace": "default", "annotations": annotations},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            })
            .to_string()
        };
        let lines = || logged.with("ignoring what a pod says of its eviction");
        cluster.apply(&pod(json!({"karpenter.sh/disruption-cost": "1.5"})));
        cluster.settle();
        let path = "/api/v1/namespaces/default/pods/w";
        cluster.patch(path, &json!({"metadata": {"labels": {"a": "b"}}}));
        cluster.settle();
        assert_eq!(lines().len(), 1, "{:#?}", lines());
        for part in ["Pod=default/w", "karpenter.sh/disruption-cost", "\"1.5\"", "an integer of 32 bits"] {
            assert!(lines()[0].contains(part), "{}", lines()[0]);
        }
        for (value, expected) in [("1e3", 2), ("3", 2), ("1.5", 3)] {
            let change = json!({"metadata": {"annotations": {"karpenter.sh/disruption-cost": value}}});
            cluster.patch(path, &change);
            cluster.settle();
            assert_eq!(lines().len(), expected, "{value}");
        }
    }
}
