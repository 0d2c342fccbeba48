//! What a kubelet writes about a pod in each state.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, HostIP, Node,
    PodCondition, PodIP,
};

use crate::pod::{Container, ContainerStatus, Pod, PodStatus};
use crate::time::time;

/// What a simulated pod is doing.
#[derive(Clone, Debug)]
pub(super) enum State {
    Creating,
    NoImage,
    Running { ready: bool, since: Timestamp },
    Crashing,
    Ended { success: bool, at: Timestamp },
}

/// Whether a pod does not show this state yet.
pub(super) fn needs(pod: &Pod, state: &State) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let waiting = statuses.and_then(|all| all.first()?.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    match state {
        State::Crashing => waiting != Some("CrashLoopBackOff"),
        _ => true,
    }
}

/// The status of a pod in a state, keeping what others wrote.
pub(super) fn status(
    pod: &Pod,
    node: &Node,
    state: &State,
    address: Option<String>,
    now: Timestamp,
) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    status.observed_generation = pod.metadata.generation.or(status.observed_generation);
    status.phase = Some(
        match state {
            State::Creating | State::NoImage => "Pending",
            State::Running { .. } | State::Crashing => "Running",
            State::Ended { success: true, .. } => "Succeeded",
            State::Ended { success: false, .. } => "Failed",
        }
        .to_owned(),
    );
    status.start_time.get_or_insert_with(|| time(now));
    let host = host_address(node);
    status.host_ip = Some(host.clone());
    status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
    let address = if spec.host_network == Some(true) { Some(host) } else { address };
    if let Some(address) = address.filter(|_| status.pod_ip.is_none()) {
        status.pod_ips = Some(vec![PodIP { ip: address.clone() }]);
        status.pod_ip = Some(address);
    }
    let old = status.container_statuses.take().unwrap_or_default();
    status.container_statuses =
        Some(spec.containers.iter().map(|container| main(container, &old, state, now)).collect());
    if let Some(inits) = spec.init_containers.as_ref().filter(|inits| !inits.is_empty()) {
        let old = status.init_container_statuses.take().unwrap_or_default();
        status.init_container_statuses =
            Some(inits.iter().map(|container| init(container, &old, state, now)).collect());
    }
    conditions(&mut status, pod, state, now);
    status
}

fn host_address(node: &Node) -> String {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses.into_iter().find(|address| address.type_ == "InternalIP");
    let name = node.metadata.name.as_deref().unwrap_or_default();
    internal.map_or_else(|| super::node::internal_address(name), |address| address.address.clone())
}

fn base(container: &Container, old: &[ContainerStatus]) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    let known = old.iter().find(|status| status.name == container.name).cloned();
    known.unwrap_or_else(|| ContainerStatus {
        name: container.name.clone(),
        image,
        ..ContainerStatus::default()
    })
}

fn waiting(reason: &str, message: Option<String>) -> Box<ContainerState> {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    Box::new(ContainerState { waiting: Some(waiting), ..ContainerState::default() })
}

fn running(since: Timestamp) -> Box<ContainerState> {
    let running = ContainerStateRunning { started_at: Some(time(since)) };
    Box::new(ContainerState { running: Some(running), ..ContainerState::default() })
}

fn terminated(success: bool, began: Option<Timestamp>, at: Timestamp) -> Box<ContainerState> {
    let terminated = ContainerStateTerminated {
        exit_code: i32::from(!success),
        reason: Some(if success { "Completed" } else { "Error" }.to_owned()),
        started_at: Some(time(began.unwrap_or(at))),
        finished_at: Some(time(at)),
        ..ContainerStateTerminated::default()
    };
    Box::new(ContainerState { terminated: Some(terminated), ..ContainerState::default() })
}

fn id(container: &Container) -> String {
    format!("simulated://{}", crate::template::hash(&container.name, None))
}

