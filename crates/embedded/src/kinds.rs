//! What the API server knows about its built-in kinds: defaults, rules, and what may change.
//!
//! All functions are pure. Writes call them in the API server's order: [`default`], then one of the `prepare_`
//! functions, then the rules, of metadata first.

pub mod crd;
mod defaults;
mod fields;
mod get;
mod metadata;
mod names;
mod node;
mod pod;
mod prepare;
mod rbac;
mod rules;
mod service;
mod shape;
mod simple;
mod status;
mod storage;
mod workloads;

use serde_json::Value;

use crate::field_error::FieldError;

pub(crate) use get::{Get, take_over};

/// What a write is about.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The namespace; empty for kinds without.
    pub namespace: &'a str,
    /// The time as RFC 3339 with seconds.
    pub now: &'a str,
}

/// Whether the kind is one of Kubernetes' own.
pub fn is_built_in(group: &str, kind: &str) -> bool {
    shape::is_built_in(group, kind)
}

/// Brings a built-in object into the form in which it is stored: defaults filled in, unknown fields and empty
/// values gone, quantities and times in canonical text. Custom objects are left alone.
///
/// `before` is the stored object that this one replaces: what both have in common is in that form already.
pub fn default(context: &Context<'_>, object: &mut Value, before: Option<&Value>) {
    shape::pass_through(context.group, context.kind, object, before, &defaults::fill);
}

/// Resets what clients cannot choose on creation, and starts the generation where the kind has one.
pub fn prepare_create(context: &Context<'_>, object: &mut Value) {
    prepare::create(context, object);
}

/// Puts back from `old` what an update of the main resource may not change, and counts the generation.
pub fn prepare_update(context: &Context<'_>, object: &mut Value, old: &Value) {
    prepare::update(context, object, old);
}

/// Puts back from `old` everything but the status and the metadata that status updates may change.
pub fn prepare_status_update(context: &Context<'_>, object: &mut Value, old: &Value) {
    prepare::status_update(context, object, old);
}

/// A pod's priority and preemption policy from its class; the message says why the pod is forbidden.
///
/// `class` is the class the pod names or, when it names none, the cluster's default, if there is one. To be called
/// between [`default`] and [`prepare_create`]; without it pods have priority 0.
pub fn admit_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    pod::admit_priority(pod, class)
}

/// Rules on a new object, metadata aside.
pub fn validate_create(context: &Context<'_>, object: &Value) -> Vec<FieldError> {
    match (context.group, context.kind) {
        ("", "Pod") => pod::validate_create(object),
        ("", "Node") => node::validate(object),
        ("", "Service") => service::validate(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::validate(object),
        ("rbac.authorization.k8s.io", kind) => rbac::validate(kind, object),
        (group, kind) if shape::is_built_in(group, kind) => workloads::validate(kind, object)
            .or_else(|| storage::validate(kind, object))
            .unwrap_or_else(|| simple::validate(context, object)),
        _ => Vec::new(),
    }
}

/// Rules on a changed object, metadata aside.
pub fn validate_update(context: &Context<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    match (context.group, context.kind) {
        ("", "Pod") => pod::validate_update(object, old),
        ("", "Node") => node::validate_update(object, old),
        ("", "Service") => service::validate_update(object, old),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::validate_update(object, old),
        ("rbac.authorization.k8s.io", kind) => rbac::validate_update(kind, object, old),
        (group, kind) if shape::is_built_in(group, kind) => workloads::validate_update(kind, object, old)
            .or_else(|| storage::validate_update(kind, object, old))
            .unwrap_or_else(|| simple::validate_update(context, object, old)),
        _ => Vec::new(),
    }
}

/// Rules on a changed status, metadata aside.
pub fn validate_status_update(context: &Context<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    status::validate_update(context, object, old)
}

/// Rules on a pod whose ephemeral containers change, metadata aside.
pub fn validate_ephemeral_containers_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    pod::validate_ephemeral_containers_update(pod, old)
}

/// Rules on the metadata of a new object of any kind.
pub fn validate_metadata(
    context: &Context<'_>,
    object: &Value,
    namespaced: bool,
    built_in: bool,
) -> Vec<FieldError> {
    metadata::validate(context, object, namespaced, built_in)
}

/// Rules on the changed metadata of an object of any kind.
pub fn validate_metadata_update(object: &Value, old: &Value) -> Vec<FieldError> {
    metadata::validate_update(object, old)
}

/// A field's value as field selectors compare it; nothing when the kind does not know the field.
pub fn field_value(group: &str, kind: &str, object: &Value, path: &str) -> Option<String> {
    fields::value(group, kind, object, path)
}

/// Why field selectors of a kind cannot ask about a field, for the refusal as a bad request.
pub fn field_refusal(group: &str, kind: &str, path: &str) -> String {
    fields::refusal(group, kind, path)
}

/// What is wrong with the key of a label.
pub(crate) fn label_key_mistakes(key: &str) -> Vec<String> {
    names::qualified_name(key)
}

/// QoS class of a pod.
pub fn qos_class(pod: &Value) -> &'static str {
    pod::qos_class(pod)
}
