//! The fields of `KubeletConfiguration` (v1beta1, Kubernetes 1.36) and what their values are.

use serde_json::Value;
use units::GoDuration;

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Float,
    Text,
    Duration,
    /// A duration, or nanoseconds.
    FlushFrequency,
    /// An amount of a resource.
    Amount,
    List(&'static Self),
    Map(&'static Self),
    Object(&'static [(&'static [&'static str], Self)]),
    /// Anything at all.
    Any,
}

use Kind::{
    Amount, Any, Bool, Duration, Float, FlushFrequency, Int32, Int64, List, Map, Object, Text, Uint32,
};

/// All fields, by what they are.
pub(super) const FIELDS: &[(&[&str], Kind)] = &[
    (
        &[
            "rotateCertificates",
            "serverTLSBootstrap",
            "enableContentionProfiling",
            "runOnce",
            "protectKernelDefaults",
            "kernelMemcgNotification",
            "enableServer",
            "enableDebuggingHandlers",
            "cgroupsPerQOS",
            "singleProcessOOMKill",
            "cpuCFSQuota",
            "serializeImagePulls",
            "mergeDefaultEvictionSettings",
            "enableControllerAttachDetach",
            "makeIPTablesUtilChains",
            "failSwapOn",
            "enableSystemLogHandler",
            "enableSystemLogQuery",
            "enableProfilingHandler",
            "enableDebugFlagsHandler",
            "seccompDefault",
            "registerNode",
            "localStorageCapacityIsolation",
            "failCgroupV1",
        ],
        Bool,
    ),
    (
        &[
            "port",
            "readOnlyPort",
            "registryBurst",
            "eventBurst",
            "nodeLeaseDurationSeconds",
            "maxPods",
            "kubeAPIBurst",
            "evictionMaxPodGracePeriod",
            "podsPerCore",
            "registryPullQPS",
            "eventRecordQPS",
            "healthzPort",
            "oomScoreAdj",
            "imageGCHighThresholdPercent",
            "imageGCLowThresholdPercent",
            "nodeStatusMaxImages",
            "kubeAPIQPS",
            "maxParallelImagePulls",
            "iptablesMasqueradeBit",
            "iptablesDropBit",
            "containerLogMaxFiles",
            "containerLogMaxWorkers",
        ],
        Int32,
    ),
    (&["maxOpenFiles", "podPidsLimit"], Int64),
    (&["memoryThrottlingFactor"], Float),
    (
        &[
            "kind",
            "apiVersion",
            "staticPodPath",
            "podLogsDir",
            "staticPodURL",
            "address",
            "tlsCertFile",
            "tlsPrivateKeyFile",
            "tlsMinVersion",
            "imagePullCredentialsVerificationPolicy",
            "healthzBindAddress",
            "clusterDomain",
            "kubeletCgroups",
            "systemCgroups",
            "cgroupRoot",
            "cgroupDriver",
            "cpuManagerPolicy",
            "memoryManagerPolicy",
            "topologyManagerPolicy",
            "topologyManagerScope",
            "hairpinMode",
            "podCIDR",
            "resolvConf",
            "contentType",
            "containerLogMaxSize",
            "configMapAndSecretChangeDetectionStrategy",
            "reservedSystemCPUs",
            "showHiddenMetricsForVersion",
            "systemReservedCgroup",
            "kubeReservedCgroup",
            "volumePluginDir",
            "providerID",
            "memoryReservationPolicy",
            "containerRuntimeEndpoint",
            "imageServiceEndpoint",
        ],
        Text,
    ),
    (
        &[
            "syncFrequency",
            "fileCheckFrequency",
            "httpCheckFrequency",
            "streamingConnectionIdleTimeout",
            "nodeStatusUpdateFrequency",
            "nodeStatusReportFrequency",
            "imageMinimumGCAge",
            "imageMaximumGCAge",
            "volumeStatsAggPeriod",
            "cpuManagerReconcilePeriod",
            "runtimeRequestTimeout",
            "cpuCFSQuotaPeriod",
            "evictionPressureTransitionPeriod",
            "containerLogMonitorInterval",
            "shutdownGracePeriod",
            "shutdownGracePeriodCriticalPods",
        ],
        Duration,
    ),
    (
        &[
            "tlsCipherSuites",
            "preloadedImagesVerificationAllowlist",
            "clusterDNS",
            "enforceNodeAllocatable",
            "allowedUnsafeSysctls",
        ],
        List(&Text),
    ),
    (&["tlsCurvePreferences"], List(&Int32)),
    (
        &[
            "cpuManagerPolicyOptions",
            "topologyManagerPolicyOptions",
            "qosReserved",
            "evictionHard",
            "evictionSoft",
            "evictionSoftGracePeriod",
            "evictionMinimumReclaim",
            "systemReserved",
            "kubeReserved",
        ],
        Map(&Text),
    ),
    (&["featureGates"], Map(&Bool)),
    (&["staticPodURLHeader"], Map(&List(&Text))),
    (
        &["authentication"],
        Object(&[
            (&["x509"], Object(&[(&["clientCAFile"], Text)])),
            (&["webhook"], Object(&[(&["enabled"], Bool), (&["cacheTTL"], Duration)])),
            (&["anonymous"], Object(&[(&["enabled"], Bool)])),
        ]),
    ),
    (
        &["authorization"],
        Object(&[
            (&["mode"], Text),
            (&["webhook"], Object(&[(&["cacheAuthorizedTTL", "cacheUnauthorizedTTL"], Duration)])),
        ]),
    ),
    (&["memorySwap"], Object(&[(&["swapBehavior"], Text)])),
    (
        &["logging"],
        Object(&[
            (&["format"], Text),
            (&["flushFrequency"], FlushFrequency),
            (&["verbosity"], Uint32),
            (&["vmodule"], List(&Object(&[(&["filePattern"], Text), (&["verbosity"], Uint32)]))),
            (
                &["options"],
                Object(&[(
                    &["text", "json"],
                    Object(&[(&["splitStream"], Bool), (&["infoBufferSize"], Amount)]),
                )]),
            ),
        ]),
    ),
    (
        &["shutdownGracePeriodByPodPriority"],
        List(&Object(&[(&["priority"], Int32), (&["shutdownGracePeriodSeconds"], Int64)])),
    ),
    (&["crashLoopBackOff"], Object(&[(&["maxContainerRestartPeriod"], Duration)])),
    (&["reservedMemory"], List(&Object(&[(&["numaNode"], Int32), (&["limits"], Map(&Amount))]))),
    // Refused by another rule, with a better sentence.
    (&["registerWithTaints"], Any),
    (&["tracing"], Object(&[(&["endpoint"], Text), (&["samplingRatePerMillion"], Int32)])),
    (&["userNamespaces"], Object(&[(&["idsPerPod"], Int64)])),
];

/// What is wrong with a value.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Fields that nobody knows.
    pub(super) unknown: Vec<String>,
    /// The first value of the wrong kind.
    pub(super) wrong: Option<String>,
}

/// Compares an object with the fields that it may have.
pub(super) fn check<'a>(
    entries: impl IntoIterator<Item = (&'a String, &'a Value)>,
    path: &str,
    fields: &[(&[&str], Kind)],
    found: &mut Found,
) {
    for (name, value) in entries {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match fields.iter().find(|(names, _)| names.contains(&name.as_str())) {
            Some((_, kind)) => check_value(value, &path, *kind, found),
            None => found.unknown.push(path),
        }
    }
}

fn check_value(value: &Value, path: &str, kind: Kind, found: &mut Found) {
    if value.is_null() {
        return;
    }
    let integer = |from: i64, to: i64| value.as_i64().is_some_and(|number| (from..=to).contains(&number));
    let is_duration = || value.as_str().is_some_and(|text| text.parse::<GoDuration>().is_ok());
    let is_right = match (kind, value) {
        (Any, _) | (Bool, Value::Bool(_)) | (Text, Value::String(_)) | (Float | Amount, Value::Number(_)) => {
            true
        }
        (Int32, _) => integer(i64::from(i32::MIN), i64::from(i32::MAX)),
        (Int64, _) => integer(i64::MIN, i64::MAX),
        (Uint32, _) => integer(0, i64::from(u32::MAX)),
        (Duration, _) => is_duration(),
        (FlushFrequency, _) => is_duration() || integer(i64::MIN, i64::MAX),
        (Amount, Value::String(text)) => text.parse::<units::Quantity>().is_ok(),
        (List(kind), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_value(item, &format!("{path}[{index}]"), *kind, found);
            }
            true
        }
        (Map(kind), Value::Object(entries)) => {
            for (name, value) in entries {
                check_value(value, &format!("{path}.{name}"), *kind, found);
            }
            true
        }
        (Object(fields), Value::Object(entries)) => {
            check(entries, path, fields, found);
            true
        }
        _ => false,
    };
    if !is_right && found.wrong.is_none() {
        found.wrong = Some(format!("field {path:?} is {value}, expected {}", expected(kind)));
    }
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Bool => "true or false",
        Int32 | Int64 => "an integer",
        Uint32 => "an integer that is not negative",
        Float => "a number",
        Text => "a string",
        Duration => "a duration such as \"10s\"",
        FlushFrequency => "a duration such as \"10s\" or nanoseconds",
        Amount => "a quantity",
        List(_) => "a list",
        Map(_) | Object(_) => "an object",
        Any => "anything",
    }
}
