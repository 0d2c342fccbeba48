//! Launches: the best offering first, and the next one at once if Azure does not have it.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::azure::AKSNodeClass;
use api::names::events::azure::NODE_CLASS_RESOLUTION_ERROR;
use api::names::labels;
use api::names::reasons::azure as reasons;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use cluster::instance_types::{InstanceType, Wanted};
use runtime::events::About;
use units::Resources;

use super::Inner;
use super::background::{Made, cut, ended};
use super::interface::Interface;
use crate::class::Class;
use crate::instance::{launch_annotations, node_claim, settled_labels};
use crate::launch::Choice;
use crate::launch_errors::{Attempt, Meaning, Refusal};
use crate::node_class::readiness;
use crate::ranking::{Request, rank, wants_ultra_ssd};
use crate::sku::Sku;
use crate::unavailable::Asked;
use crate::vm::Instance;

/// How long a condition's message is at most, in bytes.
const LONGEST: usize = 1200;
/// How many offerings are tried for one claim before it is given up for now.
const MOST_ATTEMPTS: usize = 20;

/// What was chosen for a claim; the processors are taken from the quota.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) instance_type: InstanceType,
    pub(super) sku: Arc<Sku>,
    pub(super) zone: String,
    pub(super) capacity_type: String,
    pub(super) ultra_ssd: bool,
}

impl Chosen {
    /// As bodies of machines want to see it.
    pub(super) fn choice(&self) -> Choice<'_> {
        Choice {
            instance_type: &self.instance_type,
            sku: &self.sku,
            capacity_type: &self.capacity_type,
            zone: &self.zone,
            ultra_ssd: self.ultra_ssd,
        }
    }

    /// As refusals are about it.
    pub(super) fn attempt(&self) -> Attempt<'_> {
        Attempt { sku: &self.sku, zone: &self.zone, capacity_type: &self.capacity_type }
    }

    fn asked(&self) -> Asked<'_> {
        Asked::of(&self.sku, &self.zone, &self.capacity_type)
    }

    fn key(&self) -> (String, String, String) {
        (self.sku.name.clone(), self.zone.clone(), self.capacity_type.clone())
    }
}

/// A machine that is to be made.
pub(super) struct Order<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) class: Class<'a>,
    pub(super) chosen: &'a Chosen,
}

impl Order<'_> {
    /// The name of the claim.
    pub(super) fn name(&self) -> &str {
        claim_name(self.claim)
    }
}

/// Why a machine was not made.
pub(super) enum Refused {
    /// Azure does not have this one; perhaps it has another.
    Offering(Error),
    /// Nothing else would help.
    Entirely(Error),
}

impl Inner {
    /// Launches a machine for a claim.
    pub(super) async fn launch(self: &Arc<Self>, claim: &NodeClaim) -> Result<NodeClaim, Error> {
        let object = self.class_for_claim(claim)?;
        readiness(&object)?;
        let is_machine = self.setup.settings.provision_mode.is_machine_api();
        let goal = self.goal(&object.spec, claim, is_machine);
        let existing =
            if is_machine { self.existing_machine(claim).await } else { self.existing_vm(claim).await };
        let made = match existing.map_err(creation_failed)? {
            Some(made) => made,
            None => self.attempts(claim, &object).await.map_err(creation_failed)?,
        };
        let instance = made.instance.clone();
        if label(claim, labels::NODEPOOL).is_some() {
            self.follow(claim, made);
        } else if let Err(error) = ended(made.end).await {
            // Nobody would look after a claim of its own: it is told now.
            self.known.lock().quota.give_back(claim_name(claim));
            self.delete_instance(&instance).await.unwrap_or_else(|error| {
                tracing::error!(error = %error, "failed to delete a machine that came to nothing");
            });
            return Err(creation_failed(error));
        }
        let now = self.setup.clock.now();
        // The machine is there: that its type is not known now must not lose it.
        let types = self.types_for_claim(claim, &object).ok();
        let instance_type = types.iter().flat_map(|all| all.iter()).find(|each| each.name == instance.size);
        let mut launched = node_claim(&instance, instance_type, now);
        let known = launched.metadata.labels.get_or_insert_default();
        for (key, value) in settled_labels(claim, &self.sets) {
            known.entry(key).or_insert(value);
        }
        let annotations = launch_annotations(&object.spec, &goal, instance.machine_id.as_deref());
        launched.metadata.annotations = Some(annotations);
        Ok(launched)
    }

    /// The NodeClass of a claim. Without one nobody can launch anything, so that the claim goes.
    fn class_for_claim(&self, claim: &NodeClaim) -> Result<Arc<AKSNodeClass>, Error> {
        self.class(&claim.spec.node_class_ref.name).map_err(|error| {
            if error.is_absent() {
                let message = "Failed resolving NodeClass";
                let event = &NODE_CLASS_RESOLUTION_ERROR;
                self.setup.events.publish(event, About::object(claim), message, &[claim_name(claim)]);
            }
            Error::InsufficientCapacity(format!("resolving node class, {error}"))
        })
    }

