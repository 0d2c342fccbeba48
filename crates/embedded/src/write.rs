//! Creating and changing objects: what happens between a body and the store.

mod kept;
mod peculiar;
mod types;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::kept::{keep_server_fields, prepare_custom_update};
use self::peculiar::{checks_metadata_once, count_template, needs_version, takes_any_finalizer};
pub(crate) use self::types::{check_type, go_type};
use crate::admission;
use crate::events;
use crate::field_error::FieldError;
use crate::kinds;
use crate::patch::apply::{Manager, shown_type};
use crate::patch::managed_fields::{self, Entries};
use crate::quota;
use crate::refusal::{Cause, Refusal};
use crate::request::{ObjectPath, Request};
use crate::reset::reset_fields;
use crate::resources::Resource;
use crate::schema;
use crate::state::State;
use crate::store::Object;

/// How often a generated name may already exist.
const NAME_ATTEMPTS: usize = 8;
/// Fields of the metadata that only the server writes.
const SERVER_FIELDS: [&str; 4] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// What is known of an object before the write looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Nothing.
    Client,
    /// Server-side apply made it, with its managed fields.
    Apply,
    /// Nothing but times differ from before, and they are right.
    Renewal,
}

/// A write in progress.
pub(crate) struct Write<'a> {
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) path: &'a ObjectPath,
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    /// `Ignore`, `Warn` or `Strict`.
    pub(crate) field_validation: String,
    pub(crate) warnings: Vec<String>,
    /// Fields that the body had more than once.
    pub(crate) duplicates: Vec<String>,
    /// Whether the body names the object that it replaces, and not only fields of it.
    replaces: bool,
    pub(crate) made: Made,
    /// The managed fields of the object that is changed, if they were taken out of it.
    pub(crate) held: Option<Value>,
    /// What the write left in the store.
    pub(crate) stored: Option<Arc<Object>>,
}

impl<'a> Write<'a> {
    pub(crate) fn new(request: &Request, resource: &'a Arc<Resource>, path: &'a ObjectPath) -> Self {
        Self {
            resource,
            path,
            manager: request.manager(),
            dry_run: request.is_dry_run(),
            field_validation: request.query.text("fieldValidation").to_owned(),
            warnings: Vec::new(),
            duplicates: Vec::new(),
            replaces: request.method == http::Method::PUT,
            made: Made::Client,
            held: None,
            stored: None,
        }
    }

