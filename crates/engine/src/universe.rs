//! All label keys, values, requirements and requirement sets of one snapshot, each known by a number.
//!
//! Requirements and sets are hash-consed: equal ones have the same number, so that comparing, combining and
//! testing them a second time is a look-up. The tables die with the snapshot they belong to.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::intern::{Interner, KeyId, ValueId, index};
use crate::requirement::{Requirement, Values};

/// A map whose order is never looked at.
pub(crate) type FastMap<K, V> = HashMap<K, V, FxBuildHasher>;

index! {
    /// A requirement together with its key.
    RequirementId(u32)
}
index! {
    /// A set of requirements, at most one for each key.
    SetId(u32)
}

impl SetId {
    /// The set that asks for nothing.
    pub const EMPTY: Self = Self(0);
}

/// Which labels a side that does not mention them may be given later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Undefined {
    /// None: the labels are what they are, as on an existing node.
    Refused,
    /// The well-known ones: the cloud sets them at launch.
    WellKnown,
}

/// Why one set of requirements does not accept another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incompatible {
    /// The label is asked for, but nothing defines it.
    Undefined(KeyId),
    /// No value satisfies both sides; the keys in order.
    Conflicts(Vec<KeyId>),
}

/// Everything that can be said about labels in one snapshot.
#[derive(Clone, Debug)]
pub struct Universe {
    keys: Interner,
    values: Vec<Values>,
    well_known: Vec<bool>,
    requirements: Vec<(KeyId, Requirement)>,
    requirement_ids: FastMap<(KeyId, Requirement), RequirementId>,
    sets: Vec<Box<[(KeyId, RequirementId)]>>,
    set_ids: FastMap<Box<[(KeyId, RequirementId)]>, SetId>,
    requirement_intersections: FastMap<(RequirementId, RequirementId), RequirementId>,
    set_intersections: FastMap<(SetId, SetId), SetId>,
    compatible: FastMap<(SetId, SetId, Undefined), bool>,
}

impl Default for Universe {
    fn default() -> Self {
        let mut universe = Self {
            keys: Interner::default(),
            values: Vec::new(),
            well_known: Vec::new(),
            requirements: Vec::new(),
            requirement_ids: FastMap::default(),
            sets: Vec::new(),
            set_ids: FastMap::default(),
            requirement_intersections: FastMap::default(),
            set_intersections: FastMap::default(),
            compatible: FastMap::default(),
        };
        universe.intern_set(Vec::new());
        universe
    }
}

impl Universe {
    /// The number of a label key, which is added if it is new.
    pub fn key(&mut self, name: &str) -> KeyId {
        let id = KeyId::at(self.keys.intern(name) as usize);
        if self.values.len() < self.keys.len() {
            self.values.push(Values::default());
            self.well_known.push(false);
        }
        id
    }

    /// The number of a label key that was seen before.
    pub fn find_key(&self, name: &str) -> Option<KeyId> {
        self.keys.get(name).map(|id| KeyId::at(id as usize))
    }

    /// A label key's name.
    pub fn key_name(&self, key: KeyId) -> &str {
        self.keys.resolve(u32::from(key.0))
    }

    /// How many label keys there are.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Declares that the cloud sets this label at launch.
    pub fn set_well_known(&mut self, key: KeyId) {
        self.well_known[key.index()] = true;
        // What was refused for want of this label may be accepted now.
        self.compatible.clear();
    }

    /// Whether the cloud sets this label at launch.
    pub fn is_well_known(&self, key: KeyId) -> bool {
        self.well_known[key.index()]
    }

    /// The values of a label key.
    pub fn values(&self, key: KeyId) -> &Values {
        &self.values[key.index()]
    }

    /// The number of a label value, which is added if it is new.
    pub fn value(&mut self, key: KeyId, name: &str) -> ValueId {
        self.values[key.index()].intern(name)
    }

    /// The number of a requirement.
    pub fn requirement(&mut self, key: KeyId, requirement: Requirement) -> RequirementId {
        if let Some(id) = self.requirement_ids.get(&(key, requirement.clone())) {
            return *id;
        }
        let id = RequirementId::at(self.requirements.len());
        self.requirements.push((key, requirement.clone()));
        self.requirement_ids.insert((key, requirement), id);
        id
    }

    /// A requirement.
    pub fn get(&self, id: RequirementId) -> &Requirement {
        &self.requirements[id.index()].1
    }

    /// The key of a requirement.
    pub fn key_of(&self, id: RequirementId) -> KeyId {
        self.requirements[id.index()].0
    }

    /// The set of all given requirements; several for one key are combined.
    pub fn set(&mut self, requirements: impl IntoIterator<Item = (KeyId, Requirement)>) -> SetId {
        let mut entries: Vec<(KeyId, RequirementId)> = Vec::new();
        for (key, requirement) in requirements {
            let id = self.requirement(key, requirement);
            match entries.iter_mut().find(|(existing, _)| *existing == key) {
                Some((_, existing)) => *existing = self.intersect_requirements(*existing, id),
                None => entries.push((key, id)),
            }
        }
        self.intern_set(entries)
    }

