//! `karpenter plan --disruption` and `--remove-node`: what would be disrupted now, and what happens without a node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cluster::state::State;
use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use operator::Types;
use operator::disruption::preview::{self, Preview, Without};
use runtime::Settings;
use serde_json::{Value, json};

use super::Output;

/// How many names of nodes a line shows.
const SHOWN: usize = 3;

/// What is asked.
pub(super) enum Ask<'a> {
    /// What would be disrupted now.
    Now,
    /// What happens without some nodes.
    Without(&'a [String]),
}

/// Answers what is asked about a cluster.
pub(super) fn answer(
    state: &State,
    types: &Types,
    settings: &Arc<Settings>,
    ask: &Ask<'_>,
    output: Output,
    now: Timestamp,
) -> Result<String> {
    let (table, data) = match ask {
        Ask::Now => {
            let preview = preview::preview(state, types, settings, now);
            (table(&preview), as_json(&preview))
        }
        Ask::Without(names) => match preview::without_nodes(state, types, settings, names, now) {
            Ok(without) => (removal(names, &without), removal_json(&without)),
            Err(unknown) => bail!(
                "no node {} is managed by a NodePool of the cluster; give names as `kubectl get nodes` shows them",
                unknown.join(", ")
            ),
        },
    };
    match output {
        Output::Table => Ok(table),
        Output::Json => serde_json::to_string(&data).map(|text| text + "\n").context("printing JSON"),
        Output::Yaml => serde_saphyr::to_string(&data).context("printing YAML"),
    }
}

fn some(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn new_nodes(types: &[Vec<String>]) -> String {
    let each = types.iter().map(|types| {
        let first = types.first().map_or("any type", String::as_str);
        match types.len().saturating_sub(1) {
            0 => first.to_owned(),
            more => format!("{first} or {more} others"),
        }
    });
    each.collect::<Vec<_>>().join("; ")
}

fn table(preview: &Preview) -> String {
    let mut text = String::new();
    let saved: f64 = preview.moves.iter().map(|it| it.savings).sum();
    if preview.moves.is_empty() {
        text.push_str("Nothing would be disrupted now.\n");
    } else {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["REASON", "WHAT", "NODES", "WHICH", "NEW NODE", "EVICTIONS", "SAVES $/HOUR"]);
        for it in &preview.moves {
            table.add_row([
                it.reason.to_owned(),
                it.decision.to_owned(),
                it.nodes.len().to_string(),
                some(&it.nodes),
                new_nodes(&it.replacements),
                it.evictions.to_string(),
                format!("{:.4}", it.savings),
            ]);
        }
        for column in [2, 5, 6] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{table}");
    }
    let evictions: usize = preview.moves.iter().map(|it| it.evictions).sum();
    let share = if preview.price > 0.0 { saved / preview.price * 100.0 } else { 0.0 };
    let _ = writeln!(
        text,
        "\nPrice per hour: {:.2} now, {:.2} afterwards ({share:.1} % less), {evictions} evictions.",
        preview.price,
        preview.price - saved
    );
    if !preview.budgets.is_empty() {
        text.push_str("\nBudgets:\n");
        for it in &preview.budgets {
            let allowed = it.allowed.map_or("all".to_owned(), |allowed| allowed.to_string());
            let _ = writeln!(
                text,
                "  {} {}: {allowed} of {} nodes at the same time, {} disrupted now",
                it.pool, it.reason, it.nodes, it.disrupting
            );
        }
    }
    kept(&mut text, &preview.kept);
    text
}

/// Nodes with the same reason are one line.
fn kept(text: &mut String, kept: &BTreeMap<String, String>) {
    if kept.is_empty() {
        return;
    }
    let mut reasons = BTreeMap::<&str, Vec<String>>::new();
    for (node, why) in kept {
        reasons.entry(why).or_default().push(node.clone());
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    text.push_str("\nNodes that stay:\n");
    for (why, nodes) in reasons {
        let _ = writeln!(text, "  {} ({}): {why}", nodes.len(), some(&nodes));
    }
}

fn as_json(preview: &Preview) -> Value {
    let moves = preview.moves.iter().map(|it| {
        json!({
            "reason": it.reason, "decision": it.decision, "nodes": it.nodes, "replacements": it.replacements,
            "savings": it.savings, "evictions": it.evictions,
        })
    });
    let budgets = preview.budgets.iter().map(|it| {
        json!({
            "nodePool": it.pool, "reason": it.reason, "allowed": it.allowed, "nodes": it.nodes,
            "disrupting": it.disrupting,
        })
    });
    let saved: f64 = preview.moves.iter().map(|it| it.savings).sum();
    json!({
        "moves": moves.collect::<Value>(), "kept": preview.kept, "budgets": budgets.collect::<Value>(),
        "price": preview.price, "priceAfter": preview.price - saved,
    })
}

fn removal(names: &[String], without: &Without) -> String {
    let mut text = format!("Without {}:\n", names.join(", "));
    for (node, pods) in &without.moved {
        let _ = writeln!(text, "  {} pods go to {node}: {}", pods.len(), some(pods));
    }
    match &*without.launches {
        [] => text.push_str("  No new nodes are needed.\n"),
        launches => {
            let _ = writeln!(text, "  {} new nodes are needed: {}", launches.len(), new_nodes(launches));
        }
    }
    for (pod, why) in &without.unplaced {
        let _ = writeln!(text, "  {pod} has no place: {why}");
    }
    let _ = writeln!(text, "  Saves {:.4} $ per hour.", without.savings);
    kept(&mut text, &without.kept);
    text
}

fn removal_json(without: &Without) -> Value {
    json!({
        "newNodes": without.launches, "moved": without.moved, "unplaced": without.unplaced,
        "savings": without.savings, "kept": without.kept,
    })
}
