//! What becomes of machines after Azure has accepted them: waited for in the background, so that a launch does not
//! take as long as Azure does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions as _;
use api::names::conditions::node_claim::LAUNCHED;
use api::names::events::azure::ASYNC_PROVISIONING_ERROR;
use api::names::labels;
use api::names::metrics::NODECLAIMS_DISRUPTED;
use api::names::values;
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cloud::Error;
use cluster::state::{Key, Meta as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::events::About;

use super::Inner;
use super::launch::create;
use crate::vm::Instance;

/// How often it is looked whether a claim knows of its launch.
const LOOK: Duration = Duration::from_millis(500);
/// How much of an error an event has at most, in bytes.
const LONGEST: usize = 500;

/// A machine that Azure has accepted.
pub(super) struct Made {
    /// The machine.
    pub(super) instance: Instance,
    /// What is still to be waited for. What Azure does not have is noted by then.
    pub(super) end: BoxFuture<'static, Result<(), Error>>,
}

impl Inner {
    /// Waits for the end of a launch in the background. A machine that came to nothing goes, and its claim too, so that
    /// whoever needs a node tries again.
    pub(super) fn follow(self: &Arc<Self>, claim: &NodeClaim, made: Made) {
        let inner = Arc::clone(self);
        let name = claim.metadata.name.clone().unwrap_or_default();
        let uid = claim.metadata.uid().to_owned();
        let Made { instance, end } = made;
        tokio::spawn(async move {
            if let Err(error) = ended(end).await {
                tracing::error!(NodeClaim = name, error = %error, "failed launching nodeclaim");
                inner.known.lock().quota.give_back(&name);
                inner.give_up(&Key::cluster(&name), &uid, &instance, &error).await;
            }
        });
    }

    async fn give_up(self: &Arc<Self>, key: &Key, uid: &str, instance: &Instance, error: &Error) {
        // Only a claim that knows its machine can say what became of it.
        let claim = loop {
            let found = self.setup.cluster.read().node_claims.get(key).cloned();
            let Some(claim) = found else {
                // Nobody knows of the machine any more, and until it is collected it has its name and its addresses.
                return self.delete_failed(key, instance).await;
            };
            if claim.metadata.uid() != uid {
                return;
            }
            let is_open = claim
                .condition(LAUNCHED)
                .is_none_or(|condition| condition.status == ConditionStatus::Unknown);
            if !is_open {
                break claim;
            }
            tokio::time::sleep(LOOK).await;
        };
        if claim.metadata.deletion_timestamp.is_some() {
            // A machine that is deleted while it is made fails, which is no news; whoever deletes the claim sees to it.
            return;
        }
        let message = format!("Failed to register: {}", cut(&error.to_string(), LONGEST));
        self.setup.events.publish(&ASYNC_PROVISIONING_ERROR, About::object(&*claim), message, &[uid]);
        self.delete_failed(key, instance).await;
        match self.setup.api.delete(&*claim).await {
            Err(error) if !error.is_outrun() => {
                tracing::error!(NodeClaim = &*key.name, error = %error, "failed to delete nodeclaim");
                return;
            }
            _ => {}
        }
        let label = |key: &str| {
            claim.metadata.labels.as_ref().and_then(|all| all.get(key)).map_or("", String::as_str)
        };
        let series = [
            values::AZURE_ASYNC_PROVISIONING,
            label(labels::NODEPOOL),
            label(labels::CAPACITY_TYPE),
            "",
            termination_mode(&claim),
        ];
        self.setup.metrics.add(&NODECLAIMS_DISRUPTED, &series, 1.0);
    }

    /// Starts to delete a machine that came to nothing.
    async fn delete_failed(self: &Arc<Self>, claim: &Key, instance: &Instance) {
        if let Err(error) = self.delete_instance(instance).await
            && !error.is_not_found()
        {
            tracing::error!(NodeClaim = &*claim.name, error = %error, "failed to delete a machine that came to nothing");
        }
    }
}

/// The end of a launch. A panic on the way is an error like any other: the machine must not be paid for without anybody
/// who knows of it.
pub(super) async fn ended(end: BoxFuture<'static, Result<(), Error>>) -> Result<(), Error> {
    let result = AssertUnwindSafe(end).catch_unwind().await;
    result
        .unwrap_or_else(|panic| Err(create(&format!("waiting for the machine panicked, {}", said(&*panic)))))
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

/// How patiently a node is drained, as metrics name it.
fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => values::GRACEFUL,
        Some(period) if period.as_nanos() <= 0 => values::FORCEFUL,
        Some(_) => values::EVENTUAL,
    }
}

/// The beginning of a text, without cutting a character in two.
pub(super) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(longest)])
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 11.2: panics while polling are turned into errors
    #[tokio::test]
    async fn a_panic_while_a_machine_is_waited_for_is_an_error() {
        let fails = || true;
        let end = async move {
            assert!(!fails(), "index out of {}", "bounds");
            Ok(())
        };
        let error = ended(end.boxed()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Create { reason, message }
                if reason == "CreateInstanceFailed" && message.contains("index out of bounds")),
            "{error}"
        );
        assert_eq!(ended(async { Ok(()) }.boxed()).await, Ok(()));
    }

    // azure.md 29: condition message cut / event cut
    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "longe...");
        assert_eq!(cut("äöü", 3), "ä...");
    }
}
