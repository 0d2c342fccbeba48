//! Metrics that upstream's libraries publish about the process, and that dashboards therefore expect.

use super::MetricKind::{Counter, Gauge, Histogram};
use super::{exponential, metrics};

const CLIENT_BUCKETS: &[f64] = &exponential::<20>(0.001, 1.5);
const QUEUE_BUCKETS: &[f64] = &exponential::<12>(1e-8, 10.0);
const RECONCILE_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

metrics! {
    /// All metrics about the process.
    ALL;
    /// Reconciliations, by how they ended: success, error, requeue or requeue_after.
    RECONCILES = "controller_runtime_reconcile_total", Counter, ["controller", "result"], Undeclared;
    /// Reconciliations that failed.
    RECONCILE_ERRORS = "controller_runtime_reconcile_errors_total", Counter, ["controller"], Undeclared;
    /// Reconciliations that panicked.
    RECONCILE_PANICS = "controller_runtime_reconcile_panics_total", Counter, ["controller"], Undeclared;
    /// Seconds that reconciliations took.
    RECONCILE_TIME = "controller_runtime_reconcile_time_seconds", Histogram(RECONCILE_BUCKETS),
        ["controller"], Undeclared;
    /// Reconciliations that may run at the same time.
    MAX_CONCURRENT_RECONCILES = "controller_runtime_max_concurrent_reconciles", Gauge, ["controller"], Undeclared;
    /// Reconciliations that are running.
    ACTIVE_WORKERS = "controller_runtime_active_workers", Gauge, ["controller"], Undeclared;

    /// Objects that wait for a reconciliation.
    WORKQUEUE_DEPTH = "workqueue_depth", Gauge, ["name", "controller", "priority"], Undeclared;
    /// Objects that were put into the queue.
    WORKQUEUE_ADDS = "workqueue_adds_total", Counter, ["name", "controller"], Undeclared;
    /// Seconds that objects waited in the queue.
    WORKQUEUE_QUEUE_DURATION = "workqueue_queue_duration_seconds", Histogram(QUEUE_BUCKETS),
        ["name", "controller"], Undeclared;
    /// Seconds that objects took once they were out of the queue.
    WORKQUEUE_WORK_DURATION = "workqueue_work_duration_seconds", Histogram(QUEUE_BUCKETS),
        ["name", "controller"], Undeclared;
    /// Seconds that the running reconciliations have taken together.
    WORKQUEUE_UNFINISHED_WORK = "workqueue_unfinished_work_seconds", Gauge, ["name", "controller"], Undeclared;
    /// Seconds that the longest running reconciliation has taken.
    WORKQUEUE_LONGEST_RUNNING = "workqueue_longest_running_processor_seconds", Gauge,
        ["name", "controller"], Undeclared;
    /// Objects that were put into the queue again.
    WORKQUEUE_RETRIES = "workqueue_retries_total", Counter, ["name", "controller"], Undeclared;

    /// Whether this replica is the leader: 1 or 0.
    LEADER_MASTER_STATUS = "leader_election_master_status", Gauge, ["name"], Undeclared;
    /// Times that the lease had to be read before it could be renewed.
    LEADER_SLOWPATH = "leader_election_slowpath_total", Counter, ["name"], Undeclared;

    /// Requests to the API server.
    CLIENT_REQUESTS = "client_go_request_total", Counter, ["code", "method"], Undeclared;
    /// Seconds that requests to the API server took.
    CLIENT_REQUEST_DURATION = "client_go_request_duration_seconds", Histogram(CLIENT_BUCKETS),
        ["verb", "group", "version", "kind", "subresource"], Undeclared;

    /// Memory that the process occupies.
    PROCESS_RESIDENT_MEMORY = "process_resident_memory_bytes", Gauge, [], Undeclared;
    /// Processor time that the process has used.
    PROCESS_CPU_SECONDS = "process_cpu_seconds_total", Counter, [], Undeclared;
    /// Addresses that the process has reserved.
    PROCESS_VIRTUAL_MEMORY = "process_virtual_memory_bytes", Gauge, [], Undeclared;
    /// When the process started, in seconds since 1970.
    PROCESS_START_TIME = "process_start_time_seconds", Gauge, [], Undeclared;
    /// Files that the process has open.
    PROCESS_OPEN_FDS = "process_open_fds", Gauge, [], Undeclared;
    /// Files that the process may have open.
    PROCESS_MAX_FDS = "process_max_fds", Gauge, [], Undeclared;
    /// Memory that is allocated, under the name by which performance tests look for it.
    LIVE_HEAP = "go_gc_heap_live_bytes", Gauge, [], Undeclared;
}
