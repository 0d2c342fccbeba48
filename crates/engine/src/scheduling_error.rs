//! Scheduling errors as sentences for users: the NodePool, what binds there, its value, and what would help.
//!
//! The NodePool that came furthest is told in full. The others are summed up by the kind of their reason:
//!
//! ```text
//! NodePool default: its limit of 100 CPU leaves 95, and the smallest node that fits the pod has 128; raise
//! spec.limits.cpu to at least 133. 8 other NodePools: taints not tolerated
//! ```

mod labels;
mod limits;
mod topology;
mod types;

use std::fmt::Write;

use units::human;

use crate::explain::Explainer;
use crate::intern::ResourceId;
use crate::model::{ClassId, PodClass, PoolId, Snapshot, Taint, Unused, UnusedPool};
use crate::solve::{Failure, PoolFailure, Unusable, VolumeExcess};
use crate::universe::Universe;

/// How long a sentence may be: two lines.
pub const LONGEST: usize = 240;

/// How much is kept free for those NodePools that there is no room for.
const REST: usize = 36;

/// How much of a text is shown that somebody else wrote.
const QUOTED: usize = 110;

/// How many names a list shows.
const SHOWN: usize = 3;

/// Tells why pods of one plan stay pending.
pub struct SchedulingErrors<'a> {
    explainer: Explainer<'a>,
    unusable: &'a [Unusable],
}

/// How far a pod came in a pool. Where it came further, less has to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// The pool is not for pods like this, whatever it is changed to.
    Never,
    Deleting,
    Taints,
    Labels,
    /// Nothing is known about how far it would come.
    Unknown,
    Volumes,
    Topology,
    Types,
    MinValues,
    Limits,
}

/// What there is to say about one pool.
struct Said {
    reached: Reached,
    /// What is said of several pools alike.
    brief: String,
    /// What binds, with its value.
    what: String,
    /// What would help.
    help: String,
}

/// The same with the name of the pool.
type OfPool = (Box<str>, Said);

impl Said {
    fn new(
        reached: Reached,
        brief: impl Into<String>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { reached, brief: brief.into(), what: what.into(), help: help.into() }
    }
}

impl<'a> SchedulingErrors<'a> {
    /// Tells about a plan for a snapshot, given the plan's requirements and the pools that it could not use.
    pub fn new(snapshot: &'a Snapshot, universe: &Universe, unusable: &'a [Unusable]) -> Self {
        Self { explainer: Explainer::new(snapshot, universe), unusable }
    }

