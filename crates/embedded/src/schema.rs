//! Structural schemas: pruning, defaults, validation.
//!
//! [`Schema`] is compiled from a CRD or comes from the [`Library`] of Kubernetes' own types.

mod decode;
mod defaults;
mod formats;
pub mod library;
mod node;
mod pattern;
mod prune;
mod raw;
mod rules;
mod structural;
mod time;
mod validate;
pub(crate) mod zero;

use std::sync::Arc;

use serde_json::Value;

pub use self::decode::{decode_built_in, decode_custom};
pub(crate) use self::decode::{decode_changed, sets_times};
pub use self::library::Library;
pub(crate) use self::node::{Field, Kind, List, Node, PatchRules};
use self::raw::Raw;
use crate::field_error::FieldError;

/// The schema of one kind of objects, ready to be used; cheap to clone.
#[derive(Clone)]
pub struct Schema {
    root: Root,
}

#[derive(Clone)]
enum Root {
    Own(Arc<Node>),
    /// A type of the library, which lives as long as the process.
    BuiltIn(&'static Node),
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a version of a CRD; mistakes are reported below `path`.
    pub fn compile(schema: &Value, path: &str) -> Result<Self, Vec<FieldError>> {
        let errors = structural::mistakes(schema, path);
        if !errors.is_empty() {
            return Err(errors);
        }
        let raw = Raw::read(schema).map_err(|error| vec![FieldError::invalid(path, schema, error)])?;
        let mut errors = rules::mistakes(&raw, path);
        let mut root = Node::compile(raw);
        errors.splice(0..0, structural::default_mistakes(&root, path));
        if !errors.is_empty() {
            return Err(errors);
        }
        root.become_root();
        Ok(Self { root: Root::Own(Arc::new(root)) })
    }

    /// A schema that accepts everything and keeps unknown fields.
    pub fn anything() -> Self {
        let mut root = Node { kind: Kind::Object, preserve: true, ..Node::default() };
        root.become_root();
        Self { root: Root::Own(Arc::new(root)) }
    }

    /// Removes unknown fields and returns their paths, sorted, such as `spec.containers[0].bar`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.node(), object)
    }

    /// Drops nulls where none may be and fills in defaults, also below defaults just filled in.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::apply(self.node(), object);
    }

    /// What is wrong with an object, or with its change.
    ///
    /// What was wrong before and did not change is not reported, as far as old and new can be matched.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::validate(self.node(), object, old)
    }

    /// What is wrong with a new status; of the rest of the object only lists and rules are looked at.
    pub fn validate_status(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::validate_status(self.node(), object, old)
    }

    /// Whether there are rules that only an otherwise valid object is asked about.
    pub(crate) fn has_rules(&self) -> bool {
        self.node().has_rules()
    }

    /// The root of the tree.
    pub(crate) fn node(&self) -> &Node {
        match &self.root {
            Root::Own(node) => node,
            Root::BuiltIn(node) => node,
        }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let properties: Vec<_> = self.node().properties.keys().collect();
        f.debug_struct("Schema").field("properties", &properties).finish_non_exhaustive()
    }
}
