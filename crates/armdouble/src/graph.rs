//! The Resource Graph: what there was a while ago, for those queries that the provider asks.
//!
//! ```text
//! Resources
//! | where type == "microsoft.compute/virtualmachines"
//! | where resourceGroup == "mc_group"
//! | where tags has_cs "karpenter.sh_nodepool"
//! | where not(tags has_cs "karpenter.azure.com_aksmachine_nodeclaim")
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::bodies;
use crate::call::Call;
use crate::route::Kind;
use crate::state::shown_to_clients;
use crate::world::{World, list, text};

/// Changes in the order in which they happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    changes: VecDeque<(Timestamp, String, Option<Arc<Value>>)>,
    /// What older changes made.
    base: BTreeMap<String, Arc<Value>>,
}

impl Graph {
    pub(crate) fn note(&mut self, now: Timestamp, id: &str, resource: Option<&Value>) {
        // Nothing looks back an hour.
        let old = now.checked_sub(jiff::SignedDuration::from_hours(1)).unwrap_or(Timestamp::MIN);
        while self.changes.front().is_some_and(|(at, _, _)| *at < old) {
            if let Some((_, id, resource)) = self.changes.pop_front() {
                apply(&mut self.base, id, resource);
            }
        }
        let resource = resource.map(|resource| Arc::new(shown_to_clients(resource)));
        self.changes.push_back((now, id.to_owned(), resource));
    }

    /// What there was.
    fn at(&self, when: Timestamp) -> BTreeMap<String, Arc<Value>> {
        let mut all = self.base.clone();
        for (_, id, resource) in self.changes.iter().take_while(|(at, _, _)| *at <= when) {
            apply(&mut all, id.clone(), resource.clone());
        }
        all
    }
}

fn apply(all: &mut BTreeMap<String, Arc<Value>>, id: String, resource: Option<Arc<Value>>) {
    match resource {
        Some(resource) => drop(all.insert(id, resource)),
        None => drop(all.remove(&id)),
    }
}

/// One condition of a query.
#[derive(Debug, PartialEq, Eq)]
enum Where {
    Type(String),
    Group(String),
    Tag(String),
    NoTag(String),
}

fn parse(query: &str) -> Result<Vec<Where>, String> {
    let mut clauses = query.split('|').map(str::trim);
    let table = clauses.next().unwrap_or_default();
    if !table.eq_ignore_ascii_case("resources") {
        return Err(format!("'{table}' is not a table that this Resource Graph has"));
    }
    clauses.map(|clause| condition(clause).ok_or_else(|| format!("cannot read '{clause}'"))).collect()
}

fn condition(clause: &str) -> Option<Where> {
    let clause = clause.strip_prefix("where ")?.trim();
    let words = |text: &str| -> Option<(String, String, String)> {
        let (head, value) = text.split_once('"')?;
        let (field, operator) = head.trim().split_once(' ')?;
        Some((field.to_owned(), operator.trim().to_owned(), value.trim().strip_suffix('"')?.to_owned()))
    };
    if let Some(inner) = clause.strip_prefix("not(").and_then(|rest| rest.strip_suffix(')')) {
        let (field, operator, value) = words(inner)?;
        return (field == "tags" && operator == "has_cs").then_some(Where::NoTag(value));
    }
    let (field, operator, value) = words(clause)?;
    match (field.as_str(), operator.as_str()) {
        ("type", "==") => Some(Where::Type(value)),
        ("resourceGroup", "==") => Some(Where::Group(value)),
        ("tags", "has_cs") => Some(Where::Tag(value)),
        _ => None,
    }
}

