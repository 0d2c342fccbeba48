//! What has no behaviour of its own: resources that are only read, groups, providers, and what does not exist.

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::lists;
use crate::state::shown_to_clients;
use crate::world::{World, text};

pub(crate) fn get(world: &World, call: &Call) -> Result<Answer, Refusal> {
    world
        .get(&call.route.id)
        .map(|found| Answer::json(200, shown_to_clients(found)))
        .ok_or_else(|| missing(call))
}

pub(crate) fn list(world: &World, call: &Call) -> Result<Answer, Refusal> {
    // A list of something that is part of a resource needs that resource.
    let parent = call.route.parent();
    if !call.route.names.is_empty() && world.get(&parent).is_none() {
        let (owner, part) = call.route.resource_type.rsplit_once('/').unwrap_or_default();
        return Err(Refusal::new(
            404,
            "ParentResourceNotFound",
            format!(
                "Can not perform requested operation on nested resource '{part}'. Parent resource '{owner}' not found."
            ),
        ));
    }
    let prefix = match &call.route.group {
        Some(_) => format!("{}/", call.route.id.to_ascii_lowercase()),
        None => String::new(),
    };
    let all = world.of_type(&call.route.resource_type);
    let here = all.into_iter().filter(|each| text(each, "/id").to_ascii_lowercase().starts_with(&prefix));
    Ok(lists::page(call, here.map(shown_to_clients).collect(), world.settings.page_size))
}

pub(crate) fn missing(call: &Call) -> Refusal {
    let names = call.route.names.join("/");
    Refusal::not_found(&call.route.resource_type, &names, call.route.group())
}

pub(crate) fn group(world: &World, call: &Call) -> Answer {
    // Whether it is there has been looked at already.
    let body = json!({
        "id": call.route.id, "name": call.route.group(), "type": "Microsoft.Resources/resourceGroups",
        "location": world.settings.location, "properties": {"provisioningState": "Succeeded"},
    });
    Answer::json(200, body)
}

pub(crate) fn provider(call: &Call) -> Answer {
    let body = json!({
        "id": call.route.id, "namespace": call.route.name(), "registrationState": "Registered",
        "resourceTypes": Value::Array(Vec::new()),
    });
    Answer::json(200, body)
}

pub(crate) fn unknown(call: &Call) -> Refusal {
    Refusal::new(
        404,
        "InvalidResourceType",
        format!("The resource type could not be found for the path '{}'.", call.path),
    )
}

pub(crate) fn not_allowed(call: &Call) -> Refusal {
    Refusal::new(
        405,
        "MethodNotAllowed",
        format!("The requested resource does not support http method '{}'.", call.method),
    )
}
