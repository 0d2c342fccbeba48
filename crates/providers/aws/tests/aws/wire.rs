//! Requests of the port as AWS gets them: the parameters of the query protocol, nested.

use aws::port::launch_template::{MetadataSettings, ReservationUse};
use aws::port::{
    EbsVolume, Filter, FleetOverride, FleetPurchase, FleetRequest, ImageQuery, LaunchTemplateData,
    LaunchTemplateQuery, NewLaunchTemplate, RunInstancesCheck, Tags, TemplateInterface, VolumeMapping,
};
use base64::Engine as _;
use serde_json::{Map, Value, json};

/// Parameters; what is absent is not sent, and everything is text.
#[derive(Default)]
struct Parameters(Map<String, Value>);

impl Parameters {
    fn put(mut self, name: &str, value: impl Into<Option<Value>>) -> Self {
        let value = match value.into() {
            None => return self,
            Some(Value::Bool(flag)) => Value::String(flag.to_string()),
            Some(Value::Number(number)) => Value::String(number.to_string()),
            Some(Value::Array(items)) if items.is_empty() => return self,
            Some(Value::Object(fields)) if fields.is_empty() => return self,
            Some(other) => other,
        };
        self.0.insert(name.to_owned(), value);
        self
    }

    fn maybe<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self {
        self.put(name, value.map(Into::into))
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

fn parameters() -> Parameters {
    Parameters::default()
}

fn tags(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

fn specification(kind: &str, of: &Tags) -> Value {
    parameters().put("ResourceType", json!(kind)).put("Tag", tags(of)).done()
}

pub(crate) fn filters(filters: &[Filter]) -> Value {
    filters.iter().map(|each| json!({"Name": each.name, "Value": each.values})).collect()
}

fn volume(mapping: &VolumeMapping) -> Value {
    let VolumeMapping { device, ebs } = mapping;
    let ebs = ebs.as_ref().map(|ebs| {
        let EbsVolume {
            delete_on_termination,
            encrypted,
            volume_type,
            iops,
            throughput,
            kms_key_id,
            snapshot_id,
            initialization_rate,
            size_gib,
        } = ebs;
        parameters()
            .maybe("DeleteOnTermination", *delete_on_termination)
            .maybe("Encrypted", *encrypted)
            .maybe("VolumeType", *volume_type)
            .maybe("Iops", *iops)
            .maybe("Throughput", *throughput)
            .maybe("KmsKeyId", kms_key_id.clone())
            .maybe("SnapshotId", snapshot_id.clone())
            .maybe("VolumeInitializationRate", *initialization_rate)
            .maybe("VolumeSize", *size_gib)
            .done()
    });
    parameters().maybe("DeviceName", device.clone()).put("Ebs", ebs).done()
}

fn interface(interface: &TemplateInterface) -> Value {
    let TemplateInterface {
        network_card,
        device,
        interface_type,
        security_groups,
        subnet,
        public_address,
        ipv4_prefixes,
        ipv6_prefixes,
        ipv6_addresses,
        primary_ipv6,
        connection_tracking,
    } = interface;
    let tracking = connection_tracking.map(|tracking| {
        parameters()
            .maybe("TcpEstablishedTimeout", tracking.tcp_established)
            .maybe("UdpStreamTimeout", tracking.udp_stream)
            .maybe("UdpTimeout", tracking.udp)
            .done()
    });
    parameters()
        .maybe("NetworkCardIndex", *network_card)
        .maybe("DeviceIndex", Some(*device))
        .maybe("InterfaceType", *interface_type)
        .put("SecurityGroupId", json!(security_groups))
        .maybe("SubnetId", subnet.clone())
        .maybe("AssociatePublicIpAddress", *public_address)
        .maybe("Ipv4PrefixCount", *ipv4_prefixes)
        .maybe("Ipv6PrefixCount", *ipv6_prefixes)
        .maybe("Ipv6AddressCount", *ipv6_addresses)
        .maybe("PrimaryIpv6", *primary_ipv6)
        .put("ConnectionTrackingSpecification", tracking)
        .done()
}

fn metadata(settings: &MetadataSettings) -> Value {
    let MetadataSettings { endpoint, ipv6, hop_limit, tokens } = *settings;
    parameters()
        .maybe("HttpEndpoint", endpoint)
        .maybe("HttpProtocolIpv6", ipv6)
        .maybe("HttpPutResponseHopLimit", hop_limit)
        .maybe("HttpTokens", tokens)
        .maybe("InstanceMetadataTags", Some("disabled"))
        .done()
}

fn data(data: &LaunchTemplateData) -> Value {
    let LaunchTemplateData {
        image_id,
        user_data,
        instance_profile,
        detailed_monitoring,
        volumes,
        nested_virtualization,
        metadata: settings,
        interfaces,
        interface_tags,
        spot_request_tags,
        tenancy,
        placement_group,
        partition,
        enclaves,
        reservation,
        market,
    } = data;
    let user_data = base64::engine::general_purpose::STANDARD.decode(user_data).unwrap();
    let mut specifications = vec![specification("network-interface", interface_tags)];
    specifications
        .extend(spot_request_tags.as_ref().map(|tags| specification("spot-instances-request", tags)));
    let reservation = reservation.as_ref().map(|reservation| match reservation {
        ReservationUse::None => json!({"CapacityReservationPreference": "none"}),
        ReservationUse::Only(id) => json!({
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": id},
        }),
    });
    parameters()
        .put("ImageId", json!(image_id))
        .put("UserData", json!(String::from_utf8(user_data).unwrap()))
        .put("IamInstanceProfile", json!({"Name": instance_profile}))
        .put("Monitoring", json!({"Enabled": detailed_monitoring.to_string()}))
        .put("BlockDeviceMapping", volumes.iter().map(volume).collect::<Value>())
        .put("CpuOptions", nested_virtualization.map(|on| json!({"NestedVirtualization": on})))
        .put("MetadataOptions", metadata(settings))
        .put("NetworkInterface", interfaces.iter().map(interface).collect::<Value>())
        .put("TagSpecification", Value::Array(specifications))
        .put(
            "Placement",
            parameters()
                .put("Tenancy", json!(tenancy))
                .maybe("GroupId", placement_group.clone())
                .maybe("PartitionNumber", *partition)
                .done(),
        )
        .put("EnclaveOptions", json!({"Enabled": enclaves.to_string()}))
        .put("CapacityReservationSpecification", reservation)
        .put("InstanceMarketOptions", market.map(|market| json!({"MarketType": market})))
        .done()
}

/// What is in a launch template.
pub(crate) fn launch_template(template: &NewLaunchTemplate) -> Value {
    let NewLaunchTemplate { name: _, tags, data: content } = template;
    json!({"LaunchTemplateData": data(content), "TagSpecification": [specification("launch-template", tags)]})
}

/// A fleet, with what `content` says is in its templates.
pub(crate) fn fleet(request: &FleetRequest, content: impl Fn(&str) -> Value) -> Value {
    let FleetRequest { dry_run, context, templates, purchase, count, tags } = request;
    let one = |each: &FleetOverride| {
        let FleetOverride { instance_type, subnet_id, image_id, zone, priority } = each;
        parameters()
            .put("InstanceType", json!(instance_type))
            .put("SubnetId", json!(subnet_id))
            .maybe("ImageId", image_id.clone())
            .put("AvailabilityZone", json!(zone))
            .maybe("Priority", *priority)
            .done()
    };
    let configs = templates.iter().map(|template| {
        json!({
            "LaunchTemplateSpecification": {"LaunchTemplateName": content(&template.name), "Version": "$Latest"},
            "Overrides": template.overrides.iter().map(one).collect::<Value>(),
        })
    });
    let strategy = purchase.strategy().map(|strategy| json!({"AllocationStrategy": strategy}));
    let is_spot = matches!(purchase, FleetPurchase::Spot { .. });
    let interruptible = json!({"ReservationType": ["interruptible-capacity-reservation"]});
    let is_interruptible = matches!(purchase, FleetPurchase::InterruptibleReservation);
    parameters()
        .put("DryRun", dry_run.then(|| json!(true)))
        .put("Type", json!("instant"))
        .maybe("Context", context.clone())
        .put("LaunchTemplateConfigs", configs.collect::<Value>())
        .put(if is_spot { "SpotOptions" } else { "OnDemandOptions" }, strategy)
        .put("ReservedCapacityOptions", is_interruptible.then_some(interruptible))
        .put(
            "TargetCapacitySpecification",
            json!({"TotalTargetCapacity": count.to_string(), "DefaultTargetCapacityType": purchase.target()}),
        )
        .put(
            "TagSpecification",
            ["instance", "volume", "fleet"]
                .map(|kind| specification(kind, tags))
                .into_iter()
                .collect::<Value>(),
        )
        .done()
}

/// A run that is only tried.
pub(crate) fn run_instances(check: &RunInstancesCheck, content: impl Fn(&str) -> Value) -> Value {
    let RunInstancesCheck { template, instance_type, interfaces, tags } = check;
    let kinds = ["instance", "volume", "network-interface"];
    parameters()
        .put("DryRun", json!(true))
        .put("MinCount", json!(1))
        .put("MaxCount", json!(1))
        .put("LaunchTemplate", json!({"LaunchTemplateName": content(template), "Version": "$Latest"}))
        .put("InstanceType", json!(instance_type))
        .put("NetworkInterface", interfaces.iter().map(interface).collect::<Value>())
        .put("TagSpecification", kinds.map(|kind| specification(kind, tags)).into_iter().collect::<Value>())
        .done()
}

/// A question for images.
pub(crate) fn images(query: &ImageQuery) -> Value {
    let mut all = query.filters.clone();
    all.push(Filter::new("state", ["available"]));
    parameters()
        .put("Filter", filters(&all))
        .put("Owner", json!(query.owners))
        .put("IncludeDeprecated", json!(true))
        .done()
}

/// A question for launch templates.
pub(crate) fn launch_templates(query: &LaunchTemplateQuery) -> Value {
    match query {
        LaunchTemplateQuery::Name(_) => json!({"LaunchTemplateName": ["a-template"]}),
        LaunchTemplateQuery::Filters(each) => json!({"Filter": filters(each)}),
    }
}
