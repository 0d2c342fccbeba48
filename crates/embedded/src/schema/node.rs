//! The compiled form of schemas, the same for CRDs and for Kubernetes' own types.

use std::collections::BTreeMap;
use std::mem::take;

use regex::Regex;
use serde_json::Value;

use super::formats::Format;
use super::library::Library;
use super::pattern;
use super::raw::{Raw, RawOrBool};
use super::rules::Rule;

/// What kind of value belongs at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing is said.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// A CRD's `x-kubernetes-int-or-string` or Kubernetes' own type.
    IntOrString,
    /// Kubernetes' amounts, which are written in one canonical way.
    Quantity,
    /// A moment, in seconds.
    Time,
    /// A moment, in microseconds.
    MicroTime,
    /// Base64.
    Bytes,
}

/// How the entries of a list are told apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    /// They are not: the list is one value.
    #[default]
    Atomic,
    /// By their values.
    Set,
    /// By these of their fields.
    Map(Vec<Box<str>>),
}

/// What fields an object may have beside its properties.
#[derive(Default)]
pub(crate) enum Others {
    #[default]
    None,
    Any,
    Each(Box<Field>),
}

/// A place in an object: what belongs there, and what the place itself says.
pub(crate) struct Field {
    target: Target,
    pub(crate) default: Option<Value>,
    pub(crate) patch: PatchRules,
    /// The place overrules that its type is one value for field owners.
    granular: bool,
    /// Go writes the list even if there is none.
    required_list: bool,
}

enum Target {
    Own(Box<Node>),
    /// A definition of the library.
    Definition(u16),
}

/// How a strategic merge patch treats a place.
#[derive(Clone, Default)]
pub(crate) struct PatchRules {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    /// The field by which entries are matched; empty for lists of plain values.
    pub(crate) merge_key: Box<str>,
}

/// One node of a schema.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Schemas are made of switches.
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    /// Unknown fields are kept.
    pub(crate) preserve: bool,
    /// The value is a whole object with apiVersion, kind and metadata.
    pub(crate) embedded: bool,
    /// For field owners the object is one value.
    pub(crate) atomic: bool,
    /// The size of a number: `int32`, `int64`, `float`, `double` or nothing.
    pub(crate) size: &'static str,
    pub(crate) properties: BTreeMap<Box<str>, Field>,
    pub(crate) others: Others,
    pub(crate) items: Option<Box<Field>>,
    pub(crate) list: List,
    /// The last part of the Go type's name, which decoding errors mention; empty for others.
    pub(crate) go_type: Box<str>,
    pub(super) checks: Option<Box<Checks>>,
}

/// What is checked beside the structure; only CRDs have it.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) required: Vec<String>,
    pub(super) accepted: Vec<Value>,
    pub(super) pattern: Option<(String, Regex)>,
    pub(super) format: Option<Format>,
    pub(super) format_name: String,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Node>,
    pub(super) rules: Vec<Rule>,
    /// Whether this node or one below has rules.
    pub(super) rules_below: bool,
}

/// Where a schema comes from.
enum Origin<'a> {
    Crd,
    /// The library; the function gives the number of a definition.
    BuiltIn(&'a mut dyn FnMut(&str) -> u16),
}

impl Node {
    /// Compiles a CRD's schema, which has no references.
    pub(super) fn compile(raw: Raw) -> Self {
        Self::compile_with(raw, &mut Origin::Crd)
    }

    /// Compiles a type of Kubernetes' own; `number` gives the number of a definition.
    pub(super) fn built_in(raw: Raw, number: &mut dyn FnMut(&str) -> u16) -> Self {
        Self::compile_with(raw, &mut Origin::BuiltIn(number))
    }

    fn compile_with(mut raw: Raw, origin: &mut Origin<'_>) -> Self {
        let required = std::mem::take(&mut raw.required);
        let checks = match origin {
            Origin::Crd => Checks::compile(&mut raw, required.clone()),
            // Kubernetes' own types are checked by its own code.
            Origin::BuiltIn(_) => None,
        };
        let mut node = Self {
            kind: match (&origin, kind(&raw)) {
                (Origin::BuiltIn(_), Kind::String) if raw.format == "byte" => Kind::Bytes,
                (_, kind) => kind,
            },
            nullable: raw.nullable,
            preserve: raw.preserve,
            embedded: raw.embedded,
            atomic: raw.map_type == "atomic",
            size: size(&raw),
            list: match raw.list_type.as_str() {
                "set" => List::Set,
                "map" => List::Map(take(&mut raw.list_map_keys)),
                _ => List::Atomic,
            },
            properties: take(&mut raw.properties)
                .into_iter()
                .map(|(name, raw)| {
                    let required = required.contains(&name);
                    let mut field = Field::compile(raw, origin);
                    field.required_list =
                        required && field.own_node().is_some_and(|node| node.kind == Kind::Array);
                    (name.into_boxed_str(), field)
                })
                .collect(),
            others: match raw.additional_properties.take() {
                None | Some(RawOrBool::Bool(false)) => Others::None,
                Some(RawOrBool::Bool(true)) => Others::Any,
                Some(RawOrBool::Raw(raw)) => Others::Each(Box::new(Field::compile(*raw, origin))),
            },
            items: raw.items.take().map(|raw| Box::new(Field::compile(*raw, origin))),
            go_type: Box::default(),
            checks,
        };
        node.note_rules();
        node
    }

    /// Sets whether rules are found at or below the node.
    fn note_rules(&mut self) {
        let others = match &self.others {
            Others::Each(field) => field.has_rules(),
            _ => false,
        };
        let below = others
            || self.properties.values().any(Field::has_rules)
            || self.items.as_ref().is_some_and(|items| items.has_rules());
        let here = self
            .checks
            .as_ref()
            .is_some_and(|checks| !checks.rules.is_empty() || checks.all_of.iter().any(Node::has_rules));
        if here || below {
            self.checks.get_or_insert_default().rules_below = true;
        }
    }

