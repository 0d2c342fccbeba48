//! Which resources the server serves: Kubernetes' own, and those that CustomResourceDefinitions add.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Target;
use crate::schema::Schema;
use crate::schema::library::Library;
use crate::store::{CollectionId, Store};

/// Kubernetes' own resources as discovery lists them; see `data/README.md`.
const BUILT_IN: &str = include_str!("../data/resources.json");

/// One served version of a resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) collection: CollectionId,
    /// What the definition says; nothing for Kubernetes' own.
    pub(crate) custom: Option<Custom>,
    schema: OnceLock<Schema>,
    api_version: String,
    type_head: String,
}

/// A subresource such as `status`.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// One version of a custom resource.
#[derive(Debug)]
pub(crate) struct Custom {
    /// As text, because it is seldom needed and many times as large as JSON in memory.
    pub(crate) schema_text: Box<str>,
    pub(crate) printer_columns: Value,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) selectable: &'static [&'static str],
    pub(crate) storage_version: bool,
    pub(crate) deprecation: Option<String>,
}

impl Custom {
    pub(crate) fn open_api_schema(&self) -> Value {
        serde_json::from_str(&self.schema_text).unwrap_or_default()
    }
}

/// Where a custom resource keeps what `kubectl scale` changes.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

impl Resource {
    /// `VERSION` for the core group, else `GROUP/VERSION`.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target { group: &self.group, plural: &self.plural }
    }

    /// The kind in the place of the plural, as some refusals name it.
    pub(crate) fn kind_target(&self) -> Target<'_> {
        Target { group: self.told_group(), plural: &self.kind }
    }

    /// The group that refusals of objects name: events are always those of the core group.
    pub(crate) fn told_group(&self) -> &str {
        if self.group == "events.k8s.io" { "" } else { &self.group }
    }

    /// Writes into an object what type it has.
    pub(crate) fn set_type(&self, object: &mut Value) {
        for (name, value) in [("apiVersion", self.api_version()), ("kind", self.kind.as_str())] {
            if object[name] != value {
                object[name] = Value::from(value);
            }
        }
    }

    /// How an object of this type begins.
    pub(crate) fn type_head(&self) -> &str {
        &self.type_head
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| match &self.custom {
            Some(custom) => {
                // A definition is only accepted when its schema compiles.
                Schema::compile(&custom.open_api_schema(), "").unwrap_or_else(|_| Schema::anything())
            }
            None => Library::built_in().kind(&self.api_version, &self.kind).unwrap_or_else(Schema::anything),
        })
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(crate) fn serves(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| one == verb)
    }

    /// Whether the kind is Kubernetes' own of this group and name.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.custom.is_none() && self.group == group && self.kind == kind
    }
}

/// Everything that is served.
#[derive(Debug)]
pub(crate) struct Registry {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
}

impl Registry {
    pub(crate) fn new(store: &mut Store) -> Self {
        let mut registry = Self { resources: BTreeMap::new() };
        let groups: Vec<Group> = serde_json::from_str(BUILT_IN).unwrap_or_default();
        for group in groups {
            for resource in group.resources(store) {
                registry.insert(resource);
            }
        }
        registry
    }

    fn insert(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// A resource by its kind.
    pub(crate) fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.in_version(group, version).find(|resource| resource.kind == kind).cloned()
    }

    /// The served version of a collection that objects are stored in.
    pub(crate) fn of_collection(&self, collection: CollectionId) -> Option<Arc<Resource>> {
        let mut versions = self.resources.values().filter(|resource| resource.collection == collection);
        let first = versions.clone().next();
        // Events of both groups are kept as those of the core group, whose name sorts first.
        versions
            .find(|resource| resource.custom.as_ref().is_some_and(|custom| custom.storage_version))
            .or(first)
            .cloned()
    }

