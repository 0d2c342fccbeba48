//! Instance types as the engine's catalogue.

use api::names::{labels, values};
use api::shared::{Operator, Requirement};
use engine::intern::ResourceId;
use engine::model::{Catalogue, InstanceType, Offering, ReservationId};
use engine::resources;
use engine::universe::SetId;
use units::{Quantity, Resources};

use super::tables::Tables;
use crate::instance_types;
use crate::reason::{Ignored, Reason};

impl Tables {
    /// The catalogue of instance types; a type that cannot be understood is left out.
    pub(super) fn catalogue(
        &mut self,
        types: &[instance_types::InstanceType],
        ignored: &mut Vec<Ignored>,
    ) -> Catalogue {
        let mut catalogue = Catalogue::default();
        let mut known = KnownOfferings::default();
        for each in types {
            match self.instance_type(each, &mut known) {
                Ok(instance_type) => catalogue.types.push(instance_type),
                Err(reason) => ignored.push(Ignored {
                    kind: "instance type",
                    namespace: None,
                    name: each.name.as_str().into(),
                    reason,
                }),
            }
        }
        catalogue
    }

    fn instance_type<'a>(
        &mut self,
        each: &'a instance_types::InstanceType,
        known: &mut KnownOfferings<'a>,
    ) -> Result<InstanceType, Reason> {
        let key = self.snapshot.keys.instance_type;
        let mut volume_limits = Vec::with_capacity(each.volume_limits.len());
        for (driver, limit) in &each.volume_limits {
            volume_limits.push((self.driver(driver)?, *limit));
        }
        let offerings = each.offerings.iter().map(|offering| self.offering(offering, known));
        Ok(InstanceType {
            offerings: offerings.collect::<Result<_, _>>()?,
            name: self.snapshot.universe.value(key, &each.name),
            requirements: self.requirements(&each.requirements, "requirements")?,
            capacity: self.capacity(&each.capacity)?,
            without: self.without(&each.capacity)?,
            overhead: self.requests(&each.overhead)?,
            volume_limits,
            overlaid: each.overlaid,
        })
    }

    fn offering<'a>(
        &mut self,
        offering: &'a instance_types::Offering,
        known: &mut KnownOfferings<'a>,
    ) -> Result<Offering, Reason> {
        let requirements = self.offering_requirements(&offering.requirements, known)?;
        let reservation = self.reservation(offering);
        Ok(Offering {
            requirements,
            price: offering.price,
            available: offering.available,
            reservation,
            capacity_override: self.overrides(offering.capacity_override.as_ref(), resources::capacity)?,
            overhead_override: self.overrides(offering.overhead_override.as_ref(), resources::request)?,
        })
    }

    /// Resources that are named with an amount of zero.
    fn without(&mut self, capacity: &Resources) -> Result<Vec<ResourceId>, Reason> {
        let named = capacity.iter().filter(|(_, amount)| amount.is_zero());
        named.map(|(name, _)| self.resource(name.as_str())).collect()
    }

    /// Amounts that replace others, zero included.
    fn overrides(
        &mut self,
        amounts: Option<&Resources>,
        round: fn(ResourceId, Quantity) -> i64,
    ) -> Result<Vec<(ResourceId, i64)>, Reason> {
        let amounts = amounts.into_iter().flat_map(Resources::iter);
        let amounts = amounts.map(|(name, amount)| {
            let resource = self.resource(name.as_str())?;
            Ok((resource, round(resource, *amount)))
        });
        amounts.collect()
    }

    /// There are many offerings, but only few combinations of zone and capacity type.
    fn offering_requirements<'a>(
        &mut self,
        requirements: &'a [Requirement],
        known: &mut KnownOfferings<'a>,
    ) -> Result<SetId, Reason> {
        if let Some(set) = known.find(requirements) {
            return Ok(set);
        }
        let set = self.requirements(requirements, "offerings.requirements")?;
        known.insert(requirements, set);
        Ok(set)
    }

    /// The reservation that an offering of reserved capacity draws on.
    fn reservation(&mut self, offering: &instance_types::Offering) -> Option<(ReservationId, u32)> {
        let value_of =
            |key: &str| match offering.requirements.iter().find(|each| each.key == key)?.values.as_slice() {
                [value] => Some(value.as_str()),
                _ => None,
            };
        let id = value_of(self.labels.reservation_id()?)?;
        let is_reserved = value_of(labels::CAPACITY_TYPE) == Some(values::capacity_type::RESERVED);
        let id = is_reserved.then(|| ReservationId(self.snapshot.reservations.intern(id)))?;
        Some((id, offering.reservation_capacity))
    }

    /// Requirements as a set; `field` is for messages.
    pub(super) fn requirements(
        &mut self,
        requirements: &[Requirement],
        field: &str,
    ) -> Result<SetId, Reason> {
        let mut converted = Vec::with_capacity(requirements.len());
        for Requirement { key, operator, values, min_values } in requirements {
            let (id, requirement) = self.requirement(key, *operator, values, field)?;
            // Nothing is greater than the greatest number; of what cannot be, no choice is asked for.
            let cannot_be = *operator == Operator::Gt && requirement.members().is_some();
            let min_values = min_values.filter(|_| !cannot_be);
            let min_values = min_values.map(|count| u32::try_from(count).unwrap_or(0));
            converted.push((id, requirement.with_min_values(min_values)));
        }
        Ok(self.snapshot.universe.set(converted))
    }
}

/// Requirements of offerings that have been converted. Types mostly have the same offerings in the same order, so
/// the search begins after what was found last.
#[derive(Default)]
struct KnownOfferings<'a> {
    lists: Vec<(&'a [Requirement], SetId)>,
    next: usize,
}

impl<'a> KnownOfferings<'a> {
    /// More than this is not worth searching.
    const MOST: usize = 32;

    fn find(&mut self, requirements: &[Requirement]) -> Option<SetId> {
        let count = self.lists.len();
        let mut positions = (self.next..count).chain(0..self.next.min(count));
        let found = positions.find(|position| self.lists[*position].0 == requirements)?;
        self.next = found + 1;
        Some(self.lists[found].1)
    }

    fn insert(&mut self, requirements: &'a [Requirement], set: SetId) {
        if self.lists.len() < Self::MOST {
            self.lists.push((requirements, set));
            self.next = self.lists.len();
        }
    }
}
