//! Strings as small integers. Everything the engine compares is interned once, when the snapshot is built.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// A table of strings, each known by the order in which it was first seen.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    table: HashTable<u32>,
    strings: Vec<Box<str>>,
}

impl Interner {
    /// The number of a string, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> u32 {
        let hash = hash_of(text);
        let strings = &mut self.strings;
        if let Some(id) = self.table.find(hash, |id| &*strings[*id as usize] == text) {
            return *id;
        }
        let id = u32::try_from(strings.len()).expect("fewer than four billion distinct strings");
        strings.push(text.into());
        self.table.insert_unique(hash, id, |id| hash_of(&strings[*id as usize]));
        id
    }

    /// The number of a string that was seen before.
    pub fn get(&self, text: &str) -> Option<u32> {
        self.table.find(hash_of(text), |id| &*self.strings[*id as usize] == text).copied()
    }

    /// The string behind a number.
    pub fn resolve(&self, id: u32) -> &str {
        &self.strings[id as usize]
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

fn hash_of(value: &str) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Declares an index type, so that an index into one table is never used for another.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            /// The index as Rust's own.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The index of an element at `position`.
            #[inline]
            pub fn at(position: usize) -> Self {
                Self(<$repr>::try_from(position).expect("the table fits its index type"))
            }
        }
    };
}
pub(crate) use index;

index! {
    /// A label key.
    KeyId(u16)
}
index! {
    /// A value of one label key; values of different keys are numbered separately.
    ValueId(u32)
}
index! {
    /// A kind of resource, such as `cpu`.
    ResourceId(u8)
}