    /// All resources of a group and version, by name.
    pub(crate) fn in_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        let start = (group.to_owned(), version.to_owned(), String::new());
        self.resources
            .range(start..)
            .take_while(move |(key, _)| key.0 == group && key.1 == version)
            .map(|(_, resource)| resource)
    }

    /// All resources of a group.
    pub(crate) fn in_group(&self, group: &str) -> impl Iterator<Item = &Arc<Resource>> {
        let start = (group.to_owned(), String::new(), String::new());
        self.resources.range(start..).take_while(move |(key, _)| key.0 == group).map(|(_, resource)| resource)
    }

    /// All groups with their versions, the preferred one first; the core group has an empty name.
    pub(crate) fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (group, version, _) in self.resources.keys() {
            let versions = groups.entry(group).or_default();
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        }
        groups
    }

    /// Each collection once.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = std::collections::BTreeSet::new();
        self.resources
            .values()
            .filter(move |resource| resource.serves("list") && seen.insert(resource.collection))
    }

    /// Serves what a definition says, and no longer what it said before.
    pub(crate) fn define(&mut self, definition: &Value, store: &mut Store) {
        self.undefine(definition);
        for resource in from_definition(definition, store) {
            self.insert(resource);
        }
    }

    pub(crate) fn undefine(&mut self, definition: &Value) {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        self.resources.retain(|key, resource| resource.custom.is_none() || key.0 != group || key.2 != plural);
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, then by number.
fn version_rank(version: &str) -> (u8, u32, u32) {
    let digits = |text: &str| text.parse::<u32>().unwrap_or_default();
    let rest = version.strip_prefix('v').unwrap_or(version);
    let split = |stage: &str| rest.split_once(stage).map(|(major, minor)| (digits(major), digits(minor)));
    if let Some((major, minor)) = split("alpha") {
        (1, major, minor)
    } else if let Some((major, minor)) = split("beta") {
        (2, major, minor)
    } else {
        (3, digits(rest), 0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    group_version: String,
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    singular_name: String,
    namespaced: bool,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl Group {
    fn resources(self, store: &mut Store) -> Vec<Resource> {
        let (group, version) = match self.group_version.split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), self.group_version),
        };
        let mut resources: Vec<Resource> = Vec::new();
        for listed in self.resources {
            if let Some((plural, name)) = listed.name.split_once('/') {
                let subresource = Subresource {
                    name: name.to_owned(),
                    group: listed.group,
                    version: listed.version,
                    kind: listed.kind,
                    verbs: listed.verbs,
                };
                if let Some(parent) = resources.iter_mut().find(|resource| resource.plural == plural) {
                    parent.subresources.push(subresource);
                }
                continue;
            }
            // Both groups show the same events.
            let stored_in = if listed.name == "events" { "" } else { &group };
            resources.push(Resource {
                collection: store.collection_id(stored_in, &listed.name),
                api_version: api_version(&group, &version),
                type_head: type_head(&group, &version, &listed.kind),
                group: group.clone(),
                version: version.clone(),
                plural: listed.name,
                singular: listed.singular_name,
                list_kind: format!("{}List", listed.kind),
                kind: listed.kind,
                namespaced: listed.namespaced,
                short_names: listed.short_names,
                categories: listed.categories,
                verbs: listed.verbs,
                subresources: Vec::new(),
                custom: None,
                schema: OnceLock::new(),
            });
        }
        resources
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn type_head(group: &str, version: &str, kind: &str) -> String {
    format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{}\",", api_version(group, version))
}

fn from_definition(definition: &Value, store: &mut Store) -> Vec<Resource> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
    let group = text(&spec["group"]);
    let names = &spec["names"];
    let plural = text(&names["plural"]);
    let collection = store.collection_id(&group, &plural);
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let mut resources = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["served"] != Value::Bool(true) {
            continue;
        }
        let name = text(&version["name"]);
        let kind = text(&names["kind"]);
        let custom = custom_version(version);
        let mut subresources = Vec::new();
        let mut add = |wanted: bool, name: &str, group: &str, version: &str, kind: &str| {
            if wanted {
                subresources.push(Subresource {
                    name: name.to_owned(),
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: kind.to_owned(),
                    verbs: ["get", "patch", "update"].map(str::to_owned).into(),
                });
            }
        };
        add(custom.status, "status", "", "", &kind);
        add(custom.scale.is_some(), "scale", "autoscaling", "v1", "Scale");
        resources.push(Resource {
            api_version: api_version(&group, &name),
            type_head: type_head(&group, &name, &kind),
            group: group.clone(),
            version: name,
            plural: plural.clone(),
            singular: text(&names["singular"]),
            list_kind: text(&names["listKind"]),
            kind,
            namespaced: spec["scope"] == "Namespaced",
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            verbs: verbs.map(str::to_owned).into(),
            subresources,
            collection,
            custom: Some(custom),
            schema: OnceLock::new(),
        });
    }
    resources
}

fn custom_version(version: &Value) -> Custom {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let scale = &version["subresources"]["scale"];
    let scale = scale.is_object().then(|| ScalePaths {
        spec_replicas: text(&scale["specReplicasPath"]).unwrap_or_default(),
        status_replicas: text(&scale["statusReplicasPath"]).unwrap_or_default(),
        label_selector: text(&scale["labelSelectorPath"]),
    });
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let deprecated = version["deprecated"] == Value::Bool(true);
    Custom {
        schema_text: version["schema"]["openAPIV3Schema"].to_string().as_str().into(),
        printer_columns: version["additionalPrinterColumns"].clone(),
        status: version["subresources"]["status"].is_object(),
        scale,
        // Definitions are few and live as long as the cluster: their field names may be leaked once each.
        selectable: intern(
            selectable
                .filter_map(|field| field["jsonPath"].as_str())
                .map(|path| path.trim_start_matches('.').to_owned())
                .collect(),
        ),
        storage_version: version["storage"] == Value::Bool(true),
        deprecation: deprecated.then(|| text(&version["deprecationWarning"]).unwrap_or_default()),
    }
}

/// The one copy of these field names.
fn intern(names: Vec<String>) -> &'static [&'static str] {
    use std::sync::Mutex;
    static KNOWN: Mutex<BTreeMap<Vec<String>, &'static [&'static str]>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(leaked) = known.get(&names) {
        return leaked;
    }
    let leaked = names.iter().map(|name| &*String::leak(name.clone())).collect::<Vec<_>>().leak();
    known.insert(names, leaked);
    leaked
}
