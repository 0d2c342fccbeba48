//! Which launch templates a launch needs, and what is in them.

use api::aws::EC2NodeClass;
use api::names::resources;
use api::nodeclaim::NodeClaim;
use aws::instance::plan;
use aws::launch_template::{Launch, Template, TemplateError, templates};
use aws::node_class::Class;
use aws::port::launch_template::{ConnectionTimeouts, MetadataSettings, ReservationUse};
use aws::port::{LaunchTemplateData, PlacementGroup, PlacementStrategy, TemplateInterface};
use aws::tags;
use aws::user_data::ClusterInfo;
use serde_json::{Value, json};

use crate::support::{
    MarketNow, REGION, SETS, claim, cluster, node_class, only, placement_group, requesting, wanted,
    with_reservation,
};

/// What a launch is made of.
struct Case {
    object: EC2NodeClass,
    claim: NodeClaim,
    cluster: ClusterInfo,
    region: &'static str,
    group: Option<PlacementGroup>,
    reserved_capacity: bool,
    names: Vec<&'static str>,
}

impl Case {
    fn new(spec: &Value) -> Self {
        Self {
            object: node_class("AL2023", spec),
            claim: claim(&[("karpenter.sh/capacity-type", "In", &["on-demand"])]),
            cluster: cluster(),
            region: REGION,
            group: None,
            reserved_capacity: true,
            names: vec!["m5.large"],
        }
    }

    fn templates(&self) -> Result<Vec<Template<'static>>, TemplateError> {
        let class = Class::new(&self.object, self.group.as_ref(), true).unwrap();
        let types = MarketNow::default().types(&class, &self.names);
        let plan = plan(&class, &mut wanted(&self.claim), &types);
        let tags = tags::of_launch(&class, &self.claim, &self.cluster.name).unwrap();
        let launch = Launch {
            class: &class,
            claim: &self.claim,
            cluster: &self.cluster,
            region: self.region,
            capacity_type: plan.capacity_type,
            tenancy: plan.tenancy,
            partition: plan.partition.as_deref(),
            tags: &tags,
            reserved_capacity: self.reserved_capacity,
        };
        let all = templates(&launch, &types, &only(&self.names), 0, &SETS)?;
        Ok(all.into_iter().map(|each| Template { types: Vec::new(), ..each }).collect())
    }

    fn data(&self) -> LaunchTemplateData {
        let mut all = self.templates().unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0).request.data
    }

    fn name(&self) -> String {
        self.templates().unwrap().remove(0).request.name
    }
}

#[test]
fn a50_types_share_a_template_if_nodes_start_alike() {
    let mut case = Case::new(&json!({}));
    let count = |case: &Case| case.templates().unwrap().len();
    case.names = vec!["m5.large", "m5d.large", "m5n.large"];
    assert_eq!(count(&case), 1);
    case.names = vec!["m5.large", "m5.xlarge"];
    assert_eq!(count(&case), 2, "they take different numbers of pods");
    case.object.spec.kubelet = serde_json::from_value(json!({"maxPods": 20})).unwrap();
    assert_eq!(count(&case), 1);
    case.names.push("m6g.large");
    assert_eq!(count(&case), 2, "they need different images");
    case.object.spec.kubelet =
        serde_json::from_value(json!({"maxPods": 20, "kubeReserved": {"cpu": "vcpus * 100"}})).unwrap();
    assert_eq!(count(&case), 3, "they keep different amounts");
}

#[test]
fn a51_what_is_missing_is_said() {
    let fails = |change: fn(&mut Case)| {
        let mut case = Case::new(&json!({}));
        change(&mut case);
        case.templates().unwrap_err().to_string()
    };
    assert_eq!(
        fails(|case| case.object.status.as_mut().unwrap().amis.clear()),
        "no amis exist given constraints"
    );
    assert_eq!(
        fails(|case| {
            case.object.status.as_mut().unwrap().amis.remove(0);
        }),
        "no instance types satisfy requirements of amis ami-arm"
    );
    assert_eq!(
        fails(|case| case.object.status.as_mut().unwrap().security_groups.clear()),
        "no security groups are present in the status"
    );
    assert_eq!(fails(|case| case.cluster.cidr = None), "resolving cluster CIDR");
}

