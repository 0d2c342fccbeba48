//! A catalogue prepared for questions about all its types at once.
//!
//! Types are rows of bit masks. A type whose offerings override its capacity has a further row for each
//! distinct override, because it fits or does not fit through one of its rows.
//!
//! ```text
//! matching(requirements)  = ⋀ over keys of (types that admit the key's requirement)  ∧  types with an offering
//! fitting(requests)       = ⋀ over resources of (rows with at least so much allocatable)
//! ```

use std::sync::Arc;

use crate::intern::{KeyId, ResourceId, ValueId};
use crate::mask::Mask;
use crate::model::{Catalogue, InstanceType, Offering};
use crate::resources::{Amounts, ResourceTable};
use crate::universe::{FastMap, RequirementId, SetId, Undefined, Universe};

/// A catalogue prepared for questions about all its types at once.
#[derive(Clone, Debug)]
pub struct Compiled {
    catalogue: Arc<Catalogue>,
    rows: Vec<Row>,
    /// Indexed by key; absent where no type defines the key.
    keys: Vec<Option<KeyColumn>>,
    /// Indexed by resource.
    columns: Vec<FitColumn>,
    /// Rows that have nothing negative.
    sound: Mask,
    /// The distinct offerings, each with the rows that have it available.
    offerings: Vec<(SetId, Mask)>,
    matching: FastMap<SetId, Arc<Mask>>,
    admitting: FastMap<RequirementId, Arc<Mask>>,
}

/// A type with the allocatable amounts of some of its offerings.
#[derive(Clone, Debug)]
struct Row {
    type_: usize,
    allocatable: Amounts,
}

/// What the types say about one label.
#[derive(Clone, Debug)]
struct KeyColumn {
    /// Types that list a value, by value.
    listing: Vec<(ValueId, Mask)>,
    /// Types that do not have the label.
    without: Mask,
    /// Types that say nothing about the label.
    silent: Mask,
    /// Types whose requirement is a complement, which are asked one by one.
    others: Vec<(usize, RequirementId)>,
}

/// The rows by how much they have of one resource.
#[derive(Clone, Debug, Default)]
struct FitColumn {
    /// Distinct amounts, ascending.
    amounts: Vec<i64>,
    /// Rows that have at least the amount at the same place.
    at_least: Vec<Mask>,
}

impl Compiled {
    /// Prepares a catalogue.
    pub fn new(catalogue: Arc<Catalogue>, universe: &Universe, resources: &ResourceTable) -> Self {
        let mut rows: Vec<Row> = catalogue
            .types
            .iter()
            .enumerate()
            .map(|(type_, it)| Row { type_, allocatable: allocatable(it, None, resources) })
            .collect();
        let mut offered: Vec<(SetId, Vec<usize>)> = Vec::new();
        for (type_, it) in catalogue.types.iter().enumerate() {
            let first_override = rows.len();
            for offering in it.offerings.iter().filter(|offering| offering.available) {
                let row = if offering.capacity_override.is_empty() && offering.overhead_override.is_empty() {
                    type_
                } else {
                    override_row(&mut rows, first_override, type_, allocatable(it, Some(offering), resources))
                };
                match offered.iter_mut().find(|(set, _)| *set == offering.requirements) {
                    Some((_, rows)) => rows.push(row),
                    None => offered.push((offering.requirements, vec![row])),
                }
            }
        }
        let mask = |indices: &[usize]| {
            let mut mask = Mask::empty(rows.len());
            for index in indices {
                mask.insert(*index);
            }
            mask
        };
        let sound: Vec<usize> =
            (0..rows.len()).filter(|row| !rows[*row].allocatable.any_negative()).collect();
        Self {
            keys: key_columns(&catalogue, &rows, universe),
            columns: (0..resources.len()).map(|r| fit_column(&rows, ResourceId::at(r))).collect(),
            sound: mask(&sound),
            offerings: offered.iter().map(|(set, rows)| (*set, mask(rows))).collect(),
            matching: FastMap::default(),
            admitting: FastMap::default(),
            rows,
            catalogue,
        }
    }

