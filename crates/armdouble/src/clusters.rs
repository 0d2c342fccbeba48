//! The AKS cluster, and what its server for node bootstrapping says.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::others;
use crate::world::{World, text};

/// What is replaced by a bootstrap token.
const TOKEN: &str = "{{.TokenID}}.{{.TokenSecret}}";

pub(crate) fn get(world: &World, call: &Call) -> Result<Answer, Refusal> {
    if call.route.is_collection { others::list(world, call) } else { others::get(world, call) }
}

/// A script and custom data that tell which machine they are for.
pub(crate) fn bootstrapping(call: &Call) -> Result<Answer, Refusal> {
    let refuse = |message: &str| Err(Refusal::new(400, "BadRequest", message).plain());
    let Ok(body) = call.json() else { return refuse("the body is no JSON") };
    let profile = &body["provisionProfile"];
    if !profile.is_object() || !body["provisionHelperValues"].is_object() {
        return refuse("provisionProfile and provisionHelperValues are required");
    }
    let (size, distro) = (text(profile, "/vmSize"), text(profile, "/distro"));
    let data = format!("#cloud-config\n# {size} {distro}\n# token: {TOKEN}\n");
    Ok(Answer::json(
        200,
        json!({
            "cse": format!("/opt/azure/bootstrap --size {size} --token {TOKEN}"),
            "customData": BASE64_STANDARD.encode(data),
        }),
    ))
}
