//! Many machines with one request: what they have in common is its body, and what differs is in a header.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::arm::Error;
use crate::arm::error::Detail;
use crate::arm::types::machine::{BatchMachine, BatchPutMachine, ErrorDetail, Machine};

/// How many machines one request makes at most.
pub const MOST: usize = 50;

/// Machines with the same key are made with one request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

/// A machine as part of a request for many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What the machine has in common with others.
    pub key: Key,
    /// The body of the request.
    pub shared: Machine,
    /// What only this machine has.
    pub own: BatchMachine,
}

impl Item {
    /// Takes a machine apart.
    pub fn new(pool_path: &str, name: &str, machine: Machine) -> Self {
        let mut shared = Machine { id: None, name: None, ..machine };
        let own = BatchMachine {
            machine_name: name.to_owned(),
            zones: shared.zones.clone().unwrap_or_default(),
            tags: shared
                .properties
                .as_ref()
                .and_then(|properties| properties.tags.clone())
                .unwrap_or_default(),
        };
        let mut is_ultra = false;
        if let Some(properties) = &mut shared.properties {
            properties.tags = None;
            properties.resource_id = None;
            properties.provisioning_state = None;
            properties.e_tag = None;
            properties.status = None;
            is_ultra =
                properties.hardware.as_ref().and_then(|hardware| hardware.ultra_ssd_enabled) == Some(true);
        }
        // Whether ultra disks can be had depends on the zone, so that machines with them differ by it.
        if !is_ultra {
            shared.zones = None;
        }
        // Writing a structure of texts and numbers does not fail; if it did, the machine would go alone.
        let content = serde_json::to_string(&shared).unwrap_or_else(|_| name.to_owned());
        Self { key: Key(format!("{pool_path}/{content}")), shared, own }
    }
}

/// The header of a request for machines.
pub fn header<'a>(items: impl IntoIterator<Item = &'a Item>) -> BatchPutMachine {
    BatchPutMachine { batch_machines: items.into_iter().map(|item| item.own.clone()).collect() }
}

/// What came of a request that Azure refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Some machines were refused, each for its own reason; the others are being made.
    Some(BTreeMap<String, Detail>),
    /// All machines were refused for the reason that the error says.
    All,
    /// Nobody can say which machines were refused.
    Unclear(String),
}

/// Reads a refusal of a request for machines with these names.
pub fn refusal(error: &Error, names: &[&str]) -> Refusal {
    /// What the message of an internal error has inside.
    #[derive(Deserialize)]
    struct Inner {
        details: Option<Vec<ErrorDetail>>,
    }
    match error.code.as_str() {
        "BatchMachineClientError" => by_machine(error.details.clone(), names),
        "BatchMachineInternalServerError" => match serde_json::from_str::<Inner>(&error.message) {
            Ok(inner) => by_machine(inner.details.into_iter().flatten().map(detail).collect(), names),
            Err(_) => Refusal::Unclear(format!("its message is not the expected JSON: {error}")),
        },
        "" => Refusal::Unclear(format!("the answer has no code: {error}")),
        _ => Refusal::All,
    }
}

fn detail(wire: ErrorDetail) -> Detail {
    Detail {
        code: wire.code.unwrap_or_default(),
        message: wire.message.unwrap_or_default(),
        target: wire.target.filter(|target| !target.is_empty()),
    }
}

