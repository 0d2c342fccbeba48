//! The instance types of each NodeClass, made again only where something changed.
//!
//! An entry belongs to one whole NodeClass, and each type in it remembers what it was made from: two classes never
//! answer for each other, and what cannot be had is gone from every list at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::aws::EC2NodeClass;
use api::names::conditions::node_overlay;
use api::names::labels;
use api::shared::{ConditionStatus, Operator};
use cluster::instance_types::InstanceType;
use cluster::state::State;
use parking_lot::Mutex;

use super::Inner;
use crate::hash::{Hasher, of_text};
use crate::instance_type::{Discovered, Market, Unlisted, offerings, resolve_all};
use crate::node_class::{Class, found};
use crate::port::PlacementGroup;
use crate::prices::Prices;

/// Lists that were made, by the name of the NodeClass.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(Mutex<BTreeMap<String, Entry>>);

#[derive(Clone, Debug)]
struct Entry {
    /// What everything but the offerings follows from.
    base: (u64, u64),
    /// What all offerings follow from.
    market: u64,
    /// When what cannot be had, and what is left of reservations, changed last.
    generation: (u64, u64),
    /// What the offerings of each type follow from alone.
    stamps: Vec<u64>,
    types: Arc<[InstanceType]>,
}

/// Everything that lists are made from, at one moment.
struct Moment {
    discovered: Arc<Discovered>,
    prices: Arc<Prices>,
    learned: Arc<crate::instance_type::memory::Learned>,
    version: u64,
    counts: BTreeMap<String, u32>,
    shifted: BTreeSet<String>,
    overlay_prices: BTreeMap<String, f64>,
    generation: u64,
}

impl Inner {
    /// Zones that are avoided now.
    pub(crate) fn shifted_zones(&self) -> BTreeSet<String> {
        let now = self.setup.clock.now();
        self.known.lock().shifted.at(now)
    }

    fn moment(&self) -> Moment {
        // The generation first: what is marked meanwhile makes the list old, never the list wrong for long.
        let generation = self.unavailable.generation();
        let overlay_prices = if self.setup.gates.node_overlay {
            overlay_prices(&self.setup.cluster.read())
        } else {
            BTreeMap::new()
        };
        let now = self.setup.clock.now();
        let known = self.known.lock();
        Moment {
            discovered: Arc::clone(&known.discovered),
            prices: Arc::clone(&known.prices),
            learned: Arc::clone(&known.learned),
            version: known.version,
            counts: known.reservations.left(),
            shifted: known.shifted.at(now),
            overlay_prices,
            generation,
        }
    }

    /// Everything that can be chosen from with a NodeClass, those included that cannot be had at present.
    pub(crate) fn types(
        &self,
        object: &EC2NodeClass,
        group: Option<&PlacementGroup>,
    ) -> Result<Arc<[InstanceType]>, Unlisted> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let moment = self.moment();
        let base = (class_key(object, group), moment.version);
        let market = market_key(&moment);
        let known = self.catalogue.0.lock().get(&name).filter(|entry| entry.base == base).cloned();
        if let Some(entry) = &known
            && (entry.market, entry.generation) == (market, (moment.generation, counts_key(&moment)))
        {
            return Ok(Arc::clone(&entry.types));
        }
        let class = Class::new(object, group, self.setup.settings.node_class_cel)
            .map_err(|source| Unlisted::Type { instance_type: "any".to_owned(), source })?;
        let entry = self.make(&class, &moment, base, market, known)?;
        let types = Arc::clone(&entry.types);
        self.catalogue.0.lock().insert(name, entry);
        Ok(types)
    }

    fn make(
        &self,
        class: &Class<'_>,
        moment: &Moment,
        base: (u64, u64),
        market_key: u64,
        known: Option<Entry>,
    ) -> Result<Entry, Unlisted> {
        let market = Market {
            prices: &moment.prices,
            overlay_prices: &moment.overlay_prices,
            unavailable: &self.unavailable,
            shifted_zones: &moment.shifted,
            reservation_counts: &moment.counts,
            reserved_capacity: self.setup.gates.reserved_capacity,
        };
        let stamp = |name: &str| {
            let mut hasher = Hasher::default();
            hasher.number(self.unavailable.generation_of(name));
            for reservation in class.reservations(name) {
                hasher.number(u64::from(moment.counts.get(&reservation.id).copied().unwrap_or_default()));
            }
            hasher.finish()
        };
        let is_same_market = known.as_ref().is_some_and(|entry| entry.market == market_key);
        let (mut types, before) = match known {
            Some(entry) => (entry.types.to_vec(), entry.stamps),
            None => {
                (resolve_all(class, &moment.discovered, &self.environment(), &moment.learned)?, Vec::new())
            }
        };
        let stamps: Vec<u64> = types.iter().map(|each| stamp(&each.name)).collect();
        for (index, each) in types.iter_mut().enumerate() {
            let is_current = is_same_market && before.get(index) == stamps.get(index);
            if !is_current && let Some(info) = moment.discovered.get(&each.name) {
                each.offerings = offerings(class, info, &moment.discovered, &market);
            }
        }
        let generation = (moment.generation, counts_key(moment));
        Ok(Entry { base, market: market_key, generation, stamps, types: types.into() })
    }
}

/// Tells a class from any other: everything that it asks for and that was found for it.
fn class_key(object: &EC2NodeClass, group: Option<&PlacementGroup>) -> u64 {
    let text =
        serde_json::to_string(&(&object.metadata.name, &object.spec, &found(object))).unwrap_or_default();
    let mut hasher = Hasher::default();
    hasher.text(&of_text(&text).to_string()).text(&format!("{group:?}"));
    hasher.finish()
}

fn market_key(moment: &Moment) -> u64 {
    let mut hasher = Hasher::default();
    hasher.texts(moment.shifted.iter().map(String::as_str));
    for (name, price) in &moment.overlay_prices {
        hasher.text(name).number(price.to_bits());
    }
    hasher.finish()
}

/// What is left of reservations: concerns their types alone.
fn counts_key(moment: &Moment) -> u64 {
    let mut hasher = Hasher::default();
    for (id, count) in &moment.counts {
        hasher.text(id).number(u64::from(*count));
    }
    hasher.finish()
}

/// What NodeOverlays say that types cost which AWS has no price for: those that are about types and nothing else.
fn overlay_prices(state: &State) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for overlay in state.node_overlays.values() {
        let is_valid = overlay.status.iter().flat_map(|status| &status.conditions).any(|condition| {
            condition.type_ == node_overlay::VALIDATION_SUCCEEDED && condition.status == ConditionStatus::True
        });
        let price = overlay.spec.price.as_ref().and_then(|text| text.parse::<f64>().ok());
        let [requirement] = overlay.spec.requirements.as_slice() else { continue };
        let is_about_types = requirement.key == labels::INSTANCE_TYPE && requirement.operator == Operator::In;
        if let (true, true, Some(price)) = (is_valid, is_about_types, price) {
            all.extend(requirement.values.iter().map(|name| (name.clone(), price)));
        }
    }
    all
}
