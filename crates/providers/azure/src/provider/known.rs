//! What is known of Azure between two answers.

use std::sync::Arc;

use crate::prices::Prices;
use crate::quota::Quota;
use crate::sku::Catalogue;

/// What is known of Azure between two answers.
#[derive(Debug)]
pub struct Known {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) quota: Quota,
    /// Changes with the sizes.
    pub(crate) catalogue_version: u64,
    /// Changes with the prices.
    pub(crate) prices_version: u64,
}

impl Known {
    /// Nothing but the prices of the table.
    pub(super) fn new(location: &str) -> Self {
        Self {
            catalogue: Arc::default(),
            prices: Arc::new(Prices::of_region(location)),
            quota: Quota::default(),
            catalogue_version: 0,
            prices_version: 0,
        }
    }

    /// Takes over sizes.
    pub fn set_catalogue(&mut self, catalogue: Catalogue) {
        if *self.catalogue != catalogue {
            self.catalogue = Arc::new(catalogue);
            self.catalogue_version += 1;
        }
    }

    /// Changes prices; `change` says whether it changed any.
    pub fn change_prices(&mut self, change: impl FnOnce(&mut Prices) -> bool) -> bool {
        let changed = change(Arc::make_mut(&mut self.prices));
        self.prices_version += u64::from(changed);
        changed
    }

    /// The sizes.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// What may be used.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }
}