    /// The types.
    pub fn types(&self) -> &[InstanceType] {
        &self.catalogue.types
    }

    /// How many rows masks have.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The allocatable amounts of a row.
    pub fn row_allocatable(&self, row: usize) -> &Amounts {
        &self.rows[row].allocatable
    }

    /// The type of a row.
    pub fn row_type(&self, row: usize) -> usize {
        self.rows[row].type_
    }

    /// Rows of the types that meet all requirements and have an available offering that does.
    pub fn matching(&mut self, set: SetId, universe: &mut Universe) -> Arc<Mask> {
        if let Some(mask) = self.matching.get(&set) {
            return Arc::clone(mask);
        }
        let mut mask = self.offered(set, universe);
        mask.and(&self.meeting(set, universe));
        let mask = Arc::new(mask);
        self.matching.insert(set, Arc::clone(&mask));
        mask
    }

    /// Rows of the types whose labels meet all requirements.
    pub fn meeting(&mut self, set: SetId, universe: &Universe) -> Mask {
        let mut mask = Mask::full(self.rows.len());
        for (key, requirement) in universe.entries(set) {
            if self.keys.get(key.index()).is_some_and(Option::is_some) {
                mask.and(&self.admitting(*key, *requirement, universe));
            }
        }
        mask
    }

    /// Rows with an available offering that meets the requirements.
    pub fn offered(&self, set: SetId, universe: &mut Universe) -> Mask {
        let mut mask = Mask::empty(self.rows.len());
        for (offering, rows) in &self.offerings {
            if universe.is_compatible(set, *offering, Undefined::WellKnown) {
                mask.or(rows);
            }
        }
        mask
    }

    /// Rows of the types that admit a requirement.
    fn admitting(&mut self, key: KeyId, requirement: RequirementId, universe: &Universe) -> Arc<Mask> {
        if let Some(mask) = self.admitting.get(&requirement) {
            return Arc::clone(mask);
        }
        let column = self.keys[key.index()].as_ref().expect("the caller checked that the key has a column");
        let (wanted, values) = (universe.get(requirement), universe.values(key));
        let mut mask = column.silent.clone();
        for (value, rows) in &column.listing {
            if wanted.has(*value, values) {
                mask.or(rows);
            }
        }
        if wanted.operator().accepts_absence() {
            mask.or(&column.without);
        }
        for (row, other) in &column.others {
            let other = universe.get(*other);
            let both_absent = wanted.operator().accepts_absence() && other.operator().accepts_absence();
            if both_absent || wanted.intersects(other, values) {
                mask.insert(*row);
            }
        }
        let mask = Arc::new(mask);
        self.admitting.insert(requirement, Arc::clone(&mask));
        mask
    }

    /// Keeps of `rows` those that have room for the requests.
    pub fn keep_fitting(&self, rows: &mut Mask, requests: &Amounts) {
        rows.and(&self.sound);
        for (resource, amount) in requests.iter().filter(|(_, amount)| *amount > 0) {
            let column = self.columns.get(resource.index());
            let Some(mask) = column.and_then(|column| column.at_least(amount)) else {
                *rows = Mask::empty(self.rows.len());
                return;
            };
            rows.and(mask);
        }
    }

    /// All rows of the types that have at least one of the given rows.
    pub fn whole_types(&self, rows: &Mask) -> Mask {
        if self.rows.len() == self.catalogue.types.len() {
            return rows.clone();
        }
        let mut types = vec![false; self.catalogue.types.len()];
        rows.iter().for_each(|row| types[self.rows[row].type_] = true);
        let mut mask = Mask::empty(self.rows.len());
        for (index, row) in self.rows.iter().enumerate() {
            if types[row.type_] {
                mask.insert(index);
            }
        }
        mask
    }

    /// The types that have at least one of the given rows, in the provider's order.
    pub fn types_of(&self, rows: &Mask) -> Vec<usize> {
        let mut types: Vec<usize> = rows.iter().map(|row| self.rows[row].type_).collect();
        types.sort_unstable();
        types.dedup();
        types
    }
}