/// Whether a text has a term: Kusto's terms end where letters and digits end.
fn has_term(text: &str, term: &str) -> bool {
    text.match_indices(term).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + term.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn row(resource: &Value, id: &str, tenant: &str) -> Value {
    let part = |number: usize| id.split('/').nth(number).unwrap_or_default().to_owned();
    let or_null = |name: &str| resource.get(name).cloned().unwrap_or(Value::Null);
    json!({
        "id": resource["id"], "name": resource["name"], "type": text(resource, "/type").to_ascii_lowercase(),
        "tenantId": tenant, "kind": "", "location": resource["location"], "resourceGroup": part(4),
        "subscriptionId": part(2), "managedBy": or_null("managedBy"), "sku": or_null("sku"), "plan": Value::Null,
        "properties": resource["properties"], "tags": or_null("tags"), "identity": or_null("identity"),
        "zones": or_null("zones"), "extendedLocation": Value::Null,
    })
}

pub(crate) fn query(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::ResourceGraph, "QueryRequest", &body)?;
    let conditions = parse(text(&body, "/query")).map_err(|why| {
        Refusal::new(400, "BadRequest", "Please provide below info when asking for support.")
            .detail(json!({"code": "InvalidQuery", "message": format!("Query is invalid. {why}.")}))
    })?;
    let subscriptions = list(&body, "/subscriptions");
    let seen = world.now.saturating_sub(world.settings.graph_lag).unwrap_or(Timestamp::MIN);
    let now = world.graph.at(seen);
    let rows = now.iter().filter(|(id, resource)| {
        let part = |number: usize| id.split('/').nth(number).unwrap_or_default();
        let tags = resource.get("tags").map(Value::to_string).unwrap_or_default();
        let is_seen = subscriptions
            .iter()
            .any(|each| each.as_str().is_some_and(|each| each.eq_ignore_ascii_case(part(2))));
        is_seen
            && conditions.iter().all(|condition| match condition {
                Where::Type(wanted) => text(resource, "/type").to_ascii_lowercase() == *wanted,
                Where::Group(wanted) => part(4) == wanted,
                Where::Tag(wanted) => has_term(&tags, wanted),
                Where::NoTag(wanted) => !has_term(&tags, wanted),
            })
    });
    let rows: Vec<Value> = rows.map(|(id, resource)| row(resource, id, &world.settings.tenant)).collect();
    Ok(paged(world, &body, rows))
}

fn paged(world: &World, body: &Value, rows: Vec<Value>) -> Answer {
    let options = &body["options"];
    let top = options["$top"].as_u64().and_then(|top| usize::try_from(top).ok()).unwrap_or(usize::MAX);
    let size = world.settings.page_size.min(top).max(1);
    let from = options["$skipToken"].as_str().and_then(|token| token.strip_prefix("from-")?.parse().ok());
    let from: usize = from.unwrap_or(0);
    let total = rows.len();
    let page: Vec<Value> = rows.into_iter().skip(from).take(size).collect();
    let until = from.saturating_add(page.len());
    let mut answer = json!({
        "totalRecords": total, "count": page.len(), "data": page, "facets": [], "resultTruncated": "false",
    });
    if until < total {
        answer["$skipToken"] = json!(format!("from-{until}"));
    }
    Answer::json(200, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_end_where_letters_and_digits_end() {
        assert!(has_term(r#"{"karpenter.sh_nodepool":"a"}"#, "karpenter.sh_nodepool"));
        assert!(!has_term(r#"{"karpenter.sh_nodepools":"a"}"#, "karpenter.sh_nodepool"));
        assert!(!has_term(r#"{"Karpenter.sh_nodepool":"a"}"#, "karpenter.sh_nodepool"));
        assert!(has_term(r#"{"a":"karpenter.sh_nodepool"}"#, "karpenter.sh_nodepool"));
    }

    #[test]
    fn only_the_queries_of_the_provider_are_understood() {
        let query = "Resources\n| where type == \"t\"\n| where resourceGroup == \"g\"\n| where tags has_cs \"a\"\n\
                     | where not(tags has_cs \"b\")";
        let expected = [
            Where::Type("t".to_owned()),
            Where::Group("g".to_owned()),
            Where::Tag("a".to_owned()),
            Where::NoTag("b".to_owned()),
        ];
        assert_eq!(parse(query).unwrap(), expected);
        assert_eq!(parse("Resources | take 3").unwrap_err(), "cannot read 'take 3'");
        assert_eq!(parse("Nodes").unwrap_err(), "'Nodes' is not a table that this Resource Graph has");
    }
}
