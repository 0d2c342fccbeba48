//! Parts that several kinds are made of: requirements, taints, references to NodeClasses, conditions.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use units::Quantity;

use crate::schema::{self, Rule, rule};

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer greater than the value.
    Gt,
    /// The label is an integer less than the value.
    Lt,
    /// The label is an integer greater than or equal to the value.
    Gte,
    /// The label is an integer less than or equal to the value.
    Lte,
}

impl Operator {
    /// All operators, in the order in which they are documented.
    pub const ALL: [Self; 8] =
        [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Gt, Self::Lt, Self::Gte, Self::Lte];

    /// The operator's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }

    /// Whether the operator compares integers.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Gt | Self::Lt | Self::Gte | Self::Lte)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A constraint on one label of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label key.
    pub key: String,
    /// How the label's value is compared.
    pub operator: Operator,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// How many different values must remain to choose from, so that a launch keeps its flexibility.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<i64>,
}

/// Which label keys and how many values a kind accepts in its requirements.
#[derive(Clone, Copy)]
enum RequirementRules {
    Pool,
    Claim,
    Overlay,
}

/// The `requirements` of a NodePool.
pub fn node_pool_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(RequirementRules::Pool)
}

/// The `requirements` of a NodeClaim, which may name the NodePool.
pub fn node_claim_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(RequirementRules::Claim)
}

/// The `requirements` of a NodeOverlay, which select and therefore know no `minValues`.
pub fn node_overlay_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(RequirementRules::Overlay)
}

fn requirements(kind: RequirementRules) -> Schema {
    let mut key_rules = vec![
        rule(
            r#"self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !self.find("^([^/]+)").endsWith("karpenter.sh")"#,
            r#"label domain "karpenter.sh" is restricted"#,
        ),
        rule(r#"self != "kubernetes.io/hostname""#, r#"label "kubernetes.io/hostname" is restricted"#),
    ];
    if let RequirementRules::Pool = kind {
        let nodepool =
            rule(r#"self != "karpenter.sh/nodepool""#, r#"label "karpenter.sh/nodepool" is restricted"#);
        key_rules.insert(1, nodepool);
    }
    let mut item = json_schema!({
        "type": "object",
        "description": "A constraint on one label of the nodes.",
        "properties": {
            "key": {
                "type": "string",
                "description": "The label key.",
                "maxLength": 316,
                "pattern": schema::QUALIFIED_KEY,
                "x-kubernetes-validations": key_rules,
            },
            "operator": {
                "type": "string",
                "description": "How the label's value is compared with `values`.",
                "enum": Operator::ALL,
            },
            // The length and pattern were meant for the items, but upstream attaches them to the list, where
            // they do nothing. Values are checked by the runtime validation instead.
            "values": {
                "type": "array",
                "description": "What the label is compared with: at least one value for In and NotIn, exactly one \
                    integer for Gt, Lt, Gte and Lte.",
                "items": {"type": "string"},
                "maxLength": 63,
                "pattern": schema::LABEL_VALUE,
                "x-kubernetes-list-type": "atomic",
            },
        },
        "required": ["key", "operator"],
    });
    if !matches!(kind, RequirementRules::Overlay) {
        let min_values = serde_json::json!({
            "type": "integer",
            "description": "How many different values must remain to choose from. Alpha.",
            "minimum": 1,
            "maximum": 50,
        });
        item.get_mut("properties")
            .and_then(serde_json::Value::as_object_mut)
            .expect("the item was just built with properties")
            .insert("minValues".into(), min_values);
    }
    json_schema!({
        "type": "array",
        "description": "What the labels of a node must satisfy.",
        "items": item,
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": arity_rules(kind),
    })
}

fn arity_rules(kind: RequirementRules) -> Vec<Rule> {
    let in_has_values = rule(
        "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
        "requirements with operator 'In' must have a value defined",
    );
    let comparison = |message: &str| {
        rule(
            "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
            message,
        )
    };
    match kind {
        RequirementRules::Pool | RequirementRules::Claim => vec![
            in_has_values,
            comparison(
                "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
            ),
            rule(
                "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
                "requirements with 'minValues' must have at least that many values specified in the 'values' field",
            ),
        ],
        RequirementRules::Overlay => vec![
            rule(
                "self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)",
                "requirements with operator 'NotIn' must have a value defined",
            ),
            in_has_values,
            comparison(
                "requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",
            ),
        ],
    }
}

/// Keeps pods away from a node unless they tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The taint key.
    pub key: String,
    /// The taint value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// When the taint was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// Which NodeClass configures the instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClassReference {
    /// The API group, without a version.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
}

/// A reference to a NodeClass that may change freely.
pub fn node_class_reference(_: &mut SchemaGenerator) -> Schema {
    let field = |name: &str, description: &str| {
        json_schema!({
            "type": "string",
            "description": description,
            "x-kubernetes-validations": [rule("self != ''", format!("{name} may not be empty"))],
        })
    };
    let mut group = field("group", "The API group of the NodeClass, without a version.");
    group.insert("pattern".into(), schema::API_GROUP.into());
    json_schema!({
        "type": "object",
        "description": "Which NodeClass configures the instances.",
        "properties": {
            "group": group,
            "kind": field("kind", "The kind of the NodeClass."),
            "name": field("name", "The name of the NodeClass."),
        },
        "required": ["group", "kind", "name"],
    })
}

/// A reference to a NodeClass whose group and kind are fixed once set.
pub fn fixed_node_class_reference(generator: &mut SchemaGenerator) -> Schema {
    let mut reference = node_class_reference(generator);
    let rules = serde_json::json!([
        rule("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
        rule("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
    ]);
    reference.insert("x-kubernetes-validations".into(), rules);
    reference
}

/// One observation about an object's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word for programs.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// Which generation of the object was observed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It has not been found out.
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}
