//! What AWS is asked for a NodeClass.

use std::collections::BTreeMap;

use api::aws::{Ami, CapacityReservation, EC2NodeClass, SecurityGroup, Subnet};
use api::names::reasons::aws as reasons;
use futures::future::try_join_all;

use super::decide::Step;
use crate::ami::{AliasError, Candidate, Lookup, Variant, discovered};
use crate::controllers::parameters::{Parameters, Publisher};
use crate::port::Error;
use crate::provider::Inner;
use crate::selectors;

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

pub(super) async fn reservations(inner: &Inner, class: &EC2NodeClass) -> Step<Vec<CapacityReservation>> {
    let queries = selectors::reservation_queries(&class.spec.capacity_reservation_selector_terms);
    let ec2 = &inner.setup.services.ec2;
    let asked = queries.iter().map(|query| async move {
        let call = ec2.capacity_reservations(&query.ids, &query.filters);
        match inner.counted("ec2:DescribeCapacityReservations", call).await {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            answer => answer,
        }
    });
    let now = inner.setup.clock.now();
    match try_join_all(asked).await {
        Ok(found) => {
            let found: Vec<_> = found.into_iter().flatten().collect();
            inner.known.lock().reservations.sync(&found, now);
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
pub(super) async fn placement_group(inner: &Inner, class: &EC2NodeClass) -> Step<()> {
    let selector = class.spec.placement_group_selector.as_ref();
    let Some(query) = selectors::placement_group_query(selector) else { return Step::Found(()) };
    let ec2 = &inner.setup.services.ec2;
    let found = inner.counted("ec2:DescribePlacementGroups", ec2.placement_groups(&query)).await;
    let found = match found {
        // Names that nobody has are an error, other selectors find nothing.
        Err(error) if error.is_not_found() => Ok(None),
        found => found.map(|all| all.into_iter().next()),
    };
    match found {
        Ok(Some(group)) => {
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
        Ok(candidates) => {
            let now = inner.setup.clock.now();
            Step::Found(discovered(candidates, class.spec.resolved_ami_family(), now))
        }
        Err(error) => unknown("images", &error),
    }
}

async fn images(inner: &Inner, lookup: &Lookup, parameters: &Parameters) -> Result<Vec<Candidate>, Error> {
    // All parameters at the same time.
    let of_aliases = lookup.alias_parameters.iter().map(|each| {
        let publisher = if each.is_mutable { Publisher::AwsLatest } else { Publisher::Aws };
        parameters.get(inner, &each.path, publisher)
    });
    let of_users = lookup.user_parameters.iter().map(|path| parameters.get(inner, path, Publisher::User));
    let (of_aliases, of_users) = futures::join!(try_join_all(of_aliases), try_join_all(of_users));
    let (of_aliases, of_users) = (of_aliases?, of_users?);
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
    Ok(found.map(candidate).collect())
}
