//! Lists and maps that decode fast, stay small, and take `null` for empty as Kubernetes does.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A list; `null` is the empty one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct List<T>(Box<[T]>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(fitting(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())))
    }
}

/// A list without the room that it does not need.
fn fitting<T>(mut list: Vec<T>) -> Box<[T]> {
    if list.len() < list.capacity() {
        // It is moved because allocators do not take back less than half of a block.
        let mut fitting = Vec::with_capacity(list.len());
        fitting.append(&mut list);
        list = fitting;
    }
    list.into_boxed_slice()
}

/// Values by name, in the order of names; `null` is the empty map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map<V>(Box<[(Box<str>, V)]>);

/// Labels of an object, or a selector by labels.
pub type Labels = Map<Box<str>>;

/// So many names are looked through faster than halved.
const FEW: usize = 48;

impl<V> Map<V> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        // Names of labels begin alike but differ in length, so that few of them are read to the end.
        if self.0.len() <= FEW {
            return self.0.iter().find(|(key, _)| **key == *name).map(|(_, value)| value);
        }
        let position = self.0.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.0[position].1)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Labels {
    /// The value of a label; empty when absent, as Kubernetes' own code reads labels.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |value| value)
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<K: Into<Box<str>>, V> FromIterator<(K, V)> for Map<V> {
    /// The last of several values of one name counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(Box<str>, V)> =
            entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self(fitting(entries))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MapVisitor { keep: |_: &str| true, value: PhantomData })
    }
}

/// The annotations that matter here; others, which can be large, are skipped while decoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Annotations(Labels);

impl FromIterator<(&'static str, Box<str>)> for Annotations {
    fn from_iter<I: IntoIterator<Item = (&'static str, Box<str>)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Deref for Annotations {
    type Target = Labels;

    fn deref(&self) -> &Labels {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const KEPT: [&str; 6] = [
            "karpenter.sh/",
            "karpenter.k8s.aws/",
            "karpenter.azure.com/",
            "pv.kubernetes.io/",
            "controller.kubernetes.io/",
            "volume.kubernetes.io/selected-node",
        ];
        let keep = |key: &str| KEPT.iter().any(|prefix| key.starts_with(prefix));
        deserializer.deserialize_any(MapVisitor { keep, value: PhantomData }).map(Self)
    }
}

struct MapVisitor<K, V> {
    keep: K,
    value: PhantomData<V>,
}

impl<'de, K: Fn(&str) -> bool, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = Map<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Map::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(4).min(64));
        while let Some(key) = map.next_key::<Box<str>>()? {
            if (self.keep)(&key) {
                entries.push((key, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(entries.into_iter().collect())
    }
}

/// Takes `null` for the default, as Kubernetes does.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_empty() {
        assert!(serde_json::from_str::<List<u8>>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<Labels>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<Annotations>("null").unwrap().is_empty());
    }

    #[test]
    fn maps_are_sorted_and_the_last_value_counts() {
        let labels: Labels = serde_json::from_str(r#"{"b": "1", "a": "2", "b": "3"}"#).unwrap();
        assert_eq!(labels.iter().map(|(k, v)| (k, &**v)).collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((labels.text("b"), labels.text("c")), ("3", ""));
    }

    #[test]
    fn names_are_found_among_few_and_among_many() {
        for count in [0, 1, FEW - 1, FEW, FEW + 1, 3 * FEW] {
            let all: serde_json::Map<_, _> =
                (0..count).map(|number| (format!("{:b}/{number}", number % 5), number.into())).collect();
            let map: Map<usize> = serde_json::from_value(all.clone().into()).unwrap();
            for (name, value) in &all {
                assert_eq!(map.get(name), value.as_u64().map(|it| usize::try_from(it).unwrap()).as_ref());
            }
            assert_eq!((map.get(""), map.get("0"), map.get("zzz")), (None, None, None));
        }
    }

    #[test]
    fn annotations_of_others_are_skipped() {
        let json = r#"{"kubectl.kubernetes.io/x": {"any": 1}, "karpenter.sh/do-not-disrupt": "true"}"#;
        let annotations: Annotations = serde_json::from_str(json).unwrap();
        assert_eq!((annotations.len(), annotations.text("karpenter.sh/do-not-disrupt")), (1, "true"));
    }
}
