//! Which constraints of the CRDs the corpus exercises. Entry: [`coverage`].
//!
//! Every constraint must be the reason of a refusal. Patterns and CEL rules must also have been satisfied by an
//! accepted object in which their field was present; a rule that compares with the old object, by an update.

use std::collections::BTreeSet;

use api::provider::Provider;
use serde_json::Value;

use crate::cluster::{cluster, text, versions};
use crate::exceptions::{Exception, exceptions};
use crate::run::{Accepted, Refused, Results, results};

/// Something that a CRD demands of the values at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Constraint {
    crd: String,
    version: String,
    place: Place,
    demand: Demand,
}

/// A place in a schema, from the root.
type Place = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Property(String),
    /// Any item of a list.
    Item,
    /// Any value of a map.
    Value,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Demand {
    /// Text must match; `should match '<pattern>'`.
    Pattern(String),
    /// A CEL rule with its message.
    Rule { rule: String, message: String },
    /// A simple keyword, with how the API server begins to complain.
    Keyword { name: &'static str, limit: String, complaint: &'static str },
    /// A field must be present.
    Required,
}

/// Keywords with the part of the API server's message that tells them from each other.
const KEYWORDS: [(&str, &str); 9] = [
    ("enum", "Unsupported value: "),
    ("minimum", "should be greater than or equal to"),
    ("maximum", "should be less than or equal to"),
    ("minLength", "should be at least"),
    ("maxLength", "Too long: "),
    ("minItems", "should have at least"),
    ("maxItems", "Too many: "),
    ("minProperties", "should have at least"),
    ("maxProperties", "Too many: "),
];

/// How much of a provider's CRDs is covered.
pub(crate) struct Coverage {
    /// What is not, ready to be printed.
    pub(crate) gaps: Vec<String>,
    pub(crate) rules: usize,
    pub(crate) patterns: usize,
    pub(crate) others: usize,
}

/// What the corpus of a provider covers of what its CRDs demand.
///
/// What the core kinds demand of every provider's users alike is left to the corpus of kwok.
pub(crate) fn coverage(provider: Provider) -> Coverage {
    let mut constraints = constraints(&cluster(provider).crds);
    if provider != Provider::Kwok {
        let kwok: Vec<Value> =
            api::crds::documents(Provider::Kwok).into_iter().map(|crd| crd.document).collect();
        let common = self::constraints(&kwok);
        constraints.retain(|constraint| !common.contains(constraint));
    }
    let results = results(provider);
    let exceptions = exceptions(provider);
    let mut gaps: Vec<String> =
        constraints.iter().flat_map(|constraint| constraint.gaps(results, &exceptions)).collect();
    for exception in &exceptions {
        if !constraints.iter().any(|constraint| constraint.is(exception)) {
            gaps.push(format!("{exception:?} excuses something that no CRD demands"));
        }
    }
    let count = |wanted: fn(&Demand) -> bool| constraints.iter().filter(|c| wanted(&c.demand)).count();
    let rules = count(|demand| matches!(demand, Demand::Rule { .. }));
    let patterns = count(|demand| matches!(demand, Demand::Pattern(_)));
    Coverage { gaps, rules, patterns, others: constraints.len() - rules - patterns }
}

/// Everything that some CRDs demand.
fn constraints(crds: &[Value]) -> BTreeSet<Constraint> {
    let mut found = BTreeSet::new();
    for crd in crds {
        for version in versions(crd) {
            let schema = version.pointer("/schema/openAPIV3Schema").expect("a version has a schema");
            let (crd, version) = (text(crd, "/metadata/name"), text(version, "/name"));
            walk(schema, &mut vec![], &mut |place, demand| {
                let (crd, version) = (crd.to_owned(), version.to_owned());
                found.insert(Constraint { crd, version, place, demand });
            });
        }
    }
    found
}

