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
use tokio::sync::{Semaphore, oneshot};
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
    open: Mutex<Batches<Q, A>>,
    slots: Semaphore,
}

/// Batches that questions are still added to, by key.
struct Batches<Q, A> {
    by_key: BTreeMap<u64, Open<Q, A>>,
    /// How many there were so far.
    count: u64,
}

struct Open<Q, A> {
    /// Tells it from another batch with the same key.
    number: u64,
    began: Instant,
    last: Instant,
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
        let open = Mutex::new(Batches { by_key: BTreeMap::new(), count: 0 });
        Self(Arc::new(Inner { name, window, run: Box::new(run), metrics, open, slots }))
    }

    /// Asks a question together with others that have the same key; none if there is no answer to it.
    pub(crate) async fn ask(&self, key: u64, question: Q) -> Option<A> {
        let (sender, receiver) = oneshot::channel();
        let (new, full) = self.0.add(key, question, sender);
        // Whoever asked may give up waiting; the others must not.
        if let Some(number) = new {
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.collect(key, number).await });
        }
        if let Some(batch) = full {
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.answer(batch).await });
        }
        receiver.await.ok()
    }
}

impl<Q: Send + 'static, A: Send + 'static> Inner<Q, A> {
    /// Adds a question to the batch of its key. The number of the batch if it is a new one, and the batch if it is
    /// full: nothing is added to it any more.
    fn add(&self, key: u64, question: Q, sender: oneshot::Sender<A>) -> (Option<u64>, Option<Open<Q, A>>) {
        let now = Instant::now();
        let mut open = self.open.lock();
        let Batches { by_key, count } = &mut *open;
        let mut new = None;
        let batch = by_key.entry(key).or_insert_with(|| {
            *count += 1;
            new = Some(*count);
            Open { number: *count, began: now, last: now, questions: Vec::new() }
        });
        batch.last = now;
        batch.questions.push((question, sender));
        let is_full = batch.questions.len() >= self.window.most;
        let full = if is_full { by_key.remove(&key) } else { None };
        (new.filter(|_| !is_full), full)
    }

    /// Waits until a batch is due. One that became full meanwhile is not there any more.
    async fn collect(&self, key: u64, number: u64) {
        let batch = loop {
            let due = {
                let mut open = self.open.lock();
                let Some(batch) = open.by_key.get(&key).filter(|batch| batch.number == number) else {
                    return;
                };
                let due = (batch.last + self.window.idle).min(batch.began + self.window.longest);
                if due <= Instant::now() {
                    let Some(batch) = open.by_key.remove(&key) else { return };
                    break batch;
                }
                due
            };
            tokio::time::sleep_until(due).await;
        };
        self.answer(batch).await;
    }

    async fn answer(&self, batch: Open<Q, A>) {
        let time = batch.began.elapsed().as_secs_f64();
        self.metrics.observe(&metrics::BATCH_TIME, &[self.name], time);
        let Ok(_slot) = self.slots.acquire().await else { return };
        #[expect(clippy::cast_precision_loss, reason = "a batch has a thousand questions at most")]
        self.metrics.observe(&metrics::BATCH_SIZE, &[self.name], batch.questions.len() as f64);
        let (questions, senders): (Vec<Q>, Vec<_>) = batch.questions.into_iter().unzip();
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

    #[tokio::test(start_paused = true)]
    async fn no_batch_has_more_questions_than_it_may() {
        let seen = Arc::default();
        let batcher = batcher(&seen);
        let answers = futures::future::join_all((0..10).map(|number| batcher.ask(1, number))).await;
        assert_eq!(answers, (0..10).map(|number| Some(number * 2)).collect::<Vec<_>>());
        let mut asked = seen.lock().clone();
        asked.sort();
        assert_eq!(asked, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_full_does_not_shorten_the_next_one() {
        let seen = Arc::default();
        let batcher = batcher(&seen);
        let ask = |number| batcher.ask(1, number);
        let wait = |millis| tokio::time::sleep(Duration::from_millis(millis));
        futures::future::join_all((0..3).map(ask)).now_or_never();
        assert!(seen.lock().is_empty());
        // The first batch becomes full at 30 ms, and the second begins there.
        let late = async {
            wait(30).await;
            futures::join!(ask(10), ask(11), async {
                wait(20).await;
                ask(12).await
            })
        };
        assert_eq!(late.await, (Some(20), Some(22), Some(24)));
        assert_eq!(*seen.lock(), [vec![0, 1, 2, 10], vec![11, 12]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_batches_are_asked_at_the_same_time() {
        let (now, most) = (Arc::new(Mutex::new(0_usize)), Arc::new(Mutex::new(0_usize)));
        let window = Window { idle: Duration::ZERO, longest: Duration::ZERO, most: 1 };
        let (running, highest) = (Arc::clone(&now), Arc::clone(&most));
        let batcher = Batcher::new("test", window, Registry::default(), move |questions: Vec<u64>| {
            let (running, highest) = (Arc::clone(&running), Arc::clone(&highest));
            async move {
                let count = {
                    let mut running = running.lock();
                    *running += 1;
                    *running
                };
                {
                    let mut highest = highest.lock();
                    *highest = count.max(*highest);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                *running.lock() -= 1;
                questions
            }
            .boxed()
        });
        let start = Instant::now();
        let answers = futures::future::join_all((0..250).map(|key| batcher.ask(key, key))).await;
        assert_eq!(answers.iter().flatten().count(), 250);
        assert_eq!((*most.lock(), *now.lock()), (CONCURRENT, 0));
        assert_eq!(start.elapsed().as_secs(), 3, "a hundred, a hundred, and the rest");
    }
}
