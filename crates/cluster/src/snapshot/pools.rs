//! NodePools as the engine's templates, and what their limits leave.

use std::collections::{BTreeMap, BTreeSet};

use api::names::{conditions, labels, resources};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::shared::{Condition, ConditionStatus, Operator};
use api::validation::node_pool;
use engine::model::{Limit, Pool, Unused, UnusedPool};
use engine::resources::{Amounts, capacity};
use units::{Format, Quantity, Resources};

use super::Builder;
use crate::instance_types::InstanceType;
use crate::reason::{Ignored, Reason};
use crate::state_node::{StateNode, check_node_class, claim_provider_id, convert_taints};

impl<'a> Builder<'a> {
    /// The pools that may get new nodes, in the order in which they are tried.
    pub(super) fn pools(&mut self, states: &[StateNode<'a>]) {
        let mut pools: Vec<&NodePool> = self.view.node_pools.clone();
        let weight = |pool: &NodePool| pool.spec.weight.unwrap_or(0);
        pools.sort_by(|a, b| (weight(b), name(b)).cmp(&(weight(a), name(a))));
        let used = self.used_by_pool(states);
        let mut seen = BTreeSet::new();
        for pool in pools {
            let checked = if seen.insert(name(pool)) {
                self.check_pool(pool)
            } else {
                Err(Reason::Duplicate { field: "metadata.name", value: name(pool).into() })
            };
            match checked.and_then(|()| self.pool(pool, used.get(name(pool)))) {
                Ok(converted) => self.tables.snapshot.pools.push(converted),
                Err(reason) => {
                    let unused = unused(pool, &reason).map(|why| UnusedPool { name: name(pool).into(), why });
                    self.tables.snapshot.unused_pools.extend(unused);
                    let name = name(pool).into();
                    self.ignored.push(Ignored { kind: "NodePool", namespace: None, name, reason });
                }
            }
        }
    }

    /// Whether a pool may get new nodes. One without a status was written by hand, so it is validated here.
    fn check_pool(&self, pool: &NodePool) -> Result<(), Reason> {
        check_node_class(&pool.spec.template.spec.node_class_ref, self.options.provider)?;
        if pool.spec.replicas.is_some() {
            return Err(Reason::Static);
        }
        let known = pool.status.as_ref().map_or(&[][..], |status| &status.conditions);
        if known.is_empty() {
            node_pool::validate(name(pool), &pool.spec, &self.tables.labels)?;
        } else {
            let ready = known.iter().find(|condition| condition.type_ == conditions::READY);
            if ready.is_none_or(|ready| ready.status != ConditionStatus::True) {
                let message = ready.map(|ready| ready.message.clone()).filter(|text| !text.is_empty());
                return Err(Reason::NotReady(unhealthy(pool).map(message_of).or(message)));
            }
        }
        if pool.metadata.deletion_timestamp.is_some() { Err(Reason::Deleting) } else { Ok(()) }
    }

    fn pool(&mut self, pool: &NodePool, used: Option<&Amounts>) -> Result<Pool, Reason> {
        let catalogue = Some(self.catalogue_of(name(pool)).ok_or(Reason::NoInstanceTypes)?);
        let template = &pool.spec.template;
        let class = &template.spec.node_class_ref;
        let class_label = format!("{}/{}", class.group, class.kind.to_lowercase());
        // Daemons may select nodes that are registered and initialised; a new node will be.
        let simulated = [
            (labels::NODEPOOL, name(pool)),
            (&*class_label, &*class.name),
            (labels::REGISTERED, "true"),
            (labels::INITIALIZED, "true"),
        ];
        let own = template.metadata.labels.iter().flatten().map(|(key, value)| (&**key, &**value));
        let requirements =
            self.tables.requirements(&template.spec.requirements, "spec.template.spec.requirements")?;
        let own = self.tables.node_labels(own)?;
        let simulated = self.tables.node_labels(simulated)?;
        let universe = &mut self.tables.snapshot.universe;
        let declared = universe.intersect(requirements, own);
        let requirements = universe.intersect(declared, simulated);
        let mut limits = Vec::new();
        for (resource, limit) in pool.spec.limits.iter().flatten() {
            let resource = self.tables.resource(resource)?;
            let used = used.map_or(0, |used| used.get(resource));
            let bound = capacity(resource, *limit);
            limits.push(Limit { resource, bound, remaining: bound.saturating_sub(used) });
        }
        Ok(Pool {
            name: name(pool).into(),
            requirements,
            declared,
            taints: self.tables.taints(convert_taints(template.spec.taints.as_deref())),
            limits,
            catalogue,
        })
    }

    /// What the nodes of each pool have in all, and what its claims may become that are not launched yet; nodes on
    /// their way out count only where that is asked for.
    fn used_by_pool(&mut self, states: &[StateNode<'a>]) -> BTreeMap<&'a str, Amounts> {
        let pools = self.view.node_pools.iter().filter(|pool| pool.spec.limits.is_some());
        let limited: BTreeSet<&str> = pools.map(|pool| name(pool)).collect();
        let mut used = BTreeMap::<&str, Amounts>::new();
        let leaving_count = self.options.leaving_count;
        for state in states.iter().filter(|state| leaving_count || !state.is_marked_for_deletion()) {
            if !limited.contains(state.pool()) {
                continue;
            }
            // A resource without a number is in no limit.
            if let Ok(capacity) = self.tables.capacity(&state.capacity()) {
                used.entry(state.pool()).or_default().add(&capacity);
            }
        }
        for claim in &self.view.node_claims {
            if let Some(pool) = limited.get(pool_of(claim)).filter(|_| self.is_launching(claim))
                && let Ok(most) = self.tables.capacity(&most(claim, self.options.instance_types.of(pool)))
            {
                used.entry(pool).or_default().add(&most);
            }
        }
        used
    }

    /// Whether a claim will become a node of which nothing is known yet.
    fn is_launching(&self, claim: &NodeClaim) -> bool {
        claim_provider_id(claim).is_empty()
            && claim.metadata.deletion_timestamp.is_none()
            && check_node_class(&claim.spec.node_class_ref, self.options.provider).is_ok()
    }
}

/// The pool of a claim.
fn pool_of(claim: &NodeClaim) -> &str {
    claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL)).map_or("", |name| name)
}

/// The most that a claim may become of the types that it names, itself as one node included.
fn most(claim: &NodeClaim, types: &[InstanceType]) -> Resources {
    let requirements = claim.spec.requirements.iter();
    let named = requirements.filter(|it| it.key == labels::INSTANCE_TYPE && it.operator == Operator::In);
    let named: Vec<&String> = named.flat_map(|it| &it.values).collect();
    let mut most = Resources::new();
    for it in types.iter().filter(|it| named.contains(&&it.name)) {
        let overrides = it.offerings.iter().filter_map(|offering| offering.capacity_override.as_ref());
        for (name, amount) in [&it.capacity].into_iter().chain(overrides).flatten() {
            if most.amount(name.as_str()) < *amount {
                most.set(name.clone(), *amount);
            }
        }
    }
    most.set(resources::NODES, Quantity::from_units(1, Format::DecimalSi));
    most
}

/// Why a pool gets no new nodes, for those who wait for one. One whose name is taken is not told apart from the other.
fn unused(pool: &NodePool, reason: &Reason) -> Option<Unused> {
    Some(match reason {
        Reason::Duplicate { .. } => return None,
        Reason::Static => Unused::Static,
        Reason::Deleting => Unused::Deleting,
        Reason::NoInstanceTypes => Unused::NoInstanceTypes,
        Reason::OtherProvider { found, .. } => Unused::OtherProvider(found.as_str().into()),
        Reason::NotReady(message) => match unhealthy(pool) {
            Some(condition) if condition.type_ == conditions::node_pool::VALIDATION_SUCCEEDED => {
                Unused::Invalid(message_of(condition).into())
            }
            _ => Unused::NotReady(message.as_deref().map(Into::into)),
        },
        other => Unused::Invalid(other.to_string().into()),
    })
}

/// The first condition that keeps a pool from being ready; `Ready` itself only says which it is.
fn unhealthy(pool: &NodePool) -> Option<&Condition> {
    let known = pool.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let of = |type_: &&str| known.iter().find(|condition| condition.type_ == **type_);
    conditions::node_pool::DEPENDENTS.iter().filter_map(of).find(|it| it.status == ConditionStatus::False)
}

fn message_of(condition: &Condition) -> String {
    let Condition { type_, reason, message, .. } = condition;
    if message.is_empty() || message == reason {
        format!("{type_} is False ({reason})")
    } else {
        message.clone()
    }
}

fn name(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}
