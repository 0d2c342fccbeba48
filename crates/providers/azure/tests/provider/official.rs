//! Everything that the provider can say to Azure, and what the double answers, as Microsoft's specifications have it.

use std::time::Duration;

use api::nodeclaim::NodeClaim;
use armdouble::{Failure, Kind, Throttle};
use cloud::CloudProvider as _;
use http::Method;
use serde_json::{Value, json};

use crate::play::{CLAIMS, Play, Stage};

type Requirement = (&'static str, &'static str, &'static [&'static str]);

const ON_DEMAND: Requirement = ("karpenter.sh/capacity-type", "In", &["on-demand"]);
const SPOT: Requirement = ("karpenter.sh/capacity-type", "In", &["spot"]);
const REGIONAL: Requirement = ("karpenter.azure.com/placement-scope", "In", &["regional"]);
const EPHEMERAL: Requirement = ("karpenter.azure.com/sku-name", "In", &["Standard_D64s_v3"]);
const GPU: Requirement = ("karpenter.azure.com/sku-gpu-count", "Gt", &["0"]);
const SIG: [&str; 2] = ["--use-sig=true", "--sig-subscription-id=109a5e88-712a-48ae-9078-9ca8b3c81345"];

/// A claim that is launched and updated with a class, and then deleted.
fn life(play: &mut Play, name: &str, requirements: &[Requirement]) {
    let wanted = play.claim(name, requirements);
    let launched = play.create(&wanted).unwrap();
    play.launched(name, &launched);
    play.pass(120);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": play.world.now()});
    let conditions = json!({"status": {"conditions": [condition("Launched"), condition("Registered")]}});
    play.world.patch(&format!("{CLAIMS}/{name}/status"), &conditions);
    play.start(|controller| controller == "nodeclaim.inplaceupdate");
    let class = play.world.get(&format!("{}/default", crate::play::CLASSES)).unwrap();
    let mut spec = class["spec"].clone();
    spec["tags"] = json!({"team": name});
    play.apply_class("default", &spec);
    play.pass(90);
    let id = launched.status.as_ref().unwrap().provider_id.clone();
    play.world.block_on(play.azure.get(&id)).unwrap();
    assert!(!play.world.block_on(play.azure.list()).unwrap().is_empty());
    let mut known: NodeClaim =
        serde_json::from_value(play.world.get(&format!("{CLAIMS}/{name}")).unwrap()).unwrap();
    known.status = launched.status;
    play.world.block_on(play.azure.delete(&known)).unwrap();
    play.pass(300);
}

fn exchanges(play: &Play) -> String {
    let lines: Vec<String> = play.double.requests().iter().map(|each| each.to_json().to_string()).collect();
    lines.join("\n") + "\n"
}

/// Virtual machines in all their forms.
fn virtual_machines() -> String {
    let mut all = String::new();
    let everything = json!({
        "imageFamily": "Ubuntu2204", "osDiskSizeGB": 256, "maxPods": 40, "tags": {"a": "b"},
        "security": {"encryptionAtHost": true, "trustedLaunch": {"vtpm": true, "secureBoot": true}},
    });
    for (arguments, class, requirements) in [
        (&[][..], json!({}), &[ON_DEMAND][..]),
        (&[], json!({}), &[SPOT]),
        (&[], json!({}), &[ON_DEMAND, REGIONAL, EPHEMERAL]),
        (&["--network-plugin-mode=", "--network-dataplane=azure"], everything, &[ON_DEMAND]),
        (
            &["--provision-mode=bootstrappingclient", "--nodebootstrapping-server-url=nps.example.com"],
            json!({}),
            &[ON_DEMAND],
        ),
    ] {
        let mut play = Play::with(Stage { arguments, ..Stage::default() });
        play.ready_class(class);
        life(&mut play, "pool-a", requirements);
        all.push_str(&exchanges(&play));
    }
    all
}

/// Machines of AKS in all their forms.
fn machines() -> String {
    let dns = |zone: &str, to: &str| {
        json!({
            "zone": zone, "queryLogging": "Error", "protocol": "PreferUDP", "forwardDestination": to,
            "forwardPolicy": "Sequential", "maxConcurrent": 1000, "cacheDuration": "1h", "serveStaleDuration": "1h",
            "serveStale": "Immediate",
        })
    };
    let everything = json!({
        "imageFamily": "Ubuntu2204", "osDiskSizeGB": 256, "maxPods": 40, "tags": {"a": "b"},
        "security": {"encryptionAtHost": true, "trustedLaunch": {"vtpm": true, "secureBoot": true}},
        "artifactStreaming": {"enabled": true},
        "kubelet": {
            "cpuManagerPolicy": "static", "cpuCFSQuota": true, "cpuCFSQuotaPeriod": "50ms",
            "imageGCHighThresholdPercent": 90, "imageGCLowThresholdPercent": 70, "topologyManagerPolicy": "best-effort",
            "allowedUnsafeSysctls": ["net.core.somaxconn"], "containerLogMaxSize": "20Mi", "containerLogMaxFiles": 3,
            "podPidsLimit": 1000, "failSwapOn": false,
        },
        "linuxOSConfig": {
            "swapFileSize": "1Gi", "transparentHugePageDefrag": "madvise", "transparentHugePageEnabled": "always",
            "sysctls": {
                "fsAioMaxNr": 65536, "netIPv4IPLocalPortRange": "32768 60999", "netIPv4TCPTwReuse": true,
                "netIPv4TCPKeepaliveIntvl": 30, "netCoreSomaxconn": 16384, "vmSwappiness": 10,
                "netIPv4NeighDefaultGcThresh1": 128, "netNetfilterNfConntrackMax": 131_072,
            },
        },
        "localDNS": {
            "mode": "Required",
            "vnetDNSOverrides": [dns(".", "VnetDNS"), dns("cluster.local", "ClusterCoreDNS")],
            "kubeDNSOverrides": [dns(".", "ClusterCoreDNS"), dns("cluster.local", "ClusterCoreDNS")],
        },
    });
    let mut all = String::new();
    for (mode, class, requirements) in [
        ("aksmachineapi", json!({}), &[SPOT][..]),
        ("aksmachineapi", everything, &[ON_DEMAND]),
        ("aksmachineapi", json!({"gpu": {"mode": "Driver"}}), &[ON_DEMAND, GPU]),
        ("aksmachineapiheaderbatch", json!({}), &[ON_DEMAND, REGIONAL]),
    ] {
        let mode = format!("--provision-mode={mode}");
        let arguments: Vec<&str> =
            SIG.into_iter().chain([mode.as_str(), "--aks-machines-pool-name=karpenter"]).collect();
        let mut play = Play::with(Stage { arguments: &arguments, ..Stage::default() });
        play.ready_class(class);
        life(&mut play, "pool-a", requirements);
        all.push_str(&exchanges(&play));
    }
    all
}

