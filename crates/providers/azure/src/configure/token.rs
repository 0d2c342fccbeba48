//! What is read from the cluster and from this machine: the token by which nodes join, and the usual subscription.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::auth::Secret;

/// The type of Secrets with tokens by which nodes join.
const KIND: &str = "bootstrap.kubernetes.io/token";

/// The first token by which nodes can join at `now`, from a list of Secrets.
pub fn bootstrap_token(secrets: &Value, now: Timestamp) -> Option<Secret> {
    bootstrap_tokens(secrets, now).into_iter().next()
}

/// All tokens by which nodes can join at `now`, from a list of Secrets.
pub(crate) fn bootstrap_tokens(secrets: &Value, now: Timestamp) -> Vec<Secret> {
    let all = secrets.get("items").and_then(Value::as_array).into_iter().flatten();
    let tokens = all.filter(|secret| secret.get("type").and_then(Value::as_str) == Some(KIND));
    tokens.filter_map(|secret| usable(secret, now)).collect()
}

/// The token in a Secret, if nodes can join by it.
fn usable(secret: &Value, now: Timestamp) -> Option<Secret> {
    let part = |name: &str| {
        let text = secret.get("data")?.get(name)?.as_str()?;
        String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok()
    };
    let expires = part("expiration").and_then(|text| text.parse::<Timestamp>().ok());
    let is_usable = expires.is_none_or(|expires| expires > now)
        && part("usage-bootstrap-authentication").is_none_or(|usage| usage == "true");
    let (id, secret) = (part("token-id")?, part("token-secret")?);
    (is_usable && !id.is_empty() && !secret.is_empty()).then(|| Secret::new(format!("{id}.{secret}")))
}

/// The subscription that `az` uses, from its file `azureProfile.json`.
pub fn default_subscription(profile: &str) -> Option<String> {
    // It begins with a mark of its encoding.
    let read: Value = serde_json::from_str(profile.trim_start_matches('\u{feff}')).ok()?;
    let all = read.get("subscriptions").and_then(Value::as_array)?;
    let usual = all.iter().find(|each| each.get("isDefault").and_then(Value::as_bool) == Some(true))?;
    usual.get("id").and_then(Value::as_str).map(str::to_owned)
}