    fn intern_set(&mut self, mut entries: Vec<(KeyId, RequirementId)>) -> SetId {
        entries.sort_unstable_by_key(|(key, _)| *key);
        let entries = entries.into_boxed_slice();
        if let Some(id) = self.set_ids.get(&entries) {
            return *id;
        }
        let id = SetId::at(self.sets.len());
        self.sets.push(entries.clone());
        self.set_ids.insert(entries, id);
        id
    }

    /// The requirements of a set, in the order of their keys.
    pub fn entries(&self, set: SetId) -> &[(KeyId, RequirementId)] {
        &self.sets[set.index()]
    }

    /// The requirement that a set has for a key.
    pub fn find(&self, set: SetId, key: KeyId) -> Option<RequirementId> {
        let entries = self.entries(set);
        entries.binary_search_by_key(&key, |(key, _)| *key).ok().map(|position| entries[position].1)
    }

    /// What satisfies both requirements, which are for the same key.
    pub fn intersect_requirements(&mut self, a: RequirementId, b: RequirementId) -> RequirementId {
        if a == b {
            return a;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(id) = self.requirement_intersections.get(&pair) {
            return *id;
        }
        let (key, first) = &self.requirements[a.index()];
        let key = *key;
        let both = first.intersection(self.get(b), &self.values[key.index()]);
        let id = self.requirement(key, both);
        self.requirement_intersections.insert(pair, id);
        id
    }

    /// What satisfies both sets.
    pub fn intersect(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == SetId::EMPTY {
            return a;
        }
        if a == SetId::EMPTY {
            return b;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(id) = self.set_intersections.get(&pair) {
            return *id;
        }
        let mut entries = self.entries(a).to_vec();
        for (key, id) in self.entries(b).to_vec() {
            match entries.iter_mut().find(|(existing, _)| *existing == key) {
                Some((_, existing)) => *existing = self.intersect_requirements(*existing, id),
                None => entries.push((key, id)),
            }
        }
        let set = self.intern_set(entries);
        self.set_intersections.insert(pair, set);
        set
    }

    /// The set without one key.
    pub fn without(&mut self, set: SetId, key: KeyId) -> SetId {
        if self.find(set, key).is_none() {
            return set;
        }
        let entries = self.entries(set).iter().copied().filter(|(existing, _)| *existing != key).collect();
        self.intern_set(entries)
    }

    /// The set in which one key's requirement is replaced.
    pub fn replaced(&mut self, set: SetId, key: KeyId, requirement: Requirement) -> SetId {
        let id = self.requirement(key, requirement);
        let mut entries: Vec<_> = self.entries(set).iter().copied().filter(|(k, _)| *k != key).collect();
        entries.push((key, id));
        self.intern_set(entries)
    }

    /// Whether every key that both sets mention has a value that satisfies both.
    pub fn intersects(&self, a: SetId, b: SetId) -> bool {
        self.shared(a, b).all(|(key, a, b)| self.requirements_meet(key, a, b))
    }

    /// Whether a node or claim with requirements `a` can be given `b`.
    pub fn is_compatible(&mut self, a: SetId, b: SetId, undefined: Undefined) -> bool {
        if b == SetId::EMPTY {
            return true;
        }
        if let Some(known) = self.compatible.get(&(a, b, undefined)) {
            return *known;
        }
        let compatible = self.incompatibility(a, b, undefined).is_none();
        self.compatible.insert((a, b, undefined), compatible);
        compatible
    }

    /// Why a node or claim with requirements `a` cannot be given `b`, if so.
    pub fn incompatibility(&self, a: SetId, b: SetId, undefined: Undefined) -> Option<Incompatible> {
        let missing = self.entries(b).iter().find(|(key, requirement)| {
            !(undefined == Undefined::WellKnown && self.is_well_known(*key))
                && self.find(a, *key).is_none()
                && !self.get(*requirement).operator().accepts_absence()
        });
        if let Some((key, _)) = missing {
            return Some(Incompatible::Undefined(*key));
        }
        let conflicts: Vec<KeyId> = self
            .shared(a, b)
            .filter(|(key, a, b)| !self.requirements_meet(*key, *a, *b))
            .map(|(key, ..)| key)
            .collect();
        (!conflicts.is_empty()).then_some(Incompatible::Conflicts(conflicts))
    }

    /// Whether two requirements for one key can hold together; both may be satisfied by the label's absence.
    fn requirements_meet(&self, key: KeyId, a: RequirementId, b: RequirementId) -> bool {
        let (a, b) = (self.get(a), self.get(b));
        (a.operator().accepts_absence() && b.operator().accepts_absence())
            || a.intersects(b, self.values(key))
    }

    /// The keys that both sets mention, with the requirement of each.
    fn shared(&self, a: SetId, b: SetId) -> impl Iterator<Item = (KeyId, RequirementId, RequirementId)> {
        let (a, b) = (self.entries(a), self.entries(b));
        let (small, large, swapped) = if a.len() <= b.len() { (a, b, false) } else { (b, a, true) };
        small.iter().filter_map(move |(key, first)| {
            let position = large.binary_search_by_key(key, |(key, _)| *key).ok()?;
            let second = large[position].1;
            Some(if swapped { (*key, second, *first) } else { (*key, *first, second) })
        })
    }

    /// A requirement as upstream writes it: `key In [a b]`.
    pub fn describe(&self, key: KeyId, requirement: &Requirement) -> String {
        format!("{} {}", self.key_name(key), requirement.describe(self.values(key)))
    }
}
