//! Tokens: of Entra ID, of the instance metadata service, and for images of another tenant.
//!
//! A token says when it expires, so that an expired one is refused: `armdouble.<kind>.<seconds since 1970>`.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::world::World;

/// As long as tokens of workload identities live.
const LIFETIME: SignedDuration = SignedDuration::from_hours(1);
/// As long as tokens of managed identities live.
const INSTANCE_LIFETIME: SignedDuration = SignedDuration::from_hours(24);

fn token(kind: &str, expires: Timestamp) -> String {
    format!("armdouble.{kind}.{}", expires.as_second())
}

fn after(now: Timestamp, lifetime: SignedDuration) -> Timestamp {
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}

/// Whether a token of ours has expired; others never do.
pub(crate) fn has_expired(token: &str, now: Timestamp) -> bool {
    let Some(expires) = token.strip_prefix("armdouble.").and_then(|rest| rest.rsplit('.').next()) else {
        return false;
    };
    expires.parse::<i64>().is_ok_and(|expires| expires <= now.as_second())
}

pub(crate) fn entra(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let form: BTreeMap<String, String> = form_urlencoded::parse(&call.body).into_owned().collect();
    let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let refuse = |status: u16, error: &str, code: &str, description: &str| {
        let body = json!({
            "error": error, "error_description": format!("{code}: {description}"), "timestamp": call.now.to_string(),
            "error_codes": [code.trim_start_matches("AADSTS").parse::<u64>().unwrap_or(0)],
        });
        Ok(Answer::json(status, body))
    };
    let tenant = call.route.name();
    if tenant != world.settings.tenant {
        return refuse(400, "invalid_request", "AADSTS90002", &format!("Tenant '{tenant}' not found."));
    }
    if get("grant_type") != "client_credentials" {
        return refuse(400, "unsupported_grant_type", "AADSTS70003", "The grant type is not supported.");
    }
    if get("client_id").is_empty() {
        return refuse(
            400,
            "invalid_request",
            "AADSTS900144",
            "The request body must contain the following parameter: 'client_id'.",
        );
    }
    if get("scope").is_empty() || !get("scope").ends_with("/.default") {
        return refuse(400, "invalid_scope", "AADSTS70011", "The provided value for 'scope' is not valid.");
    }
    let has_assertion = !get("client_assertion").is_empty()
        && get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    if !has_assertion && get("client_secret").is_empty() {
        return refuse(
            401,
            "invalid_client",
            "AADSTS7000218",
            "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
        );
    }
    let seconds = LIFETIME.as_secs();
    Ok(Answer::json(
        200,
        json!({
            "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds,
            "access_token": token("entra", after(call.now, LIFETIME)),
        }),
    ))
}

pub(crate) fn instance(call: &Call) -> Result<Answer, Refusal> {
    let refuse = |description: &str| {
        Ok(Answer::json(400, json!({"error": "invalid_request", "error_description": description})))
    };
    if call.header("metadata").is_none_or(|value| !value.eq_ignore_ascii_case("true")) {
        return refuse("Required metadata header not specified");
    }
    let Some(resource) = call.query("resource") else {
        return refuse("Required audience parameter not specified");
    };
    let expires = after(call.now, INSTANCE_LIFETIME);
    let client = call.query("client_id").unwrap_or("44444444-4444-4444-4444-444444444444");
    Ok(Answer::json(
        200,
        json!({
            "access_token": token("instance", expires), "client_id": client, "token_type": "Bearer",
            "resource": resource, "expires_in": INSTANCE_LIFETIME.as_secs().to_string(),
            "ext_expires_in": INSTANCE_LIFETIME.as_secs().to_string(), "expires_on": expires.as_second().to_string(),
            "not_before": call.now.as_second().to_string(),
        }),
    ))
}

pub(crate) fn gallery(call: &Call) -> Result<Answer, Refusal> {
    if call.query("scope").is_none_or(str::is_empty) {
        return Err(Refusal::new(400, "BadRequest", "scope is required").plain());
    }
    let expires = after(call.now, LIFETIME);
    let refresh = after(call.now, LIFETIME / 2);
    Ok(Answer::json(
        200,
        json!({"Token": token("gallery", expires), "ExpiresOn": expires.to_string(), "RefreshOn": refresh.to_string()}),
    ))
}
