//! Who we are to Azure: tokens, from wherever they come. Entry: [`TokenSource`].
//!
//! Where tokens really come from is decided elsewhere; here they are kept ([`Cached`]) and tried out ([`probe`]).

mod cached;

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

pub use cached::Cached;

/// How long the first token may take a controller, whose identity is a service of the cloud.
pub const PROBE: Duration = Duration::from_secs(5);
/// How long it may take a person: `az` starts slowly, and renews what has expired.
pub const PATIENT_PROBE: Duration = Duration::from_mins(1);

/// A text that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Whoever asks for it must not show it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(empty)" } else { "(hidden)" })
    }
}

/// A token by which Azure knows us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token itself.
    pub secret: Secret,
    /// Until when it can be used.
    pub expires: Timestamp,
    /// From when on another should be asked for, if that is known.
    pub refresh: Option<Timestamp>,
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(pub String);

/// Why there is no token at the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// Nobody gives one out.
    #[error("getting a token for {scope}, {why}")]
    Refused {
        /// For what it was asked.
        scope: String,
        /// What was said.
        why: TokenError,
    },
    /// It takes too long, which does not mean that there will be none.
    #[error("getting a token for {scope}, none came within {}s", .within.as_secs())]
    Late {
        /// For what it was asked.
        scope: String,
        /// How long was waited.
        within: Duration,
    },
}

/// Gives out tokens.
pub trait TokenSource: Send + Sync + 'static {
    /// A token for a scope, such as `https://management.azure.com//.default`.
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>>;
}

/// Always the same token, for tests and doubles.
#[derive(Clone, Debug)]
pub struct FixedToken(Token);

impl FixedToken {
    /// A source of this token, which never expires.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Token { secret: Secret::new(text), expires: Timestamp::MAX, refresh: None })
    }
}

impl TokenSource for FixedToken {
    fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// Fails now and in one sentence rather than with each request.
pub async fn probe(tokens: &dyn TokenSource, scope: &str, within: Duration) -> Result<(), NoToken> {
    let scope_name = scope.to_owned();
    match tokio::time::timeout(within, tokens.token(scope)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(why)) => Err(NoToken::Refused { scope: scope_name, why }),
        Err(_) => Err(NoToken::Late { scope: scope_name, within }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Never;

    impl TokenSource for Never {
        fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
            Box::pin(std::future::pending())
        }
    }

    struct Refuses;

    impl TokenSource for Refuses {
        fn token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
            Box::pin(std::future::ready(Err(TokenError("no identity".to_owned()))))
        }
    }

    // azure.md 18: a token must be obtained within 5 s at start
    #[tokio::test(start_paused = true)]
    async fn who_gets_no_token_in_time_is_told_so_at_the_start() {
        assert_eq!(probe(&FixedToken::new("t"), "s", PROBE).await, Ok(()));
        let error = probe(&Never, "https://management.azure.com//.default", PROBE).await.unwrap_err();
        assert!(matches!(error, NoToken::Late { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            "getting a token for https://management.azure.com//.default, none came within 5s"
        );
        let error = probe(&Refuses, "s", PROBE).await.unwrap_err();
        assert_eq!(error.to_string(), "getting a token for s, no identity");
    }

    /// As `az` on a laptop that was just opened.
    struct Slow;

    impl TokenSource for Slow {
        fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(20)).await;
                FixedToken::new("t").token(scope).await
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_whose_az_is_slow_is_waited_for() {
        assert_eq!(probe(&Slow, "s", PATIENT_PROBE).await, Ok(()));
        assert!(
            matches!(probe(&Slow, "s", PROBE).await, Err(NoToken::Late { .. })),
            "a controller has no time"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let token = Token { secret: Secret::new("abc"), expires: Timestamp::UNIX_EPOCH, refresh: None };
        assert_eq!(
            format!("{token:?}"),
            "Token { secret: (hidden), expires: 1970-01-01T00:00:00Z, refresh: None }"
        );
        assert_eq!(format!("{:?}", Secret::default()), "(empty)");
    }
}
