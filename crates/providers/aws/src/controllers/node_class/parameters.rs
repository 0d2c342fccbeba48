//! Values that AWS or users publish, asked for seldom.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::port::Error;
use crate::provider::Inner;

/// How long values of aliases are kept, whose images seldom change.
const OF_ALIASES: Duration = Duration::from_hours(24);
/// How long values of users are kept.
const OF_USERS: Duration = Duration::from_mins(5);

/// Values that were asked for, by name, with when they must be asked for again.
#[derive(Debug, Default)]
pub(super) struct Parameters(Mutex<BTreeMap<String, (Instant, String)>>);

impl Parameters {
    /// The value of a parameter, if it is there.
    pub(super) async fn get(
        &self,
        inner: &Inner,
        name: &str,
        of_alias: bool,
    ) -> Result<Option<String>, Error> {
        let now = Instant::now();
        let known = self.0.lock().get(name).filter(|(until, _)| *until > now).cloned();
        if let Some((_, value)) = known {
            return Ok(Some(value));
        }
        match inner.counted("ssm:GetParameter", inner.setup.services.ssm.parameter(name)).await {
            Ok(value) => {
                let until = now + if of_alias { OF_ALIASES } else { OF_USERS };
                self.0.lock().insert(name.to_owned(), (until, value.clone()));
                Ok(Some(value))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