#[test]
fn a52_the_name_changes_with_everything_that_is_in_the_template() {
    let base = Case::new(&json!({})).name();
    assert!(base.starts_with("karpenter.k8s.aws/"));
    assert_eq!(Case::new(&json!({})).name(), base);
    let specs = [
        json!({"userData": "echo"}),
        json!({"tags": {"a": "b"}}),
        json!({"detailedMonitoring": true}),
        json!({"instanceStorePolicy": "RAID0"}),
        json!({"associatePublicIPAddress": true}),
        json!({"ipPrefixCount": 1}),
        json!({"metadataOptions": {"httpTokens": "optional"}}),
        json!({"metadataOptions": {"httpPutResponseHopLimit": 5}}),
        json!({"cpuOptions": {"nestedVirtualization": "disabled"}}),
        json!({"connectionTracking": {"udpTimeout": 45}}),
        json!({"connectionTracking": {"udpStreamTimeout": 120}}),
        json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi"}}]}),
        json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi", "iops": 9}}]}),
        json!({"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]}),
        json!({"kubelet": {"maxPods": 20}}),
        json!({"kubelet": {"clusterDNS": ["10.0.0.1"]}}),
    ];
    let mut names: Vec<String> = specs.iter().map(|spec| Case::new(spec).name()).collect();
    let changes: [fn(&mut Case); 9] = [
        |case| case.cluster.endpoint = "https://other".to_owned(),
        |case| case.cluster.ca_bundle = None,
        |case| case.object.metadata.name = Some("other".to_owned()),
        |case| case.object.status.as_mut().unwrap().instance_profile = "other".to_owned(),
        |case| case.object.status.as_mut().unwrap().security_groups.truncate(1),
        |case| case.object.status.as_mut().unwrap().amis[0].id = "ami-other".to_owned(),
        |case| case.claim = requesting(case.claim.clone(), &[(resources::AWS_NITRO_SANDBOX, "1")]),
        |case| case.reserved_capacity = false,
        |case| case.claim = claim(&[("karpenter.k8s.aws/instance-tenancy", "In", &["dedicated"])]),
    ];
    for change in changes {
        let mut case = Case::new(&json!({}));
        change(&mut case);
        names.push(case.name());
    }
    names.push(base.clone());
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    let mut others = Case::new(&json!({}));
    others.names = vec!["m5d.large"];
    assert_eq!(others.name(), base, "which types it is for does not matter");
}

#[test]
fn a53_volumes_are_those_of_the_family_unless_the_class_lists_some() {
    let volumes = |family: &str, spec: Value| {
        let mut case = Case::new(&spec);
        case.object.spec.ami_family = serde_json::from_value(json!(family)).unwrap();
        let volumes = case.data().volumes;
        let text = |each: &aws::port::VolumeMapping| {
            let ebs = each.ebs.clone().unwrap_or_default();
            format!("{}={:?}", each.device.as_deref().unwrap_or("?"), ebs.size_gib)
        };
        volumes.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(volumes("AL2023", json!({})), "/dev/xvda=Some(20)");
    assert_eq!(volumes("Bottlerocket", json!({})), "/dev/xvda=Some(4) /dev/xvdb=Some(20)");
    assert_eq!(volumes("Windows2022", json!({})), "/dev/sda1=Some(50)");
    assert_eq!(volumes("Custom", json!({})), "");
    let default = Case::new(&json!({})).data().volumes.remove(0).ebs.unwrap();
    assert_eq!((default.encrypted, default.volume_type), (Some(true), Some("gp3")));
    let own = json!({"blockDeviceMappings": [
        {"deviceName": "/dev/a", "ebs": {"volumeSize": "20G", "iops": 0, "throughput": 0, "kmsKeyID": "k"}},
        {"deviceName": "/dev/b", "ebs": {"snapshotID": "snap-1", "volumeInitializationRate": 100}},
        {},
    ]});
    assert_eq!(volumes("AL2023", own.clone()), "/dev/a=Some(19) /dev/b=None ?=None");
    let first = Case::new(&own).data().volumes.remove(0).ebs.unwrap();
    assert_eq!((first.iops, first.throughput, first.kms_key_id.as_deref()), (None, None, Some("k")));
    let terabytes = json!({"blockDeviceMappings": [{"deviceName": "/dev/a", "ebs": {"volumeSize": "1T"}}]});
    assert_eq!(volumes("AL2023", terabytes), "/dev/a=Some(932)");
}

#[test]
fn a54_metadata_is_as_the_class_says_and_old_regions_are_not_asked_too_much() {
    let usual = MetadataSettings {
        endpoint: Some("enabled"),
        ipv6: Some("disabled"),
        hop_limit: Some(1),
        tokens: Some("required"),
    };
    let mut case = Case::new(&json!({}));
    assert_eq!(case.data().metadata, usual);
    case.region = "us-iso-east-1";
    assert_eq!(case.data().metadata, MetadataSettings { ipv6: None, ..usual });
    case.region = REGION;
    case.object.spec.metadata_options = None;
    let careful = MetadataSettings { endpoint: Some("disabled"), hop_limit: Some(2), ..usual };
    assert_eq!(case.data().metadata, careful);
    case.cluster.dns = Some("fd4b:121b:812b::a".parse().unwrap());
    assert_eq!(case.data().metadata, MetadataSettings { ipv6: Some("enabled"), ..careful });
}

#[test]
fn a55_an_instance_has_one_interface_unless_more_are_asked_for() {
    let groups = || vec!["sg-1".to_owned(), "sg-2".to_owned()];
    let usual = || TemplateInterface { security_groups: groups(), ..TemplateInterface::default() };
    assert_eq!(Case::new(&json!({})).data().interfaces, [usual()]);
    for public in [true, false] {
        let case = Case::new(&json!({"associatePublicIPAddress": public}));
        assert_eq!(case.data().interfaces, [TemplateInterface { public_address: Some(public), ..usual() }]);
    }
    for prefixes in [0, 1, 10, 100] {
        let mut case = Case::new(&json!({"ipPrefixCount": prefixes}));
        assert_eq!(case.data().interfaces, [TemplateInterface { ipv4_prefixes: Some(prefixes), ..usual() }]);
        case.cluster.dns = Some("fd4b:121b:812b::a".parse().unwrap());
        let v6 = TemplateInterface {
            ipv6_prefixes: Some(prefixes),
            ipv6_addresses: Some(1),
            primary_ipv6: Some(true),
            ..usual()
        };
        assert_eq!(case.data().interfaces, [v6]);
    }
}

#[test]
fn a56_fabric_adapters_are_on_every_card_if_the_claim_requests_them() {
    let mut case = Case::new(&json!({"associatePublicIPAddress": true}));
    case.names = vec!["m6idn.32xlarge"];
    assert_eq!(case.data().interfaces.len(), 1);
    case.claim = requesting(case.claim.clone(), &[(resources::AWS_EFA, "1")]);
    let interfaces = case.data().interfaces;
    let places: Vec<_> =
        interfaces.iter().map(|each| (each.network_card, each.device, each.interface_type)).collect();
    assert_eq!(places, [(Some(0), 0, Some("efa")), (Some(1), 1, Some("efa"))]);
    assert!(interfaces.iter().all(|each| each.public_address == Some(true)));
}

#[test]
fn a57_interfaces_that_are_listed_are_taken_as_they_are() {
    let mut case = Case::new(&json!({
        "associatePublicIPAddress": true, "ipPrefixCount": 2, "connectionTracking": {"tcpEstablishedTimeout": 300},
        "networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
        ],
    }));
    case.names = vec!["m6idn.32xlarge"];
    let interfaces = case.data().interfaces;
    let timeouts = ConnectionTimeouts { tcp_established: Some(300), ..ConnectionTimeouts::default() };
    assert_eq!(
        interfaces[0],
        TemplateInterface {
            network_card: Some(0),
            interface_type: Some("interface"),
            security_groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
            public_address: Some(true),
            ipv4_prefixes: Some(2),
            connection_tracking: Some(timeouts),
            ..TemplateInterface::default()
        }
    );
    assert_eq!(
        interfaces[1],
        TemplateInterface {
            network_card: Some(1),
            device: 1,
            interface_type: Some("efa-only"),
            security_groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
            ..TemplateInterface::default()
        }
    );
}

#[test]
fn a58_tags_are_on_everything_and_ours_cannot_be_set() {
    let case = Case::new(&json!({"tags": {"team": "a", "Name": "mine"}}));
    let template = case.templates().unwrap().remove(0).request;
    let expected: std::collections::BTreeMap<String, String> = [
        ("team", "a"),
        ("Name", "mine"),
        ("kubernetes.io/cluster/test-cluster", "owned"),
        ("karpenter.sh/nodepool", "pool-1"),
        ("eks:eks-cluster-name", "test-cluster"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    assert_eq!(template.tags, expected);
    assert_eq!(template.data.interface_tags, expected);
    assert_eq!(template.data.spot_request_tags, None);
    let mut spot = Case::new(&json!({}));
    spot.claim = claim(&[]);
    assert!(spot.data().spot_request_tags.is_some());
    let object = node_class(
        "AL2023",
        &json!({"tags": {
            "kubernetes.io/cluster/x": "y", "karpenter.sh/nodepool": "", "karpenter.sh/nodeclaim": "",
            "eks:eks-cluster-name": "", "karpenter.k8s.aws/ec2nodeclass": "", "fine": "",
        }}),
    );
    let class = Class::new(&object, None, false).unwrap();
    assert_eq!(
        tags::of_launch(&class, &claim(&[]), "c").unwrap_err().to_string(),
        "spec.tags has keys that are restricted: \"eks:eks-cluster-name\", \"karpenter.k8s.aws/ec2nodeclass\", \
         \"karpenter.sh/nodeclaim\", \"karpenter.sh/nodepool\", \"kubernetes.io/cluster/x\""
    );
    let fine = node_class("AL2023", &json!({}));
    let profile = tags::of_instance_profile(&fine, "c", "r");
    assert_eq!(profile.len(), 4);
    assert_eq!(profile["topology.kubernetes.io/region"], "r");
    let profile = tags::of_instance_profile(&object, "c", "r");
    assert_eq!(profile.len(), 5, "ours, and the one that users may set: {profile:?}");
    assert_eq!((profile["fine"].as_str(), profile["eks:eks-cluster-name"].as_str()), ("", "c"));
}

#[test]
fn a59_every_reservation_has_its_template() {
    let reservation = |object, id: &str, more: Value| {
        let mut all = json!({"id": id});
        all.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        with_reservation(object, &all)
    };
    let mut case = Case::new(&json!({}));
    case.claim = claim(&[]);
    case.object = reservation(case.object, "cr-1", json!({}));
    let template = case.templates().unwrap().remove(0);
    assert_eq!(template.reservation.as_deref(), Some("cr-1"));
    assert_eq!(template.request.data.reservation, Some(ReservationUse::Only("cr-1".to_owned())));
    assert_eq!(template.request.data.market, None);
    for (more, market) in [
        (json!({"reservationType": "capacity-block"}), "capacity-block"),
        (json!({"interruptible": true}), "interruptible-capacity-reservation"),
    ] {
        let mut case = Case::new(&json!({}));
        case.claim = claim(&[]);
        case.object = reservation(case.object, "cr-1", more);
        assert_eq!(case.data().market, Some(market));
    }
    assert_eq!(Case::new(&json!({})).data().reservation, Some(ReservationUse::None));
    let mut off = Case::new(&json!({}));
    off.reserved_capacity = false;
    assert_eq!(off.data().reservation, None);
}

#[test]
fn a60_placement_enclaves_and_monitoring_are_as_asked() {
    let mut case =
        Case::new(&json!({"detailedMonitoring": true, "cpuOptions": {"nestedVirtualization": "enabled"}}));
    let data = case.data();
    assert_eq!((data.detailed_monitoring, data.nested_virtualization), (true, Some("enabled")));
    assert_eq!((data.tenancy.as_str(), data.placement_group, data.enclaves), ("default", None, false));
    case.claim = requesting(
        claim(&[("karpenter.k8s.aws/placement-group-partition", "In", &["2", "10"])]),
        &[(resources::AWS_NITRO_SANDBOX, "1")],
    );
    case.group = Some(placement_group(PlacementStrategy::Partition, 12));
    let data = case.data();
    assert_eq!(
        (data.placement_group.as_deref(), data.partition, data.enclaves),
        (Some("pg-1"), Some(2), true)
    );
    case.claim = claim(&[]);
    assert_eq!(case.data().partition, None, "EC2 chooses if it may");
    assert_eq!(case.data().instance_profile, "profile-1");
}
