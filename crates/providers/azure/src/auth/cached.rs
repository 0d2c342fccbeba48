//! Tokens that are asked for once and used until shortly before they expire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Token, TokenError, TokenSource};

/// Nobody relies on a token for longer: what an identity may do changes.
const LONGEST: Duration = Duration::from_hours(2);
/// So long before it expires, a token is replaced.
const MARGIN: Duration = Duration::from_mins(5);
/// So long after it could not be replaced, it is tried again.
const PAUSE: Duration = Duration::from_secs(30);

type Asked = Shared<BoxFuture<'static, Result<Token, TokenError>>>;

/// Keeps the tokens of another source. Whoever comes while one is being asked for waits for the same.
#[derive(Clone)]
pub struct Cached {
    source: Arc<dyn TokenSource>,
    clock: Clock,
    longest: Option<Duration>,
    scopes: Arc<Mutex<BTreeMap<String, Scope>>>,
}

#[derive(Default)]
struct Scope {
    token: Option<Token>,
    asked: Option<Asked>,
    not_before: Option<Timestamp>,
}

/// What to do about a token.
enum Step {
    Use(Token),
    Wait(Asked),
}

impl Cached {
    /// Keeps the tokens of `source`, but none for more than two hours.
    pub fn new(source: Arc<dyn TokenSource>, clock: Clock) -> Self {
        Self { source, clock, longest: Some(LONGEST), scopes: Arc::default() }
    }

    /// Keeps the tokens of `source` as long as they may be kept.
    pub fn as_told(source: Arc<dyn TokenSource>, clock: Clock) -> Self {
        Self { longest: None, ..Self::new(source, clock) }
    }

    fn step(&self, scope: &str) -> Step {
        let now = self.clock.now();
        let mut scopes = self.scopes.lock();
        let entry = scopes.entry(scope.to_owned()).or_default();
        if let Some(token) = entry.token.as_ref().filter(|token| is_fresh(token, now)) {
            return Step::Use(token.clone());
        }
        // What could not be replaced just now is used as long as it can be.
        let paused = entry.not_before.is_some_and(|until| now < until);
        if let Some(token) = entry.token.as_ref().filter(|token| paused && now < token.expires) {
            return Step::Use(token.clone());
        }
        if let Some(asked) = &entry.asked {
            return Step::Wait(asked.clone());
        }
        let (source, owned) = (Arc::clone(&self.source), scope.to_owned());
        let asked = async move { source.token(&owned).await }.boxed().shared();
        entry.asked = Some(asked.clone());
        Step::Wait(asked)
    }

    /// Keeps what came of asking.
    fn keep(
        &self,
        scope: &str,
        asked: &Asked,
        answer: Result<Token, TokenError>,
    ) -> Result<Token, TokenError> {
        let now = self.clock.now();
        let latest = self.longest.map_or(Timestamp::MAX, |longest| after(now, longest));
        let answer = answer.map(|token| Token { expires: token.expires.min(latest), ..token });
        let mut scopes = self.scopes.lock();
        let entry = scopes.entry(scope.to_owned()).or_default();
        let is_first = entry.asked.as_ref().is_some_and(|current| current.ptr_eq(asked));
        if is_first {
            entry.asked = None;
        }
        match answer {
            Ok(token) => {
                if is_first {
                    entry.token = Some(token.clone());
                    entry.not_before = None;
                }
                Ok(token)
            }
            Err(error) => match entry.token.as_ref().filter(|token| now < token.expires) {
                Some(token) => {
                    tracing::warn!(error = %error, "using the old token, because there is no new one");
                    entry.not_before = Some(after(now, PAUSE));
                    Ok(token.clone())
                }
                None => Err(error),
            },
        }
    }
}

/// Whether no other token is needed yet.
fn is_fresh(token: &Token, now: Timestamp) -> bool {
    after(now, MARGIN) < token.expires && token.refresh.is_none_or(|refresh| now < refresh)
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

impl TokenSource for Cached {
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
        async move {
            match self.step(scope) {
                Step::Use(token) => Ok(token),
                Step::Wait(asked) => {
                    let answer = asked.clone().await;
                    self.keep(scope, &asked, answer)
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep};

    use super::super::Secret;
    use super::*;

    /// Counts its tokens; each is valid for a while.
    struct Counting {
        asked: AtomicU32,
        clock: Clock,
        valid: Duration,
        fails_from: u32,
    }

    impl TokenSource for Counting {
        fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
            async move {
                let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
                sleep(Duration::from_secs(1)).await;
                if number >= self.fails_from {
                    return Err(TokenError(format!("attempt {number}")));
                }
                let secret = Secret::new(format!("{scope} {number}"));
                Ok(Token { secret, expires: after(self.clock.now(), self.valid), refresh: None })
            }
            .boxed()
        }
    }

    fn cached(valid: Duration, fails_from: u32) -> (Cached, Arc<Counting>) {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let source = Arc::new(Counting { asked: AtomicU32::new(0), clock, valid, fails_from });
        (Cached::new(Arc::<Counting>::clone(&source), clock), source)
    }

    async fn ask(tokens: &Cached) -> String {
        tokens.token("s").await.unwrap().secret.reveal().to_owned()
    }

    // azure.md 18: a token valid > 2 h is reported as expiring in 2 h
    #[tokio::test(start_paused = true)]
    async fn nobody_relies_on_a_token_for_more_than_two_hours() {
        let (tokens, _) = cached(Duration::from_hours(24), u32::MAX);
        assert_eq!(tokens.token("s").await.unwrap().expires.as_second(), 2 * 3600 + 1);
        advance(Duration::from_mins(114)).await;
        assert_eq!(ask(&tokens).await, "s 1");
        advance(Duration::from_mins(2)).await;
        assert_eq!(ask(&tokens).await, "s 2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_asked_for_once_however_many_need_it() {
        let (tokens, source) = cached(Duration::from_hours(1), u32::MAX);
        let all = futures::future::join_all((0..100).map(|_| ask(&tokens))).await;
        assert!(all.iter().all(|token| token == "s 1"));
        assert_eq!(tokens.token("other").await.unwrap().secret.reveal(), "other 2");
        assert_eq!(source.asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_cannot_be_replaced_is_used_until_it_expires() {
        let (tokens, source) = cached(Duration::from_hours(1), 2);
        assert_eq!(ask(&tokens).await, "s 1");
        advance(Duration::from_mins(56)).await;
        assert_eq!(ask(&tokens).await, "s 1");
        assert_eq!(ask(&tokens).await, "s 1");
        assert_eq!(source.asked.load(Ordering::SeqCst), 2, "and nobody insists");
        advance(Duration::from_mins(5)).await;
        assert_eq!(tokens.token("s").await, Err(TokenError("attempt 3".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_goes_away_takes_nothing_with_it() {
        let (tokens, source) = cached(Duration::from_hours(1), u32::MAX);
        let impatient = tokio::time::timeout(Duration::from_millis(10), tokens.token("s")).await;
        assert!(impatient.is_err());
        assert_eq!(ask(&tokens).await, "s 1");
        assert_eq!(source.asked.load(Ordering::SeqCst), 1);
    }
}
