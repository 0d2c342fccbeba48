//! Metrics of the AWS provider.

use super::MetricKind::{Counter, Gauge, Histogram};
use super::{DURATION_BUCKETS, exponential, metrics};

const BATCH_SIZE_BUCKETS: &[f64] = &[
    1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 125.0,
    150.0, 175.0, 200.0, 225.0, 250.0, 275.0, 300.0, 350.0, 400.0, 450.0, 500.0, 550.0, 600.0, 700.0, 800.0,
    900.0, 1000.0,
];
const CLIENT_BUCKETS: &[f64] = &exponential::<20>(0.01, 1.5);
const RETRY_BUCKETS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

metrics! {
    /// All metrics of the provider, besides those of the AWS client.
    ALL;
    /// Virtual processors of an instance type.
    INSTANCE_TYPE_CPU_CORES = "karpenter_cloudprovider_instance_type_cpu_cores", Gauge,
        ["instance_type"], Undeclared;
    /// Memory of an instance type.
    INSTANCE_TYPE_MEMORY = "karpenter_cloudprovider_instance_type_memory_bytes", Gauge,
        ["instance_type"], Undeclared;
    /// Whether an offering can be launched: 1 or 0.
    OFFERING_AVAILABLE = "karpenter_cloudprovider_instance_type_offering_available", Gauge,
        ["instance_type", "capacity_type", "zone"], Undeclared;
    /// What an offering costs per hour.
    OFFERING_PRICE_ESTIMATE = "karpenter_cloudprovider_instance_type_offering_price_estimate", Gauge,
        ["instance_type", "capacity_type", "zone"], Undeclared;
    /// Launches that failed.
    INSTANCE_LAUNCH_FAILURES = "karpenter_cloudprovider_instance_launch_failures_total", Counter,
        ["zone", "zone_id", "capacity_type", "reason"], Undeclared;
    /// Terminations that failed.
    INSTANCE_TERMINATION_FAILURES = "karpenter_cloudprovider_instance_termination_failures_total", Counter,
        ["zone", "zone_id"], Undeclared;
    /// Seconds for which requests were collected.
    BATCH_TIME = "karpenter_cloudprovider_batcher_batch_time_seconds", Histogram(DURATION_BUCKETS),
        ["batcher"], Undeclared;
    /// Requests that were sent as one.
    BATCH_SIZE = "karpenter_cloudprovider_batcher_batch_size", Histogram(BATCH_SIZE_BUCKETS),
        ["batcher"], Undeclared;
    /// Requests to AWS; divided by the launched instances, what one costs.
    API_CALLS = "karpenter_cloudprovider_api_calls_total", Counter, ["operation"], Undeclared;
    /// Instances that were launched.
    INSTANCES_LAUNCHED = "karpenter_cloudprovider_instances_launched_total", Counter,
        ["capacity_type"], Undeclared;
    /// Size of the user data.
    USERDATA_BYTES = "karpenter_ec2nodeclasses_userdata_bytes", Gauge, ["nodeclass"], Undeclared;
    /// Messages about interruptions received.
    INTERRUPTION_RECEIVED_MESSAGES = "karpenter_interruption_received_messages_total", Counter,
        ["message_type"], Undeclared;
    /// Messages about interruptions deleted.
    INTERRUPTION_DELETED_MESSAGES = "karpenter_interruption_deleted_messages_total", Counter, [], Undeclared;
    /// Seconds that messages about interruptions waited in the queue.
    INTERRUPTION_MESSAGE_QUEUE_DURATION = "karpenter_interruption_message_queue_duration_seconds",
        Histogram(DURATION_BUCKETS), [], Undeclared;
    /// Instances found to be impaired.
    INTERRUPTION_INSTANCE_STATUS_UNHEALTHY = "karpenter_interruption_instance_status_unhealthy_total", Counter,
        ["category"], Undeclared;
}

metrics! {
    /// Metrics of the AWS client.
    CLIENT;
    /// Requests.
    CLIENT_REQUESTS = "aws_sdk_go_request_total", Counter, ["service", "action", "code"], Stable;
    /// Requests and their repetitions.
    CLIENT_ATTEMPTS = "aws_sdk_go_request_attempt_total", Counter, ["service", "action", "code"], Stable;
    /// Seconds that requests took.
    CLIENT_REQUEST_DURATION = "aws_sdk_go_request_duration_seconds", Histogram(CLIENT_BUCKETS),
        ["service", "action", "code"], Stable;
    /// Seconds that single attempts took.
    CLIENT_ATTEMPT_DURATION = "aws_sdk_go_request_attempt_duration_seconds", Histogram(CLIENT_BUCKETS),
        ["service", "action", "code"], Stable;
    /// Repetitions of a request.
    CLIENT_RETRIES = "aws_sdk_go_request_retry_count", Histogram(RETRY_BUCKETS),
        ["service", "action", "code"], Stable;
}