    /// Works out funnels for the same plan.
    pub fn explainer(&mut self) -> &mut Explainer<'a> {
        &mut self.explainer
    }

    fn snapshot(&self) -> &'a Snapshot {
        self.explainer.world.snapshot
    }

    fn universe(&self) -> &Universe {
        &self.explainer.world.universe
    }

    /// Why a pod of a class stays pending.
    pub fn sentence(&mut self, class: ClassId, failure: &Failure) -> String {
        let class = &self.snapshot().classes[class.index()];
        let refused: &[(PoolId, PoolFailure)] = match failure {
            Failure::NeedsDevices => {
                return "the pod uses Dynamic Resource Allocation (spec.resourceClaims), which Karpenter does not \
                        support; request the devices as extended resources instead"
                    .to_owned();
            }
            Failure::NoPool => &[],
            Failure::Pools(pools) => pools,
        };
        if let Some(contradiction) = self.contradiction(class) {
            return contradiction;
        }
        let mut said: Vec<OfPool> = Vec::new();
        for (pool, failure) in refused {
            said.push((self.name(*pool), self.pool(*pool, class, failure)));
        }
        let unusable = self.unusable.iter().filter(|it| refused.iter().all(|(pool, _)| *pool != it.pool));
        for unusable in unusable {
            said.push((self.name(unusable.pool), self.unusable(unusable)));
        }
        said.extend(self.snapshot().unused_pools.iter().map(|it| (it.name.clone(), unused(it))));
        if let Some(missing) = self.keep_selected(class, &mut said) {
            return missing;
        }
        // Pools that are not for pods matter only where there are no others.
        if said.iter().any(|(_, said)| said.reached > Reached::Never) {
            said.retain(|(_, said)| said.reached > Reached::Never);
        }
        said.sort_by_key(|(_, said)| std::cmp::Reverse(said.reached));
        summed_up(&said)
    }

    fn name(&self, pool: PoolId) -> Box<str> {
        self.snapshot().pools[pool.index()].name.clone()
    }

    /// Leaves only the pools that a pod asks for by name, if it does. What to say if there is none of them.
    fn keep_selected(&mut self, class: &PodClass, said: &mut Vec<OfPool>) -> Option<String> {
        let (asked, key) = (self.explainer.asked(class), self.snapshot().keys.node_pool);
        let universe = self.universe();
        let wanted = universe.get(universe.find(asked, key)?).members()?;
        let wanted: Vec<&str> = wanted.iter().map(|value| universe.values(key).name(*value)).collect();
        if wanted.is_empty() {
            return None;
        }
        let there: Vec<String> = said.iter().map(|(name, _)| name.to_string()).collect();
        said.retain(|(name, _)| wanted.contains(&&**name));
        said.is_empty().then(|| {
            let help = if there.is_empty() {
                "create it".to_owned()
            } else {
                format!("NodePools that exist: {}", some(&there))
            };
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            format!("the pod asks for NodePool {}, which does not exist; {help}", some(&wanted))
        })
    }

    fn pool(&mut self, pool: PoolId, class: &PodClass, failure: &PoolFailure) -> Said {
        match failure {
            PoolFailure::NodeLimit(shortage) => self.limits(pool, std::slice::from_ref(shortage)),
            PoolFailure::Limits(shortages) => self.limits(pool, shortages),
            PoolFailure::LimitsUnsettled => Said::new(
                Reached::Limits,
                "limits",
                "its limits have room only if the nodes that are being launched turn out small",
                "Karpenter tries again once they are launched",
            ),
            PoolFailure::Taints(taints) => self.taints(class, taints),
            PoolFailure::VolumeLimit(excess) => self.volume_limit(*excess),
            PoolFailure::Requirements(conflict) => self.requirements(class, conflict),
            PoolFailure::Volumes(conflict) => self.volumes(class, conflict),
            PoolFailure::Topology(failure) => self.topology(failure),
            PoolFailure::TopologyConflict(conflict) => self.topology_conflict(conflict),
            PoolFailure::Types(failure) => self.types(pool, class, failure),
            PoolFailure::MinValues(scarce) => {
                self.min_values(scarce, "is left for the pod", "are left for the pod")
            }
            PoolFailure::Truncated(scarce) => {
                let there = "among the 600 cheapest instance types that a NodeClaim can name";
                self.min_values(scarce, &format!("is {there}"), &format!("are {there}"))
            }
            PoolFailure::Reserved(failure) => limits::reserved(*failure),
        }
    }

    fn taints(&self, class: &PodClass, taints: &[Taint]) -> Said {
        let names: Vec<String> = taints.iter().map(ToString::to_string).collect();
        let tolerations = self.snapshot().tolerations.get(class.tolerations.0);
        // A toleration of the same key shows what its author has overlooked.
        let near = tolerations.iter().find_map(|toleration| {
            let taint = taints.iter().find(|taint| toleration.key.as_deref() == Some(&*taint.key))?;
            let only = match toleration.effect {
                Some(effect) if effect != taint.effect => format!("with effect {}", effect.as_str()),
                _ => format!("with value {:?}", toleration.value),
            };
            Some(format!(" (it tolerates {} only {only})", taint.key))
        });
        let (taint, them) = if names.len() == 1 { ("taint", "it") } else { ("taints", "them") };
        Said::new(
            Reached::Taints,
            "taints not tolerated",
            format!("the pod does not tolerate its {taint} {}{}", some(&names), near.unwrap_or_default()),
            format!("add a toleration for {them} to the pod"),
        )
    }

    fn volume_limit(&self, excess: Option<VolumeExcess>) -> Said {
        let what = match excess {
            None => "the pod has more volumes than any of its instance types can attach".to_owned(),
            Some(VolumeExcess { driver, count, limit }) => {
                let driver = self.snapshot().drivers.resolve(u32::from(driver.0));
                format!(
                    "the pod has {count} volumes of {driver}, and its instance types attach at most {limit}"
                )
            }
        };
        Said::new(Reached::Types, "too many volumes for its instance types", what, "use fewer volumes")
    }

    /// An amount with the name of its resource.
    fn quantity(&self, resource: ResourceId, amount: i64) -> String {
        let resources = &self.snapshot().resources;
        human::quantity(resources.name(resource), resources.quantity(resource, amount))
    }

    /// An amount alone.
    fn amount(&self, resource: ResourceId, amount: i64) -> String {
        let resources = &self.snapshot().resources;
        human::amount(resources.name(resource), resources.quantity(resource, amount))
    }
}