fn override_row(rows: &mut Vec<Row>, from: usize, type_: usize, allocatable: Amounts) -> usize {
    let existing = (from..rows.len()).find(|row| rows[*row].allocatable == allocatable);
    existing.unwrap_or_else(|| {
        rows.push(Row { type_, allocatable });
        rows.len() - 1
    })
}

/// What pods can use: capacity without the system's part; huge pages are taken out of memory.
pub fn allocatable(it: &InstanceType, offering: Option<&Offering>, resources: &ResourceTable) -> Amounts {
    let replaced = |base: &Amounts, by: &[(ResourceId, i64)]| {
        let mut amounts = base.clone();
        for (resource, amount) in by {
            amounts.set(*resource, *amount);
        }
        amounts
    };
    let capacity_override = offering.map_or(&[][..], |offering| &offering.capacity_override);
    let overhead_override = offering.map_or(&[][..], |offering| &offering.overhead_override);
    let capacity = replaced(&it.capacity, capacity_override);
    let overhead = replaced(&it.overhead, overhead_override);
    let mut result = Amounts::default();
    let mut pages: Option<i64> = None;
    // What is named counts even if there is none of it; overhead of what is not named does not.
    let named = it.without.iter().chain(capacity_override.iter().map(|(resource, _)| resource)).copied();
    let mut named: Vec<ResourceId> = named.chain(capacity.iter().map(|(resource, _)| resource)).collect();
    named.sort_unstable();
    named.dedup();
    for resource in named {
        let amount = capacity.get(resource);
        result.set(resource, amount.saturating_sub(overhead.get(resource)));
        if resources.name(resource).starts_with("hugepages-") {
            pages = Some(pages.unwrap_or(0).saturating_add(amount));
        }
    }
    if let Some(pages) = pages {
        let memory = result.get(ResourceId::MEMORY).saturating_sub(pages).max(0);
        result.set(ResourceId::MEMORY, memory);
    }
    result
}

fn key_columns(catalogue: &Catalogue, rows: &[Row], universe: &Universe) -> Vec<Option<KeyColumn>> {
    let mut columns: Vec<Option<KeyColumn>> = vec![None; universe.key_count()];
    for it in &catalogue.types {
        for (key, _) in universe.entries(it.requirements) {
            columns[key.index()].get_or_insert_with(|| KeyColumn {
                listing: Vec::new(),
                without: Mask::empty(rows.len()),
                silent: Mask::empty(rows.len()),
                others: Vec::new(),
            });
        }
    }
    for (position, column) in columns.iter_mut().enumerate() {
        let Some(column) = column else { continue };
        let key = KeyId::at(position);
        let mut places: FastMap<ValueId, usize> = FastMap::default();
        for (row, Row { type_, .. }) in rows.iter().enumerate() {
            let Some(id) = universe.find(catalogue.types[*type_].requirements, key) else {
                column.silent.insert(row);
                continue;
            };
            match universe.get(id).members() {
                None => column.others.push((row, id)),
                Some([]) => column.without.insert(row),
                Some(values) => {
                    for value in values {
                        let place = *places.entry(*value).or_insert_with(|| {
                            column.listing.push((*value, Mask::empty(rows.len())));
                            column.listing.len() - 1
                        });
                        column.listing[place].1.insert(row);
                    }
                }
            }
        }
    }
    columns
}

fn fit_column(rows: &[Row], resource: ResourceId) -> FitColumn {
    let mut order: Vec<(i64, usize)> =
        rows.iter().enumerate().map(|(row, it)| (it.allocatable.get(resource), row)).collect();
    order.sort_unstable();
    let mut column = FitColumn::default();
    let mut mask = Mask::empty(rows.len());
    // From the largest amount down, each mask holds all rows seen so far.
    for (position, (amount, row)) in order.iter().enumerate().rev() {
        mask.insert(*row);
        if position == 0 || order[position - 1].0 != *amount {
            column.amounts.push(*amount);
            column.at_least.push(mask.clone());
        }
    }
    column.amounts.reverse();
    column.at_least.reverse();
    column
}

impl FitColumn {
    fn at_least(&self, amount: i64) -> Option<&Mask> {
        self.at_least.get(self.amounts.partition_point(|have| *have < amount))
    }
}
