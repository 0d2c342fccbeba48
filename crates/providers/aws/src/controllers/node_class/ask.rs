//! What AWS is asked for a NodeClass.

use std::collections::BTreeMap;
use std::time::Duration;

use api::aws::{Ami, CapacityReservation, EC2NodeClass, SecurityGroup, Subnet};
use api::conditions::HasConditions as _;
use api::names::conditions::aws as conditions;
use api::names::messages;
use api::names::reasons::aws as reasons;
use api::shared::ConditionStatus;
use futures::future::{join_all, try_join_all};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::decide::Step;
use crate::ami::{AliasError, Candidate, Lookup, Variant, discovered, is_image_id};
use crate::controllers::parameters::{Parameters, Publisher};
use crate::port::{self, Error, PlacementGroupQuery};
use crate::provider::Inner;
use crate::selectors::{self, ReservationQuery};

/// How long what was found for a selector counts, whichever NodeClass has it.
const KEPT: Duration = Duration::from_mins(1);

/// Answers that NodeClasses with the same selectors share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    reservations: Mutex<BTreeMap<ReservationQuery, (Instant, Vec<port::CapacityReservation>)>>,
    /// Until when the placement groups that are known count.
    placement_groups: Mutex<BTreeMap<PlacementGroupQuery, Instant>>,
}

/// Notes an error that leaves everything as it is.
fn unknown<T>(what: &'static str, error: &Error) -> Step<T> {
    tracing::error!(error = %error, "failed to look up {what}");
    Step::Unknown
}

pub(super) async fn subnets(inner: &Inner, class: &EC2NodeClass) -> Step<Vec<Subnet>> {
    let queries = selectors::subnet_queries(&class.spec.subnet_selector_terms);
    let ec2 = &inner.setup.services.ec2;
    let asked = queries.iter().map(|filters| inner.counted("ec2:DescribeSubnets", ec2.subnets(filters)));
    match try_join_all(asked).await {
        Ok(found) => {
            let found: Vec<_> = found.into_iter().flatten().collect();
            inner.known.lock().addresses.refresh(&found);
            Step::Found(selectors::subnets(found))
        }
        Err(error) => unknown("subnets", &error),
    }
}

pub(super) async fn security_groups(inner: &Inner, class: &EC2NodeClass) -> Step<Vec<SecurityGroup>> {
    let queries = selectors::security_group_queries(&class.spec.security_group_selector_terms);
    let ec2 = &inner.setup.services.ec2;
    let asked = queries
        .iter()
        .map(|filters| inner.counted("ec2:DescribeSecurityGroups", ec2.security_groups(filters)));
    match try_join_all(asked).await {
        Ok(found) => Step::Found(selectors::security_groups(found.into_iter().flatten().collect())),
        Err(error) => unknown("security groups", &error),
    }
}

/// The reservations that a query finds. How much is left of them is taken over when EC2 is asked, and only then.
async fn reservations_of(
    inner: &Inner,
    shared: &Shared,
    query: &ReservationQuery,
) -> Result<Vec<port::CapacityReservation>, Error> {
    let now = Instant::now();
    let known = shared.reservations.lock().get(query).filter(|(until, _)| *until > now).cloned();
    if let Some((_, found)) = known {
        return Ok(found);
    }
    let asked = inner.setup.clock.now();
    let call = inner.setup.services.ec2.capacity_reservations(&query.ids, &query.filters);
    let found = match inner.counted("ec2:DescribeCapacityReservations", call).await {
        Err(error) if error.is_not_found() => Vec::new(),
        answer => answer?,
    };
    inner.known.lock().reservations.sync(&found, asked);
    let mut all = shared.reservations.lock();
    all.retain(|_, (until, _)| *until > now);
    all.insert(query.clone(), (now + KEPT, found.clone()));
    Ok(found)
}

