//! Cluster files in JSON: one document or several, each an object or a list of objects.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::decode::{Kind, Source};
use super::{Place, Reader};

/// A document: its kind, and its items if it has any.
struct Document<'a> {
    kind: Kind<'a>,
    items: Option<Vec<&'a RawValue>>,
}

/// Reads all documents. What follows a document that is not JSON cannot be read.
pub(super) fn read(reader: &mut Reader<'_>, text: &str) {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Document<'_>>();
    for number in 1.. {
        let start = documents.byte_offset();
        let Some(document) = documents.next() else { break };
        let place = Place { document: number, item: None };
        match document {
            Ok(document) => {
                read_document(reader, place, &text[start..documents.byte_offset()], document);
            }
            Err(error) => {
                reader.error(place, None, None, error.to_string());
                break;
            }
        }
    }
}

fn read_document(reader: &mut Reader<'_>, place: Place, text: &str, document: Document<'_>) {
    let Document { mut kind, items } = document;
    let is_list = kind.kind.as_deref().is_none_or(|kind| kind.ends_with("List"));
    let Some(items) = items.filter(|_| is_list) else {
        return reader.object(Source::Text(text), place, &Kind::default());
    };
    kind.kind = kind.kind.as_deref().and_then(item_kind).map(|kind| Cow::Owned(kind.to_owned()));
    for (position, item) in items.into_iter().enumerate() {
        let place = Place { item: Some(position + 1), ..place };
        reader.object(Source::Text(item.get()), place, &kind);
    }
}

/// What a list is a list of, if its kind says so: items of a `PodList` do not repeat it.
pub(super) fn item_kind(list: &str) -> Option<&str> {
    list.strip_suffix("List").filter(|kind| !kind.is_empty())
}

impl<'de> Deserialize<'de> for Document<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Document<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Document { kind: Kind::default(), items: Some(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document<'de>, A::Error> {
        let mut document = Document { kind: Kind::default(), items: None };
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "apiVersion" => document.kind.api_version = map.next_value()?,
                "kind" => document.kind.kind = map.next_value()?,
                "items" => document.items = map.next_value::<Items<'de>>()?.0,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(document)
    }
}

/// The items of a list; something else if the document is not a list after all.
struct Items<'a>(Option<Vec<&'a RawValue>>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}
