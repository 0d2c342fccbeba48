//! What holds at every moment, whatever goes wrong.

use embedded::faults::{Fault, Rule};

use super::cluster::{CLAIMS, add_node, cluster, is_tainted, pod_asking, run};
use super::decided::drifted;
use super::replacing::{bring_up, new_claims};
use super::*;
use crate::testing::Operated;

/// How many of the nodes that were there at first are being disrupted.
fn disrupted(cluster: &Operated, names: &[String]) -> usize {
    let is_disrupted = |name: &&String| {
        let claim = cluster.get(&format!("{CLAIMS}/claim-{name}"));
        let is_leaving = |claim: &Value| !claim["metadata"]["deletionTimestamp"].is_null();
        claim.is_some_and(|claim| {
            is_leaving(&claim)
                || is_tainted(cluster, name)
                || cluster.context.cluster.read().is_marked(&format!("kwok://{name}"))
        })
    };
    names.iter().filter(is_disrupted).count()
}

/// Nodes of which some are empty and some have drifted, an API server that fails now and then, and replacements that
/// come up, stay away or vanish.
fn play(seed: u64) {
    // Knuth's multiplier; the upper bits are random enough.
    let mut chance = seed;
    let mut upto = |limit: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % limit
    };
    let budget = 1 + upto(2);
    let mut cluster = cluster(&budget.to_string(), &[]);
    let names: Vec<String> = (0..6 + upto(3)).map(|number| format!("n{number}")).collect();
    for name in &names {
        let (of_claim, pods) = match upto(3) {
            0 => (json!({}), 0),
            1 => (drifted("2026-01-01T00:10:00Z"), 0),
            _ => (drifted("2026-01-01T00:20:00Z"), 1),
        };
        // Some fit elsewhere, others need another node.
        let cpu = if upto(3) == 0 { "1500m" } else { "3" };
        add_node(&cluster, name, &json!({}), &of_claim);
        for pod in 0..pods {
            cluster.apply(&pod_asking(&format!("{name}-{pod}"), name, cpu).to_string());
        }
    }
    let faults = [Fault::InternalError, Fault::Conflict, Fault::Unavailable];
    let on = ["create", "patch", "delete"].map(|verb| Rule::on(verb, "", 0.15, faults[(seed % 3) as usize]));
    cluster.faults.set_rules(on.to_vec());
    for second in 0..240 {
        run(&mut cluster, 1);
        let count = disrupted(&cluster, &names);
        assert!(count as u64 <= budget, "seed {seed}: {count} of {budget} after {second} s");
        for new in new_claims(&cluster) {
            let path = format!("{CLAIMS}/{new}");
            let Some(claim) = cluster.get(&path) else { continue };
            let is_launched = !claim["status"]["providerID"].is_null();
            let is_up = claim["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
            match upto(20) {
                0 => cluster.delete(&path),
                1..=3 if is_launched && !is_up => bring_up(&cluster, &new),
                // An instance without a node: whoever decides goes on meanwhile.
                4..=15 if !is_launched => {
                    let status = json!({"status": {"providerID": format!("kwok://{new}")}});
                    cluster.patch(&format!("{path}/status"), &status);
                }
                _ => {}
            }
        }
    }
    // Once everything works, nothing is left behind.
    cluster.faults.set_rules(Vec::new());
    for _ in 0..60 {
        run(&mut cluster, 30);
        for new in new_claims(&cluster) {
            bring_up(&cluster, &new);
        }
    }
    assert_eq!(disrupted(&cluster, &names), 0, "seed {seed}");
    let left = names.iter().filter(|name| cluster.get(&format!("{CLAIMS}/claim-{name}")).is_some()).count();
    assert_eq!(left, 0, "seed {seed}: all of them were empty or had drifted");
}

#[test]
fn budgets_hold_at_every_moment_and_nothing_is_left_tainted() {
    (0..4).for_each(play);
}
