//! `karpenter plan --disruption`: what would be disrupted now, and what keeps the other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use comfy_table::CellAlignment;
use operator::disruption::preview::{Allowance, Keeps, Move, Preview};
use serde_json::{Value, json};
use units::human::{self, Per};

use super::words::{after, counted, counted_verb, prices, some};
use crate::terminal;

/// How many details a line shows, and how long they may be together.
const DETAILS: usize = 3;
const DETAILS_LENGTH: usize = 200;

/// For people.
pub(super) fn table(preview: &Preview) -> String {
    let mut text = String::new();
    moves(&mut text, &preview.moves);
    let saved: f64 = preview.moves.iter().map(|it| it.savings).sum();
    let evictions: usize = preview.moves.iter().map(|it| it.evictions).sum();
    let _ = writeln!(text, "\n{}, {}.", prices(preview.price, saved), counted(evictions, "eviction"));
    budgets(&mut text, &preview.budgets);
    kept(&mut text, &preview.kept);
    text
}

/// For programs.
pub(super) fn as_json(preview: &Preview) -> Value {
    let moves = preview.moves.iter().map(|it| {
        json!({
            "reason": it.reason, "causes": it.causes, "decision": it.decision, "nodes": it.nodes,
            "replacements": it.replacements, "savings": it.savings, "evictions": it.evictions,
        })
    });
    let budgets = preview.budgets.iter().map(|it| {
        json!({
            "nodePool": it.pool, "reason": it.reason, "allowed": it.allowed, "by": it.by, "nodes": it.nodes,
            "disrupting": it.disrupting,
        })
    });
    let kept: BTreeMap<&String, String> =
        preview.kept.iter().map(|(node, keeps)| (node, keeps.to_string())).collect();
    let saved: f64 = preview.moves.iter().map(|it| it.savings).sum();
    json!({
        "moves": moves.collect::<Value>(), "kept": kept, "budgets": budgets.collect::<Value>(),
        "price": preview.price, "priceAfter": after(preview.price, saved),
    })
}

/// Moves that look alike.
#[derive(Default)]
struct Alike {
    nodes: Vec<String>,
    new_nodes: usize,
    evictions: usize,
    savings: f64,
}

/// A line of numbers for each kind of move, and below it which nodes go and what comes for them.
fn moves(text: &mut String, all: &[Move]) {
    if all.is_empty() {
        text.push_str("Nothing would be disrupted now.\n");
        return;
    }
    let mut lines: Vec<([String; 4], Alike)> = Vec::new();
    for it in all {
        let causes = it.causes.iter().cloned().collect::<Vec<_>>().join(", ");
        let key = [it.reason.to_owned(), causes, it.decision.to_owned(), new_nodes(&it.replacements)];
        let place = lines.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            lines.push((key, Alike::default()));
            lines.len() - 1
        });
        let alike = &mut lines[place].1;
        alike.nodes.extend(it.nodes.iter().cloned());
        alike.new_nodes += it.replacements.len();
        alike.evictions += it.evictions;
        alike.savings += it.savings;
    }
    let mut table = terminal::table(["REASON", "ACTION", "NODES", "NEW", "EVICTIONS", "SAVES"]);
    for ([reason, _, decision, _], alike) in &lines {
        table.add_row([
            reason.clone(),
            decision.clone(),
            alike.nodes.len().to_string(),
            alike.new_nodes.to_string(),
            alike.evictions.to_string(),
            human::money(alike.savings, Per::Hour),
        ]);
    }
    for column in 2..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Its columns are short, so that each row is one line.
    let table = table.trim_fmt();
    let mut rows = table.lines();
    let _ = writeln!(text, "{}", rows.next().unwrap_or_default());
    for (row, ([_, causes, _, types], alike)) in rows.zip(lines) {
        let causes = if causes.is_empty() { String::new() } else { format!("{causes}: ") };
        let come = if types.is_empty() { String::new() } else { format!(" → {types}") };
        let _ = writeln!(text, "{row}\n  {causes}{}{come}", some(&alike.nodes));
    }
}

