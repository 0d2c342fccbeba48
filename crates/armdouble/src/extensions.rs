//! Extensions of virtual machines.

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::bodies;
use crate::call::Call;
use crate::checks;
use crate::operations::Effect;
use crate::others;
use crate::route::Kind;
use crate::state::{Begin, State};

pub(crate) fn put(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::Extension, "Extension", &body)?;
    checks::tags(&body)?;
    checks::location(&state.world, &body)?;
    let machine = call.route.parent();
    if state.world.get(&machine).is_none() {
        return Err(Refusal::new(
            404,
            "ParentResourceNotFound",
            format!(
                "Failed to perform 'write' on resource(s) of type 'virtualMachines/extensions', because the parent resource \
                 '{machine}' could not be found."
            ),
        ));
    }
    let is_new = state.world.get(&call.route.id).is_none();
    let mut resource = body;
    resource["id"] = json!(call.route.id);
    resource["name"] = json!(call.route.name());
    resource["type"] = json!(call.route.resource_type);
    resource["properties"]["provisioningState"] = json!(if is_new { "Creating" } else { "Updating" });
    state.world.put(resource);
    begin(state, call, is_new)
}

pub(crate) fn patch(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::Extension, "ExtensionUpdate", &body)?;
    checks::tags(&body)?;
    if state.world.get(&call.route.id).is_none() {
        return Err(others::missing(call));
    }
    state.world.change(&call.route.id, |resource| {
        if let Some(tags) = body.get("tags") {
            resource["tags"] = tags.clone();
        }
        if let Some(properties) = body["properties"].as_object() {
            for (name, value) in properties {
                resource["properties"][name] = value.clone();
            }
        }
        resource["properties"]["provisioningState"] = Value::from("Updating");
    });
    begin(state, call, false)
}

fn begin(state: &mut State, call: &Call, is_new: bool) -> Result<Answer, Refusal> {
    let targets = vec![call.route.id.clone()];
    state.begin(call, Begin { targets, effect: Effect::Settle, is_new, failure: None })
}
