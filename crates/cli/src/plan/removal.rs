//! `karpenter plan --remove-node`: what happens without some nodes, whatever keeps them.

use std::fmt::Write as _;

use operator::disruption::preview::Without;
use serde_json::{Value, json};

use super::disruption::new_nodes;
use super::words::{after, counted, counted_verb, prices, some};

/// For people.
pub(super) fn table(names: &[String], without: &Without) -> String {
    let mut text = format!("Without {}:\n", names.join(", "));
    for (node, pods) in &without.moved {
        let _ =
            writeln!(text, "  {} to {node}: {}", counted_verb(pods.len(), "pod", "goes", "go"), some(pods));
    }
    match &*without.launches {
        [] => text.push_str("  No new nodes are needed.\n"),
        launches => {
            let needed = counted_verb(launches.len(), "new node", "is", "are");
            let _ = writeln!(text, "  {needed} needed: {}", new_nodes(launches));
        }
    }
    for (pod, why) in &without.unplaced {
        let _ = writeln!(text, "  {pod} has no place: {why}");
    }
    let evictions = counted(without.evictions, "eviction");
    let _ = writeln!(text, "\n{}, {evictions}.", prices(without.price, without.savings));
    if !without.kept.is_empty() {
        text.push_str("\nWhat keeps them from going by themselves:\n");
        for (node, why) in &without.kept {
            let _ = writeln!(text, "  {node}: {why}");
        }
    }
    text
}

/// For programs.
pub(super) fn as_json(without: &Without) -> Value {
    let kept: Value =
        without.kept.iter().map(|(node, why)| (node.clone(), Value::from(why.to_string()))).collect();
    json!({
        "newNodes": without.launches, "moved": without.moved, "unplaced": without.unplaced,
        "price": without.price, "priceAfter": after(without.price, without.savings), "savings": without.savings,
        "evictions": without.evictions, "kept": kept,
    })
}