/// Why a pool has no part in a plan.
fn unused(pool: &UnusedPool) -> Said {
    let describe = format!("kubectl describe nodepool {} shows its conditions", pool.name);
    match &pool.why {
        Unused::NotReady(None) => Said::new(Reached::Unknown, "not ready", "it is not ready", describe),
        Unused::NotReady(Some(why)) => {
            Said::new(Reached::Unknown, "not ready", format!("it is not ready: {}", quoted(why)), describe)
        }
        Unused::Invalid(why) => {
            let why = why.strip_prefix("invalid value: ").unwrap_or(why);
            Said::new(
                Reached::Unknown,
                "not valid",
                format!("it is not valid: {}", quoted(why)),
                "correct it",
            )
        }
        Unused::NoInstanceTypes => Said::new(
            Reached::Unknown,
            "instance types not known",
            "its instance types are not known",
            "the log of Karpenter says why",
        ),
        Unused::Deleting => {
            let help = "allow the pod on another NodePool";
            Said::new(Reached::Deleting, "being deleted", "it is being deleted", help)
        }
        Unused::OtherProvider(found) => Said::new(
            Reached::Never,
            "of another provider",
            format!("its nodeClassRef is {found}, which this Karpenter does not manage"),
            "",
        ),
        Unused::Static => Said::new(
            Reached::Never,
            "static",
            "it has a fixed number of nodes (spec.replicas), so none is added for pods",
            "raise spec.replicas, or add a NodePool without it",
        ),
    }
}

/// One pool in full, and the others by the kind of their reason, as far as there is room.
fn summed_up(said: &[OfPool]) -> String {
    let Some(((name, first), others)) = said.split_first() else {
        return "there is no NodePool; create one".to_owned();
    };
    let mut groups: Vec<(&str, Vec<&OfPool>)> = Vec::new();
    for other in others {
        match groups.iter_mut().find(|(brief, _)| *brief == other.1.brief) {
            Some((_, alike)) => alike.push(other),
            None => groups.push((&other.1.brief, vec![other])),
        }
    }
    // The more pools a reason is about, the more there is left unsaid without it.
    groups.sort_by_key(|(_, alike)| std::cmp::Reverse(alike.len()));
    let rest = if groups.is_empty() { 0 } else { REST };
    let mut text = format!("NodePool {name}: {}", first.what);
    let with_help = text.chars().count() + 2 + first.help.chars().count();
    if !first.help.is_empty() && with_help + rest <= LONGEST {
        let _ = write!(text, "; {}", first.help);
    }
    let mut text = shortened(&text, LONGEST - rest);
    let mut room = LONGEST.saturating_sub(text.chars().count());
    // First as many groups as possible in brief, then as many of them as possible at length.
    let (mut told, mut untold): (Vec<String>, usize) = (Vec::new(), 0);
    let mut at_length: Vec<(usize, String)> = Vec::new();
    for (position, (brief, alike)) in groups.iter().enumerate() {
        let names: Vec<String> = alike.iter().map(|(name, _)| name.to_string()).collect();
        let (short, long) = match &**alike {
            [(name, said)] => {
                (format!(". NodePool {name}: {brief}"), format!(". NodePool {name}: {}", said.what))
            }
            _ => (
                format!(". {} other NodePools: {brief}", alike.len()),
                format!(". {} other NodePools ({}): {brief}", alike.len(), some(&names)),
            ),
        };
        let kept = if untold == 0 && position + 1 == groups.len() { 0 } else { REST };
        match room.checked_sub(short.chars().count()).filter(|left| *left >= kept) {
            Some(left) => {
                room = left;
                at_length.push((told.len(), long));
                told.push(short);
            }
            None => untold += alike.len(),
        }
    }
    if untold > 0 {
        let (pools, reason) =
            if untold == 1 { ("NodePool", "another reason") } else { ("NodePools", "other reasons") };
        let rest = format!(". {untold} other {pools}: {reason}");
        room = room.saturating_sub(rest.chars().count());
        told.push(rest);
    }
    for (position, long) in at_length {
        let more = long.chars().count().saturating_sub(told[position].chars().count());
        if more <= room {
            room -= more;
            told[position] = long;
        }
    }
    text.extend(told);
    text
}

/// The first of some names, and how many others there are.
fn some(names: &[String]) -> String {
    let first = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{first} and {} more", names.len() - SHOWN) } else { first }
}

/// What somebody else wrote, without its full stop, and not too much of it.
fn quoted(text: &str) -> String {
    shortened(text.trim_end_matches('.'), QUOTED)
}

fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}
