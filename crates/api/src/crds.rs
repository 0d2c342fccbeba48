//! CRD documents, generated from the Rust types.
//!
//! [`documents`] is the set that one provider ships. The label rules of different providers contradict each
//! other, so they are never merged into one document.

use kube::core::schema::{OptionalEnum, StructuralSchemaRewriter};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::aws::EC2NodeClass;
use crate::azure::{self, AKSNodeClass};
use crate::capacitybuffer::CapacityBuffer;
use crate::kwok::KWOKNodeClass;
use crate::nodeclaim::NodeClaim;
use crate::nodeoverlay::NodeOverlay;
use crate::nodepool::NodePool;
use crate::provider::Provider;
use crate::resource::CustomResource;
use crate::schema::Rule;

/// One CRD.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The name of the file it is kept in, such as `karpenter.sh_nodepools.yaml`.
    pub file_name: String,
    /// The document.
    pub document: Value,
}

/// The CRDs that a provider ships: the core kinds with its label rules, and its NodeClass.
pub fn documents(provider: Provider) -> Vec<Crd> {
    let mut node_pool = crd::<NodePool>();
    let mut node_claim = crd::<NodeClaim>();
    let mut node_overlay = crd::<NodeOverlay>();
    let capacity_buffer = crd::<CapacityBuffer>();
    let rules = provider.label_rules();
    let template = "/properties/template/properties";
    add_rules(&mut node_pool, &format!("{template}/metadata/properties/labels"), rules.template_labels);
    add_rules(&mut node_pool, &format!("{template}/spec/properties/{REQUIREMENT_KEY}"), rules.node_pool_keys);
    add_rules(&mut node_claim, &format!("/properties/{REQUIREMENT_KEY}"), rules.node_claim_keys);
    add_rules(&mut node_overlay, &format!("/properties/{REQUIREMENT_KEY}"), rules.node_overlay_keys);
    for document in [&mut node_pool, &mut node_claim, &mut node_overlay] {
        let categories = pointer(document, "/spec/names/categories");
        let categories = categories.as_array_mut().expect("every core kind has categories");
        categories.extend(provider.extra_categories().iter().map(|category| json!(category)));
    }
    let node_class = match provider {
        Provider::Kwok => crd::<KWOKNodeClass>(),
        Provider::Aws => crd::<EC2NodeClass>(),
        Provider::Azure => {
            with_older_version(crd::<AKSNodeClass>(), version::<azure::v1alpha2::AKSNodeClass>(false))
        }
    };
    [capacity_buffer, node_class, node_claim, node_overlay, node_pool]
        .into_iter()
        .map(|document| Crd { file_name: file_name(&document), document })
        .collect()
}

/// Where a requirement's key is, below the object that holds the requirements.
const REQUIREMENT_KEY: &str = "requirements/items/properties/key";

/// The part of the document in which `spec` is described.
const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

fn add_rules(document: &mut Value, path: &str, rules: Vec<Rule>) {
    if rules.is_empty() {
        return;
    }
    let list = pointer(document, &format!("{SPEC}{path}/x-kubernetes-validations"));
    let list = list.as_array_mut().expect("provider rules extend existing ones");
    list.extend(rules.into_iter().map(|rule| json!(rule)));
}

fn pointer<'a>(document: &'a mut Value, path: &str) -> &'a mut Value {
    document.pointer_mut(path).unwrap_or_else(|| panic!("the generated CRD has {path}"))
}

fn file_name(document: &Value) -> String {
    let text = |path| document.pointer(path).and_then(Value::as_str).expect("a CRD has names");
    format!("{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"))
}

fn with_older_version(mut document: Value, older: Value) -> Value {
    let versions = pointer(&mut document, "/spec/versions").as_array_mut().expect("a CRD has versions");
    versions.push(older);
    document
}

fn crd<K: CustomResource>() -> Value {
    let kind = K::kind(&());
    let (group, plural) = (K::group(&()), K::plural(&()));
    let definition = K::DEFINITION;
    let mut names = json!({
        "kind": kind,
        "listKind": format!("{kind}List"),
        "plural": plural,
        "singular": kind.to_ascii_lowercase(),
    });
    if !definition.categories.is_empty() {
        names["categories"] = json!(definition.categories);
    }
    if !definition.short_names.is_empty() {
        names["shortNames"] = json!(definition.short_names);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": names,
            "scope": if definition.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [version::<K>(true)],
        },
    })
}

fn version<K: CustomResource>(storage: bool) -> Value {
    let definition = K::DEFINITION;
    let mut subresources = json!({"status": {}});
    if let Some((spec, status)) = definition.scale {
        subresources["scale"] = json!({"specReplicasPath": spec, "statusReplicasPath": status});
    }
    let mut version = json!({
        "name": K::version(&()),
        "served": true,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema::<K>()},
        "subresources": subresources,
    });
    if let Some(warning) = definition.deprecation {
        version["deprecated"] = json!(true);
        version["deprecationWarning"] = json!(warning);
    }
    let columns: Vec<Value> = definition
        .columns
        .iter()
        .map(|column| {
            let mut value = json!({"name": column.name, "type": column.kind, "jsonPath": column.json_path});
            if column.wide {
                value["priority"] = json!(1);
            }
            if let Some(description) = column.description {
                value["description"] = json!(description);
            }
            value
        })
        .collect();
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = json!(columns);
    }
    version
}

fn schema<K: CustomResource>() -> Value {
    let mut spec = structural_schema::<K::Spec>();
    let rules = K::spec_rules();
    if !rules.is_empty() {
        spec["x-kubernetes-validations"] = json!(rules);
    }
    let mut root = json!({
        "type": "object",
        "description": K::DEFINITION.description,
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and version of the API."},
            "kind": {"type": "string", "description": "The kind of the object."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural_schema::<K::Status>(),
        },
    });
    if K::DEFINITION.spec_required {
        root["required"] = json!(["spec"]);
    }
    root
}

fn structural_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum);
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let mut value = schema.to_value();
    tidy(&mut value);
    value
}

/// Removes what schemars adds and a structural schema has no use for.
fn tidy(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("title");
    // A nullable field would keep a null that the API server drops today, as with upstream's CRDs.
    object.remove("nullable");
    // kube's rewriter empties the alternatives of an int-or-string.
    if object.contains_key("x-kubernetes-int-or-string") {
        object.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    for number in ["minimum", "maximum"] {
        if let Some(value) = object.get_mut(number) {
            to_integer(value);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = object.get_mut(key) {
            tidy(child);
        }
    }
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(tidy);
    }
    sort_required(object);
}

/// schemars writes bounds as floating-point numbers; all of ours are integers.
fn to_integer(number: &mut Value) {
    if let Some(float) = number.as_f64().filter(|f| f.fract() == 0.0) {
        #[expect(clippy::cast_possible_truncation, reason = "the bounds in the types are small integers")]
        let integer = float as i64;
        *number = json!(integer);
    }
}

fn sort_required(object: &mut Map<String, Value>) {
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}
