//! Everything that one lock protects: the world, and what is going on in it.

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::failures::{Failures, How};
use crate::operations::{Effect, Operation, Operations, Status};
use crate::record::Recorded;
use crate::route::Kind;
use crate::settings::{Form, Lro};
use crate::throttles::Throttles;
use crate::world::World;
use crate::{compute, machines};

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) operations: Operations,
    pub(crate) failures: Failures,
    pub(crate) throttles: Throttles,
    pub(crate) log: Vec<Recorded>,
    pub(crate) answered: u64,
}

/// An operation that is about to begin.
pub(crate) struct Begin {
    pub(crate) targets: Vec<String>,
    pub(crate) effect: Effect,
    pub(crate) is_new: bool,
    /// Why it will fail, if that is known already.
    pub(crate) failure: Option<Refusal>,
}

impl State {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            operations: Operations::default(),
            failures: Failures::default(),
            throttles: Throttles::default(),
            log: Vec::new(),
            answered: 0,
        }
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(operation) = self.operations.next_due(now) {
            // Effects have the time at which they were due, not that at which somebody looked.
            self.world.now = self.world.now.max(operation.due);
            for target in &operation.targets {
                self.finish(target, &operation);
            }
        }
        self.world.now = self.world.now.max(now);
    }

    fn finish(&mut self, target: &str, operation: &Operation) {
        let kind = crate::route::route(target).kind;
        match (operation.effect, &operation.failure) {
            (Effect::Remove, None) => match kind {
                Kind::VirtualMachine => compute::removed(&mut self.world, target),
                Kind::Machine => machines::removed(&mut self.world, target),
                _ => drop(self.world.remove(target)),
            },
            (Effect::Settle, None) if kind == Kind::Machine => machines::succeeded(&mut self.world, target),
            (Effect::Settle, Some(failure)) if kind == Kind::Machine => {
                machines::failed(&mut self.world, target, failure);
            }
            (_, failure) => {
                let state = if failure.is_some() { "Failed" } else { "Succeeded" };
                self.world
                    .change(target, |resource| resource["properties"]["provisioningState"] = json!(state));
                if failure.is_some() {
                    self.world.quota.release(target);
                }
            }
        }
    }

    /// What a scripted failure says about an operation that a call begins.
    pub(crate) fn later(&mut self, call: &Call) -> Option<Refusal> {
        let facts = call.facts();
        match self.failures.take(&call.method, call.route.kind, &facts, |how| matches!(how, How::Later(_))) {
            Some(How::Later(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// Begins an operation and answers with how the client learns its end.
    pub(crate) fn begin(&mut self, call: &Call, mut begin: Begin) -> Result<Answer, Refusal> {
        let lro = self.world.settings.lro(call.route.kind, &call.method);
        // Machines come in batches: each has been looked up by its own name.
        if begin.failure.is_none() && call.route.kind != Kind::Machine {
            begin.failure = self.later(call);
        }
        let lro = if lro.form == Form::Immediate {
            Lro::new(Form::Immediate, std::time::Duration::ZERO)
        } else {
            lro
        };
        let shown = begin.targets.first().cloned().unwrap_or_default();
        let targets = begin.targets.iter().map(|each| each.to_ascii_lowercase()).collect();
        let failure = begin.failure.clone();
        let id = self.operations.begin(&call.method, targets, lro, begin.effect, begin.failure, call.now);
        if lro.form == Form::Immediate {
            self.advance(call.now);
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
        let has_body = call.method == Method::PUT || call.method == Method::PATCH;
        let mut answer = if has_body {
            let resource = self.world.get(&shown).map(shown_to_clients).unwrap_or_default();
            Answer::json(if begin.is_new { 201 } else { 200 }, resource)
        } else {
            Answer::empty(if lro.form == Form::Immediate { 200 } else { 202 })
        };
        if lro.form == Form::Immediate {
            return Ok(answer);
        }
        let [status, result] = ["operations", "operationResults"].map(|which| self.link(call, which, &id));
        answer.headers.extend(match lro.form {
            Form::AsyncOperation => vec![("azure-asyncoperation", status)],
            Form::OperationLocation => vec![("operation-location", status)],
            Form::Location => vec![("location", result)],
            Form::Both => vec![("azure-asyncoperation", status), ("location", result)],
            Form::Body | Form::Immediate => vec![],
        });
        Ok(with_retry_after(answer, lro))
    }

    fn link(&self, call: &Call, which: &str, id: &str) -> String {
        let provider = call.route.resource_type.split('/').next().unwrap_or_default();
        let settings = &self.world.settings;
        let version = call.query("api-version").unwrap_or_default();
        format!(
            "{}/subscriptions/{}/providers/{provider}/locations/{}/{which}/{id}?api-version={version}",
            call.base, settings.subscription, settings.location
        )
    }

    /// What became of an operation.
    pub(crate) fn poll(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let id = call.route.name();
        let Some(operation) = self.operations.get(id).cloned() else {
            return Err(Refusal::new(
                404,
                "OperationNotFound",
                format!("The operation '{id}' was not found."),
            ));
        };
        if operation.status != Status::Running && self.world.settings.forgets_operations {
            self.operations.forget(id);
            return self.poll(call);
        }
        let wants_result = call.route.is_collection;
        let answer = match (operation.status, wants_result) {
            (Status::Running, true) => {
                Answer::empty(202).header("location", format!("{}{}", call.base, with_query(call)))
            }
            (Status::Succeeded, true) => self.result(&operation),
            (_, true) => return Err(operation.failure.unwrap_or_default()),
            (_, false) => Answer::json(200, status_body(&operation)),
        };
        Ok(if operation.status == Status::Running { with_retry_after(answer, operation.lro) } else { answer })
    }

    fn result(&self, operation: &Operation) -> Answer {
        let is_write = operation.method == Method::PUT || operation.method == Method::PATCH;
        let resource = operation.targets.first().and_then(|target| self.world.get(target));
        match resource {
            Some(resource) if is_write => Answer::json(200, shown_to_clients(resource)),
            _ => Answer::empty(204),
        }
    }
}

fn with_query(call: &Call) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&call.query).finish();
    format!("{}?{query}", call.path)
}

fn with_retry_after(answer: Answer, lro: Lro) -> Answer {
    match lro.retry_after {
        Some(after) => answer.header("retry-after", after.as_secs().to_string()),
        None => answer,
    }
}

fn status_body(operation: &Operation) -> Value {
    let mut body = json!({
        "startTime": operation.started.to_string(), "status": operation.status.word(), "name": operation.id,
    });
    if let Some(ended) = operation.ended {
        body["endTime"] = json!(ended.to_string());
    }
    if let (Some(failure), Status::Failed | Status::Canceled) = (&operation.failure, operation.status) {
        body["error"] = failure.value();
    }
    body
}

/// A resource without what Azure keeps to itself.
pub(crate) fn shown_to_clients(resource: &Value) -> Value {
    let mut shown = resource.clone();
    for (place, secret) in [
        ("/properties/osProfile", "customData"),
        ("/properties/osProfile", "adminPassword"),
        ("/properties", "protectedSettings"),
    ] {
        if let Some(object) = shown.pointer_mut(place).and_then(Value::as_object_mut) {
            object.remove(secret);
        }
    }
    shown
}
