//! What a pod asks for in all, by kube-scheduler's formula. Entry: [`of_pod`].
//!
//! ```text
//! max( Σ containers + Σ sidecars,  the hungriest moment of the init sequence )
//!      replaced by what the pod as a whole asks for, where it does
//!      + overhead + one pod
//! ```
//!
//! Requests that only the limits state are filled in as the API server does, so that files written by hand mean
//! what they will mean in a cluster.

use units::{Format, Quantity, Resources};

use crate::objects::Pod;
use crate::objects::pod::{Container, ContainerStatus, Resize, ResourceList, ResourceRequirements};

/// What a pod asks for, itself as one pod included.
pub fn of_pod(pod: &Pod) -> Resources {
    let mut total = of_containers(pod);
    override_by_pod_level(&mut total, &pod.spec.resources);
    total.add(&resources(&pod.spec.overhead));
    total.set("pods", Quantity::from_units(1, Format::DecimalSi));
    total
}

/// What a pod is limited to, itself as one pod included. A container without a limit adds nothing.
pub fn limits_of_pod(pod: &Pod) -> Resources {
    let mut total = sequence(pod, |container, _| resources(&container.resources.limits));
    for (name, limit) in pod.spec.resources.limits.iter() {
        total.set(name, *limit);
    }
    total.set("pods", Quantity::from_units(1, Format::DecimalSi));
    total
}

fn of_containers(pod: &Pod) -> Resources {
    let infeasible = pod.status.conditions.resize == Some(Resize::Infeasible);
    sequence(pod, |container, status| of_container(container, status, infeasible))
}

/// What containers need together, or in the hungriest moment of the init sequence.
fn sequence(pod: &Pod, of: impl Fn(&Container, Option<&ContainerStatus>) -> Resources) -> Resources {
    let mut running = Resources::new();
    for container in &pod.spec.containers {
        let status = find(&pod.status.container_statuses, container);
        running.add(&of(container, status));
    }
    let mut sidecars = Resources::new();
    let mut starting = Resources::new();
    for container in &pod.spec.init_containers {
        // While a container starts, it runs beside the sidecars that stand before it.
        let moment = if container.is_sidecar() {
            let status = find(&pod.status.init_container_statuses, container);
            let needed = of(container, status);
            running.add(&needed);
            sidecars.add(&needed);
            sidecars.clone()
        } else {
            let mut moment = of(container, None);
            moment.add(&sidecars);
            moment
        };
        starting.raise_to(&moment);
    }
    running.raise_to(&starting);
    running
}

fn find<'a>(statuses: &'a [ContainerStatus], container: &Container) -> Option<&'a ContainerStatus> {
    statuses.iter().find(|status| status.name == container.name)
}

/// During a resize the node holds the larger of what was and what shall be, unless the latter can never be.
fn of_container(container: &Container, status: Option<&ContainerStatus>, infeasible: bool) -> Resources {
    let wanted = with_limits(&container.resources);
    let Some(given) = status.and_then(|status| Some((status, status.resources.as_ref()?))) else {
        return wanted;
    };
    let (status, given) = given;
    let mut held = resources(&given.requests);
    held.raise_to(&resources(&status.allocated_resources));
    if !infeasible {
        held.raise_to(&wanted);
    }
    held
}

/// A request that is missing is as large as the limit.
fn with_limits(requirements: &ResourceRequirements) -> Resources {
    let mut requests = resources(&requirements.requests);
    for (name, limit) in requirements.limits.iter() {
        if requests.get(name).is_none() {
            requests.set(name, *limit);
        }
    }
    requests
}

/// What the pod as a whole asks for replaces the sum, for the resources that can be given to a whole pod.
///
/// A limit of the pod without a request becomes the request, unless containers ask for the resource themselves
/// and it can be overcommitted.
fn override_by_pod_level(total: &mut Resources, pod: &ResourceRequirements) {
    let is_huge = |name: &str| name.starts_with("hugepages-");
    let is_shared = |name: &str| matches!(name, "cpu" | "memory") || is_huge(name);
    for (name, limit) in pod.limits.iter() {
        let asked = total.get(name).is_some() && !is_huge(name);
        if is_shared(name) && pod.requests.get(name).is_none() && !asked {
            total.set(name, *limit);
        }
    }
    for (name, request) in pod.requests.iter() {
        if is_shared(name) {
            total.set(name, *request);
        }
    }
}