/// What Azure says when it does not want to.
fn refusals() -> String {
    let mut play = Play::new();
    play.ready_class(json!({}));
    play.double.throttle(Throttle::writes(Kind::NetworkInterface, 1, Duration::from_secs(30)));
    for failure in [
        Failure::of(Method::PUT, Kind::VirtualMachine).at_once(409, "ZonalAllocationFailed", "no room"),
        Failure::of(Method::PUT, Kind::VirtualMachine).later(409, "AllocationFailed", "no room"),
        Failure::of(Method::GET, Kind::Subnet).at_once(403, "AuthorizationFailed", "no"),
    ] {
        play.double.fail(failure);
    }
    play.double.change(|world| world.quota.limit("standardDav6Family", 0));
    for name in ["pool-a", "pool-b", "pool-c"] {
        let wanted = play.claim(name, &[ON_DEMAND]);
        let _ = play.create(&wanted);
    }
    play.pass(60);
    play.start(|_| true);
    play.pass(700);
    let requests = play.double.requests();
    let codes: std::collections::BTreeSet<(u16, &str)> = requests
        .iter()
        .filter_map(|each| Some((each.status?, each.answer.pointer("/error/code")?.as_str()?)))
        .collect();
    for refusal in [
        (409, "ZonalAllocationFailed"),
        (409, "OperationNotAllowed"),
        (429, "TooManyRequests"),
        (403, "AuthorizationFailed"),
    ] {
        assert!(codes.contains(&refusal), "{refusal:?} is not among {codes:?}");
    }
    // What fails later is told by the operation.
    let later =
        |each: &armdouble::Recorded| each.answer.pointer("/error/code") == Some(&json!("AllocationFailed"));
    assert!(requests.iter().any(later));
    exchanges(&play)
}

fn looked_at(exchanges: &str) -> usize {
    e2e::valid_to_oav(exchanges).unwrap()
}

// azure.md 24: the API versions that we use
#[test]
fn microsofts_validator_finds_nothing_in_what_is_said_about_virtual_machines() {
    let looked = looked_at(&virtual_machines());
    assert!(looked > 100, "only {looked} exchanges were looked at");
}

#[test]
fn microsofts_validator_finds_nothing_in_what_is_said_about_machines_of_aks() {
    let looked = looked_at(&machines());
    assert!(looked > 50, "only {looked} exchanges were looked at");
}

#[test]
fn microsofts_validator_finds_nothing_in_refusals() {
    let looked = looked_at(&refusals());
    assert!(looked > 30, "only {looked} exchanges were looked at");
}

// A judge that accepts everything would be none.
#[test]
fn microsofts_validator_finds_what_is_wrong() {
    let mut play = Play::new();
    play.ready_class(json!({}));
    life(&mut play, "pool-a", &[ON_DEMAND]);
    let mut asked = play.double.requests_of(&Method::PUT, Kind::VirtualMachine).remove(0);
    let mut wrong = Vec::new();
    let mut complaints = Vec::new();
    let mut change = |place: &str, value: Value, complaint: &'static str| {
        let mut changed = asked.to_json();
        let (parent, name) = place.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[name] = value;
        wrong.push(changed.to_string());
        complaints.push(complaint);
    };
    for (place, value, complaint) in [
        (
            "/body/properties/hardwareProfil",
            json!({}),
            "request: OBJECT_ADDITIONAL_PROPERTIES /properties/hardwareProfil",
        ),
        ("/body/properties/evictionPolicy", json!(1), "INVALID_TYPE /properties/evictionPolicy"),
        (
            "/body/properties/storageProfile/osDisk",
            json!({}),
            "OBJECT_MISSING_REQUIRED_PROPERTY /properties/storageProfile/osDisk/createOption",
        ),
        ("/body/properties/vmId", json!("1"), "READONLY_PROPERTY_NOT_ALLOWED_IN_REQUEST /properties/vmId"),
        ("/answer/zones", json!("1"), "INVALID_TYPE /zones"),
        ("/answer/properties/vmid", json!("1"), "OBJECT_ADDITIONAL_PROPERTIES /properties/vmid"),
        ("/status", json!(202), "INVALID_RESPONSE_CODE"),
        ("/query/api-version", json!("2031-01-01"), "2031-01-01"),
    ] {
        change(place, value, complaint);
    }
    let error = e2e::valid_to_oav(&wrong.join("\n")).unwrap_err().to_string();
    for complaint in complaints {
        assert!(error.contains(complaint), "{complaint} is not in {error}");
    }
    asked.status = None;
    assert_eq!(looked_at(&asked.to_json().to_string()), 0, "nobody answered");
}
