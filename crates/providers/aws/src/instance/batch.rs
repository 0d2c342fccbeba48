//! One launch for several claims that ask for the same, and what each of them gets of it.

use crate::port::{FleetError, FleetInstance, FleetResult};

/// What each of several claims gets of a launch that was made for all: an instance as long as there are any, and
/// all errors. One that gets nothing is told so. Instances that nobody asked for are left over.
pub fn share(result: FleetResult, claims: usize) -> Vec<FleetResult> {
    let FleetResult { fleet_id, instances, mut errors } = result;
    let launched: Vec<FleetInstance> = instances
        .into_iter()
        .flat_map(|FleetInstance { ids, instance_type, place }| {
            let one = move |id| FleetInstance {
                ids: vec![id],
                instance_type: instance_type.clone(),
                place: place.clone(),
            };
            ids.into_iter().map(one)
        })
        .collect();
    if launched.len() > claims {
        tracing::error!(
            asked = claims,
            launched = launched.len(),
            "more instances were launched than asked for"
        );
    }
    if errors.is_empty() && launched.len() < claims {
        errors.push(FleetError {
            code: String::new(),
            message: "too few instances returned".to_owned(),
            ..FleetError::default()
        });
    }
    let mut launched = launched.into_iter();
    (0..claims)
        .map(|_| FleetResult {
            fleet_id: fleet_id.clone(),
            instances: launched.next().into_iter().collect(),
            errors: errors.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ids: &[&[&str]], errors: usize) -> FleetResult {
        let of = |ids: &&[&str]| FleetInstance {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..FleetInstance::default()
        };
        FleetResult {
            fleet_id: "fleet-1".to_owned(),
            instances: ids.iter().map(of).collect(),
            errors: vec![FleetError { code: "Unsupported".to_owned(), ..FleetError::default() }; errors],
        }
    }

    fn shared(result: FleetResult, claims: usize) -> Vec<(Vec<String>, usize)> {
        let ids = |each: &FleetResult| each.instances.iter().flat_map(|found| found.ids.clone()).collect();
        share(result, claims).iter().map(|each| (ids(each), each.errors.len())).collect()
    }

    #[test]
    fn everybody_gets_one_instance_wherever_it_was_launched() {
        let id = |text: &str| vec![text.to_owned()];
        assert_eq!(
            shared(result(&[&["i-1", "i-2"], &["i-3"]], 0), 3),
            [(id("i-1"), 0), (id("i-2"), 0), (id("i-3"), 0)]
        );
        assert_eq!(shared(result(&[&["i-1", "i-2"]], 1), 1), [(id("i-1"), 1)]);
    }

    #[test]
    fn those_who_get_nothing_get_the_errors_or_are_told_that_there_are_too_few() {
        assert_eq!(shared(result(&[&["i-1"]], 2), 2), [(vec!["i-1".to_owned()], 2), (vec![], 2)]);
        let none = share(result(&[], 0), 2);
        assert_eq!(none.len(), 2);
        assert_eq!(none[1].errors[0].message, "too few instances returned");
        assert_eq!(none[1].errors[0].place.zone, None);
    }
}
