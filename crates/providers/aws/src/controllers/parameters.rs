//! Values that AWS or users publish, asked for seldom.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::Outcome;
use tokio::time::Instant;

use super::failed;
use crate::ami::is_deprecated;
use crate::port::{Error, Filter, Image, ImageQuery};
use crate::provider::Inner;

/// How often values are looked at that AWS may take back.
const LOOKED_AT: Again = Again::After(Duration::from_mins(30));

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publisher {
    /// AWS publishes it, and what it holds stays.
    Aws,
    /// AWS publishes it, and it holds the latest image.
    AwsLatest,
    /// A user publishes it.
    User,
}

impl Publisher {
    /// How long a value is kept. Those of AWS seldom change.
    const fn kept(self) -> Duration {
        match self {
            Self::Aws | Self::AwsLatest => Duration::from_hours(24),
            Self::User => Duration::from_mins(5),
        }
    }
}

#[derive(Clone, Debug)]
struct Kept {
    value: String,
    until: Instant,
    publisher: Publisher,
}

/// Values that were asked for, by name.
#[derive(Debug, Default)]
pub(super) struct Parameters(Mutex<BTreeMap<String, Kept>>);

impl Parameters {
    /// The value of a parameter, if it is there.
    pub(super) async fn get(
        &self,
        inner: &Inner,
        name: &str,
        publisher: Publisher,
    ) -> Result<Option<String>, Error> {
        let now = Instant::now();
        let known = self.0.lock().get(name).filter(|kept| kept.until > now).cloned();
        if let Some(kept) = known {
            return Ok(Some(kept.value));
        }
        match inner.counted("ssm:GetParameter", inner.setup.services.ssm.parameter(name)).await {
            Ok(value) => {
                let kept = Kept { value: value.clone(), until: now + publisher.kept(), publisher };
                self.0.lock().insert(name.to_owned(), kept);
                Ok(Some(value))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets parameters whose image AWS advises against: a latest image that was taken back is seen sooner.
    pub(super) async fn invalidate(&self, inner: &Inner) -> Outcome {
        let latest = |kept: &Kept| kept.publisher == Publisher::AwsLatest;
        let known: BTreeMap<String, String> = {
            let all = self.0.lock();
            all.iter()
                .filter(|(_, kept)| latest(kept))
                .map(|(name, kept)| (name.clone(), kept.value.clone()))
                .collect()
        };
        if known.is_empty() {
            return Ok(LOOKED_AT);
        }
        let filters = vec![Filter::new("image-id", known.values())];
        let query = ImageQuery { filters, owners: Vec::new() };
        let ec2 = &inner.setup.services.ec2;
        let found = inner.counted("ec2:DescribeImages", ec2.images(&query)).await.map_err(failed)?;
        let mut all = self.0.lock();
        for name in stale(&known, &found, inner.setup.clock.now()) {
            tracing::debug!(parameter = name, "invalidated ssm parameter cache");
            all.remove(name);
        }
        Ok(LOOKED_AT)
    }
}

/// The parameters whose image is deprecated, or not there any more.
fn stale<'a>(known: &'a BTreeMap<String, String>, found: &[Image], now: Timestamp) -> Vec<&'a String> {
    let is_good = |id: &String| found.iter().any(|image| image.id == *id && !is_deprecated(image, now));
    known.iter().filter(|(_, id)| !is_good(id)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_stale_once_their_image_is_deprecated_or_gone() {
        let image = |id: &str, from: Option<i64>| Image {
            id: id.to_owned(),
            deprecated_from: from.map(|second| Timestamp::constant(second, 0)),
            ..Image::default()
        };
        let found = [image("ami-1", None), image("ami-2", Some(100)), image("ami-3", Some(101))];
        let known: BTreeMap<String, String> =
            (1..=4).map(|number| (format!("/{number}"), format!("ami-{number}"))).collect();
        assert_eq!(stale(&known, &found, Timestamp::constant(100, 0)), ["/2", "/4"]);
    }
}
