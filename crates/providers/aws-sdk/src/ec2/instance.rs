//! Instances, and how they are.

use aws::port::{Instance, InstanceState, InstanceStatus, ScheduledEvent, StateChange, StatusCheck};
use aws_sdk_ec2::types;

use super::common::{count, read_tags};
use crate::time::timestamp;

/// An instance; one that does not say its name, type, state and zone is none that we could do anything with.
pub(super) fn instance(described: types::Instance) -> Option<Instance> {
    let placement = described.placement;
    let (zone, zone_id, tenancy, partition) = placement.map_or_else(Default::default, |placement| {
        let tenancy = placement.tenancy.map_or_else(String::new, |tenancy| tenancy.as_str().to_owned());
        (
            placement.availability_zone,
            placement.availability_zone_id.unwrap_or_default(),
            tenancy,
            count(placement.partition_number),
        )
    });
    let preference = described
        .capacity_reservation_specification
        .and_then(|specification| specification.capacity_reservation_preference);
    let interfaces = described.network_interfaces.unwrap_or_default().into_iter();
    let groups = described.security_groups.unwrap_or_default().into_iter();
    Some(Instance {
        id: described.instance_id?,
        instance_type: described.instance_type?.as_str().to_owned(),
        state: state(described.state)?,
        zone: zone?,
        zone_id,
        tenancy,
        partition,
        image_id: described.image_id.unwrap_or_default(),
        subnet_id: described.subnet_id.unwrap_or_default(),
        security_groups: groups.filter_map(|group| group.group_id).collect(),
        tags: read_tags(described.tags),
        launched: described.launch_time.as_ref().and_then(timestamp),
        spot_request_id: described.spot_instance_request_id.filter(|id| !id.is_empty()),
        lifecycle: described.instance_lifecycle.map(|lifecycle| lifecycle.as_str().to_owned()),
        reservation_id: described.capacity_reservation_id.filter(|id| !id.is_empty()),
        reservation_preference: preference.map(|preference| preference.as_str().to_owned()),
        interface_types: interfaces.filter_map(|interface| interface.interface_type).collect(),
    })
}

fn state(state: Option<types::InstanceState>) -> Option<InstanceState> {
    InstanceState::named(state?.name?.as_str())
}

pub(super) fn state_change(described: types::InstanceStateChange) -> Option<StateChange> {
    Some(StateChange { id: described.instance_id?, state: state(described.current_state)? })
}

pub(super) fn status(described: types::InstanceStatus) -> Option<InstanceStatus> {
    Some(InstanceStatus {
        id: described.instance_id?,
        instance: checks(described.instance_status),
        system: checks(described.system_status),
        events: described.events.unwrap_or_default().into_iter().filter_map(event).collect(),
    })
}

fn checks(summary: Option<types::InstanceStatusSummary>) -> Vec<StatusCheck> {
    let details = summary.and_then(|summary| summary.details).unwrap_or_default().into_iter();
    let check = |detail: types::InstanceStatusDetails| StatusCheck {
        name: detail.name.map_or_else(String::new, |name| name.as_str().to_owned()),
        status: detail.status.map_or_else(String::new, |status| status.as_str().to_owned()),
        impaired_since: detail.impaired_since.as_ref().and_then(timestamp),
    };
    details.map(check).collect()
}

fn event(described: types::InstanceStatusEvent) -> Option<ScheduledEvent> {
    Some(ScheduledEvent {
        code: described.code?.as_str().to_owned(),
        description: described.description.unwrap_or_default(),
        not_before: described.not_before.as_ref().and_then(timestamp),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::primitives::DateTime;

    use super::*;

    fn described() -> types::builders::InstanceBuilder {
        types::Instance::builder()
            .instance_id("i-1")
            .instance_type(types::InstanceType::from("m9z.huge"))
            .state(types::InstanceState::builder().name(types::InstanceStateName::ShuttingDown).build())
            .placement(
                types::Placement::builder().availability_zone("us-east-1a").partition_number(0).build(),
            )
    }

    #[test]
    fn an_instance_keeps_what_decisions_look_at() {
        let reservations = types::CapacityReservationSpecificationResponse::builder()
            .capacity_reservation_preference(types::CapacityReservationPreference::CapacityReservationsOnly)
            .build();
        let built = described()
            .image_id("ami-1")
            .subnet_id("subnet-1")
            .security_groups(types::GroupIdentifier::builder().group_id("sg-1").group_name("one").build())
            .tags(types::Tag::builder().key("Name").value("n").build())
            .launch_time(DateTime::from_secs(60))
            .capacity_reservation_id("cr-1")
            .capacity_reservation_specification(reservations)
            .instance_lifecycle(types::InstanceLifecycleType::Spot)
            .network_interfaces(types::InstanceNetworkInterface::builder().interface_type("efa").build())
            .build();
        let expected = Instance {
            id: "i-1".to_owned(),
            instance_type: "m9z.huge".to_owned(),
            state: InstanceState::ShuttingDown,
            zone: "us-east-1a".to_owned(),
            image_id: "ami-1".to_owned(),
            subnet_id: "subnet-1".to_owned(),
            security_groups: vec!["sg-1".to_owned()],
            tags: [("Name".to_owned(), "n".to_owned())].into(),
            launched: jiff::Timestamp::from_second(60).ok(),
            lifecycle: Some("spot".to_owned()),
            reservation_id: Some("cr-1".to_owned()),
            reservation_preference: Some("capacity-reservations-only".to_owned()),
            interface_types: vec!["efa".to_owned()],
            ..Instance::default()
        };
        assert_eq!(instance(built), Some(expected));
    }

    #[test]
    fn an_instance_in_a_state_that_nobody_knows_is_left_out() {
        let unknown = types::InstanceStateName::from("dreaming");
        let odd = described().state(types::InstanceState::builder().name(unknown).build()).build();
        assert_eq!(instance(odd), None);
        assert!(instance(described().build()).is_some());
    }

    #[test]
    fn a_status_has_its_checks_and_events() {
        let detail = types::InstanceStatusDetails::builder()
            .name(types::StatusName::Reachability)
            .status(types::StatusType::Failed)
            .impaired_since(DateTime::from_secs(60))
            .build();
        let built = types::InstanceStatus::builder()
            .instance_id("i-1")
            .system_status(types::InstanceStatusSummary::builder().details(detail).build())
            .events(types::InstanceStatusEvent::builder().code(types::EventCode::SystemReboot).build())
            .build();
        let read = status(built).unwrap();
        assert!(read.instance.is_empty());
        assert_eq!(
            (read.system[0].name.as_str(), read.system[0].status.as_str()),
            ("reachability", "failed")
        );
        assert_eq!(read.events[0].code, "system-reboot");
    }
}