pub(super) async fn reservations(
    inner: &Inner,
    class: &EC2NodeClass,
    shared: &Shared,
) -> Step<Vec<CapacityReservation>> {
    let queries = selectors::reservation_queries(&class.spec.capacity_reservation_selector_terms);
    let asked = queries.iter().map(|query| reservations_of(inner, shared, query));
    match try_join_all(asked).await {
        Ok(found) => {
            let now = inner.setup.clock.now();
            let found: Vec<_> = found.into_iter().flatten().collect();
            let (found, odd) = selectors::reservations(found, now);
            for why in odd {
                tracing::error!("ignoring a capacity reservation, {why}");
            }
            Step::Found(found)
        }
        Err(error) => unknown("capacity reservations", &error),
    }
}

/// Looks the placement group up again. One that is gone is forgotten; after an error the last one stays known.
pub(super) async fn placement_group(inner: &Inner, class: &EC2NodeClass, shared: &Shared) -> Step<()> {
    let selector = class.spec.placement_group_selector.as_ref();
    let Some(query) = selectors::placement_group_query(selector) else { return Step::Found(()) };
    let now = Instant::now();
    let counts = shared.placement_groups.lock().get(&query).is_some_and(|until| *until > now);
    if counts && inner.known.lock().placement_groups.contains_key(&query) {
        return Step::Found(());
    }
    let ec2 = &inner.setup.services.ec2;
    let found = inner.counted("ec2:DescribePlacementGroups", ec2.placement_groups(&query)).await;
    let found = match found {
        // Names that nobody has are an error, other selectors find nothing.
        Err(error) if error.is_not_found() => Ok(None),
        found => found.map(|all| all.into_iter().next()),
    };
    match found {
        Ok(Some(group)) => {
            let mut counting = shared.placement_groups.lock();
            counting.retain(|_, until| *until > now);
            counting.insert(query.clone(), now + KEPT);
            drop(counting);
            inner.known.lock().placement_groups.insert(query, group);
            Step::Found(())
        }
        Ok(None) => {
            inner.known.lock().placement_groups.remove(&query);
            let message = "no available placement group is selected, check spec.placementGroupSelector";
            Step::wrong(reasons::PLACEMENT_GROUP_NOT_FOUND, message)
        }
        Err(error) if error.is_transient() => unknown("placement groups", &error),
        Err(error) => Step::wrong(reasons::PLACEMENT_GROUP_RESOLUTION_FAILED, error.to_string()),
    }
}

pub(super) async fn amis(inner: &Inner, class: &EC2NodeClass, parameters: &Parameters) -> Step<Vec<Ami>> {
    let version = inner.known.lock().kubernetes;
    let Some(version) = version else { return Step::Unknown };
    let lookup = match Lookup::new(&class.spec.ami_selector_terms, version) {
        Ok(lookup) => lookup,
        Err(error @ (AliasError::Invalid(_) | AliasError::Unsupported { .. })) => {
            return Step::wrong(reasons::UNSUPPORTED_ALIAS, error.to_string());
        }
    };
    match images(inner, &lookup, parameters).await {
        Ok(Found::Images(candidates)) => {
            let now = inner.setup.clock.now();
            Step::Found(discovered(candidates, class.spec.resolved_ami_family(), now))
        }
        Ok(Found::NoParameters(why)) => {
            let alias = class.spec.ami_selector_terms.iter().find_map(|term| term.alias.as_deref());
            let alias = alias.unwrap_or_default();
            let message = format!(
                "{}, alias {alias:?} stands for {why}, check spec.amiSelectorTerms",
                messages::AWS_AMI_NOT_FOUND
            );
            if has_images(class) {
                // AWS took them back, or has none for a version that the cluster was upgraded to a moment ago: nodes
                // are launched from the images of before.
                tracing::error!(
                    EC2NodeClass = class.metadata.name.as_deref().unwrap_or_default(),
                    "{message}; the images that were found before stay in use"
                );
                return Step::Unknown;
            }
            Step::wrong(reasons::AMI_NOT_FOUND, message)
        }
        Err(error) => unknown("images", &error),
    }
}