fn walk(schema: &Value, place: &mut Place, found: &mut impl FnMut(Place, Demand)) {
    // Keywords for texts do nothing on a list: upstream puts some there by mistake, and so do we.
    let inert = |keyword: &str| schema["type"] == "array" && ["pattern", "maxLength"].contains(&keyword);
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str).filter(|_| !inert("pattern")) {
        found(place.clone(), Demand::Pattern(pattern.to_owned()));
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let (rule, message) = (text(rule, "/rule").to_owned(), text(rule, "/message").to_owned());
        found(place.clone(), Demand::Rule { rule, message });
    }
    for (name, complaint) in KEYWORDS {
        if let Some(limit) = schema.get(name).filter(|_| !inert(name)) {
            found(place.clone(), Demand::Keyword { name, limit: limit.to_string(), complaint });
        }
    }
    if schema["format"] == "date-time" {
        let (limit, complaint) = ("date-time".to_owned(), "must be of type date-time");
        found(place.clone(), Demand::Keyword { name: "format", limit, complaint });
    }
    if let Some(kind @ ("set" | "map")) = schema["x-kubernetes-list-type"].as_str() {
        let complaint = "Duplicate value: ";
        let place = [place.as_slice(), &[Step::Item]].concat();
        found(place, Demand::Keyword { name: "list-type", limit: kind.to_owned(), complaint });
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut place = place.clone();
        place.push(Step::Property(name.to_owned()));
        found(place, Demand::Required);
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, schema)| (Step::Property(name.clone()), schema));
    let items = schema.get("items").map(|schema| (Step::Item, schema));
    let values = schema.get("additionalProperties").map(|schema| (Step::Value, schema));
    for (step, schema) in properties.chain(items).chain(values) {
        place.push(step);
        walk(schema, place, found);
        place.pop();
    }
}

impl Constraint {
    fn gaps(&self, results: &Results, exceptions: &[Exception]) -> Vec<String> {
        let refused = results.refused.iter().any(|refused| self.is_reason_of(refused));
        if let Some(exception) = exceptions.iter().find(|exception| self.is(exception)) {
            let stale = refused.then(|| format!("{self} is excused and yet covered: {}", exception.why));
            return stale.into_iter().collect();
        }
        let mut gaps = vec![];
        if !refused {
            gaps.push(format!("no refused case for {self}"));
        }
        if self.demand.needs_acceptance()
            && !results.accepted.iter().any(|object| self.is_satisfied_by(object))
        {
            gaps.push(format!("no accepted case for {self}"));
        }
        gaps
    }

    fn is(&self, exception: &Exception) -> bool {
        self.crd.starts_with(exception.plural)
            && show(&self.place) == exception.place
            && self.demand.name() == exception.demand
    }

    fn is_reason_of(&self, refused: &Refused) -> bool {
        let here = refused.endpoint.crd == self.crd && refused.endpoint.version == self.version;
        here && is_at(&self.place, &refused.field) && self.demand.is_named_in(&refused.message)
    }

    fn is_satisfied_by(&self, accepted: &Accepted) -> bool {
        let here = accepted.endpoint.crd == self.crd && accepted.endpoint.version == self.version;
        here && (accepted.is_update || !self.demand.is_transition())
            && is_present(&self.place, &accepted.object)
    }
}

impl Demand {
    fn name(&self) -> &str {
        match self {
            Self::Pattern(_) => "pattern",
            Self::Rule { message, .. } => message,
            Self::Keyword { name, .. } => name,
            Self::Required => "required",
        }
    }

    fn is_named_in(&self, complaint: &str) -> bool {
        match self {
            Self::Pattern(pattern) => complaint.ends_with(&format!("should match '{pattern}'")),
            // A rule that cannot be evaluated refuses too, but that does not show that it works.
            Self::Rule { message, .. } => {
                complaint.ends_with(message) && !complaint.contains("evaluating rule")
            }
            Self::Keyword { complaint: expected, .. } => complaint.contains(expected),
            Self::Required => complaint.starts_with("Required value"),
        }
    }

