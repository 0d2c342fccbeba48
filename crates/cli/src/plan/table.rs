//! A plan for people to read.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::CellAlignment;
use units::human::{self, Per};

use crate::plan::report::{ClaimReport, Explained, PoolReason, Report};
use crate::plan::words::{at_most, counted, counted_verb, per_month};
use crate::terminal;

/// The whole plan.
pub(crate) fn overview(report: &Report) -> String {
    let mut text = String::new();
    new_nodes(&mut text, report);
    existing_nodes(&mut text, report);
    pending_pods(&mut text, report);
    text
}

/// New nodes that look alike.
#[derive(Default)]
struct Alike {
    nodes: usize,
    /// Other types they may become.
    others: usize,
    pods: usize,
    price: f64,
}

fn new_nodes(text: &mut String, report: &Report) {
    let claims = &report.new_node_claims;
    if claims.is_empty() {
        let pending = counted_verb(report.errors.len(), "pod", "stays", "stay");
        let _ = match report.errors.len() {
            0 => writeln!(text, "No new nodes are needed."),
            _ => writeln!(text, "No node can be launched: {pending} pending."),
        };
        return;
    }
    // Nodes that look alike are one line.
    let mut groups: BTreeMap<[&str; 4], Alike> = BTreeMap::new();
    for claim in claims {
        let cheapest = claim.instance_types.first().map_or("", String::as_str);
        let key = [claim.node_pool.as_str(), cheapest, claim.zone.as_str(), claim.capacity_type.as_str()];
        let alike = groups.entry(key).or_default();
        alike.nodes += 1;
        alike.others = alike.others.max(claim.instance_types.len().saturating_sub(1));
        alike.pods += claim.pods.len();
        alike.price += claim.price;
    }
    let mut table =
        terminal::table(["NODES", "NODEPOOL", "CHEAPEST TYPE", "OR", "ZONE", "CAPACITY", "PODS", "PER HOUR"]);
    for ([pool, type_, zone, capacity], Alike { nodes, others, pods, price }) in groups {
        table.add_row([
            nodes.to_string(),
            pool.to_owned(),
            type_.to_owned(),
            if others == 0 { String::new() } else { format!("+{others}") },
            zone.to_owned(),
            capacity.to_owned(),
            pods.to_string(),
            human::price(price),
        ]);
    }
    for column in [0, 3, 6, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(text, "{}\n", table.trim_fmt());
    let pods: usize = claims.iter().map(|claim| claim.pods.len()).sum();
    let _ = writeln!(
        text,
        "{} for {}: {}, {} at the cheapest offers",
        counted(claims.len(), "new node"),
        counted(pods, "pod"),
        human::money(report.total_price, Per::Hour),
        per_month(report.total_price),
    );
}

fn existing_nodes(text: &mut String, report: &Report) {
    if report.existing.is_empty() {
        return;
    }
    const SHOWN: usize = 10;
    let pods: usize = report.existing.values().map(Vec::len).sum();
    let _ = writeln!(
        text,
        "\n{} fit on {}:",
        counted(pods, "pod"),
        counted(report.existing.len(), "existing node")
    );
    for (node, pods) in report.existing.iter().take(SHOWN) {
        let _ = writeln!(text, "  {node}: {}", at_most(pods, 5));
    }
    if report.existing.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", report.existing.len() - SHOWN);
    }
}

/// Pods that stay pending for the same reason are one paragraph.
fn pending_pods(text: &mut String, report: &Report) {
    if report.errors.is_empty() {
        return;
    }
    text.push('\n');
    // Where nothing can be launched, that is said already.
    if !report.new_node_claims.is_empty() {
        let _ = writeln!(text, "{} pending:", counted_verb(report.errors.len(), "pod", "stays", "stay"));
    }
    let mut by_reason: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for (pod, error) in &report.errors {
        by_reason.entry(error).or_default().push(pod);
    }
    for (error, pods) in by_reason {
        let names: Vec<String> = pods.iter().map(|pod| (*pod).clone()).collect();
        let _ = writeln!(text, "  {}: {error}", at_most(&names, 3));
        for reason in report.reasons.get(pods[0]).into_iter().flatten() {
            let _ = writeln!(text, "    {}", funnel(reason));
        }
    }
}

/// One pod: where it goes and why.
pub(crate) fn explanation(explained: &Explained<'_>) -> String {
    let Explained { pod, existing_node, new_node_claim, error, reasons } = explained;
    if let Some(node) = existing_node {
        return format!("{pod} goes to the existing node {node}.\n");
    }
    if let Some(ClaimReport { node_pool, instance_types, price, zone, capacity_type, pods, .. }) =
        new_node_claim
    {
        return format!(
            "{pod} goes to a new node of NodePool {node_pool}, with {} in all.\n\
             The cheapest of {} is {} in {zone} ({capacity_type}) for {}.\n",
            counted(pods.len(), "pod"),
            counted(instance_types.len(), "type"),
            instance_types.first().map_or("none", String::as_str),
            human::money(*price, Per::Hour),
        );
    }
    let mut text = format!("{pod} stays pending: {}\n", error.unwrap_or_default());
    for reason in *reasons {
        let _ = writeln!(text, "  {}", funnel(reason));
    }
    text
}

/// `default: 1340 types → kubernetes.io/arch 944 → fits 12 → available 0; nearest: …`.
fn funnel(reason: &PoolReason) -> String {
    let mut steps = reason.funnel.iter();
    let mut text = format!("{}: ", reason.node_pool);
    if let Some(first) = steps.next() {
        let _ = write!(text, "{} {}", first.left, first.step);
    }
    for step in steps {
        let _ = write!(text, " → {} {}", step.step, step.left);
    }
    if let Some(nearest) = &reason.nearest {
        let _ = write!(text, "; {nearest}");
    }
    text
}
