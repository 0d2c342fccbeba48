//! The hash of an EC2NodeClass: what is written into the launch template. What selectors find is compared
//! separately.

use std::fmt::Write;

use serde_json::{Number, Value};

use super::{Struct, boolean, int32, int64, map, set, string};
use crate::aws::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, EC2NodeClassSpec, MetadataOptions,
    NetworkInterface, PlacementGroupSelector,
};

/// Stored next to the hash; changes whenever the algorithm or the hashed fields do.
pub const EC2_NODE_CLASS_HASH_VERSION: &str = "v6";

/// The drift hash of an EC2NodeClass, as it stands in the annotation `karpenter.k8s.aws/ec2nodeclass-hash`.
///
/// The cluster's CA bundle is part of every node's user data, hence of the hash.
pub fn ec2_node_class_hash(spec: &EC2NodeClassSpec, ca_bundle: Option<&str>) -> String {
    let parts = [
        node_class_spec(spec),
        string(spec.resolved_ami_family().as_str()),
        string(ca_bundle.unwrap_or_default()),
        string(&kubelet_text(spec)),
    ];
    set(parts).to_string()
}

/// The kubelet settings as canonical JSON, `null` when there are none.
pub fn kubelet_text(spec: &EC2NodeClassSpec) -> String {
    let mut text = String::new();
    match &spec.kubelet {
        Some(settings) if !settings.is_empty() => {
            write_object(&mut text, settings.iter());
        }
        _ => text.push_str("null"),
    }
    text
}

fn node_class_spec(spec: &EC2NodeClassSpec) -> u64 {
    let text = |value: &String| string(value);
    Struct::new("EC2NodeClassSpec")
        .field("PlacementGroupSelector", spec.placement_group_selector.as_ref().map(placement_group))
        .field("AssociatePublicIPAddress", spec.associate_public_ip_address.map(boolean))
        .field("UserData", spec.user_data.as_ref().map(text))
        .text("Role", spec.role.as_deref().unwrap_or_default())
        .field("InstanceProfile", spec.instance_profile.as_ref().map(text))
        .field("Tags", spec.tags.as_ref().map(map))
        .field(
            "BlockDeviceMappings",
            spec.block_device_mappings.as_ref().map(|devices| set(devices.iter().map(block_device_mapping))),
        )
        .field("InstanceStorePolicy", spec.instance_store_policy.map(|policy| string(policy.as_str())))
        .field(
            "NetworkInterfaces",
            spec.network_interfaces.as_ref().map(|interfaces| set(interfaces.iter().map(network_interface))),
        )
        .field("DetailedMonitoring", spec.detailed_monitoring.map(boolean))
        .field("MetadataOptions", spec.metadata_options.as_ref().map(metadata_options))
        .field("ConnectionTracking", spec.connection_tracking.as_ref().map(connection_tracking))
        .field("Context", spec.context.as_ref().map(text))
        .field("CPUOptions", spec.cpu_options.as_ref().map(cpu_options))
        .hash()
}

fn placement_group(selector: &PlacementGroupSelector) -> u64 {
    Struct::new("PlacementGroupSelector")
        .text("Name", selector.name.as_deref().unwrap_or_default())
        .text("ID", selector.id.as_deref().unwrap_or_default())
        .hash()
}

fn block_device_mapping(mapping: &BlockDeviceMapping) -> u64 {
    Struct::new("BlockDeviceMapping")
        .field("DeviceName", mapping.device_name.as_ref().map(|name| string(name)))
        .field("EBS", mapping.ebs.as_ref().map(block_device))
        .field("RootVolume", mapping.root_volume.then(|| boolean(true)))
        .hash()
}

fn block_device(device: &BlockDevice) -> u64 {
    Struct::new("BlockDevice")
        .field("DeleteOnTermination", device.delete_on_termination.map(boolean))
        .field("Encrypted", device.encrypted.map(boolean))
        .field("IOPS", device.iops.map(int64))
        .field("KMSKeyID", device.kms_key_id.as_ref().map(|id| string(id)))
        .field("SnapshotID", device.snapshot_id.as_ref().map(|id| string(id)))
        .field("Throughput", device.throughput.map(int64))
        .field("VolumeInitializationRate", device.volume_initialization_rate.map(int32))
        .field("VolumeSize", device.volume_size.map(|size| string(&size.to_string())))
        .field("VolumeType", device.volume_type.map(|kind| string(kind.as_str())))
        .hash()
}

fn network_interface(interface: &NetworkInterface) -> u64 {
    let number = |value: i32| (value != 0).then(|| int32(value));
    Struct::new("NetworkInterface")
        .field("NetworkCardIndex", number(interface.network_card_index))
        .field("DeviceIndex", number(interface.device_index))
        .field("InterfaceType", Some(string(interface.interface_type.as_str())))
        .hash()
}

