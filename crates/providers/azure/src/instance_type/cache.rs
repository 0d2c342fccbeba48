//! Lists that were made, by what they were made from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::instance_types::InstanceType;
use jiff::Timestamp;

use super::profile::Profile;

/// For how long a list is kept if nothing changes.
const KEPT: Duration = Duration::from_hours(23);

/// What all lists depend on. Each number changes with what it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The sizes.
    pub catalogue: u64,
    /// The prices.
    pub prices: u64,
    /// What cannot be had.
    pub unavailable: u64,
    /// What may be used.
    pub quota: u64,
}

/// Lists that were made. Nobody can change them: whoever wants another order makes a copy.
#[derive(Debug, Default)]
pub struct Cache {
    stamp: Stamp,
    lists: BTreeMap<Profile, (Timestamp, Arc<[InstanceType]>)>,
}

impl Cache {
    /// The list of a profile, if it was made from the same and not too long ago.
    pub fn get(&self, profile: &Profile, stamp: Stamp, now: Timestamp) -> Option<Arc<[InstanceType]>> {
        let (until, list) = self.lists.get(profile).filter(|_| self.stamp == stamp)?;
        (*until > now).then(|| Arc::clone(list))
    }

    /// Keeps a list. All that were made from anything else are forgotten.
    pub fn put(&mut self, profile: Profile, stamp: Stamp, list: Arc<[InstanceType]>, now: Timestamp) {
        if self.stamp != stamp {
            self.lists.clear();
            self.stamp = stamp;
        }
        let until = now.saturating_add(KEPT).unwrap_or(Timestamp::MAX);
        self.lists.insert(profile, (until, list));
    }
}

#[cfg(test)]
mod tests {
    use api::azure::AKSNodeClass;

    use super::super::profile::Network;
    use super::*;

    // azure.md 4.2
    #[test]
    fn a_list_is_kept_for_as_long_as_nothing_changes() {
        let now = Timestamp::UNIX_EPOCH;
        let network = Network { plugin: "azure", mode: "overlay" };
        let class = AKSNodeClass::default();
        let profile = Profile::of(&class, network);
        let other = Profile { local_dns: true, ..profile.clone() };
        let stamp = Stamp::default();
        let mut cache = Cache::default();
        cache.put(profile.clone(), stamp, vec![InstanceType::default()].into(), now);
        assert!(cache.get(&profile, stamp, now).is_some() && cache.get(&other, stamp, now).is_none());
        for changed in [
            Stamp { catalogue: 1, ..stamp },
            Stamp { prices: 1, ..stamp },
            Stamp { unavailable: 1, ..stamp },
            Stamp { quota: 1, ..stamp },
        ] {
            assert!(cache.get(&profile, changed, now).is_none(), "{changed:?}");
        }
        let late = now.saturating_add(KEPT).unwrap();
        assert!(cache.get(&profile, stamp, late).is_none());
        cache.put(other.clone(), Stamp { quota: 1, ..stamp }, Vec::new().into(), now);
        assert!(cache.get(&profile, Stamp { quota: 1, ..stamp }, now).is_none(), "the old lists are gone");
    }
}