/// Whether images were found for what the class asks for now.
fn has_images(class: &EC2NodeClass) -> bool {
    let is_found = class.condition(conditions::AMIS_READY).is_some_and(|condition| {
        condition.status == ConditionStatus::True
            && Some(condition.observed_generation) == class.metadata.generation
    });
    is_found && class.status.as_ref().is_some_and(|status| !status.amis.is_empty())
}

/// What came of a search for images.
enum Found {
    Images(Vec<Candidate>),
    /// None of the parameters of an alias can be had, and why.
    NoParameters(String),
}

/// Why what a user's parameter holds is no image, if so.
fn mistake(path: &str, value: Option<&str>) -> Option<String> {
    match value {
        None => Some(format!("the SSM parameter {path:?} does not exist")),
        Some(value) if !is_image_id(value) => {
            Some(format!("the SSM parameter {path:?} holds {value:?}, expected the ID of an image"))
        }
        Some(_) => None,
    }
}

async fn images(inner: &Inner, lookup: &Lookup, parameters: &Parameters) -> Result<Found, Error> {
    // All parameters at the same time.
    let of_aliases = lookup.alias_parameters.iter().map(|each| {
        let publisher = if each.is_mutable { Publisher::AwsLatest } else { Publisher::Aws };
        parameters.get(inner, &each.path, publisher)
    });
    let of_users = lookup.user_parameters.iter().map(|path| parameters.get(inner, path, Publisher::User));
    let (of_aliases, of_users) = futures::join!(join_all(of_aliases), try_join_all(of_users));
    let of_users = of_users?;
    for (path, value) in lookup.user_parameters.iter().zip(&of_users) {
        if let Some(mistake) = mistake(path, value.as_deref()) {
            tracing::error!("{mistake}; it is passed over");
        }
    }
    let mut last = None;
    let mut known = Vec::new();
    for (parameter, answer) in lookup.alias_parameters.iter().zip(of_aliases) {
        known.push(match answer {
            Ok(value) => value,
            // It may be there: without it nodes would seem to have the wrong image.
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::error!(error = %error, parameter = parameter.path, "failed to get an SSM parameter, it is passed over");
                last = Some(error);
                None
            }
        });
    }
    let of_aliases = known;
    if !of_aliases.is_empty() && of_aliases.iter().all(Option::is_none) {
        let paths: Vec<&str> = lookup.alias_parameters.iter().map(|each| each.path.as_str()).collect();
        let why = last.map_or_else(|| "none of them exists".to_owned(), |error| error.to_string());
        let message = format!("the SSM parameters {}: {why}", paths.join(", "));
        return Ok(Found::NoParameters(message));
    }
    let mut variants: BTreeMap<String, Vec<Variant>> = BTreeMap::new();
    for (parameter, value) in lookup.alias_parameters.iter().zip(&of_aliases) {
        if let Some(value) = value {
            variants.entry(value.clone()).or_default().extend(parameter.variants);
        }
    }
    let values = of_aliases.iter().chain(&of_users).flatten();
    let queries = lookup.queries(values.map(String::as_str));
    let ec2 = &inner.setup.services.ec2;
    let asked = queries.iter().map(|query| inner.counted("ec2:DescribeImages", ec2.images(query)));
    let found = try_join_all(asked).await?.into_iter().flatten();
    let candidate = |image: crate::port::Image| {
        let variants = variants.get(&image.id).cloned().unwrap_or_default();
        Candidate { image, variants }
    };
    Ok(Found::Images(found.map(candidate).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_holds_no_image_is_named_with_what_it_holds() {
        assert_eq!(mistake("/a", Some("ami-1")), None);
        assert_eq!(mistake("/a", None).as_deref(), Some("the SSM parameter \"/a\" does not exist"));
        assert_eq!(
            mistake("/a", Some("{}")).as_deref(),
            Some("the SSM parameter \"/a\" holds \"{}\", expected the ID of an image")
        );
    }
}