/// What new nodes can become: the cheapest type of each, and how many others there are.
pub(super) fn new_nodes(types: &[Vec<String>]) -> String {
    let each = types.iter().map(|types| match &**types {
        [] => "as the NodePool asks".to_owned(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} or {}", counted(others.len(), "other")),
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Reasons for which a pool allows the same are one line.
fn budgets(text: &mut String, all: &[Allowance]) {
    if all.is_empty() {
        return;
    }
    let mut lines = BTreeMap::<(&str, Option<i32>, &str, usize, usize), Vec<&str>>::new();
    for it in all {
        let key = (&*it.pool, it.allowed, &*it.by, it.nodes, it.disrupting);
        lines.entry(key).or_default().push(it.reason);
    }
    text.push_str("\nBudgets:\n");
    for ((pool, allowed, by, nodes, disrupting), reasons) in lines {
        let allowed = allowed.map_or("any number".to_owned(), |allowed| allowed.to_string());
        let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
        let _ = writeln!(
            text,
            "  {pool}, {}: {allowed} of {} at the same time, {disrupting} disrupted now{by}",
            reasons.join(", "),
            counted(nodes, "node"),
        );
    }
}

/// Nodes that stay for alike reasons are one line.
fn kept(text: &mut String, kept: &BTreeMap<String, Keeps>) {
    if kept.is_empty() {
        return;
    }
    let mut lines = BTreeMap::<Vec<(Vec<&str>, &str)>, (Vec<String>, Vec<BTreeSet<&str>>)>::new();
    for (node, keeps) in kept {
        let all = keeps.all();
        let key = all.iter().map(|(reasons, why)| (reasons.clone(), &*why.text)).collect();
        let (nodes, details) = lines.entry(key).or_default();
        nodes.push(node.clone());
        details.resize(all.len(), BTreeSet::new());
        for (details, (_, why)) in details.iter_mut().zip(all) {
            details.extend(Some(&*why.detail).filter(|detail| !detail.is_empty()));
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, (nodes, _))| std::cmp::Reverse(nodes.len()));
    let _ = writeln!(text, "\n{}:", counted_verb(kept.len(), "node", "stays", "stay"));
    for (whys, (nodes, details)) in lines {
        let each = whys.iter().zip(&details).map(|((reasons, why), details)| {
            let colon = if reasons.is_empty() { "" } else { ": " };
            format!("{}{colon}{why}{}", reasons.join(", "), shown(details))
        });
        let _ =
            writeln!(text, "  {} ({}): {}", nodes.len(), some(&nodes), each.collect::<Vec<_>>().join("; "));
    }
}

/// The first details in brackets, and how many others there are.
fn shown(details: &BTreeSet<&str>) -> String {
    let mut length = 0;
    let fits = |detail: &&&str| {
        let is_first = length == 0;
        length += detail.len();
        is_first || length <= DETAILS_LENGTH
    };
    let first: Vec<&str> = details.iter().take(DETAILS).take_while(fits).copied().collect();
    match details.len() - first.len() {
        _ if first.is_empty() => String::new(),
        0 => format!(" ({})", first.join("; ")),
        more => format!(" ({} and {more} more)", first.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_shown_as_far_as_a_line_has_room() {
        let long = "x".repeat(300);
        for (details, expected) in [
            (vec![], String::new()),
            (vec!["a"], " (a)".to_owned()),
            (vec!["a", "b", "c"], " (a; b; c)".to_owned()),
            (vec!["a", "b", "c", "d"], " (a; b; c and 1 more)".to_owned()),
            (vec!["a", &long], " (a and 1 more)".to_owned()),
            (vec![&long], format!(" ({long})")),
        ] {
            assert_eq!(shown(&details.into_iter().collect()), expected);
        }
    }

    #[test]
    fn moves_that_look_alike_are_one_line() {
        let one = |name: &str, type_: &str| Move {
            reason: "Drifted",
            causes: ["AMIDrift".to_owned()].into(),
            decision: "replace",
            nodes: vec![name.to_owned()],
            replacements: vec![vec![type_.to_owned()]],
            savings: 0.25,
            evictions: 2,
        };
        let mut text = String::new();
        moves(&mut text, &[one("a", "m5.large"), one("b", "m5.large"), one("c", "c5.large")]);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "REASON ACTION NODES NEW EVICTIONS SAVES",
            "Drifted replace 2 2 4 $0.50/hour",
            "AMIDrift: a, b → m5.large",
            "Drifted replace 1 1 2 $0.25/hour",
            "AMIDrift: c → c5.large",
        ];
        assert_eq!(lines, expected, "{text}");
    }
}
