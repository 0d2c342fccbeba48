//! AKS machines that are collected for a moment and made with one request each kind.
//!
//! ```text
//!   put(machine) ──► the open window, by what machines have in common ──(idle, too old or full)──► a PUT each kind
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::Setup;
use crate::arm::{Client, Error, MachinePool, PutMachine};
use crate::machine::batch::{Item, Key, MOST, Refusal, header, refusal};
use crate::settings::Batch;

type Answer = Result<(), Error>;
type Waiting = (Item, oneshot::Sender<Answer>);

/// Collects machines. Clones share them.
#[derive(Clone)]
pub(crate) struct Batches(Arc<Inner>);

struct Inner {
    client: Client,
    pool: MachinePool,
    window: Batch,
    open: Mutex<Option<Open>>,
}

/// Machines that wait for others.
struct Open {
    first: Instant,
    last: Instant,
    full: Arc<Notify>,
    groups: BTreeMap<Key, Vec<Waiting>>,
}

impl Batches {
    pub(super) fn new(setup: &Setup) -> Self {
        let settings = &setup.settings;
        let pool = MachinePool {
            group: settings.cluster_resource_group.clone(),
            cluster: settings.cluster_name.clone(),
            pool: settings.aks_machines_pool_name.clone(),
        };
        let client = setup.client.clone();
        Self(Arc::new(Inner { client, pool, window: settings.batch, open: Mutex::new(None) }))
    }

    /// Where machines are, as part of what they have in common.
    pub(super) fn pool_path(&self) -> String {
        let MachinePool { group, cluster, pool } = &self.0.pool;
        format!("{group}/{cluster}/{pool}")
    }

    /// Makes a machine together with others; done as soon as AKS has accepted it.
    pub(super) async fn put(&self, item: Item) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let now = Instant::now();
        let is_new = {
            let mut open = self.0.open.lock();
            let is_new = open.is_none();
            let window = open.get_or_insert_with(|| Open {
                first: now,
                last: now,
                full: Arc::new(Notify::new()),
                groups: BTreeMap::new(),
            });
            window.last = now;
            let group = window.groups.entry(item.key.clone()).or_default();
            group.push((item, sender));
            if group.len() >= self.0.most() {
                window.full.notify_one();
            }
            is_new
        };
        if is_new {
            // Whoever came first may give up waiting; the others must not.
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.collect().await });
        }
        let gone = || Err(Error::new("PUT machines", "", "batcher shutting down"));
        receiver.await.unwrap_or_else(|_| gone())
    }
}

impl Inner {
    /// How many machines one request makes.
    fn most(&self) -> usize {
        self.window.size.clamp(1, MOST)
    }

    async fn collect(self: Arc<Self>) {
        let groups = loop {
            let (due, full) = {
                let mut open = self.open.lock();
                let Some(window) = open.as_ref() else { return };
                let due = (window.last + self.window.idle).min(window.first + self.window.longest);
                let is_full = window.groups.values().any(|group| group.len() >= self.most());
                if is_full || due <= Instant::now() {
                    break open.take().map(|window| window.groups).unwrap_or_default();
                }
                (due, Arc::clone(&window.full))
            };
            // Whichever comes first.
            drop(tokio::time::timeout_at(due, full.notified()).await);
        };
        for group in groups.into_values() {
            let mut rest = group;
            // Many may have come before anybody looked.
            while !rest.is_empty() {
                let later = rest.split_off(rest.len().min(self.most()));
                let part = std::mem::replace(&mut rest, later);
                let inner = Arc::clone(&self);
                // One that panics takes its own machines along and no others.
                tokio::spawn(async move { inner.send(part).await });
            }
        }
    }

    async fn send(&self, group: Vec<Waiting>) {
        let Some((first, _)) = group.first() else { return };
        let batch = header(group.iter().map(|(item, _)| item));
        let with = PutMachine { batch: Some(batch), if_match: None };
        let begun = self.client.put_machine(&self.pool, &first.own.machine_name, &first.shared, &with).await;
        let names: Vec<&str> = group.iter().map(|(item, _)| item.own.machine_name.as_str()).collect();
        let answers = answers(begun.map(drop), &names);
        for ((_, sender), answer) in group.into_iter().zip(answers) {
            // Nobody may wait for it any more.
            drop(sender.send(answer));
        }
    }
}

/// What the answer to a request means for each of its machines.
fn answers(answer: Answer, names: &[&str]) -> Vec<Answer> {
    let Err(error) = answer else { return names.iter().map(|_| Ok(())).collect() };
    if error.status.is_none() {
        return names.iter().map(|_| Err(error.clone())).collect();
    }
    match refusal(&error, names) {
        Refusal::Some(refused) => names
            .iter()
            .map(|name| match refused.get(*name) {
                Some(detail) => Err(Error {
                    code: detail.code.clone(),
                    message: detail.message.clone(),
                    details: Vec::new(),
                    ..error.clone()
                }),
                None => Ok(()),
            })
            .collect(),
        Refusal::All => names.iter().map(|_| Err(error.clone())).collect(),
        Refusal::Unclear(why) => {
            let unclear = Error { message: format!("{why} ({})", error.message), ..error };
            names.iter().map(|_| Err(unclear.clone())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Detail;

    fn refused(status: u16, code: &str, message: &str, details: Vec<Detail>) -> Error {
        let error = Error::new("PUT machines/a", code, message);
        Error { status: Some(status), details, ..error }
    }

    fn codes(error: Error) -> Vec<String> {
        let text = |answer: Answer| answer.err().map_or_else(|| "made".to_owned(), |error| error.code);
        answers(Err(error), &["a", "b"]).into_iter().map(text).collect()
    }

    // azure.md 11.4: error contract; 25.8: partial failures, malformed body → all fail
    #[test]
    fn each_machine_gets_its_own_answer_where_azure_says_which() {
        let detail = |target: &str| Detail {
            code: "SkuNotAvailable".to_owned(),
            message: "m".to_owned(),
            target: Some(target.to_owned()),
        };
        let some = refused(400, "BatchMachineClientError", "m", vec![detail("b")]);
        assert_eq!(codes(some), ["made", "SkuNotAvailable"]);
        let text = r#"{"details":[{"code":"InternalError","message":"m","target":"a"}]}"#;
        let some = refused(500, "BatchMachineInternalServerError", text, vec![]);
        assert_eq!(codes(some), ["InternalError", "made"]);
        let unknown = refused(400, "BatchMachineClientError", "m", vec![detail("c")]);
        assert_eq!(codes(unknown), ["BatchMachineClientError", "BatchMachineClientError"]);
        let all = refused(429, "TooManyRequests", "m", vec![]);
        assert_eq!(codes(all), ["TooManyRequests", "TooManyRequests"]);
        assert_eq!(answers(Ok(()), &["a", "b"]), [Ok(()), Ok(())]);
    }
}
