//! The schemas of Kubernetes' own types.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::node::{Kind, Node};
use super::raw::Raw;
use super::{Root, Schema};

const DOCUMENT: &[u8] = include_bytes!("../../data/openapi.json.gz");
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All types of the served groups.
pub struct Library {
    definitions: Vec<Node>,
    /// By API version and kind.
    kinds: BTreeMap<(String, String), u16>,
    object_meta: u16,
}

impl Library {
    /// The library, read on first use.
    pub fn built_in() -> &'static Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        LIBRARY.get_or_init(Self::read)
    }

    /// The schema of a kind.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<Schema> {
        let number = self.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        Some(Schema { root: Root::BuiltIn(Self::built_in().definition(*number)) })
    }

    /// All definitions as they are written, for OpenAPI documents; read anew, because nothing else needs them.
    pub fn definitions(&self) -> Map<String, Value> {
        let document: Value = serde_json::from_slice(&document()).unwrap_or_default();
        match document {
            Value::Object(mut document) => match document.remove("schemas") {
                Some(Value::Object(schemas)) => schemas,
                _ => Map::new(),
            },
            _ => Map::new(),
        }
    }

    pub(super) fn definition(&self, number: u16) -> &Node {
        &self.definitions[usize::from(number)]
    }

    pub(super) fn object_meta(&self) -> u16 {
        self.object_meta
    }

    fn read() -> Self {
        let mut builder = Builder::default();
        let document = document();
        let mut json = serde_json::Deserializer::from_slice(&document);
        DocumentReader(&mut builder)
            .deserialize(&mut json)
            .expect("the document is part of the program and a test reads it");
        let object_meta = builder.number(META);
        let definitions = builder.definitions.into_iter().map(Option::unwrap_or_default).collect();
        Self { definitions, kinds: builder.kinds, object_meta }
    }
}

/// The document's text.
fn document() -> Vec<u8> {
    let mut text = vec![];
    // What cannot be read is seen by whoever parses it, and by a test.
    let _ = GzDecoder::new(DOCUMENT).read_to_end(&mut text);
    text
}

#[derive(Default)]
struct Builder {
    numbers: BTreeMap<String, u16>,
    definitions: Vec<Option<Node>>,
    kinds: BTreeMap<(String, String), u16>,
}

impl Builder {
    /// The number of a definition, which may come later in the document.
    fn number(&mut self, reference: &str) -> u16 {
        let name = reference.strip_prefix("#/components/schemas/").unwrap_or(reference);
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u16::try_from(self.definitions.len()).expect("there are some hundred definitions");
        self.numbers.insert(name.to_owned(), number);
        self.definitions.push(None);
        number
    }

    fn add(&mut self, name: &str, mut raw: Raw) {
        let number = self.number(name);
        for kind in std::mem::take(&mut raw.kinds) {
            let api_version =
                if kind.group.is_empty() { kind.version } else { format!("{}/{}", kind.group, kind.version) };
            self.kinds.insert((api_version, kind.kind), number);
        }
        let mut node = Node::built_in(special(name, raw), &mut |name| self.number(name));
        let short = name.rsplit('.').next().unwrap_or(name);
        node.kind = match short {
            "Quantity" => Kind::Quantity,
            "Time" => Kind::Time,
            "MicroTime" => Kind::MicroTime,
            "IntOrString" => Kind::IntOrString,
            _ => node.kind,
        };
        node.go_type = short.into();
        self.definitions[usize::from(number)] = Some(node);
    }
}

/// Types that hold any JSON say nothing about it.
fn special(name: &str, mut raw: Raw) -> Raw {
    let short = name.rsplit('.').next().unwrap_or(name);
    if matches!(
        short,
        "JSON"
            | "RawExtension"
            | "FieldsV1"
            | "Patch"
            | "JSONSchemaPropsOrArray"
            | "JSONSchemaPropsOrBool"
            | "JSONSchemaPropsOrStringArray"
    ) {
        raw.preserve = true;
        "atomic".clone_into(&mut raw.map_type);
    }
    raw
}

/// Reads `{"schemas": {…}}` one definition at a time, so that the whole is never in memory as a tree.
struct DocumentReader<'a>(&'a mut Builder);

impl<'de> DeserializeSeed<'de> for DocumentReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an OpenAPI document's components")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "schemas" {
                map.next_value_seed(DefinitionsReader(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct DefinitionsReader<'a>(&'a mut Builder);

impl<'de> DeserializeSeed<'de> for DefinitionsReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DefinitionsReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("definitions by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let raw = map.next_value_seed(std::marker::PhantomData::<Raw>)?;
            self.0.add(&name, raw);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Library;
    use crate::schema::{Kind, List};

    #[test]
    fn kinds_are_found_by_version_and_name() {
        let library = Library::built_in();
        for (api_version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment"), ("policy/v1", "Eviction")] {
            assert!(library.kind(api_version, kind).is_some(), "{api_version} {kind}");
        }
        assert!(library.kind("v1", "Deployment").is_none());
    }

    #[test]
    fn references_between_types_lead_on() {
        let pod = Library::built_in().kind("v1", "Pod").unwrap();
        let spec = pod.node().field("spec").unwrap().node();
        let containers = spec.field("containers").unwrap();
        assert_eq!(&*containers.patch.merge_key, "name");
        assert_eq!(containers.node().list, List::Map(vec!["name".into()]));
        let container = containers.node().items.as_ref().unwrap().node();
        let requests = container.field("resources").unwrap().node().field("requests").unwrap().node();
        assert_eq!(requests.field("cpu").unwrap().node().kind, Kind::Quantity);
    }

    #[test]
    fn a_place_may_overrule_that_its_type_is_one_value() {
        let volume = Library::built_in().kind("v1", "PersistentVolume").unwrap();
        let claim = volume.node().field("spec").unwrap().node().field("claimRef").unwrap();
        assert!(!claim.is_atomic());
        let event = Library::built_in().kind("v1", "Event").unwrap();
        assert!(event.node().field("involvedObject").unwrap().is_atomic());
    }

    #[test]
    fn all_definitions_can_be_had_as_they_are_written() {
        let definitions = Library::built_in().definitions();
        let pod = &definitions["io.k8s.api.core.v1.Pod"];
        assert_eq!(
            pod["x-kubernetes-group-version-kind"],
            json!([{"group": "", "kind": "Pod", "version": "v1"}])
        );
        assert_eq!(definitions.len(), 480);
    }
}