fn main(container: &Container, old: &[ContainerStatus], state: &State, now: Timestamp) -> ContainerStatus {
    let mut status = base(container, old);
    let before = status.state.clone();
    let began =
        before.as_ref().and_then(|state| state.running.as_ref()?.started_at.as_ref()).map(|time| time.0);
    match state {
        State::Creating => {
            status.state = Some(waiting("ContainerCreating", None));
            status.started = Some(false);
        }
        State::NoImage => {
            let message =
                format!("Back-off pulling image \"{}\"", container.image.as_deref().unwrap_or_default());
            status.state = Some(waiting("ImagePullBackOff", Some(message)));
            status.started = Some(false);
        }
        State::Running { ready, since } => {
            status.state = Some(running(*since));
            status.ready = *ready;
            status.started = Some(true);
            status.container_id = Some(id(container));
            status.image_id.clone_from(&status.image);
        }
        State::Crashing => {
            let reason = before.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref());
            if reason != Some("CrashLoopBackOff") {
                status.restart_count += 1;
                status.last_state = Some(terminated(false, began, now));
                let message = format!("back-off 10s restarting failed container={}", container.name);
                status.state = Some(waiting("CrashLoopBackOff", Some(message)));
            }
            status.ready = false;
            status.started = Some(false);
            status.container_id = Some(id(container));
        }
        State::Ended { success, at } => {
            status.state = Some(terminated(*success, began, *at));
            status.ready = false;
            status.started = Some(false);
            status.container_id = Some(id(container));
        }
    }
    status
}

fn init(container: &Container, old: &[ContainerStatus], state: &State, now: Timestamp) -> ContainerStatus {
    let mut status = base(container, old);
    let stays = container.restart_policy.as_deref() == Some("Always");
    match state {
        State::Creating | State::NoImage => {
            status.state = Some(waiting("PodInitializing", None));
            status.started = Some(false);
        }
        State::Running { since, .. } if stays => {
            status.state = Some(running(*since));
            status.ready = true;
            status.started = Some(true);
        }
        _ => {
            let done = status.state.as_ref().is_some_and(|state| state.terminated.is_some());
            if !done {
                status.state = Some(terminated(true, None, now));
            }
            status.ready = !stays;
            status.started = Some(false);
        }
    }
    status
}

fn conditions(status: &mut PodStatus, pod: &Pod, state: &State, now: Timestamp) {
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let gates_open = gates.into_iter().all(|gate| {
        let all = status.conditions.iter().flatten();
        all.into_iter().any(|condition| condition.type_ == gate.condition_type && condition.status == "True")
    });
    let (initialized, ready, reason) = match state {
        State::Creating | State::NoImage => (init_free(pod), false, Some("ContainersNotReady")),
        State::Running { ready, .. } => (true, *ready, (!*ready).then_some("ContainersNotReady")),
        State::Crashing => (true, false, Some("ContainersNotReady")),
        State::Ended { success: true, .. } => (true, false, Some("PodCompleted")),
        State::Ended { success: false, .. } => (true, false, Some("PodFailed")),
    };
    let begun = !matches!(state, State::Creating | State::NoImage);
    set(status, "PodReadyToStartContainers", begun && !matches!(state, State::Ended { .. }), None, now);
    set(status, "Initialized", initialized, (!initialized).then_some("ContainersNotInitialized"), now);
    let pod_ready = ready && gates_open;
    let pod_reason = if ready && !gates_open { Some("ReadinessGatesNotReady") } else { reason };
    set(status, "Ready", pod_ready, pod_reason, now);
    set(status, "ContainersReady", ready, reason, now);
    if !status.conditions.iter().flatten().any(|condition| condition.type_ == "PodScheduled") {
        set(status, "PodScheduled", true, None, now);
    }
    for condition in status.conditions.iter_mut().flatten() {
        let own = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
        if own.contains(&condition.type_.as_str()) {
            condition.observed_generation = pod.metadata.generation;
        }
    }
}

fn init_free(pod: &Pod) -> bool {
    pod.spec.as_ref().is_none_or(|spec| spec.init_containers.as_ref().is_none_or(Vec::is_empty))
}

fn set(status: &mut PodStatus, name: &str, state: bool, reason: Option<&str>, now: Timestamp) {
    let state = if state { "True" } else { "False" };
    let all = status.conditions.get_or_insert_default();
    let before = all.iter().position(|condition| condition.type_ == name);
    let since = before.map(|at| &all[at]).filter(|condition| condition.status == state);
    let new = PodCondition {
        type_: name.to_owned(),
        status: state.to_owned(),
        reason: reason.map(str::to_owned),
        last_transition_time: since
            .map_or_else(|| Some(time(now)), |before| before.last_transition_time.clone()),
        ..PodCondition::default()
    };
    match before {
        Some(at) => all[at] = new,
        None => all.push(new),
    }
}