fn metadata_options(options: &MetadataOptions) -> u64 {
    Struct::new("MetadataOptions")
        .field("HTTPEndpoint", options.http_endpoint.map(|toggle| string(toggle.as_str())))
        .field("HTTPProtocolIPv6", options.http_protocol_ipv6.map(|toggle| string(toggle.as_str())))
        .field("HTTPPutResponseHopLimit", options.http_put_response_hop_limit.map(int64))
        .field("HTTPTokens", options.http_tokens.map(|tokens| string(tokens.as_str())))
        .hash()
}

fn connection_tracking(tracking: &ConnectionTracking) -> u64 {
    Struct::new("ConnectionTracking")
        .field("TCPEstablishedTimeout", tracking.tcp_established_timeout.map(int32))
        .field("UDPStreamTimeout", tracking.udp_stream_timeout.map(int32))
        .field("UDPTimeout", tracking.udp_timeout.map(int32))
        .hash()
}

fn cpu_options(options: &CpuOptions) -> u64 {
    Struct::new("CPUOptions")
        .field("NestedVirtualization", options.nested_virtualization.map(|toggle| string(toggle.as_str())))
        .hash()
}

/// Writes JSON as Go does: keys in order, no spaces, `<`, `>` and `&` escaped.
fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(text, number),
        Value::String(value) => write_string(text, value),
        Value::Array(values) => {
            text.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_value(text, value);
            }
            text.push(']');
        }
        Value::Object(entries) => write_object(text, entries.iter()),
    }
}

