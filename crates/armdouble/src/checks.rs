//! What is looked at before anything else: tokens, API versions, subscriptions, groups, tags.

use serde_json::Value;

use crate::answer::Refusal;
use crate::call::Call;
use crate::route::Kind;
use crate::tokens;
use crate::world::World;

const COMPUTE: &[&str] = &["2025-04-01"];
const NETWORK: &[&str] = &["2022-01-01"];
const KUBERNETES: &[&str] = &["2026-04-02-preview"];

/// The API versions that the provider is written for.
fn versions(kind: Kind) -> Option<&'static [&'static str]> {
    match kind {
        Kind::Sku => Some(&["2021-07-01"]),
        Kind::Usage | Kind::VirtualMachine | Kind::Extension => Some(COMPUTE),
        Kind::CommunityVersion => Some(&["2025-03-03"]),
        Kind::DiskEncryptionSet => Some(&["2025-01-02"]),
        Kind::NetworkInterface
        | Kind::SecurityGroup
        | Kind::LoadBalancer
        | Kind::VirtualNetwork
        | Kind::Subnet => Some(NETWORK),
        Kind::ResourceGraph => Some(&["2024-04-01"]),
        Kind::NodeImageVersion | Kind::Machine | Kind::DeleteMachines => Some(KUBERNETES),
        Kind::Price => Some(&["2023-01-01-preview"]),
        _ => None,
    }
}

/// What needs no token of Entra ID.
fn is_public(kind: Kind) -> bool {
    matches!(kind, Kind::Price | Kind::Token | Kind::InstanceToken | Kind::GalleryToken)
}

pub(crate) fn authorised(call: &Call) -> Result<(), Refusal> {
    if is_public(call.route.kind) {
        return Ok(());
    }
    let refuse = |code: &str, message: &str| {
        Err(Refusal::new(401, code, message)
            .header("www-authenticate", "Bearer authorization_uri=\"https://login.microsoftonline.com/\""))
    };
    match call.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
        None | Some("") => {
            refuse("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
        }
        Some(token) if tokens::has_expired(token, call.now) => {
            refuse("ExpiredAuthenticationToken", "The access token expiry is earlier than the current time.")
        }
        Some(_) => Ok(()),
    }
}

/// Whether the API version, the subscription and the group are there.
pub(crate) fn addressed(world: &World, call: &Call) -> Result<(), Refusal> {
    let kind = call.route.kind;
    let needs_version = !matches!(
        kind,
        Kind::Token | Kind::GalleryToken | Kind::NodeBootstrapping | Kind::Unknown | Kind::Operation
    );
    if needs_version {
        version(world, call)?;
    }
    if let Some(subscription) = &call.route.subscription
        && !subscription.eq_ignore_ascii_case(&world.settings.subscription)
    {
        return Err(Refusal::new(
            404,
            "SubscriptionNotFound",
            format!("The subscription '{subscription}' could not be found."),
        ));
    }
    if let Some(group) = &call.route.group
        && !world.has_group(group)
    {
        let message = format!("Resource group '{group}' could not be found.");
        return Err(Refusal::new(404, "ResourceGroupNotFound", message));
    }
    Ok(())
}

/// Whether something may be changed where the call wants to. AKS itself, which makes machines, may everywhere.
pub(crate) fn unlocked(world: &World, call: &Call) -> Result<(), Refusal> {
    let settings = &world.settings;
    let is_write = !matches!(call.method.as_str(), "GET" | "HEAD");
    let is_there = call
        .route
        .group
        .as_ref()
        .is_some_and(|group| group.eq_ignore_ascii_case(&settings.node_resource_group));
    if !settings.locks_node_resource_group || !is_write || !is_there {
        return Ok(());
    }
    let verb = if call.method == http::Method::DELETE { "delete" } else { "write" };
    let (action, scope) = (format!("{}/{verb}", call.route.resource_type), &call.route.id);
    Err(Refusal::new(
        403,
        "DenyAssignmentAuthorizationFailed",
        format!(
            "The client has permission to perform action '{action}' on scope '{scope}'; however, the access is denied \
             because of the deny assignment with name 'AKS node resource group lockdown' at scope \
             '/subscriptions/{}/resourceGroups/{}'.",
            settings.subscription, settings.node_resource_group
        ),
    ))
}

fn version(world: &World, call: &Call) -> Result<(), Refusal> {
    let Some(version) = call.query("api-version").filter(|version| !version.is_empty()) else {
        return Err(Refusal::new(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        ));
    };
    let known = versions(call.route.kind).filter(|_| world.settings.has_strict_versions);
    match known {
        Some(known) if !known.contains(&version) => Err(Refusal::new(
            400,
            "NoRegisteredProviderFound",
            format!(
                "No registered resource provider found for location '{}' and API version '{version}' for type '{}'. The \
                 supported api-versions are '{}'.",
                world.settings.location,
                call.route.resource_type.rsplit('/').next().unwrap_or_default(),
                known.join(", ")
            ),
        )),
        _ => Ok(()),
    }
}

/// The limits of Azure for tags.
pub(crate) fn tags(body: &Value) -> Result<(), Refusal> {
    const RESERVED: [char; 9] = ['<', '>', '*', '%', '&', ':', '\\', '?', '/'];
    let Some(tags) = body.get("tags").and_then(Value::as_object) else { return Ok(()) };
    if tags.len() > 50 {
        return Err(Refusal::new(
            400,
            "TagsLimitExceeded",
            format!("The number of tags '{}' exceeded the limit of 50 allowed for a resource.", tags.len()),
        ));
    }
    for (key, value) in tags {
        if key.contains(RESERVED) {
            return Err(Refusal::new(
                400,
                "InvalidTagNameCharacters",
                format!(
                    "The tag names '{key}' have reserved characters '<,>,*,%,&,:,\\,?,/' or control characters."
                ),
            ));
        }
        if key.len() > 512 || value.as_str().is_some_and(|value| value.len() > 256) {
            return Err(Refusal::new(
                400,
                "InvalidTagNameValue",
                format!("The tag '{key}' is too long: names have at most 512 characters, values 256."),
            ));
        }
    }
    Ok(())
}

/// Whether the resource is to be where everything is.
pub(crate) fn location(world: &World, body: &Value) -> Result<(), Refusal> {
    let location = body["location"].as_str().unwrap_or_default();
    if location.is_empty() {
        return Err(Refusal::new(
            400,
            "LocationRequired",
            "The location property is required for this definition.",
        ));
    }
    if location.to_ascii_lowercase().replace(' ', "") != world.settings.location {
        return Err(Refusal::new(
            400,
            "LocationNotAvailableForResourceType",
            format!("The provided location '{location}' is not available for the resource type."),
        ));
    }
    Ok(())
}
