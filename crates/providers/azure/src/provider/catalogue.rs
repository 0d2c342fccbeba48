//! The instance types of NodeClasses, made again only where something changed.

use std::sync::Arc;

use api::azure::AKSNodeClass;
use cluster::instance_types::InstanceType;

use super::Inner;
use crate::instance_type::{Market, NoTypes, Profile, Stamp, list};
use crate::prices::Prices;
use crate::quota::Quota;
use crate::sku::Catalogue;
use crate::unavailable::Unavailable;

/// Everything that offerings are made from, at one moment.
pub(crate) struct Moment {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) quota: Quota,
    pub(crate) unavailable: Unavailable,
    pub(crate) now: jiff::Timestamp,
}

impl Moment {
    pub(crate) fn market(&self) -> Market<'_> {
        Market { prices: &self.prices, unavailable: &self.unavailable, quota: &self.quota, now: self.now }
    }
}

impl Inner {
    /// What is known now, as a copy that nobody changes.
    pub(crate) fn moment(&self) -> Moment {
        let now = self.setup.clock.now();
        let unavailable = self.unavailable.lock().clone();
        let known = self.known.lock();
        Moment {
            catalogue: Arc::clone(&known.catalogue),
            prices: Arc::clone(&known.prices),
            quota: known.quota.clone(),
            unavailable,
            now,
        }
    }

    fn stamp(&self) -> Stamp {
        let now = self.setup.clock.now();
        let unavailable = self.unavailable.lock().sequence(now);
        let known = self.known.lock();
        Stamp {
            catalogue: known.catalogue_version,
            prices: known.prices_version,
            unavailable,
            quota: known.quota.sequence(),
        }
    }

    /// Everything that nodes of a NodeClass can be, those included that cannot be had at present.
    pub(crate) fn types(&self, class: &AKSNodeClass) -> Result<Arc<[InstanceType]>, NoTypes> {
        let profile = Profile::of(class, self.network());
        // The numbers first: what changes meanwhile makes the list old, never wrong for long.
        let stamp = self.stamp();
        let now = self.setup.clock.now();
        if let Some(known) = self.types.lock().get(&profile, stamp, now) {
            return Ok(known);
        }
        let moment = self.moment();
        let made: Arc<[InstanceType]> =
            list(&moment.catalogue, &profile, &self.environment(), &moment.market())?.into();
        self.types.lock().put(profile, stamp, Arc::clone(&made), now);
        Ok(made)
    }
}
