//! What NodePools choose from, and which catalogue that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::model::CatalogueId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Builder;
use crate::instance_types::InstanceType;

/// The instance types that NodePools choose from.
#[derive(Clone, Copy, Debug)]
pub enum InstanceTypes<'a> {
    /// The same for all.
    Same(&'a [InstanceType]),
    /// Those of each pool. Pools that share a list share a catalogue; one without types gets no nodes.
    ByPool(&'a BTreeMap<Box<str>, Arc<[InstanceType]>>),
}

impl<'a> InstanceTypes<'a> {
    /// The types of a pool.
    pub fn of(&self, pool: &str) -> &'a [InstanceType] {
        match self {
            Self::Same(types) => types,
            Self::ByPool(pools) => pools.get(pool).map_or(&[], |types| types),
        }
    }

    /// Every list once.
    pub(super) fn lists(&self) -> Vec<&'a [InstanceType]> {
        let mut lists: Vec<&'a [InstanceType]> = Vec::new();
        let all: Vec<&'a [InstanceType]> = match self {
            Self::Same(types) => vec![types],
            Self::ByPool(pools) => pools.values().map(AsRef::as_ref).collect(),
        };
        for types in all {
            if !types.is_empty() && !lists.iter().any(|known| std::ptr::eq(*known, types)) {
                lists.push(types);
            }
        }
        lists
    }
}

/// A list of instance types that one or more pools choose from.
pub(super) struct Listed<'a> {
    types: &'a [InstanceType],
    catalogue: CatalogueId,
    by_name: HashMap<&'a str, &'a InstanceType, FxBuildHasher>,
}

impl<'a> Builder<'a> {
    /// Adds a catalogue for each list that has types.
    pub(super) fn catalogues(&mut self) {
        for types in self.options.instance_types.lists() {
            let catalogue = self.tables.catalogue(types, &mut self.ignored);
            if catalogue.types.is_empty() {
                continue;
            }
            let catalogues = &mut self.tables.snapshot.catalogues;
            // There are never as many lists as pools, and pools are counted by the same number.
            let id = CatalogueId::at(catalogues.len());
            catalogues.push(Arc::new(catalogue));
            let by_name = types.iter().map(|each| (each.name.as_str(), each)).collect();
            self.listed.push(Listed { types, catalogue: id, by_name });
        }
    }

    fn listed_of(&self, pool: &str) -> Option<&Listed<'a>> {
        let types = self.options.instance_types.of(pool);
        self.listed.iter().find(|listed| std::ptr::eq(listed.types, types))
    }

    /// What a pool chooses from.
    pub(super) fn catalogue_of(&self, pool: &str) -> Option<CatalogueId> {
        self.listed_of(pool).map(|listed| listed.catalogue)
    }

    /// A type of a pool that takes part.
    pub(super) fn type_of(&self, pool: &str, name: &str) -> Option<&'a InstanceType> {
        let listed = self.listed_of(pool).filter(|_| self.pool_names.contains(pool))?;
        listed.by_name.get(name).copied()
    }
}