/// The entries come in order: they are kept in B-trees.
fn write_object<'a>(text: &mut String, entries: impl Iterator<Item = (&'a String, &'a Value)>) {
    text.push('{');
    for (i, (key, value)) in entries.enumerate() {
        if i > 0 {
            text.push(',');
        }
        write_string(text, key);
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

fn write_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\u{0}'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(text, "\\u{:04x}", u32::from(character)).expect("writing to a string");
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

/// Go writes exponents only for very small and very large numbers.
fn write_number(text: &mut String, number: &Number) {
    let written = match number.as_f64() {
        Some(float) if number.is_f64() => {
            let magnitude = float.abs();
            if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
                // Rust writes `1e21` where Go writes `1e+21`.
                format!("{float:e}").replacen('e', if magnitude >= 1.0 { "e+" } else { "e" }, 1)
            } else {
                format!("{float}")
            }
        }
        _ => number.to_string(),
    };
    text.push_str(&written);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The spec of the vectors.
    fn base() -> Value {
        json!({
            "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [],
            "role": "role-1",
            "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
            "context": "fake-context",
            "detailedMonitoring": false,
            "associatePublicIPAddress": false,
            "metadataOptions": {
                "httpEndpoint": "disabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "optional",
            },
            "blockDeviceMappings": [
                {
                    "deviceName": "map-device-1",
                    "ebs": {
                        "deleteOnTermination": false,
                        "encrypted": false,
                        "iops": 0,
                        "kmsKeyID": "fakeKMSKeyID",
                        "snapshotID": "fakeSnapshot",
                        "throughput": 0,
                        "volumeSize": "2G",
                        "volumeType": "standard",
                    },
                },
                {"deviceName": "map-device-2"},
            ],
            "userData": "userdata-test-1",
        })
    }

    fn hash(spec: Value) -> String {
        ec2_node_class_hash(&serde_json::from_value(spec).unwrap(), Some("test-ca-bundle"))
    }

    /// The hash of the base with one value replaced, or removed where it is null.
    #[track_caller]
    fn check(path: &str, value: Value, expected: &str) {
        let mut spec = base();
        let (parent, field) = path.rsplit_once('/').unwrap();
        let object = spec.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        if value.is_null() {
            object.remove(field);
        } else {
            object.insert(field.to_owned(), value);
        }
        assert_eq!(hash(spec), expected, "{path}");
    }

    #[test]
    fn hashes_equal_upstreams() {
        assert_eq!(hash(base()), "11148166120438674859");
        check("/userData", json!("userdata-test-2"), "11774429238106843388");
        check("/tags/keyTag-test-3", json!("valueTag-test-3"), "9327338697296909506");
        check("/context", json!("context-2"), "2279761750428738028");
        check("/detailedMonitoring", json!(true), "1936848126751988570");
        check("/instanceStorePolicy", json!("RAID0"), "16697988646989909967");
        check("/associatePublicIPAddress", json!(true), "16141801171825097963");
        check("/metadataOptions/httpEndpoint", json!("enabled"), "14969742554812447671");
        check("/metadataOptions/httpProtocolIPv6", json!("enabled"), "1581716956216772561");
        check("/metadataOptions/httpPutResponseHopLimit", json!(10), "14046948658064232764");
        check("/metadataOptions/httpTokens", json!("required"), "1346719102507290084");
        let device = "/blockDeviceMappings/0";
        check(&format!("{device}/ebs/volumeSize"), json!("10G"), "10372902467896351912");
        check(&format!("{device}/deviceName"), json!("map-device-test-3"), "8979166653850509463");
        check(&format!("{device}/rootVolume"), json!(true), "8875796205856543692");
        check(&format!("{device}/ebs/deleteOnTermination"), json!(true), "1470935115846151531");
        check(&format!("{device}/ebs/encrypted"), json!(true), "5252376125396833097");
        check(&format!("{device}/ebs/iops"), json!(10), "11651419893470054855");
        check(&format!("{device}/ebs/kmsKeyID"), json!("test"), "1488385067008138755");
        check(&format!("{device}/ebs/snapshotID"), json!("test"), "12786013539168652330");
        check(&format!("{device}/ebs/throughput"), json!(10), "1873429003468556999");
        check(&format!("{device}/ebs/volumeType"), json!("io1"), "6743466905516550702");
        check("/connectionTracking", json!({"tcpEstablishedTimeout": 300}), "1619669030802245540");
        check("/connectionTracking", json!({"udpStreamTimeout": 120}), "13743705849402595405");
        check("/connectionTracking", json!({"udpTimeout": 45}), "17941926745862994490");
        check("/cpuOptions", json!({"nestedVirtualization": "enabled"}), "6157846767212910604");
        let mut spec = base();
        spec.as_object_mut().unwrap().remove("role");
        spec["instanceProfile"] = json!("test-instance-profile");
        assert_eq!(hash(spec), "10323991363677716244");
    }

    #[test]
    fn what_selectors_look_for_leaves_the_hash_alone() {
        for (field, value) in [
            ("subnetSelectorTerms", json!([{"tags": {"a": "b"}}])),
            ("securityGroupSelectorTerms", json!([{"tags": {"a": "b"}}])),
            ("amiSelectorTerms", json!([{"tags": {"a": "b"}}])),
            ("capacityReservationSelectorTerms", json!([{"id": "cr-1"}])),
            ("ipPrefixCount", json!(3)),
        ] {
            check(&format!("/{field}"), value, "11148166120438674859");
        }
    }

    #[test]
    fn naming_the_family_that_the_alias_implies_leaves_the_hash_alone() {
        let mut spec = base();
        spec["amiSelectorTerms"] = json!([{"alias": "al2023@latest"}]);
        let implied = hash(spec.clone());
        spec["amiFamily"] = json!("AL2023");
        assert_eq!(hash(spec.clone()), implied);
        spec["amiFamily"] = json!("Custom");
        assert_ne!(hash(spec), implied);
    }

    #[test]
    fn lists_hash_alike_in_any_order() {
        let mut spec = base();
        spec["blockDeviceMappings"].as_array_mut().unwrap().reverse();
        assert_eq!(hash(spec), "11148166120438674859");
    }

    #[test]
    fn kubelet_settings_are_written_as_go_writes_them() {
        let spec = |kubelet: Value| -> EC2NodeClassSpec {
            let mut spec = base();
            spec["kubelet"] = kubelet;
            serde_json::from_value(spec).unwrap()
        };
        let text = |kubelet| kubelet_text(&spec(kubelet));
        assert_eq!(text(Value::Null), "null");
        assert_eq!(text(json!({})), "null");
        assert_eq!(
            text(json!({"maxPods": 10, "clusterDNS": ["10.0.0.10"], "a": {"z": true, "b": null}})),
            r#"{"a":{"b":null,"z":true},"clusterDNS":["10.0.0.10"],"maxPods":10}"#
        );
        assert_eq!(
            text(json!({"a": "<&>\u{2028}\"\\\n\u{1}"})),
            r#"{"a":"\u003c\u0026\u003e\u2028\"\\\n\u0001"}"#
        );
        assert_eq!(
            text(json!({"a": 0.9, "b": 1e16, "c": 1e21, "d": 1.5e-7, "e": -0.5})),
            r#"{"a":0.9,"b":10000000000000000,"c":1e+21,"d":1.5e-7,"e":-0.5}"#
        );
    }

    #[test]
    fn a_volume_size_hashes_in_canonical_form() {
        let mut spec = base();
        spec["blockDeviceMappings"][0]["ebs"]["volumeSize"] = json!("2048Gi");
        let written = hash(spec.clone());
        spec["blockDeviceMappings"][0]["ebs"]["volumeSize"] = json!("2Ti");
        assert_eq!(hash(spec), written);
    }
}
