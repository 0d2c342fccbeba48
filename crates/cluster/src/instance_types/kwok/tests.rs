//! Tests of the instance types of simulated nodes.

use expect_test::{Expect, expect};

use super::*;

fn show(requirements: &[Requirement]) -> String {
    let shown = requirements.iter().map(|r| format!("{} {} {:?}", r.key, r.operator, r.values));
    shown.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(json: &str, expected: &Expect) {
    let text = match parse("types.json", json.as_bytes()) {
        Ok(types) => {
            let shown = types.iter().map(|each| {
                let capacity: Vec<_> = each.capacity.iter().map(|(name, q)| format!("{name}={q}")).collect();
                let offerings = each.offerings.iter().map(|o| {
                    format!(
                        "{} {}: {}",
                        o.price,
                        o.reservation_capacity,
                        show(&o.requirements).replace('\n', ", ")
                    )
                });
                let offerings: Vec<_> = offerings.collect();
                format!("{}\n{}\n{}", capacity.join(" "), show(&each.requirements), offerings.join("\n"))
            });
            shown.collect::<Vec<_>>().join("\n---\n")
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn the_long_form_is_read_whatever_the_case() {
    check(
        r#"[{"Name": "m5.2xlarge", "ARCHITECTURE": "amd64", "operatingsystems": ["linux"],
            "resources": {"cpu": "8", "memory": "32768Mi"}, "unknown": [1],
            "offerings": [{"Price": 0.5, "available": false, "reservationCapacity": 3, "requirements": [
                {"Key": "karpenter.sh/capacity-type", "Operator": "In", "Values": ["spot"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}]"#,
        &expect![[r#"
            cpu=8 memory=32Gi pods=110
            node.kubernetes.io/instance-type In ["m5.2xlarge"]
            kubernetes.io/arch In ["amd64"]
            kubernetes.io/os In ["linux"]
            topology.kubernetes.io/zone In ["a"]
            karpenter.sh/capacity-type In ["spot"]
            karpenter.kwok.sh/instance-size In ["2xlarge"]
            karpenter.kwok.sh/instance-family In ["m5"]
            karpenter.kwok.sh/instance-cpu In ["8"]
            karpenter.kwok.sh/instance-memory In ["32Gi"]
            0.5 3: karpenter.sh/capacity-type In ["spot"], topology.kubernetes.io/zone In ["a"]"#]],
    );
}

#[test]
fn the_short_form_of_upstreams_example_is_read() {
    check(
        r#"[{"name": "g5.4xlarge", "offerings": [
                {"capacityType": "on-demand", "zone": "us-east-1a", "price": 1.624},
                {"capacityType": "on-demand", "zone": "us-east-1b", "price": 1.7}],
            "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "600Gi", "nvidia.com/gpu": "1"}}]"#,
        &expect![[r#"
            cpu=16 ephemeral-storage=600Gi memory=64Gi nvidia.com/gpu=1 pods=110
            node.kubernetes.io/instance-type In ["g5.4xlarge"]
            kubernetes.io/arch In ["amd64"]
            kubernetes.io/os In ["linux"]
            topology.kubernetes.io/zone In ["us-east-1a", "us-east-1b"]
            karpenter.sh/capacity-type In ["on-demand"]
            karpenter.kwok.sh/instance-size In ["4xlarge"]
            karpenter.kwok.sh/instance-family In ["g5"]
            karpenter.kwok.sh/instance-cpu In ["16"]
            karpenter.kwok.sh/instance-memory In ["64Gi"]
            1.624 0: karpenter.sh/capacity-type In ["on-demand"], topology.kubernetes.io/zone In ["us-east-1a"]
            1.7 0: karpenter.sh/capacity-type In ["on-demand"], topology.kubernetes.io/zone In ["us-east-1b"]"#]],
    );
}

#[test]
fn errors_name_the_field() {
    check(
        r#"[{"name": "a"}, {"resources": {"cpu": "1KB"}}]"#,
        &expect![[
            r#"types.json: [1].resources.cpu: invalid quantity "1KB": unknown suffix "KB"; expected a number with an optional suffix: one of n u m k M G T P E, one of Ki Mi Gi Ti Pi Ei, or an exponent such as e3 or E-3 at line 1 column 43"#
        ]],
    );
    check(
        r#"[{"offerings": [{"price": "cheap"}]}]"#,
        &expect![[
            r#"types.json: [0].offerings[0].price: invalid type: string "cheap", expected f64 at line 1 column 33"#
        ]],
    );
    check(
        r#"[{"offerings": [{"requirements": [{"operator": "Is"}]}]}]"#,
        &expect![[
            r#"types.json: [0].offerings[0].requirements[0].operator: unknown operator "Is"; expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte at line 1 column 52"#
        ]],
    );
    check(
        r#"{"name": "a"}"#,
        &expect!["types.json: invalid type: map, expected a sequence at line 1 column 0"],
    );
    check("[{", &expect!["types.json: [0]: EOF while parsing an object at line 1 column 2"]);
    check("[]", &expect!["types.json: the list of instance types is empty; expected at least one"]);
    check(
        r#"[{"name": "a"}, {"architecture": "amd64"}]"#,
        &expect!["types.json: [1].name: missing; expected the name of the instance type"],
    );
}

#[test]
fn sizes_and_families_come_from_the_name() {
    for (name, expected_size, expected_family) in [
        ("m5.2xlarge", Some("2xlarge"), "m5"),
        ("m5.xlarge", Some("xlarge"), "m5"),
        ("t3.nano", Some("nano"), "t3"),
        ("m5.metal-24xl", None, "m5"),
        ("u-6tb1.metal", None, "u"),
        ("c-4x-amd64-linux", None, "c"),
        ("Standard_D4s_v5", None, "S"),
        ("m5.2Xlarge", None, "m5"),
        ("", None, ""),
    ] {
        assert_eq!((size(name), family(name)), (expected_size, expected_family), "{name}");
    }
}

#[test]
fn there_are_144_built_in_types_with_eight_offerings_each() {
    let types = built_in();
    assert_eq!(types.len(), 144);
    assert!(types.iter().all(|each| each.offerings.len() == 8));
    let first = &types[0];
    assert_eq!(first.name, "c-1x-amd64-linux");
    let prices: Vec<f64> = first.offerings.iter().take(2).map(|offering| offering.price).collect();
    assert_eq!(prices, [0.019_003_238_553_599_998, 0.027_147_483_648]);
    let last = &types[143];
    assert_eq!(last.name, "m-256x-arm64-windows");
    expect![[r#"
        node.kubernetes.io/instance-type In ["m-256x-arm64-windows"]
        kubernetes.io/arch In ["arm64"]
        kubernetes.io/os In ["windows"]
        topology.kubernetes.io/zone In ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"]
        karpenter.sh/capacity-type In ["spot", "on-demand"]
        karpenter.kwok.sh/instance-size In ["256"]
        karpenter.kwok.sh/instance-family In ["m"]
        karpenter.kwok.sh/instance-cpu In ["256"]
        karpenter.kwok.sh/instance-memory In ["2Ti"]"#]]
    .assert_eq(&show(&last.requirements));
    assert_eq!(last.capacity.amount("pods").value(), 1024);
}
