//! The configuration of containerd.

/// The configuration, for a node with NVIDIA's drivers or without.
pub(super) fn config(is_nvidia: bool) -> String {
    let (runtime, binary) = if is_nvidia {
        ("nvidia-container-runtime", "/usr/bin/nvidia-container-runtime")
    } else {
        ("runc", "/usr/bin/runc")
    };
    format!(
        r#"version = 2
oom_score = 0

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox}"

[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "{runtime}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{runtime}.options]
  BinaryName = "{binary}"
  SystemdCgroup = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.untrusted]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.untrusted.options]
  BinaryName = "{binary}"

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.grpc.v1.cri".registry.headers]
  X-Meta-Source-Client = ["azure/aks"]

[metrics]
  address = "0.0.0.0:10257"
"#,
        sandbox = super::kubelet_flags::PAUSE_IMAGE,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(is_nvidia: bool) -> Value {
        let table: toml::Table = config(is_nvidia).parse().unwrap();
        serde_json::to_value(table).unwrap()
    }

    // azure.md 13.2: containerd config
    #[test]
    fn containerd_has_every_key_that_the_image_expects() {
        assert_eq!(
            read(false),
            json!({
                "version": 2,
                "oom_score": 0,
                "plugins": {"io.containerd.grpc.v1.cri": {
                    "sandbox_image": "mcr.microsoft.com/oss/kubernetes/pause:3.6",
                    "containerd": {
                        "default_runtime_name": "runc",
                        "runtimes": {
                            "runc": {
                                "runtime_type": "io.containerd.runc.v2",
                                "options": {"BinaryName": "/usr/bin/runc", "SystemdCgroup": true},
                            },
                            "untrusted": {
                                "runtime_type": "io.containerd.runc.v2",
                                "options": {"BinaryName": "/usr/bin/runc"},
                            },
                        },
                    },
                    "registry": {
                        "config_path": "/etc/containerd/certs.d",
                        "headers": {"X-Meta-Source-Client": ["azure/aks"]},
                    },
                }},
                "metrics": {"address": "0.0.0.0:10257"},
            })
        );
    }

    // azure.md 13.2: GPU driver nodes
    #[test]
    fn a_node_with_drivers_runs_containers_by_nvidia() {
        let containerd = read(true)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"].clone();
        assert_eq!(containerd["default_runtime_name"], "nvidia-container-runtime");
        for runtime in ["nvidia-container-runtime", "untrusted"] {
            assert_eq!(
                containerd["runtimes"][runtime]["options"]["BinaryName"],
                "/usr/bin/nvidia-container-runtime"
            );
        }
    }
}