    pub(super) fn has_rules(&self) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.rules_below)
    }

    /// Gives a custom resource what every object has.
    pub(super) fn become_root(&mut self) {
        self.embedded = true;
        for name in ["apiVersion", "kind"] {
            let text = || Field::own(Node { kind: Kind::String, ..Node::default() });
            self.properties.entry(name.into()).or_insert_with(text);
        }
        // Rules may look at metadata's name, but nothing else is said about it.
        let metadata = Field::definition(Library::built_in().object_meta());
        self.properties.insert("metadata".into(), metadata);
    }

    /// What belongs in the field `name`; nothing when the field is unknown.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.properties.get(name).or(match &self.others {
            Others::Each(field) => Some(field),
            _ => None,
        })
    }
}

impl Field {
    fn own(node: Node) -> Self {
        Self {
            target: Target::Own(Box::new(node)),
            default: None,
            patch: PatchRules::default(),
            granular: false,
            required_list: false,
        }
    }

    pub(super) fn definition(number: u16) -> Self {
        Self {
            target: Target::Definition(number),
            default: None,
            patch: PatchRules::default(),
            granular: false,
            required_list: false,
        }
    }

    fn compile(mut raw: Raw, origin: &mut Origin<'_>) -> Self {
        let default = raw.default.take();
        let has = |strategy: &str| raw.patch_strategy.split(',').any(|one| one == strategy);
        let patch = PatchRules {
            merge: has("merge"),
            replace: has("replace"),
            merge_key: take(&mut raw.merge_key).into_boxed_str(),
        };
        // The API server writes a reference with company as the only member of `allOf`.
        let reference = match raw.all_of.first() {
            Some(only) if !only.reference.is_empty() => &only.reference,
            _ => &raw.reference,
        };
        let granular = raw.map_type == "granular";
        let target = match origin {
            Origin::BuiltIn(number) if !reference.is_empty() => Target::Definition(number(reference)),
            origin => Target::Own(Box::new(Node::compile_with(raw, origin))),
        };
        Self { target, default, patch, granular, required_list: false }
    }

    /// What belongs at the place.
    pub(crate) fn node(&self) -> &Node {
        match &self.target {
            Target::Own(node) => node,
            Target::Definition(number) => Library::built_in().definition(*number),
        }
    }

    /// Whether field owners see an object here as one value.
    pub(crate) fn is_atomic(&self) -> bool {
        !self.granular && self.node().atomic
    }

    /// Whether Go writes a list here even if there is none.
    pub(crate) fn is_required_list(&self) -> bool {
        self.required_list
    }

    /// What belongs here, unless it is a definition of the library.
    pub(super) fn own_node(&self) -> Option<&Node> {
        match &self.target {
            Target::Own(node) => Some(node),
            Target::Definition(_) => None,
        }
    }

    fn has_rules(&self) -> bool {
        self.own_node().is_some_and(Node::has_rules)
    }
}

fn kind(raw: &Raw) -> Kind {
    match raw.type_name.as_str() {
        _ if raw.int_or_string || raw.format == "int-or-string" => Kind::IntOrString,
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => Kind::Any,
    }
}

fn size(raw: &Raw) -> &'static str {
    let sizes: &[&'static str] = match raw.type_name.as_str() {
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    sizes.iter().find(|size| **size == raw.format).copied().unwrap_or_default()
}

impl Checks {
    fn compile(raw: &mut Raw, required: Vec<String>) -> Option<Box<Self>> {
        let nested = |list: &mut Vec<Raw>| take(list).into_iter().map(Node::compile).collect::<Vec<_>>();
        let pattern_text = take(&mut raw.pattern);
        let checks = Self {
            required,
            accepted: take(&mut raw.accepted),
            pattern: pattern::compile(&pattern_text).ok().map(|regex| (pattern_text, regex)),
            format: Format::named(&raw.format, &raw.type_name),
            format_name: raw.format.clone(),
            minimum: raw.minimum,
            maximum: raw.maximum,
            exclusive_minimum: raw.exclusive_minimum,
            exclusive_maximum: raw.exclusive_maximum,
            multiple_of: raw.multiple_of,
            min_length: raw.min_length,
            max_length: raw.max_length,
            min_items: raw.min_items,
            max_items: raw.max_items,
            min_properties: raw.min_properties,
            max_properties: raw.max_properties,
            all_of: nested(&mut raw.all_of),
            any_of: nested(&mut raw.any_of),
            one_of: nested(&mut raw.one_of),
            not: raw.not.take().map(|not| Node::compile(*not)),
            rules: take(&mut raw.rules).iter().filter_map(Rule::compile).collect(),
            rules_below: false,
        };
        checks.says_something().then(|| Box::new(checks))
    }

    fn says_something(&self) -> bool {
        let numbers = [self.minimum, self.maximum, self.multiple_of];
        let lengths = [
            self.min_length,
            self.max_length,
            self.min_items,
            self.max_items,
            self.min_properties,
            self.max_properties,
        ];
        numbers.iter().any(Option::is_some)
            || lengths.iter().any(Option::is_some)
            || !self.required.is_empty()
            || !self.accepted.is_empty()
            || self.pattern.as_ref().is_some_and(|(text, _)| !text.is_empty())
            || self.format.is_some()
            || ![&self.all_of, &self.any_of, &self.one_of].iter().all(|list| list.is_empty())
            || self.not.is_some()
            || !self.rules.is_empty()
    }
}
