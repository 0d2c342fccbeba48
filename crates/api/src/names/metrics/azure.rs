//! Metrics of the Azure provider.

use super::MetricKind::{Counter, Gauge};
use super::metrics;

metrics! {
    /// All metrics of the provider.
    ALL;
    /// Machines that are being created.
    VM_CREATE_START = "karpenter_instance_vm_create_start_total", Counter,
        ["image", "size", "zone", "capacity_type", "nodepool"], Alpha;
    /// Machines that could not be created.
    VM_CREATE_FAILURE = "karpenter_instance_vm_create_failure_total", Counter,
        ["image", "size", "zone", "capacity_type", "nodepool", "phase", "error_code"], Alpha;
    /// Launches for which no image was found.
    IMAGE_SELECTION_ERRORS = "karpenter_image_selection_error_count", Counter, ["family"], Undeclared;
    /// Requests to Azure, repetitions included.
    API_CALLS = "karpenter_cloudprovider_api_calls_total", Counter, ["operation"], Undeclared;
    /// When Azure was last asked for something that decisions rest on, in seconds since 1970; 0 before the first answer.
    DATA_REFRESHED = "karpenter_cloudprovider_data_refreshed_timestamp_seconds", Gauge, ["data"], Alpha;
}
