//! What is said beside a plan: what was left out of it. None of it stops the plan.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::LabelSets;
use api::names::labels;
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::instance_types::InstanceType;
use cluster::reason::Ignored;
use cluster::state::State;
use operator::Types;

use super::overlays::Corrected;
use super::provider;
use super::words::{counted, some};

/// Says something.
#[expect(clippy::print_stderr, reason = "warnings go beside the plan")]
pub(super) fn say(warning: &str) {
    eprintln!("{warning}");
}

/// What of a cluster could not be read.
pub(super) fn unreadable(state: &State) -> Vec<String> {
    state
        .unreadable()
        .map(|(kind, key, unreadable)| format!("{} {key}: {}", kind.name(), unreadable.why))
        .collect()
}

/// Says which overlays are not in force.
pub(super) fn overlays(corrected: Option<&Corrected>) {
    for (name, why) in corrected.iter().flat_map(|corrected| &corrected.rejected) {
        say(&format!("warning: NodeOverlay {name}: {why}"));
    }
}

/// Says which objects have no part in a plan. What is the same for many is said once.
pub(super) fn ignored<'i>(all: impl IntoIterator<Item = &'i Ignored>) {
    let mut alike = BTreeMap::<(&str, String), Vec<String>>::new();
    for one in all {
        alike.entry((one.kind, one.reason.to_string())).or_default().push(object_name(one));
    }
    for ((kind, reason), names) in alike {
        match &*names {
            [name] => say(&format!("warning: {kind} {name}: {reason}")),
            names => say(&format!("warning: {} ({}): {reason}", counted(names.len(), kind), some(names))),
        }
    }
}

/// What is wrong with a NodePool, with the fields that events leave out.
pub(super) fn plain(message: &str) -> String {
    const FIELDS: [(&str, &str); 3] = [
        (" in requirements, restricted", " in spec.template.spec.requirements"),
        (" in labels, restricted", " in spec.template.metadata.labels, where it may not be"),
        (" in taints", " in spec.template.spec.taints"),
    ];
    FIELDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// An object as users know it.
pub(super) fn object_name(ignored: &Ignored) -> String {
    match &ignored.namespace {
        Some(namespace) => format!("{namespace}/{}", ignored.name),
        None => ignored.name.to_string(),
    }
}

/// Says what NodePools ask for that instance types do not say, so that nobody looks at it.
pub(super) fn unsaid<'p>(
    provider: Provider,
    pools: impl IntoIterator<Item = &'p NodePool>,
    types: &[InstanceType],
) {
    let known = LabelSets::for_provider(provider);
    let said: BTreeSet<&str> = types
        .iter()
        .flat_map(|each| {
            let of_offerings = each.offerings.iter().flat_map(|offering| &offering.requirements);
            each.requirements.iter().chain(of_offerings).map(|requirement| requirement.key.as_str())
        })
        .collect();
    for pool in pools {
        let asked = pool.spec.template.spec.requirements.iter().map(|asked| known.normalize_key(&asked.key));
        let unsaid =
            asked.filter(|key| *key != labels::NODEPOOL && known.is_well_known(key) && !said.contains(key));
        let unsaid: BTreeSet<String> = unsaid.map(ToOwned::to_owned).collect();
        if !unsaid.is_empty() {
            let unsaid: Vec<String> = unsaid.into_iter().collect();
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            say(&format!(
                "warning: NodePool {name}: spec.template.spec.requirements: the instance types do not say {}, so that \
                 it is not looked at",
                unsaid.join(", ")
            ));
        }
    }
}

/// Says which objects have no part in what becomes of nodes, and of which nodes too little is known.
pub(super) fn of_nodes(state: &State, types: &Types) {
    let pools = provider::others(state.provider(), state.node_pools.values().map(AsRef::as_ref));
    let joined = state.joined();
    ignored(pools.iter().chain(&joined.ignored));
    let mut nodes = Vec::new();
    let mut unknown = BTreeSet::new();
    for node in joined.nodes.iter().filter(|node| node.is_managed()) {
        let name = node.label(labels::INSTANCE_TYPE);
        let known = types.get(node.pool());
        if known.is_some_and(|known| known.iter().all(|it| it.name != name)) {
            nodes.push(node.name().to_owned());
            unknown.insert(format!("{name:?}"));
        }
    }
    if !nodes.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().collect();
        say(&format!(
            "warning: {} ({}) of instance types that are not known ({}): they count as costing nothing and are not \
             consolidated; --instance-types gives types and prices",
            counted(nodes.len(), "node"),
            some(&nodes),
            some(&unknown),
        ));
    }
}
