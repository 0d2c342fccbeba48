//! Questions that are collected for a moment and asked together.
//!
//! ```text
//!   ask(key, question) ──► the open batch of the key ──(idle, too old or full)──► run(questions) ──► an answer each
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::aws as metrics;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::metrics::Registry;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;

/// How many batches are asked at the same time.
const CONCURRENT: usize = 100;

/// How long questions are collected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Until nobody asked anything for so long.
    pub(crate) idle: Duration,
    /// For so long at most.
    pub(crate) longest: Duration,
    /// Until there are so many.
    pub(crate) most: usize,
}

type Run<Q, A> = dyn Fn(Vec<Q>) -> BoxFuture<'static, Vec<A>> + Send + Sync;

/// Collects questions. Clones share them.
pub(crate) struct Batcher<Q, A>(Arc<Inner<Q, A>>);

struct Inner<Q, A> {
    name: &'static str,
    window: Window,
    run: Box<Run<Q, A>>,
    metrics: Registry,
    open: Mutex<BTreeMap<u64, Open<Q, A>>>,
    slots: Semaphore,
}

struct Open<Q, A> {
    number: Instant,
    last: Instant,
    full: Arc<Notify>,
    questions: Vec<(Q, oneshot::Sender<A>)>,
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Collects questions that `run` answers, in their order.
    pub(crate) fn new(
        name: &'static str,
        window: Window,
        metrics: Registry,
        run: impl Fn(Vec<Q>) -> BoxFuture<'static, Vec<A>> + Send + Sync + 'static,
    ) -> Self {
        let slots = Semaphore::new(CONCURRENT);
        let open = Mutex::default();
        Self(Arc::new(Inner { name, window, run: Box::new(run), metrics, open, slots }))
    }

    /// Asks a question together with others that have the same key; none if there is no answer to it.
    pub(crate) async fn ask(&self, key: u64, question: Q) -> Option<A> {
        let (sender, receiver) = oneshot::channel();
        let now = Instant::now();
        let is_new = {
            let mut open = self.0.open.lock();
            let is_new = !open.contains_key(&key);
            let batch = open.entry(key).or_insert_with(|| Open {
                number: now,
                last: now,
                full: Arc::new(Notify::new()),
                questions: Vec::new(),
            });
            batch.last = now;
            batch.questions.push((question, sender));
            if batch.questions.len() >= self.0.window.most {
                batch.full.notify_one();
            }
            is_new
        };
        if is_new {
            // Whoever asked first may give up waiting; the others must not.
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.collect(key).await });
        }
        receiver.await.ok()
    }
}

impl<Q: Send + 'static, A: Send + 'static> Inner<Q, A> {
    async fn collect(&self, key: u64) {
        let questions = loop {
            let (due, full) = {
                let mut open = self.open.lock();
                let Some(batch) = open.get(&key) else { return };
                let due = (batch.last + self.window.idle).min(batch.number + self.window.longest);
                let is_full = batch.questions.len() >= self.window.most;
                if is_full || due <= Instant::now() {
                    let Some(batch) = open.remove(&key) else { return };
                    let time = batch.number.elapsed().as_secs_f64();
                    self.metrics.observe(&metrics::BATCH_TIME, &[self.name], time);
                    break batch.questions;
                }
                (due, Arc::clone(&batch.full))
            };
            // Whichever comes first.
            drop(tokio::time::timeout_at(due, full.notified()).await);
        };
        let Ok(_slot) = self.slots.acquire().await else { return };
        #[expect(clippy::cast_precision_loss, reason = "a batch has a thousand questions at most")]
        self.metrics.observe(&metrics::BATCH_SIZE, &[self.name], questions.len() as f64);
        let (questions, senders): (Vec<Q>, Vec<_>) = questions.into_iter().unzip();
        for (sender, answer) in senders.into_iter().zip((self.run)(questions).await) {
            // Nobody may wait for it any more.
            drop(sender.send(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn batcher(seen: &Arc<Mutex<Vec<Vec<u32>>>>) -> Batcher<u32, u32> {
        let window = Window { idle: Duration::from_millis(35), longest: Duration::from_secs(1), most: 4 };
        let seen = Arc::clone(seen);
        Batcher::new("test", window, Registry::default(), move |questions: Vec<u32>| {
            seen.lock().push(questions.clone());
            async move { questions.iter().map(|number| number * 2).collect() }.boxed()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn equal_keys_are_asked_together_and_others_are_not() {
        let seen = Arc::default();
        let batcher = batcher(&seen);
        let answers = futures::join!(batcher.ask(1, 10), batcher.ask(2, 20), batcher.ask(1, 30));
        assert_eq!(answers, (Some(20), Some(40), Some(60)));
        let mut asked = seen.lock().clone();
        asked.sort();
        assert_eq!(asked, [vec![10, 30], vec![20]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_ends_when_it_is_full_or_nobody_asks_or_after_the_longest_time() {
        let seen = Arc::default();
        let batcher = batcher(&seen);
        let start = Instant::now();
        futures::future::join_all((0..4).map(|number| batcher.ask(1, number))).await;
        assert!(start.elapsed() < Duration::from_millis(35));
        batcher.ask(1, 4).await;
        assert_eq!(start.elapsed().as_millis() / 35, 1);
        assert_eq!(*seen.lock(), [vec![0, 1, 2, 3], vec![4]]);
    }
}