fn resources(list: &ResourceList) -> Resources {
    list.iter().map(|(name, quantity)| (name, *quantity)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks the requests of a pod with this spec and status, without the pod itself.
    #[track_caller]
    fn check(spec: &serde_json::Value, status: &serde_json::Value, expected: &str) {
        let pod = json!({"spec": spec, "status": status});
        let requests = of_pod(&serde_json::from_value(pod).unwrap());
        assert_eq!(requests.amount("pods").value(), 1);
        let shown: Vec<String> = requests
            .iter()
            .filter(|(name, _)| name.as_str() != "pods")
            .map(|(name, quantity)| format!("{name}={quantity}"))
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    fn container(cpu: &str, memory: &str) -> serde_json::Value {
        json!({"name": format!("{cpu}-{memory}"), "resources": {"requests": {"cpu": cpu, "memory": memory}}})
    }

    fn sidecar(cpu: &str, memory: &str) -> serde_json::Value {
        let mut container = container(cpu, memory);
        container["restartPolicy"] = "Always".into();
        container
    }

    #[test]
    fn containers_add_up() {
        check(
            &json!({"containers": [container("1", "1Gi"), container("500m", "2Gi")]}),
            &json!({}),
            "cpu=1500m memory=3Gi",
        );
        check(&json!({"containers": []}), &json!({}), "");
        check(&json!({"containers": [{}]}), &json!({}), "");
    }

    #[test]
    fn limits_add_up_as_requests_do() {
        let limited = |cpu: &str| json!({"name": cpu, "resources": {"limits": {"cpu": cpu}}});
        let spec = json!({
            "containers": [limited("1"), limited("2"), {"name": "free"}], "initContainers": [limited("5")],
            "overhead": {"cpu": "1"},
        });
        let limits = limits_of_pod(&serde_json::from_value(json!({"spec": spec})).unwrap());
        assert_eq!((limits.amount("cpu").value(), limits.amount("pods").value()), (5, 1));
    }

    #[test]
    fn sidecars_add_up_with_containers() {
        check(
            &json!({"containers": [container("2", "1Gi")], "initContainers": [sidecar("1", "2Gi")]}),
            &json!({}),
            "cpu=3 memory=3Gi",
        );
        check(
            &json!({
                "containers": [container("2", "1Gi")],
                "initContainers": [sidecar("1", "2Gi"), sidecar("2", "2Gi")],
            }),
            &json!({}),
            "cpu=5 memory=5Gi",
        );
    }

    #[test]
    fn overhead_comes_on_top_of_everything() {
        check(
            &json!({
                "containers": [container("2", "1Gi")],
                "initContainers": [sidecar("1", "2Gi"), container("4", "2Gi")],
                "overhead": {"cpu": "5", "memory": "1Gi", "example.com/slot": "1"},
            }),
            &json!({}),
            "cpu=10 example.com/slot=1 memory=5Gi",
        );
    }

    #[test]
    fn an_init_container_after_a_sidecar_runs_beside_it() {
        let after = |init| json!({"containers": [container("3", "3Gi")], "initContainers": [sidecar("1", "2Gi"), init]});
        check(&after(container("10", "2Gi")), &json!({}), "cpu=11 memory=5Gi");
        check(&after(container("1", "1Gi")), &json!({}), "cpu=4 memory=5Gi");
    }

    #[test]
    fn an_init_container_before_the_sidecars_runs_alone() {
        check(
            &json!({
                "containers": [container("3", "3Gi")],
                "initContainers": [container("25", "4Gi"), sidecar("1", "2Gi"), sidecar("2", "3Gi")],
            }),
            &json!({}),
            "cpu=25 memory=8Gi",
        );
    }

    #[test]
    fn sidecars_and_init_containers_can_take_turns() {
        check(
            &json!({
                "containers": [container("1", "1Gi")],
                "initContainers": [
                    container("2", "2Gi"), sidecar("3", "3Gi"), container("4", "4Gi"), sidecar("5", "5Gi"),
                    container("6", "1Gi"),
                ],
            }),
            &json!({}),
            "cpu=14 memory=9Gi",
        );
    }

    #[test]
    fn the_largest_amounts_of_resources_can_come_from_different_moments() {
        check(
            &json!({
                "containers": [container("1", "8Gi")],
                "initContainers": [container("10", "1Gi"), container("2", "2Gi")],
            }),
            &json!({}),
            "cpu=10 memory=8Gi",
        );
    }

    #[test]
    fn the_pod_as_a_whole_overrides_its_containers() {
        check(
            &json!({
                "containers": [container("1", "1Gi")],
                "resources": {"requests": {"cpu": "500m", "memory": "4Gi"}, "limits": {"cpu": "8"}},
                "overhead": {"cpu": "1"},
            }),
            &json!({}),
            "cpu=1500m memory=4Gi",
        );
        check(
            &json!({
                "containers": [container("1", "1Gi")],
                "resources": {"requests": {"cpu": "2", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}},
            }),
            &json!({}),
            "cpu=2 hugepages-2Mi=4Mi memory=1Gi",
        );
    }

    #[test]
    fn limits_of_the_pod_become_requests_that_nobody_makes() {
        let limits = json!({"limits": {"cpu": "4", "memory": "4Gi", "hugepages-2Mi": "4Mi"}});
        check(
            &json!({"containers": [{"name": "a"}], "resources": limits}),
            &json!({}),
            "cpu=4 hugepages-2Mi=4Mi memory=4Gi",
        );
        check(
            &json!({"containers": [container("1", "1Gi")], "resources": limits}),
            &json!({}),
            "cpu=1 hugepages-2Mi=4Mi memory=1Gi",
        );
    }

    #[test]
    fn limits_of_a_container_become_requests_that_it_does_not_make() {
        let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2", "nvidia.com/gpu": "1"}});
        check(&json!({"containers": [{"resources": resources}]}), &json!({}), "cpu=1 nvidia.com/gpu=1");
    }

    /// A container that was resized from `held` to `wanted`.
    #[track_caller]
    fn check_resize(wanted: &str, held: &str, reason: &str, expected: &str) {
        let spec = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": wanted}}}]});
        let status = json!({
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "containerStatuses": [
                {"name": "a", "resources": {"requests": {"cpu": held}}, "allocatedResources": {"cpu": held}},
            ],
        });
        check(&spec, &status, expected);
    }

    #[test]
    fn a_resize_in_place_takes_the_larger_until_it_is_done() {
        check_resize("1", "3", "Deferred", "cpu=3");
        check_resize("3", "1", "Deferred", "cpu=3");
        check_resize("2", "2", "Deferred", "cpu=2");
        check_resize("3", "1", "Infeasible", "cpu=1");
    }

    #[test]
    fn a_status_without_resources_does_not_matter() {
        let spec = json!({"containers": [container("1", "1Gi")]});
        let status = json!({"containerStatuses": [{"name": "1-1Gi", "allocatedResources": {"cpu": "8"}}]});
        check(&spec, &status, "cpu=1 memory=1Gi");
    }

    #[test]
    fn a_sidecar_is_resized_but_an_init_container_is_not() {
        let spec = json!({"containers": [], "initContainers": [sidecar("1", "1Gi"), container("1", "2Gi")]});
        let held = json!({"requests": {"cpu": "4"}});
        let status = json!({"initContainerStatuses": [
            {"name": "1-1Gi", "resources": held}, {"name": "1-2Gi", "resources": {"requests": {"cpu": "9"}}},
        ]});
        check(&spec, &status, "cpu=5 memory=3Gi");
    }
}
