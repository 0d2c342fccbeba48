//! The token by which nodes join the cluster. AKS may replace it; whoever runs the controller must then tell it so.

use cloud::doctor::Check;
use jiff::Timestamp;
use serde_json::Value;

use crate::auth::Secret;
use crate::configure::bootstrap_tokens;

/// Whether nodes can join at `now`: `secrets` is the list of Secrets in the cluster, `told` what the controller tells
/// nodes, if that is known here.
pub fn token(secrets: &Value, told: Option<&Secret>, now: Timestamp) -> Check {
    let about = "bootstrap token";
    let advice = "run `karpenter configure` once more and upgrade the chart with what it writes";
    let usable = bootstrap_tokens(secrets, now);
    match told {
        _ if usable.is_empty() => {
            let message = "kube-system has no Secret with a token that nodes could join by";
            Check::bad(about, message, "see whether AKS is about to rotate it")
        }
        Some(told) if !usable.contains(told) => Check::bad(
            about,
            "the one that nodes are told was replaced or has expired, so they cannot join",
            advice,
        ),
        Some(_) => Check::good(about, "nodes can join by the one that they are told"),
        None => Check::good(about, "there is one that nodes can join by"),
    }
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;
    use serde_json::json;

    use super::*;

    // azure.md 23: node token rotation
    #[test]
    fn a_token_that_was_rotated_away_is_found() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let secrets = json!({"items": [{
            "type": "bootstrap.kubernetes.io/token", "data": {"token-id": "YWJjZGVm", "token-secret": "MDEyMw=="},
        }]});
        let level =
            |secrets: &Value, told: Option<&str>| token(secrets, told.map(Secret::new).as_ref(), now).level;
        assert_eq!(level(&secrets, Some("abcdef.0123")), Level::Good);
        assert_eq!(level(&secrets, None), Level::Good);
        assert_eq!(level(&secrets, Some("abcdef.9999")), Level::Bad);
        assert_eq!(level(&json!({"items": []}), None), Level::Bad);
    }
}
