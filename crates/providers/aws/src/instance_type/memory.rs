//! The memory that nodes of a type were seen to have, which is more exact than any estimate.

use std::collections::BTreeMap;

use api::aws::Ami;
use api::labels::LabelSets;
use api::shared::Requirement;
use units::Quantity;

use crate::ami::Mapping;
use crate::hash::Hasher;
use crate::node_class::Class;
use crate::requirements::within;

/// The memory that nodes were seen to have, by instance type and images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned(BTreeMap<String, Quantity>);

impl Learned {
    /// What nodes of a type with these images were seen to have.
    pub fn get(&self, instance_type: &str, images: &str) -> Option<Quantity> {
        self.0.get(&key(instance_type, images)).copied()
    }

    /// Notes what a node has. The least that was ever seen counts, so that what is planned fits everywhere.
    /// Whether that changed anything.
    pub fn note(&mut self, instance_type: &str, images: &str, memory: Quantity) -> bool {
        let is_news = self.is_news(instance_type, images, memory);
        if is_news {
            self.0.insert(key(instance_type, images), memory);
        }
        is_news
    }

    /// What nodes with these images were seen to have, by instance type.
    pub fn of_images(&self, images: &str) -> BTreeMap<String, Quantity> {
        let suffix = format!("-{images}");
        let of_images = self.0.iter().filter_map(|(key, memory)| Some((key.strip_suffix(&suffix)?, memory)));
        of_images.map(|(instance_type, memory)| (instance_type.to_owned(), *memory)).collect()
    }

    /// Whether [`Learned::note`] would change anything.
    pub fn is_news(&self, instance_type: &str, images: &str, memory: Quantity) -> bool {
        self.get(instance_type, images).is_none_or(|known| memory < known)
    }
}

/// Whether the memory of a node says something about its type: only if it runs the image that nodes of its type
/// are started from today.
pub fn is_telling(
    class: &Class<'_>,
    node_labels: &BTreeMap<String, String>,
    image: &str,
    sets: &LabelSets,
) -> bool {
    let labels: Vec<Requirement> =
        node_labels.iter().map(|(key, value)| within(key, [value.as_str()])).collect();
    let chosen = Mapping::new(&class.status.amis, sets).image_for(&labels);
    chosen.is_some_and(|chosen| chosen.id == image)
}

fn key(instance_type: &str, images: &str) -> String {
    format!("{instance_type}-{images}")
}

/// What tells the images of a NodeClass from those of another, whatever their order.
pub fn images_key(images: &[Ami]) -> String {
    let each = |image: &Ami| {
        let mut hasher = Hasher::default();
        hasher.text(&image.id).text(&image.name).flag(image.deprecated);
        for requirement in &image.requirements {
            hasher.text(&requirement.key).text(&requirement.operator);
            requirement.values.iter().flatten().for_each(|value| {
                hasher.text(value);
            });
        }
        hasher.finish()
    };
    format!("{:016x}", images.iter().map(each).fold(0, |all, image| all ^ image))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: &str) -> Ami {
        Ami { id: id.to_owned(), ..Ami::default() }
    }

    #[test]
    fn the_least_memory_that_was_seen_counts() {
        let mut learned = Learned::default();
        let memory = |text: &str| text.parse::<Quantity>().unwrap();
        assert!(learned.note("m5.large", "a", memory("7Gi")));
        assert!(
            !learned.note("m5.large", "a", memory("8Gi")) && !learned.note("m5.large", "a", memory("7Gi"))
        );
        assert!(learned.note("m5.large", "a", memory("6Gi")));
        assert_eq!(learned.get("m5.large", "a"), Some(memory("6Gi")));
        assert_eq!((learned.get("m5.large", "b"), learned.get("m5.xlarge", "a")), (None, None));
        assert_eq!(learned.of_images("a"), [("m5.large".to_owned(), memory("6Gi"))].into());
        assert!(learned.of_images("b").is_empty());
    }

    #[test]
    fn other_images_are_something_else_but_not_another_order() {
        let key = |ids: &[&str]| images_key(&ids.iter().map(|id| image(id)).collect::<Vec<_>>());
        assert_eq!(key(&["a", "b"]), key(&["b", "a"]));
        assert_ne!(key(&["a", "b"]), key(&["a"]));
        assert_eq!(key(&["a"]).len(), 16);
    }
}