    fn context<'b>(&'b self, namespace: &'b str, now: &'b str) -> kinds::Context<'b> {
        // Events of both groups are stored as those of the core group.
        let group = if self.resource.kind == "Event" { "" } else { &self.resource.group };
        kinds::Context { group, kind: &self.resource.kind, namespace, now }
    }

    /// Checks what a client sent against the type and takes out what the type does not have.
    ///
    /// `before` is the object that a patch changed, if there is one.
    pub(crate) fn decode(&mut self, object: &mut Value, before: Option<&Value>) -> Result<(), Refusal> {
        check_type(self.resource, object)?;
        let unknown = self.unknown_fields(object, before)?;
        let resource = self.resource;
        self.note_unknown(&resource.kind, &resource.version, unknown)
    }

    /// Warns of fields that the type does not have, or refuses them.
    pub(crate) fn note_unknown(
        &mut self,
        kind: &str,
        version: &str,
        unknown: Vec<String>,
    ) -> Result<(), Refusal> {
        let duplicate = std::mem::take(&mut self.duplicates);
        let duplicate = duplicate.into_iter().map(|path| format!("duplicate field \"{path}\""));
        let unknown = unknown.into_iter().map(|path| format!("unknown field \"{path}\""));
        let mut texts: Vec<String> = duplicate.chain(unknown).collect();
        if texts.is_empty() {
            return Ok(());
        }
        match self.field_validation.as_str() {
            "Ignore" => {}
            "Strict" => {
                return Err(Refusal::bad_request(format!(
                    "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
                    texts.join(", ")
                )));
            }
            _ => self.warnings.append(&mut texts),
        }
        Ok(())
    }

    fn unknown_fields(&self, object: &mut Value, before: Option<&Value>) -> Result<Vec<String>, Refusal> {
        let schema = self.resource.schema();
        match before {
            _ if self.resource.custom.is_some() => schema::decode_custom(schema, object),
            Some(before) => schema::decode_changed(schema, object, before),
            None => schema::decode_built_in(schema, object),
        }
    }

    /// What is applied are the fields that are there, not those that the type always has.
    pub(crate) fn check_applied(&self, applied: &Value) -> Result<(), Refusal> {
        if applied["kind"] != self.resource.kind.as_str() {
            return Err(Refusal::bad_request(format!("invalid object type: {}", shown_type(applied))));
        }
        let why = match self.unknown_fields(&mut applied.clone(), None) {
            Ok(unknown) => match unknown.first() {
                Some(path) => format!(".{path}: field not declared in schema"),
                None => return Ok(()),
            },
            Err(refusal) => refusal.message,
        };
        let text = |field: &str| applied["metadata"][field].as_str().unwrap_or_default();
        let object = format!("{}/{}; {}", text("namespace"), text("name"), shown_type(applied));
        let message = format!("failed to create typed patch object ({object}): {why}");
        Err(Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message))
    }

    /// Creates an object and returns it as stored.
    pub(crate) fn create(&mut self, state: &mut State, mut object: Value) -> Result<Value, Refusal> {
        let now = state.now();
        let resource = self.resource;
        self.place(&mut object)?;
        self.warn_of_finalizers(&object);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        admission::check_namespace(state, resource, &namespace, name_of(&object))?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::new(
                http::StatusCode::INTERNAL_SERVER_ERROR,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let applied = object["metadata"]["managedFields"].as_array().is_some_and(|list| !list.is_empty())
            && self.made == Made::Apply;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in SERVER_FIELDS.iter().chain(&["resourceVersion", "selfLink", "generation"]) {
                metadata.remove(*field);
            }
        }
        self.fill_defaults(&mut object, None, &namespace, &now);
        // Server-side apply tracks its own.
        if !applied {
            managed_fields::put(&mut object, None);
            self.track((None, None), (&object, None), &now).put_into(&mut object, None);
        }
        self.name(state, &mut object, &namespace)?;
        object["metadata"]["creationTimestamp"] = Value::from(now.as_str());
        object["metadata"]["uid"] = Value::from(state.new_uid());
        self.prepare_create(state, &mut object, &namespace, &now)?;
        let errors = self.creation_errors(&object, &namespace, &now);
        if !errors.is_empty() {
            return Err(self.invalid(&object, &errors));
        }
        let charge = admission::check(state, resource, &object, None, &namespace)?;
        let name = name_of(&object).to_owned();
        if state.get(resource, &namespace, &name).is_some() {
            return Err(Refusal::already_exists(resource.target(), &name));
        }
        admission::allocate(state, resource, &mut object);
        if !self.dry_run {
            quota::charge(state, charge);
            self.stored = Some(state.put(resource, &mut object));
        }
        Ok(object)
    }

    fn manager<'b>(&'b self, now: &'b str) -> Manager<'b> {
        Manager {
            name: &self.manager,
            subresource: &self.path.subresource,
            api_version: self.resource.api_version(),
            now,
            reset: reset_fields(self.resource, &self.path.subresource),
        }
    }

    /// Who set what, as managed fields tell it; to be called when all defaults are filled in and nothing else is
    /// decided yet.
    fn track(
        &self,
        (before, held): (Option<&Value>, Option<&Value>),
        (object, given): (&Value, Option<&Value>),
        now: &str,
    ) -> Entries {
        let before = before.map(|before| self.tracked(before));
        let object = self.tracked(object);
        let schema = self.resource.schema();
        managed_fields::after_update((before.as_deref(), held), (&*object, given), &self.manager(now), schema)
    }

    /// The object in the form in which its fields have owners.
    fn tracked<'b>(&self, object: &'b Value) -> Cow<'b, Value> {
        let mut tracked = Cow::Borrowed(object);
        if self.resource.custom.is_some() {
            return tracked;
        }
        if self.resource.group == "events.k8s.io" {
            events::from_core(tracked.to_mut());
        }
        if self.resource.is("apps", "DaemonSet") {
            count_template(tracked.to_mut());
        }
        // Fields that are always written, if as null, are not set by anybody.
        if object.as_object().is_some_and(|map| map.values().any(Value::is_null))
            && let Some(map) = tracked.to_mut().as_object_mut()
        {
            map.retain(|_, value| !value.is_null());
        }
        tracked
    }

    /// Finalizers of custom objects may have any name, but a domain keeps them apart.
    fn warn_of_finalizers(&mut self, object: &Value) {
        if self.resource.custom.is_none() {
            return;
        }
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        for name in finalizers.filter_map(Value::as_str) {
            if !name.contains('/') && !matches!(name, "orphan" | "foregroundDeletion" | "kubernetes") {
                self.warnings.push(format!(
                    "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name to avoid \
                     accidental conflicts with other finalizer writers"
                ));
            }
        }
    }

    /// The namespace an object is created in is the one of the request.
    fn place(&self, object: &mut Value) -> Result<(), Refusal> {
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        let metadata = &mut object["metadata"];
        let stated = metadata["namespace"].as_str().unwrap_or_default();
        if !self.resource.namespaced {
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.remove("namespace");
            }
            return Ok(());
        }
        if !stated.is_empty() && stated != self.path.namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata["namespace"] = Value::from(self.path.namespace.as_str());
        Ok(())
    }

    /// Defaults and what the server decides about a new object.
    fn prepare_create(
        &self,
        state: &State,
        object: &mut Value,
        namespace: &str,
        now: &str,
    ) -> Result<(), Refusal> {
        let context = self.context(namespace, now);
        if let Some(custom) = &self.resource.custom {
            if custom.status
                && let Some(map) = object.as_object_mut()
            {
                map.remove("status");
            }
            object["metadata"]["generation"] = Value::from(1);
            // A status that is a default comes back when the object is read.
            self.resource.schema().apply_defaults(object);
            return Ok(());
        }
        admission::on_create(state, self.resource, object, namespace)?;
        kinds::prepare_create(&context, object);
        Ok(())
    }

    /// The defaults that belong to the type.
    fn fill_defaults(&self, object: &mut Value, before: Option<&Value>, namespace: &str, now: &str) {
        if self.resource.custom.is_some() {
            self.resource.schema().apply_defaults(object);
        } else {
            kinds::default(&self.context(namespace, now), object, before);
        }
    }

    /// Gives a generated name.
    fn name(&self, state: &mut State, object: &mut Value, namespace: &str) -> Result<(), Refusal> {
        if !name_of(object).is_empty() {
            return Ok(());
        }
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
        if prefix.is_empty() {
            // Limit ranges are the one kind that gets along without.
            if self.resource.is("", "LimitRange") {
                object["metadata"]["name"] = Value::from(state.new_uid());
            }
            return Ok(());
        }
        // Room for the random end: names are at most 63 characters long where this matters.
        let prefix: String = prefix.chars().take(58).collect();
        for _ in 0..NAME_ATTEMPTS {
            let name = format!("{prefix}{}", state.suffix());
            if state.get(self.resource, namespace, &name).is_none() {
                object["metadata"]["name"] = Value::from(name);
                return Ok(());
            }
        }
        let mut refusal = Refusal::already_exists(self.resource.target(), &prefix);
        refusal.message = format!(
            "{} \"{prefix}\" already exists, the server was not able to generate a unique name for the object",
            self.resource.plural
        );
        Err(refusal)
    }

    fn creation_errors(&self, object: &Value, namespace: &str, now: &str) -> Vec<FieldError> {
        let context = self.context(namespace, now);
        let custom = self.resource.custom.is_some();
        let mut errors = kinds::validate_metadata(&context, object, self.resource.namespaced, !custom);
        if takes_any_finalizer(self.resource) {
            errors.retain(|error| !error.field.starts_with("metadata.finalizers"));
        }
        if custom {
            let wrong = errors.iter().any(|error| error.mistake != crate::field_error::Mistake::Invalid);
            errors.extend(self.resource.schema().validate(object, None));
            let unchecked = FieldError::unchecked_rules();
            if wrong && self.resource.schema().has_rules() && !errors.contains(&unchecked) {
                errors.push(unchecked);
            }
        } else {
            errors.extend(kinds::validate_create(&context, object));
            errors.extend(self.schema_errors(object));
        }
        errors
    }

    /// What is wrong with the schemas of a definition.
    fn schema_errors(&self, object: &Value) -> Vec<FieldError> {
        if !self.resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            return Vec::new();
        }
        let versions = object["spec"]["versions"].as_array().into_iter().flatten().enumerate();
        let compile = |(number, version): (usize, &Value)| {
            let schema = &version["schema"]["openAPIV3Schema"];
            let path = format!("spec.versions[{number}].schema.openAPIV3Schema");
            if schema.is_object() { schema::Schema::compile(schema, &path).err() } else { None }
        };
        versions.filter_map(compile).flatten().collect()
    }

    fn invalid(&self, object: &Value, errors: &[FieldError]) -> Refusal {
        Refusal::invalid(self.resource.told_group(), &self.resource.kind, name_of(object), errors)
    }

    /// Replaces the object `before` and returns it as stored.
    ///
    /// Without a resource version in `object` the write is unconditional.
    pub(crate) fn update(
        &mut self,
        state: &mut State,
        mut before: Value,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        let now = state.now();
        // Who set what is much of an object, and nothing but the tracking looks at it.
        let held = managed_fields::take(&mut before).or(self.held.take());
        let given = managed_fields::take(&mut object);
        if self.made != Made::Renewal {
            self.check_identity(&before, &mut object)?;
            keep_server_fields(&before, &mut object);
            self.fill_defaults(&mut object, Some(&before), &self.path.namespace, &now);
        }
        // Server-side apply tracks its own.
        let entries = if self.made == Made::Apply {
            Entries::Are(given)
        } else {
            self.track((Some(&before), held.as_ref()), (&object, given.as_ref()), &now)
        };
        self.prepare_update(&before, &mut object, &now);
        let errors = self.update_errors(&before, &object, &now);
        if !errors.is_empty() {
            return Err(self.invalid(&object, &errors));
        }
        let charge = if self.path.subresource.is_empty() {
            admission::check(state, self.resource, &object, Some(&before), &self.path.namespace)?
        } else {
            Vec::new()
        };
        // Finalizers of a namespace belong to nobody.
        let entries = if self.path.subresource == "finalize" { Entries::Are(held.clone()) } else { entries };
        // A write that changes nothing is not a change.
        if before == object && entries.are_like(held.as_ref()) {
            managed_fields::put(&mut before, held);
            return Ok(before);
        }
        if is_finished(&object) {
            managed_fields::put(&mut before, held.clone());
            entries.put_into(&mut object, held);
            // Watchers are told the last state that was stored; the client sees its own change.
            if !self.dry_run {
                state.remove(self.resource, &mut before);
            }
            return Ok(object);
        }
        entries.put_into(&mut object, held);
        if !self.dry_run {
            quota::charge(state, charge);
            self.stored = Some(state.put(self.resource, &mut object));
        }
        Ok(object)
    }

    /// The object must be the one that the path names, and the version that is there.
    fn check_identity(&self, before: &Value, object: &mut Value) -> Result<(), Refusal> {
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        let name = name_of(before).to_owned();
        let target = self.resource.target();
        let stated = name_of(object);
        if !stated.is_empty() && stated != name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({stated}) does not match the name on the URL ({name})"
            )));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if self.resource.namespaced && !namespace.is_empty() && namespace != self.path.namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let metadata = &mut object["metadata"];
        metadata["name"] = Value::from(name.as_str());
        if self.resource.namespaced {
            metadata["namespace"] = Value::from(self.path.namespace.as_str());
        }
        let (is, stated) = (&before["metadata"]["uid"], metadata["uid"].as_str().unwrap_or_default());
        if !stated.is_empty() && is.as_str() != Some(stated) {
            if !self.replaces {
                let error = FieldError::invalid("metadata.uid", &Value::from(stated), "field is immutable");
                return Err(self.invalid(object, &[error.clone(), error]));
            }
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {stated}, UID in object meta: {}",
                self.resource.plural,
                self.path.namespace,
                is.as_str().unwrap_or_default()
            );
            return Err(Refusal::conflict(target, &name, &why));
        }
        let version = metadata["resourceVersion"].as_str().unwrap_or_default();
        if (version.is_empty() || version == "0") && needs_version(self.resource) {
            let error = FieldError {
                mistake: crate::field_error::Mistake::Invalid,
                field: "metadata.resourceVersion".to_owned(),
                shown: Some("0".to_owned()),
                detail: "must be specified for an update".to_owned(),
            };
            return Err(Refusal::invalid(self.resource.told_group(), &self.resource.plural, &name, &[error]));
        }
        if !version.is_empty()
            && version != "0"
            && Some(version) != before["metadata"]["resourceVersion"].as_str()
        {
            return Err(Refusal::stale(target, &name));
        }
        Ok(())
    }

    fn prepare_update(&self, before: &Value, object: &mut Value, now: &str) {
        let namespace = self.path.namespace.clone();
        let context = self.context(&namespace, now);
        let status = self.path.subresource == "status";
        if let Some(custom) = &self.resource.custom {
            prepare_custom_update(custom.status, status, before, object);
            return;
        }
        if status {
            kinds::prepare_status_update(&context, object, before);
        } else if self.path.subresource == "finalize" {
            // Nothing but the finalizers of a namespace can be written here.
            let finalizers = object["spec"]["finalizers"].take();
            *object = before.clone();
            object["spec"]["finalizers"] = finalizers;
        } else {
            kinds::prepare_update(&context, object, before);
            admission::on_update(self.resource, object, before);
        }
    }

    fn update_errors(&self, before: &Value, object: &Value, now: &str) -> Vec<FieldError> {
        let namespace = self.path.namespace.clone();
        let context = self.context(&namespace, now);
        let custom = self.resource.custom.is_some();
        let mut errors = Vec::new();
        // Metadata that was right is right still, but for finalizers, which some kinds only look at later.
        let metadata = &object["metadata"];
        if *metadata != before["metadata"] || metadata.get("finalizers").is_some() {
            errors.extend(kinds::validate_metadata(&context, object, self.resource.namespaced, !custom));
            let changed = kinds::validate_metadata_update(object, before);
            if !checks_metadata_once(self.resource) {
                errors.extend(changed.clone());
            }
            errors.extend(changed);
        }
        if custom {
            errors.extend(self.resource.schema().validate(object, Some(before)));
        } else if self.path.subresource == "status" {
            errors.extend(kinds::validate_status_update(&context, object, before));
        } else {
            errors.extend(kinds::validate_update(&context, object, before));
            errors.extend(self.schema_errors(object));
        }
        errors
    }
}

/// Whether a deleted object has nothing left to wait for.
pub(crate) fn is_finished(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && empty(&metadata["finalizers"])
        && (object["kind"] != "Namespace" || empty(&object["spec"]["finalizers"]))
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The refusal of writes into a namespace that is going.
pub(crate) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Refusal {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut refusal = Refusal::forbidden(resource.target(), name, &why);
    if let Some(details) = &mut refusal.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
    }
    refusal
}

/// The success of a deletion that left nothing.
pub(crate) fn deleted_status(resource: &Resource, object: &Object) -> Value {
    let mut details = json!({"name": &*object.key.name, "kind": resource.plural, "uid": &*object.uid});
    if !resource.group.is_empty() {
        details["group"] = Value::from(resource.group.as_str());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
