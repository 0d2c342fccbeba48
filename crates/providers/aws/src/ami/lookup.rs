//! What must be asked to find the images that terms select.

use std::collections::BTreeSet;

use api::aws::AmiSelectorTerm;

use super::alias::{Alias, AliasError, AliasParameter};
use crate::port::{Filter, ImageQuery};
use crate::version::KubernetesVersion;

/// Who owns images that are only named.
const USUAL_OWNERS: [&str; 2] = ["self", "amazon"];

/// What must be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// Parameters that AWS publishes; those that are not there do not matter, as long as one is.
    pub alias_parameters: Vec<AliasParameter>,
    /// Parameters that users name; those that are not there do not matter.
    pub user_parameters: BTreeSet<String>,
    /// Images that users name.
    ids: BTreeSet<String>,
    /// What else images are searched by.
    queries: Vec<ImageQuery>,
}

impl Lookup {
    /// What must be asked to find the images that terms select. Of a term with several of them counts the ID,
    /// then the parameter, then the rest.
    pub fn new(terms: &[AmiSelectorTerm], kubernetes: KubernetesVersion) -> Result<Self, AliasError> {
        let mut lookup = Self::default();
        for term in terms {
            if let Some(alias) = &term.alias {
                lookup.alias_parameters.extend(Alias::parse(alias)?.parameters(kubernetes)?);
            } else if let Some(id) = &term.id {
                lookup.ids.insert(id.clone());
            } else if let Some(parameter) = &term.ssm_parameter {
                lookup.user_parameters.insert(parameter.clone());
            } else {
                lookup.queries.push(query(term));
            }
        }
        Ok(lookup)
    }

    /// What EC2 is asked once parameters are known: the values of all parameters that are there.
    pub fn queries<'a>(&self, values: impl IntoIterator<Item = &'a str>) -> Vec<ImageQuery> {
        let mut ids = self.ids.clone();
        ids.extend(values.into_iter().filter(|value| is_image_id(value)).map(str::to_owned));
        let mut queries = self.queries.clone();
        if !ids.is_empty() {
            queries.push(ImageQuery { filters: vec![Filter::new("image-id", ids)], owners: Vec::new() });
        }
        queries
    }
}

/// Whether a parameter holds the ID of an image.
pub fn is_image_id(value: &str) -> bool {
    value.starts_with("ami-")
}

fn query(term: &AmiSelectorTerm) -> ImageQuery {
    let mut filters = Vec::new();
    filters.extend(term.name.as_ref().map(|name| Filter::new("name", [name.as_str()])));
    filters.extend(term.tags.iter().flatten().map(|(key, value)| Filter::tag(key, value)));
    let owners = match (&term.owner, &term.name) {
        (Some(owner), _) => vec![owner.clone()],
        (None, Some(_)) => USUAL_OWNERS.map(str::to_owned).into(),
        (None, None) => Vec::new(),
    };
    ImageQuery { filters, owners }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lookup(terms: Value) -> Lookup {
        let terms: Vec<AmiSelectorTerm> = serde_json::from_value(terms).unwrap();
        Lookup::new(&terms, "1.34".parse().unwrap()).unwrap()
    }

    fn written(queries: &[ImageQuery]) -> Vec<String> {
        let filter = |each: &Filter| format!("{}={}", each.name, each.values.join("|"));
        queries
            .iter()
            .map(|query| {
                let filters: Vec<String> = query.filters.iter().map(filter).collect();
                format!("{} of {}", filters.join(" & "), query.owners.join("|"))
            })
            .collect()
    }

    #[test]
    fn ids_and_values_of_parameters_are_asked_for_together() {
        let lookup = lookup(json!([
            {"id": "ami-2"}, {"id": "ami-1"}, {"ssmParameter": "/a"}, {"id": "ami-1", "ssmParameter": "/b"},
        ]));
        assert_eq!(lookup.user_parameters, ["/a".to_owned()].into());
        assert_eq!(written(&lookup.queries(["ami-3", "no image"])), ["image-id=ami-1|ami-2|ami-3 of "]);
        assert_eq!(written(&self::lookup(json!([{"ssmParameter": "/a"}])).queries([])), Vec::<String>::new());
    }

    #[test]
    fn tags_of_a_term_hold_together_and_terms_are_alternatives() {
        let lookup = lookup(json!([
            {"tags": {"a": "b", "c": "*"}}, {"name": "n"}, {"name": "n", "owner": "123", "tags": {"a": "b"}},
            {"owner": "amazon", "tags": {"a": "b"}},
        ]));
        assert_eq!(
            written(&lookup.queries([])),
            [
                "tag:a=b & tag-key=c of ",
                "name=n of self|amazon",
                "name=n & tag:a=b of 123",
                "tag:a=b of amazon",
            ]
        );
    }

    #[test]
    fn an_alias_asks_for_parameters() {
        assert_eq!(lookup(json!([{"alias": "bottlerocket@latest"}])).alias_parameters.len(), 4);
        let terms: Vec<AmiSelectorTerm> = serde_json::from_value(json!([{"alias": "al2023@a@b"}])).unwrap();
        assert!(Lookup::new(&terms, "1.34".parse().unwrap()).is_err());
    }
}
