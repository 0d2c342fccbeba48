//! Objects that were written lately, as JSON that need not be parsed again: heartbeats change the same objects for
//! ever.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::Object;

/// How much text the kept objects have at most; as JSON in memory it is about ten times as much.
const MOST: usize = 96 * 1024;

/// The latest objects, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    objects: VecDeque<(Arc<Object>, Value)>,
    size: usize,
}

impl Recent {
    /// Keeps what was just written.
    pub(crate) fn keep(&mut self, object: Arc<Object>, value: Value) {
        self.size += object.json.len();
        self.objects.push_back((object, value));
        while self.size > MOST
            && let Some((oldest, _)) = self.objects.pop_front()
        {
            self.size -= oldest.json.len();
        }
    }

    /// Takes an object out; nothing when it was not written lately.
    pub(crate) fn take(&mut self, object: &Arc<Object>) -> Option<Value> {
        let place = self.objects.iter().position(|(kept, _)| Arc::ptr_eq(kept, object))?;
        let (kept, value) = self.objects.remove(place)?;
        self.size -= kept.json.len();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::Fields;

    fn object(size: usize) -> (Arc<Object>, Value) {
        let mut value = json!({"metadata": {"name": "a"}, "data": "x".repeat(size)});
        (Arc::new(Object::new(&mut value, 1, Fields::default())), value)
    }

    #[test]
    fn an_object_is_taken_once() {
        let mut recent = Recent::default();
        let (stored, value) = object(1);
        recent.keep(stored.clone(), value.clone());
        assert_eq!(recent.take(&stored), Some(value));
        assert_eq!(recent.take(&stored), None);
        assert_eq!(recent.size, 0);
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let mut recent = Recent::default();
        let objects: Vec<_> = (0..3).map(|_| object(MOST / 2 - 100)).collect();
        for (stored, value) in &objects {
            recent.keep(stored.clone(), value.clone());
        }
        let kept: Vec<bool> = objects.iter().map(|(stored, _)| recent.take(stored).is_some()).collect();
        assert_eq!(kept, [false, true, true]);
        let (huge, value) = object(2 * MOST);
        recent.keep(huge.clone(), value);
        assert_eq!((recent.take(&huge), recent.size), (None, 0));
    }
}
