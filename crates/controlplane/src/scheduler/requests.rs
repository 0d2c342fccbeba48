//! What pods ask for and nodes offer, in the units kube-scheduler counts in.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use units::Quantity;

use crate::pod::{Container, ContainerStatus, Pod};

type List = BTreeMap<String, Written>;
type Parsed = BTreeMap<String, Quantity>;

/// Assumed when nodes are scored, for containers that say nothing.
const DEFAULT_MILLI_CPU: i64 = 100;
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amounts {
    pub(crate) milli_cpu: i64,
    pub(crate) memory: i64,
    pub(crate) ephemeral_storage: i64,
    /// Extended resources, huge pages and attachable volumes.
    pub(crate) others: BTreeMap<String, i64>,
    /// How many pods fit, on a node.
    pub(crate) pods: i64,
}

impl Amounts {
    fn of(list: &Parsed) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in list {
            match name.as_str() {
                "cpu" => amounts.milli_cpu = quantity.milli_value(),
                "memory" => amounts.memory = quantity.value(),
                "ephemeral-storage" => amounts.ephemeral_storage = quantity.value(),
                "pods" => amounts.pods = quantity.value(),
                name if counts_as_other(name) => {
                    amounts.others.insert(name.to_owned(), quantity.value());
                }
                _ => {}
            }
        }
        amounts
    }

    /// What a node offers.
    pub(crate) fn of_node(allocatable: Option<&List>) -> Self {
        Self::of(&parse(allocatable))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.change(other, 1);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.change(other, -1);
    }

    fn change(&mut self, other: &Self, sign: i64) {
        self.milli_cpu += sign * other.milli_cpu;
        self.memory += sign * other.memory;
        self.ephemeral_storage += sign * other.ephemeral_storage;
        for (name, amount) in &other.others {
            *self.others.entry(name.clone()).or_default() += sign * amount;
        }
    }

    /// Whether nothing is asked for, not even nothing of something.
    pub(crate) fn is_empty(&self) -> bool {
        self.milli_cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.others.is_empty()
    }
}

/// What one pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requests {
    /// What has to be free for the pod; counts its spec alone.
    pub(crate) needed: Amounts,
    /// What the pod takes once it is on a node; a resize in progress counts with the larger side.
    pub(crate) taken: Amounts,
    /// CPU and memory for scoring, where a pod that says nothing is not free.
    pub(crate) scored: (i64, i64),
}

impl Requests {
    pub(crate) fn of(pod: &Pod) -> Self {
        let plain = pod_requests(pod, false, false);
        let needed = Amounts::of(&plain);
        // Statuses matter in a resize only, and most pods have none.
        let statuses = pod.status.as_ref();
        let resizable = statuses.is_some_and(|status| {
            let any = |list: &Option<Vec<ContainerStatus>>| {
                list.iter().flatten().any(|one| one.resources.is_some())
            };
            any(&status.container_statuses)
                || any(&status.init_container_statuses)
                || status.resources.is_some()
        });
        let taken = if resizable { Amounts::of(&pod_requests(pod, true, false)) } else { needed.clone() };
        let scored = Amounts::of(&pod_requests(pod, resizable, true));
        Self { needed, taken, scored: (scored.milli_cpu, scored.memory) }
    }
}

/// The API server has validated quantities; one that is unreadable all the same asks for nothing.
fn parse(list: Option<&List>) -> Parsed {
    let all = list.into_iter().flatten();
    all.filter_map(|(name, written)| Some((name.clone(), written.0.parse().ok()?))).collect()
}

fn counts_as_other(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    let extended = !native && !name.starts_with("requests.");
    extended
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || name.contains("kubernetes.io/")
}

fn add(to: &mut Parsed, list: &Parsed) {
    for (name, quantity) in list {
        let sum = to.get(name).copied().map_or(*quantity, |present| present + *quantity);
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Parsed, list: &Parsed) {
    for (name, quantity) in list {
        let present = to.entry(name.clone()).or_insert(*quantity);
        *present = (*present).max(*quantity);
    }
}

fn pod_requests(pod: &Pod, with_status: bool, with_defaults: bool) -> Parsed {
    let Some(spec) = &pod.spec else { return Parsed::new() };
    let statuses = pod.status.as_ref().filter(|_| with_status);
    let infeasible = statuses.and_then(|status| status.conditions.as_ref()).is_some_and(|conditions| {
        conditions
            .iter()
            .any(|one| one.type_ == "PodResizePending" && one.reason.as_deref() == Some("Infeasible"))
    });
    let pod_level =
        spec.resources.as_ref().map(|resources| parse(resources.requests.as_ref())).unwrap_or_default();
    let pod_level: Parsed = pod_level.into_iter().filter(|(name, _)| supported_at_pod_level(name)).collect();

    let of_container = |container: &Container| {
        let written = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let mut requests = parse(written);
        let lists = statuses
            .into_iter()
            .flat_map(|status| [&status.container_statuses, &status.init_container_statuses]);
        let status = lists.flatten().flatten().find(|status| status.name == container.name);
        if let Some((status, actual)) = status.and_then(|status| Some((status, status.resources.as_ref()?))) {
            if infeasible {
                requests.clear();
            }
            raise(&mut requests, &parse(actual.requests.as_ref()));
            raise(&mut requests, &parse(status.allocated_resources.as_ref()));
        }
        if with_defaults {
            let defaults = [("cpu", DEFAULT_MILLI_CPU, "m"), ("memory", DEFAULT_MEMORY, "")];
            for (name, amount, unit) in defaults {
                if !requests.contains_key(name) && !pod_level.contains_key(name) {
                    requests.extend(
                        format!("{amount}{unit}").parse().map(|quantity| (name.to_owned(), quantity)),
                    );
                }
            }
        }
        requests
    };

    let mut total = Parsed::new();
    for container in &spec.containers {
        add(&mut total, &of_container(container));
    }
    // An init container runs beside the sidecars that were started before it.
    let (mut sidecars, mut peak) = (Parsed::new(), Parsed::new());
    for container in spec.init_containers.iter().flatten() {
        let requests = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &requests);
            add(&mut sidecars, &requests);
            raise(&mut peak, &sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            add(&mut with_sidecars, &requests);
            raise(&mut peak, &with_sidecars);
        }
    }
    raise(&mut total, &peak);

    // What the pod says as a whole replaces the sum.
    let mut resized = pod_level.clone();
    if let Some((status, actual)) = statuses.and_then(|status| Some((status, status.resources.as_ref()?))) {
        if infeasible {
            resized.clear();
        }
        raise(&mut resized, &parse(actual.requests.as_ref()));
        raise(&mut resized, &parse(status.allocated_resources.as_ref()));
    }
    total.extend(pod_level.into_keys().filter_map(|name| Some((name.clone(), *resized.get(&name)?))));
    add(&mut total, &parse(spec.overhead.as_ref()));
    total
}

fn supported_at_pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}
