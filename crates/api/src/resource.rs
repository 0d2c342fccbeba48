//! What makes a type a custom resource: its identity in the API and the CRD around its schema.
//!
//! kube's own derive cannot express an optional `spec` and marks optional fields nullable, which upstream's CRDs
//! do not, so the root types are declared by `custom_resource!` and the documents built by [`crate::crds`].

use kube::Resource;
use schemars::JsonSchema;

use crate::schema::Rule;

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer` or `date`.
    pub kind: &'static str,
    /// Where the value is.
    pub json_path: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
    /// What the column means, where upstream says so.
    pub description: Option<&'static str>,
}

impl Column {
    /// A column that is always shown.
    pub const fn new(name: &'static str, kind: &'static str, json_path: &'static str) -> Self {
        Self { name, kind, json_path, wide: false, description: None }
    }

    /// A column shown with `-o wide`.
    pub const fn wide(name: &'static str, kind: &'static str, json_path: &'static str) -> Self {
        Self { wide: true, ..Self::new(name, kind, json_path) }
    }

    /// The same column with a description.
    #[must_use]
    pub const fn described(self, description: &'static str) -> Self {
        Self { description: Some(description), ..self }
    }
}

/// What a CRD says about a kind besides its schema.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// What the kind is for.
    pub description: &'static str,
    /// Abbreviations accepted by kubectl.
    pub short_names: &'static [&'static str],
    /// Groups of kinds that kubectl lists together.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Columns of `kubectl get`.
    pub columns: &'static [Column],
    /// `(spec.replicas, status.replicas)` paths of the scale subresource.
    pub scale: Option<(&'static str, &'static str)>,
    /// Whether an object without `spec` is refused.
    pub spec_required: bool,
    /// The warning shown to users of this version, if it is deprecated.
    pub deprecation: Option<&'static str>,
}

/// A kind for which a CRD is generated.
pub trait CustomResource: Resource<DynamicType = ()> {
    /// The desired state.
    type Spec: JsonSchema;
    /// The observed state.
    type Status: JsonSchema;
    /// Everything about the CRD that the schema does not say.
    const DEFINITION: Definition;
    /// CEL rules on `spec` as a whole.
    fn spec_rules() -> Vec<Rule> {
        Vec::new()
    }
}

/// Declares the root type of a kind: `metadata`, `spec` and `status`, known to kube clients.
macro_rules! custom_resource {
    ($(#[$doc:meta])* $kind:ident { group: $group:expr, version: $version:literal, plural: $plural:literal,
        scope: $scope:ident, spec: $(#[$spec_attr:meta])* $spec:ty, status: $status:ty }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $kind {
            /// Name, labels, annotations and the rest of the standard metadata.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// The desired state.
            $(#[$spec_attr])*
            pub spec: $spec,
            /// The observed state.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub status: Option<$status>,
        }

        impl $kind {
            /// An object with a name and nothing observed yet.
            pub fn new(name: &str, spec: $spec) -> Self {
                let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    name: Some(name.to_owned()),
                    ..Default::default()
                };
                Self { metadata, spec, status: None }
            }
        }

        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = kube::core::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }
            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use custom_resource;
