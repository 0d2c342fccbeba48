//! Conformance of the CRDs on a real API server.
//!
//! For each provider the CRDs are applied and the corpus in `tests/corpus` is sent; verdicts, messages, warnings,
//! defaults and our own types are compared with what the API server does.

#[path = "crds/cluster.rs"]
mod cluster;
#[path = "crds/corpus.rs"]
mod corpus;
#[path = "crds/coverage.rs"]
mod coverage;
#[path = "crds/exceptions.rs"]
mod exceptions;
#[path = "crds/kubectl.rs"]
mod kubectl;
#[path = "crds/round_trip.rs"]
mod round_trip;
#[path = "crds/run.rs"]
mod run;

use api::provider::Provider;

use crate::cluster::{cluster, text};
use crate::coverage::coverage;
use crate::round_trip::round_trip;
use crate::run::results;

#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn crds_apply_without_a_warning(provider: Provider) {
    let cluster = cluster(provider);
    assert_none(&cluster.warnings);
    for crd in &cluster.crds {
        let mut conditions = cluster.conditions(crd).expect("the CRD is there");
        conditions.sort();
        let expected = ["Established", "NamesAccepted"].map(|name| (name.to_owned(), "True".to_owned()));
        assert_eq!(conditions, expected, "{}", text(crd, "/metadata/name"));
    }
}

fn objects_are_judged_as_specified(provider: Provider) -> String {
    let results = results(provider);
    assert_none(&results.mismatches);
    format!("{} cases", results.cases)
}

fn every_constraint_is_exercised(provider: Provider) -> String {
    let coverage = coverage(provider);
    assert_none(&coverage.gaps);
    let (rules, patterns, others) = (coverage.rules, coverage.patterns, coverage.others);
    format!("{rules} rules, {patterns} patterns, {others} other constraints")
}

fn stored_objects_pass_through_our_types(provider: Provider) {
    assert_none(&round_trip(cluster(provider), results(provider)));
}

macro_rules! tests_of_each_provider {
    ($($provider:ident => $name:ident),*) => {
        $(mod $name {
            use api::provider::Provider::$provider;

            #[test]
            fn crds_apply_without_a_warning() {
                super::crds_apply_without_a_warning($provider);
            }

            #[test]
            fn objects_are_judged_as_specified() {
                println!("{}", super::objects_are_judged_as_specified($provider));
            }

            #[test]
            fn every_constraint_is_exercised() {
                println!("{}", super::every_constraint_is_exercised($provider));
            }

            #[test]
            fn stored_objects_pass_through_our_types() {
                super::stored_objects_pass_through_our_types($provider);
            }
        })*
    };
}

tests_of_each_provider!(Kwok => kwok, Aws => aws, Azure => azure);