    /// Offering after offering, until one is accepted or nothing is left.
    async fn attempts(self: &Arc<Self>, claim: &NodeClaim, object: &AKSNodeClass) -> Result<Made, Error> {
        let mut tried = BTreeSet::new();
        let mut last: Option<Error> = None;
        let mut interface = Interface::of(claim_name(claim));
        let result = loop {
            let chosen = match self.choose(claim, object) {
                Ok(chosen) => chosen,
                // What Azure said last is more telling than that nothing is left.
                Err(error) => break Err(last.unwrap_or(error)),
            };
            if !tried.insert(chosen.key()) || tried.len() > MOST_ATTEMPTS {
                self.known.lock().quota.give_back(claim_name(claim));
                break Err(last.unwrap_or_else(|| create("the same offering was refused twice")));
            }
            let order = Order { claim, class: Class::from(object), chosen: &chosen };
            let made = if self.setup.settings.provision_mode.is_machine_api() {
                self.make_machine(&order).await
            } else {
                self.make_vm(&order, &mut interface).await
            };
            match made {
                Ok(made) => {
                    self.known.lock().quota.accepted(claim_name(claim), self.setup.clock.now());
                    break Ok(made);
                }
                Err(refused) => {
                    self.known.lock().quota.give_back(claim_name(claim));
                    match refused {
                        Refused::Offering(error) => last = Some(error),
                        Refused::Entirely(error) => break Err(error),
                    }
                }
            }
        };
        if result.is_err() && interface.may_be_there() {
            self.delete_interface_if_there(interface.name()).await;
        }
        self.delete_reserved_later(interface);
        result
    }

    /// Chooses the best offering, and takes its processors from the quota.
    fn choose(&self, claim: &NodeClaim, object: &AKSNodeClass) -> Result<Chosen, Error> {
        let types = self.types_for_claim(claim, object)?;
        let requests: Resources =
            claim.spec.resources.requests.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        let mut wanted = Wanted::new(&claim.spec.requirements, &self.sets)
            .map_err(|reason| create(&format!("reading the requirements of the claim, {reason:?}")))?;
        let ultra_ssd = wants_ultra_ssd(&mut wanted);
        loop {
            let moment = self.moment();
            let mut request = Request {
                wanted: &mut wanted,
                requests: &requests,
                seed: seed(self.setup.seed, claim_name(claim)),
            };
            let ranking = rank(&types, &mut request, &moment.catalogue, &moment.market());
            let (instance_type, offering) = ranking.best()?;
            let sku = moment.catalogue.get(&instance_type.name).cloned();
            let sku = sku.ok_or_else(|| create("the size is not offered any more"))?;
            let value = |key: &str| offering.value(key).unwrap_or_default().to_owned();
            let chosen = Chosen {
                instance_type: instance_type.clone(),
                sku,
                zone: value(labels::ZONE),
                capacity_type: value(labels::CAPACITY_TYPE),
                ultra_ssd,
            };
            let why = ranking.why();
            if !why.is_empty() {
                tracing::debug!(
                    NodeClaim = claim_name(claim),
                    skipped = why,
                    "some instance types were skipped"
                );
            }
            // Others may have taken them since we looked.
            let now = self.setup.clock.now();
            if self.known.lock().quota.take(claim_name(claim), &chosen.asked(), now).is_ok() {
                return Ok(chosen);
            }
        }
    }

    /// Notes what a refusal says about what Azure has, and about how much of it may be used.
    pub(super) fn note(&self, chosen: &Chosen, refusal: &Refusal<'_>, meaning: &Meaning) {
        let now = self.setup.clock.now();
        meaning.apply(&chosen.sku, &mut self.unavailable.lock(), now);
        if refusal.is_about_quota() {
            self.known.lock().quota.refused(&chosen.asked(), refusal.text);
        }
    }

    /// What a claim can choose from.
    pub(super) fn types_for_claim(
        &self,
        claim: &NodeClaim,
        object: &AKSNodeClass,
    ) -> Result<Arc<[InstanceType]>, Error> {
        let types = self.types(object).map_err(|error| Error::Create {
            reason: reasons::INSTANCE_TYPE_RESOLUTION_FAILED.to_owned(),
            message: error.to_string(),
        })?;
        match (&self.setup.overlays, label(claim, labels::NODEPOOL)) {
            (Some(overlays), Some(pool)) => overlays.apply(pool, &types),
            _ => Ok(types),
        }
    }

    /// A machine as a claim, with as much as is known of its type.
    pub(super) fn as_claim(&self, instance: &Instance) -> NodeClaim {
        let class = instance.node_pool.as_deref().and_then(|pool| {
            let state = self.setup.cluster.read();
            let pool = state.node_pools.named(pool)?;
            Some(pool.spec.template.spec.node_class_ref.name.clone())
        });
        let types = class.and_then(|name| self.class(&name).ok()).and_then(|class| self.types(&class).ok());
        let instance_type =
            types.as_deref().and_then(|all| all.iter().find(|each| each.name == instance.size));
        node_claim(instance, instance_type, self.setup.clock.now())
    }
}

/// A failure without a reason of its own.
pub(super) fn create(message: &str) -> Error {
    Error::Create { reason: reasons::CREATE_INSTANCE_FAILED.to_owned(), message: cut(message, LONGEST) }
}

/// What a claim is told; that there is no capacity stays what it is, since the claim goes then.
fn creation_failed(error: Error) -> Error {
    match error {
        Error::InsufficientCapacity(_) | Error::NodeClassNotReady(_) | Error::Unevaluated(_) => error,
        Error::Create { reason, message } => Error::Create { reason, message: cut(&message, LONGEST) },
        error => create(&error.to_string()),
    }
}

pub(super) fn claim_name(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn label<'a>(claim: &'a NodeClaim, key: &str) -> Option<&'a str> {
    claim.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Differs between claims, so that machines spread over zones.
fn seed(seed: u64, claim: &str) -> u64 {
    claim.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