fn by_machine(details: Vec<Detail>, names: &[&str]) -> Refusal {
    if details.is_empty() {
        return Refusal::Unclear("no machine is named".to_owned());
    }
    let mut refused = BTreeMap::new();
    for detail in details {
        let Detail { code, message, target } = &detail;
        let Some(target) = target.clone() else {
            return Refusal::Unclear(format!("a reason names no machine: {code}: {message}"));
        };
        if !names.contains(&target.as_str()) {
            return Refusal::Unclear(format!("machine {target:?} was not asked for: {code}: {message}"));
        }
        refused.insert(target, detail);
    }
    Refusal::Some(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(value: Value) -> Machine {
        serde_json::from_value(value).unwrap()
    }

    fn some(zone: &str, tag: &str, size: &str, ultra: bool) -> Machine {
        machine(json!({
            "id": "/m", "name": "m", "zones": [zone],
            "properties": {
                "hardware": {"vmSize": size, "ultraSsdEnabled": ultra}, "tags": {"karpenter.sh_nodepool": tag},
                "eTag": "1", "provisioningState": "Creating", "resourceId": "/vm", "status": {"vmState": "Running"},
            },
        }))
    }

    fn key(machine: Machine) -> Key {
        Item::new("rg/cluster/pool", "name", machine).key
    }

    // azure.md 11.4: key over the shared body
    #[test]
    fn machines_that_differ_in_zone_and_tags_go_together() {
        let one = some("1", "a", "Standard_D2s_v5", false);
        assert_eq!(key(one.clone()), key(some("2", "b", "Standard_D2s_v5", false)));
        assert_ne!(key(one.clone()), key(some("1", "a", "Standard_D4s_v5", false)));
        assert_ne!(key(one.clone()), Item::new("rg/cluster/other", "name", one).key);
    }

    // azure.md 11.4: zones dropped unless ultra SSD is on
    #[test]
    fn machines_with_ultra_disks_go_by_zone() {
        let one = some("1", "a", "Standard_D2s_v5", true);
        assert_ne!(key(one.clone()), key(some("2", "a", "Standard_D2s_v5", true)));
        assert_eq!(key(one), key(some("1", "b", "Standard_D2s_v5", true)));
    }

    // azure.md 11.4, 25.8: per-machine and read-only fields cleared
    #[test]
    fn the_body_has_only_what_machines_have_in_common() {
        let item = Item::new("p", "name", some("1", "a", "Standard_D2s_v5", false));
        assert_eq!(
            serde_json::to_value(&item.shared).unwrap(),
            json!({"properties": {"hardware": {"vmSize": "Standard_D2s_v5", "ultraSsdEnabled": false}}})
        );
    }

    // azure.md 11.4: header
    #[test]
    fn the_header_names_every_machine_with_its_zone_and_tags() {
        let one = Item::new("p", "one", some("1", "a", "Standard_D2s_v5", false));
        let two = Item::new("p", "two", machine(json!({"properties": {}})));
        assert_eq!(
            serde_json::to_string(&header([&one, &two])).unwrap(),
            r#"{"batchMachines":[{"machineName":"one","zones":["1"],"tags":{"karpenter.sh_nodepool":"a"}},{"machineName":"two","zones":[],"tags":{}}]}"#
        );
    }

    fn refused(body: &str) -> Refusal {
        let answer = http::Response::builder().status(400).body(bytes::Bytes::from(body.to_owned())).unwrap();
        refusal(&Error::of_answer("PUT machines/a", &answer), &["a", "b"])
    }

    fn reasons(refusal: Refusal) -> Vec<(String, String)> {
        let Refusal::Some(reasons) = refusal else { panic!("{refusal:?}") };
        reasons
            .into_iter()
            .map(|(name, Detail { code, message, .. })| (name, format!("{code}: {message}")))
            .collect()
    }

    // azure.md 11.4: error contract
    #[test]
    fn refused_machines_are_named_with_their_reasons_and_the_others_are_made() {
        let details = json!([{"code": "SkuNotAvailable", "message": "no", "target": "b"}]);
        let expected = vec![("b".to_owned(), "SkuNotAvailable: no".to_owned())];
        let client = json!({"code": "BatchMachineClientError", "message": "some", "details": details});
        assert_eq!(reasons(refused(&client.to_string())), expected);
        assert_eq!(reasons(refused(&json!({"error": client}).to_string())), expected);
        let message = json!({"details": details}).to_string();
        let server = json!({"code": "BatchMachineInternalServerError", "message": message});
        assert_eq!(reasons(refused(&server.to_string())), expected);
    }

    // azure.md 11.4: missing details or target, unknown target or unparsable body
    #[test]
    fn a_refusal_that_nobody_understands_concerns_all() {
        for body in [
            json!({"code": "BatchMachineClientError", "message": "x"}),
            json!({"code": "BatchMachineClientError", "message": "x", "details": []}),
            json!({"code": "BatchMachineClientError", "details": [{"code": "x", "message": "y"}]}),
            json!({"code": "BatchMachineClientError", "details": [{"code": "x", "target": ""}]}),
            json!({"code": "BatchMachineClientError", "details": [{"code": "x", "target": "c"}]}),
            json!({"code": "BatchMachineInternalServerError", "message": "no JSON"}),
            json!({"code": "BatchMachineInternalServerError", "message": "{}"}),
            json!({}),
            json!([1]),
        ] {
            assert!(matches!(refused(&body.to_string()), Refusal::Unclear(_)), "{body}");
        }
        assert!(matches!(refused("<html>"), Refusal::Unclear(text) if text.contains("<html>")));
    }

    // azure.md 11.4: any other code applies to all machines
    #[test]
    fn another_refusal_is_that_of_every_machine() {
        let error = json!({"code": "QuotaExceeded", "message": "too much"});
        for body in [error.clone(), json!({"error": error})] {
            assert_eq!(refused(&body.to_string()), Refusal::All);
        }
    }
}
