//! Building blocks of the CRD schemas: the regular expressions and CEL rules of the API contract, and schema
//! functions for shapes that several kinds share. Types refer to these; [`crate::crds`] assembles the documents.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// A quantity such as `100m`, `2Gi` or `1e3`.
pub const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// A label key with an optional DNS prefix.
pub const QUALIFIED_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// A label value.
pub const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// A duration in whole hours, minutes and seconds, or `Never`.
pub const NILLABLE_DURATION: &str = r"^(([0-9]+(s|m|h))+|Never)$";
/// A duration in whole hours, minutes and seconds.
pub const DURATION: &str = r"^([0-9]+(s|m|h))+$";
/// A budget's `nodes`: a count or a percentage.
pub const BUDGET_NODES: &str = r"^((100|[0-9]{1,2})%|[0-9]+)$";
/// A budget's `schedule`. The alternation is not anchored on both sides; this is upstream's, and what slips
/// through is caught when the budget is evaluated.
pub const BUDGET_SCHEDULE: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$";
/// A budget's `duration`: hours and minutes.
pub const BUDGET_DURATION: &str = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$";
/// An API group without a version.
pub const API_GROUP: &str = r"^[^/]*$";
/// A NodeOverlay's absolute price.
pub const OVERLAY_PRICE: &str = r"^\d+(\.\d+)?$";
/// A NodeOverlay's price change: signed, absolute or in percent.
pub const OVERLAY_ADJUSTMENT: &str =
    r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$";
/// The type of a status condition.
pub const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The reason of a status condition.
pub const CONDITION_REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// The reason of a NodeClaim's status condition, which may be empty.
pub const NODE_CLAIM_CONDITION_REASON: &str = r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$";

/// One CEL rule: the expression that must hold and what the API server says when it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// The message shown to the user.
    pub message: String,
}

/// A rule from its expression and message.
pub fn rule(rule: impl Into<String>, message: impl Into<String>) -> Rule {
    Rule { rule: rule.into(), message: message.into() }
}

/// A map from resource name to quantity.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// A duration in Go syntax that re-serialises in Go's canonical form.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": DURATION})
}

/// A duration or `Never`.
pub fn nillable_duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": NILLABLE_DURATION})
}

/// An RFC 3339 timestamp.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Status conditions merged by their type.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(&condition(true), true)
}

/// Status conditions of a NodeClaim, whose reason and message may be missing.
pub fn node_claim_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(&condition(false), true)
}

/// Status conditions as a plain list.
pub fn unkeyed_conditions(_: &mut SchemaGenerator) -> Schema {
    condition_list(&condition(true), false)
}

fn condition_list(item: &Schema, keyed: bool) -> Schema {
    let mut list = json_schema!({"type": "array", "items": item});
    if keyed {
        list.insert("x-kubernetes-list-type".into(), "map".into());
        list.insert("x-kubernetes-list-map-keys".into(), vec!["type"].into());
    }
    list
}

fn condition(reason_required: bool) -> Schema {
    let (reason, required) = if reason_required {
        (
            json_schema!({"type": "string", "minLength": 1, "maxLength": 1024, "pattern": CONDITION_REASON}),
            vec!["lastTransitionTime", "message", "reason", "status", "type"],
        )
    } else {
        (
            json_schema!({"type": "string", "maxLength": 1024, "pattern": NODE_CLAIM_CONDITION_REASON}),
            vec!["lastTransitionTime", "status", "type"],
        )
    };
    json_schema!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "maxLength": 316, "pattern": CONDITION_TYPE},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": reason,
            "message": {"type": "string", "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
        "required": required,
    })
}

/// Taints of a node.
pub fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {
                "key": {"type": "string", "minLength": 1, "pattern": QUALIFIED_KEY},
                "value": {"type": "string", "pattern": QUALIFIED_KEY},
                "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                "timeAdded": {"type": "string", "format": "date-time"},
            },
            "required": ["effect", "key"],
        },
    })
}

/// Node selector requirements as Kubernetes itself defines them, used in status.
pub fn node_selector_requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "key": {"type": "string"},
                "operator": {"type": "string"},
                "values": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "atomic",
                },
            },
            "required": ["key", "operator"],
        },
    })
}
