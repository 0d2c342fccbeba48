//! Answers that count for a while: as long as a NodeClass asks for the same, AWS is not asked more often than users
//! want it.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use api::aws::EC2NodeClass;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::decide::Step;

/// Which question it was, until when the answer counts, and the answer.
type Answer<T> = (String, Instant, Vec<T>);

/// Answers, by the name of the NodeClass.
#[derive(Debug)]
pub(super) struct Kept<T>(Mutex<BTreeMap<String, Answer<T>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Kept<T> {
    /// The answer that counts, or a new one. That nothing was found is asked again each time.
    pub(super) async fn or_ask(
        &self,
        class: &EC2NodeClass,
        more: &str,
        interval: Duration,
        ask: impl Future<Output = Step<Vec<T>>>,
    ) -> Step<Vec<T>> {
        let metadata = &class.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let question = format!("{:?} {:?} {more}", metadata.uid, metadata.generation);
        let now = Instant::now();
        let known =
            self.0.lock().get(&name).filter(|(of, until, _)| *of == question && *until > now).cloned();
        if let Some((_, _, answer)) = known {
            return Step::Found(answer);
        }
        let answer = ask.await;
        match &answer {
            Step::Found(found) if !found.is_empty() => {
                self.0.lock().insert(name, (question, now + interval, found.clone()));
            }
            _ => self.forget(&name),
        }
        answer
    }

    /// Forgets what is known of a class.
    pub(super) fn forget(&self, class: &str) {
        self.0.lock().remove(class);
    }
}