    fn needs_acceptance(&self) -> bool {
        matches!(self, Self::Pattern(_) | Self::Rule { .. })
    }

    fn is_transition(&self) -> bool {
        matches!(self, Self::Rule { rule, .. } if rule.contains("oldSelf"))
    }
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}: ", self.crd, self.version, show(&self.place))?;
        match &self.demand {
            Demand::Keyword { name, limit, .. } => write!(f, "{name} {limit}"),
            demand => f.write_str(demand.name()),
        }
    }
}

/// A place as in `spec.template.spec.taints[].key`, with `{}` for the values of a map.
fn show(place: &Place) -> String {
    let mut shown = String::new();
    for step in place {
        match step {
            Step::Property(name) if shown.is_empty() => shown.push_str(name),
            Step::Property(name) => shown.extend([".", name]),
            Step::Item => shown.push_str("[]"),
            Step::Value => shown.push_str("{}"),
        }
    }
    shown
}

/// Whether the API server's `field` is at this place of the schema.
///
/// It writes the values of a map as `map.key` or `map[key]`, and a key may contain dots.
fn is_at(place: &[Step], field: &str) -> bool {
    let Some((step, rest)) = place.split_first() else { return field.is_empty() };
    match step {
        Step::Property(name) => {
            let field = field.strip_prefix('.').unwrap_or(field);
            field.strip_prefix(name.as_str()).is_some_and(|field| is_at(rest, field))
        }
        Step::Item => {
            field.strip_prefix('[').and_then(|field| field.split_once(']')).is_some_and(|(index, field)| {
                index.bytes().all(|byte| byte.is_ascii_digit()) && is_at(rest, field)
            })
        }
        Step::Value => {
            let begins_key = field.starts_with(['.', '[']);
            let ends = field.char_indices().map(|(at, character)| at + character.len_utf8());
            begins_key && ends.skip(1).any(|end| is_at(rest, &field[end..]))
        }
    }
}

/// Whether the object has a value at this place.
fn is_present(place: &[Step], object: &Value) -> bool {
    let Some((step, rest)) = place.split_first() else { return true };
    match step {
        Step::Property(name) => object.get(name).is_some_and(|value| is_present(rest, value)),
        Step::Item => object.as_array().into_iter().flatten().any(|value| is_present(rest, value)),
        Step::Value => object.as_object().into_iter().flatten().any(|(_, value)| is_present(rest, value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Step, is_at, is_present};

    fn place(steps: &[&str]) -> Vec<Step> {
        let step = |step: &&str| match *step {
            "[]" => Step::Item,
            "{}" => Step::Value,
            name => Step::Property(name.to_owned()),
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn field_paths_of_the_api_server_are_found_in_the_schema() {
        assert!(is_at(&place(&["spec", "list", "[]", "key"]), "spec.list[12].key"));
        assert!(!is_at(&place(&["spec", "list", "[]", "key"]), "spec.list[12].keys"));
        assert!(!is_at(&place(&["spec", "list"]), "spec.list[12]"));
        assert!(is_at(&place(&["spec", "map", "{}"]), "spec.map.a.b/c"));
        assert!(is_at(&place(&["spec", "map", "{}"]), "spec.map[a.b/c]"));
        assert!(is_at(&place(&["spec", "map", "{}", "name"]), "spec.map.a.b.name"));
        assert!(!is_at(&place(&["spec", "map", "{}"]), "spec.map"));
    }

    #[test]
    fn a_place_is_present_when_any_item_or_value_has_it() {
        let object = json!({"list": [{"a": 1}, {"b": 2}], "map": {"x": "y"}});
        assert!(is_present(&place(&["list", "[]", "b"]), &object));
        assert!(!is_present(&place(&["list", "[]", "c"]), &object));
        assert!(is_present(&place(&["map", "{}"]), &object));
    }
}
