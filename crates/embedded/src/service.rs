//! From HTTP requests to answers: the server as a `tower::Service`.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Map, Value, json};

use crate::answer::{self, Answer, Body};
use crate::body::{self, DeleteOptions};
use crate::chores;
use crate::delete;
use crate::discovery;
use crate::events;
use crate::form::Writer;
use crate::list;
use crate::openapi;
use crate::options;
use crate::patch::{self, managed_fields};
use crate::patch_kind::{self, PatchKind};
use crate::pods;
use crate::refusal::Refusal;
use crate::request::{ObjectPath, Request, Route};
use crate::reset::reset_fields;
use crate::resources::Resource;
use crate::scale;
use crate::schema::{self, Library, Schema};
use crate::state::State;
use crate::store::{Key, Object};
use crate::watch;
use crate::write::{Made, Write};

/// What every request for endpoints is told.
const ENDPOINTS_WARNING: &str = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

/// What the deletion of a job is told that does not say what is to happen to its pods.
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// The API server. Clones share one cluster.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) state: Arc<Mutex<State>>,
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match Limited::new(body, body::LIMIT).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                    let message = format!("Request entity too large: limit is {}", body::LIMIT);
                    return Ok(answer::refused(Refusal::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        message,
                    )));
                }
                Err(error) => return Ok(answer::refused(Refusal::bad_request(error.to_string()))),
            };
            let answer = Request::new(&parts, body).and_then(|request| service.answer(&request));
            Ok(match answer {
                Ok(answer) => answer.response(),
                Err(refusal) => answer::refused(refusal),
            })
        })
    }
}

impl Service {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(&self, request: &Request) -> Result<Answer, Refusal> {
        let path = match &request.route {
            Route::Objects(path) => path,
            other => return self.answer_about(request, other),
        };
        let state = self.lock();
        let Some(resource) = state.registry.get(&path.group, &path.version, &path.plural) else {
            return Ok(discovery::missing_resource(&state.registry, &path.group, &path.version));
        };
        drop(state);
        // A namespace around something that has none, and the reverse for a single object.
        if resource.namespaced == path.namespace.is_empty()
            && (!path.namespace.is_empty() || !path.name.is_empty())
        {
            return discovery::no_path(&resource);
        }
        PatchKind::check(request, &resource)?;
        let call = Call { service: self, request, resource: &resource, path };
        let answer = options::check(request).and_then(|()| call.answer());
        if answer.as_ref().is_err_and(|refusal| refusal.code == StatusCode::METHOD_NOT_ALLOWED) {
            return answer;
        }
        let jobs = resource.is("batch", "Job") && request.method == Method::DELETE;
        let job = (jobs && DeleteOptions::of(request).is_ok_and(|options| options.propagation.is_none()))
            .then(|| JOB_WARNING.to_owned());
        let Some(warning) = deprecation(&resource).or(job) else { return answer };
        // Refused requests are warned, too.
        let mut answer = answer.unwrap_or_else(Answer::from);
        answer.warnings.push(warning);
        Ok(answer)
    }

    fn answer_about(&self, request: &Request, route: &Route) -> Result<Answer, Refusal> {
        if request.method != Method::GET {
            return match route {
                Route::Other(_) => Ok(discovery::page_not_found()),
                _ => Err(Refusal::method_not_allowed()),
            };
        }
        let state = self.lock();
        let registry = &state.registry;
        Ok(match route {
            Route::CoreVersions => discovery::core_versions(registry, request.form),
            Route::Groups => discovery::groups(registry, request.form),
            Route::Group(name) => discovery::group(registry, name),
            Route::Resources { group, version } => discovery::resources(registry, group, version),
            Route::OpenApiV2 => openapi::v2::answer(registry, request.form),
            Route::OpenApiIndex => openapi::index(registry),
            Route::OpenApi(path) => {
                openapi::document(registry, path).unwrap_or_else(discovery::page_not_found)
            }
            Route::Other(path) if path == "/metrics" => Answer::text(metrics(&state)),
            Route::Other(path) => discovery::other(registry, path),
            Route::Objects(_) => discovery::page_not_found(),
        })
    }
}

/// What is not possible with a pod that runs nothing, for the subresources that need a process.
fn needs_a_process(subresource: &str) -> Option<&'static str> {
    Some(match subresource {
        "exec" => "no command can be executed in it",
        "attach" => "there is nothing to attach to",
        "portforward" => "no port of it can be forwarded",
        "proxy" => "nothing answers requests to it",
        _ => return None,
    })
}

/// What requests for an old resource are told.
fn deprecation(resource: &Resource) -> Option<String> {
    if resource.is("", "Endpoints") {
        return Some(ENDPOINTS_WARNING.to_owned());
    }
    let warning = resource.custom.as_ref()?.deprecation.as_ref()?;
    let default = || format!("{} {} is deprecated", resource.api_version(), resource.kind);
    Some(if warning.is_empty() { default() } else { warning.clone() })
}

/// What monitoring may want to know, in Prometheus' text format and with the names of the real server.
fn metrics(state: &State) -> String {
    let mut text = String::from(
        "# HELP apiserver_resource_objects Number of stored objects by resource.\n\
         # TYPE apiserver_resource_objects gauge\n",
    );
    let mut running = String::from(
        "# HELP apiserver_longrunning_requests Number of running watches by resource.\n\
         # TYPE apiserver_longrunning_requests gauge\n",
    );
    for resource in state.registry.stored() {
        let collection = state.store.collection(resource.collection);
        let (group, plural) = (&resource.group, &resource.plural);
        let (objects, watches) = (collection.objects().len(), collection.watchers());
        // Writing to a string cannot fail.
        let labels = format!("group=\"{group}\",resource=\"{plural}\"");
        let _ = writeln!(text, "apiserver_resource_objects{{{labels}}} {objects}");
        let _ = writeln!(running, "apiserver_longrunning_requests{{{labels},verb=\"WATCH\"}} {watches}");
    }
    text + &running
}

/// One request about objects.
struct Call<'a> {
    service: &'a Service,
    request: &'a Request,
    resource: &'a Arc<Resource>,
    path: &'a ObjectPath,
}

impl Call<'_> {
    fn key(&self) -> Key {
        Key::new(&self.path.namespace, &self.path.name)
    }

    fn answer(&self) -> Result<Answer, Refusal> {
        let named = !self.path.name.is_empty();
        if !self.path.subresource.is_empty() {
            return self.subresource();
        }
        let verb = match (&self.request.method, named) {
            (&Method::GET, _) if self.request.is_watch() => "watch",
            (&Method::GET, true) => "get",
            (&Method::GET, false) => "list",
            (&Method::POST, false) => "create",
            (&Method::PUT, true) => "update",
            (&Method::PATCH, true) => "patch",
            (&Method::DELETE, true) => "delete",
            (&Method::DELETE, false) => "deletecollection",
            (&Method::POST, true) if self.resource.custom.is_some() => "create",
            (&Method::PUT, false) if self.resource.custom.is_some() => {
                return Err(Refusal::bad_request("name must be provided"));
            }
            _ => return Err(Refusal::method_not_allowed()),
        };
        // All namespaces can be listed and watched, not written.
        let everywhere = self.resource.namespaced && self.path.namespace.is_empty();
        if !self.resource.serves(verb) || (everywhere && !matches!(verb, "list" | "watch")) {
            return Err(Refusal::method_not_allowed());
        }
        match verb {
            "watch" => watch::watch(&self.service.state, self.request, self.resource, self.path),
            "list" => list::list(&self.service.lock(), self.request, self.resource, self.path),
            "get" => self.get(),
            "create" => self.create(),
            "update" if self.is_created_by_update() => self.create(),
            "update" => self.write_main(Self::replace),
            "patch" => self.patch(),
            "delete" => self.delete(),
            _ => self.delete_collection(),
        }
    }

    fn found(&self, state: &State) -> Result<Arc<Object>, Refusal> {
        let found = state.store.get(self.resource.collection, &self.key()).cloned();
        found.ok_or_else(|| Refusal::not_found(self.resource.target(), &self.path.name))
    }

    fn get(&self) -> Result<Answer, Refusal> {
        let state = self.service.lock();
        let asked = list::parse_revision(self.request.query.text("resourceVersion"))?;
        if asked > state.store.revision() {
            return Err(list::too_large(asked, state.store.revision()));
        }
        let past = list::past(&state, self.request, self.resource);
        let object = match &past {
            Some(objects) => objects.get(&self.key()).cloned(),
            None => state.store.get(self.resource.collection, &self.key()).cloned(),
        };
        let object = object.ok_or_else(|| Refusal::not_found(self.resource.target(), &self.path.name))?;
        let writer = Writer::new(self.request, self.resource, state.clock.now());
        Ok(Answer::bytes(StatusCode::OK, writer.object(&object)))
    }

    /// Some kinds can be written without asking whether they are there.
    fn is_created_by_update(&self) -> bool {
        const KINDS: [&str; 9] = [
            "Event",
            "Lease",
            "Endpoints",
            "LimitRange",
            "Service",
            "Role",
            "RoleBinding",
            "ClusterRole",
            "ClusterRoleBinding",
        ];
        KINDS.contains(&self.resource.kind.as_str())
            && self.resource.custom.is_none()
            && self.service.lock().store.get(self.resource.collection, &self.key()).is_none()
    }

    /// An answer with an object that was just written.
    fn written(&self, state: &mut State, code: StatusCode, mut object: Value, write: Write<'_>) -> Answer {
        let writer = Writer::new(self.request, self.resource, state.clock.now());
        if let Some(stored) = write.stored {
            let mut answer = Answer::bytes(code, writer.object(&stored));
            answer.warnings = write.warnings;
            state.recent.keep(stored, object);
            return answer;
        }
        if self.resource.group == "events.k8s.io" {
            events::from_core(&mut object);
        }
        let mut answer = Answer::json(code, &writer.formed(object));
        answer.warnings = write.warnings;
        answer
    }

    fn create(&self) -> Result<Answer, Refusal> {
        let (mut object, duplicates) = body::read(self.request, &self.resource.kind)?;
        if self.resource.custom.is_some() {
            body::require_kind(self.request, &object, &self.resource.kind)?;
        }
        if let Some(answer) = self.review(&object) {
            return Ok(answer);
        }
        if self.resource.is("", "Binding") {
            return self.bind_by_body(&object);
        }
        let mut write = Write::new(self.request, self.resource, self.path);
        write.duplicates = duplicates;
        write.decode(&mut object, None)?;
        if self.resource.group == "events.k8s.io" {
            events::to_core(&mut object);
        }
        let mut state = self.service.lock();
        let created = write.create(&mut state, object)?;
        if self.resource.is("apiextensions.k8s.io", "CustomResourceDefinition") && !write.dry_run {
            let now = state.now();
            chores::establish(&mut state, self.resource, created.clone(), &now);
        }
        chores::run(&mut state);
        Ok(self.written(&mut state, StatusCode::CREATED, created, write))
    }

    /// Questions that are answered and not stored.
    fn review(&self, object: &Value) -> Option<Answer> {
        let mut answer = object.is_object().then(|| object.clone())?;
        answer["apiVersion"] = Value::from(self.resource.api_version());
        answer["kind"] = Value::from(self.resource.kind.as_str());
        if !answer["metadata"].is_object() {
            answer["metadata"] = Value::Object(Map::new());
        }
        answer["status"] = match (self.resource.group.as_str(), self.resource.kind.as_str()) {
            // Nobody is refused here: a cluster on one's own machine has one user.
            ("authorization.k8s.io", "SelfSubjectRulesReview") => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            ("authorization.k8s.io", _) => json!({"allowed": true}),
            ("authentication.k8s.io", "SelfSubjectReview") => {
                json!({"userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]}})
            }
            _ => return None,
        };
        Some(Answer::json(StatusCode::CREATED, &answer))
    }

    /// A write of the main object or its status.
    fn write_main(
        &self,
        act: impl FnOnce(&Self, &mut State, &mut Write<'_>, &Arc<Object>) -> Result<Value, Refusal>,
    ) -> Result<Answer, Refusal> {
        let mut write = Write::new(self.request, self.resource, self.path);
        let mut state = self.service.lock();
        let old = self.found(&state)?;
        let object = act(self, &mut state, &mut write, &old)?;
        chores::run(&mut state);
        Ok(self.written(&mut state, StatusCode::OK, object, write))
    }

    fn replace(&self, state: &mut State, write: &mut Write<'_>, old: &Arc<Object>) -> Result<Value, Refusal> {
        let (mut object, duplicates) = body::read(self.request, &self.resource.kind)?;
        write.duplicates = duplicates;
        write.decode(&mut object, None)?;
        if self.resource.group == "events.k8s.io" {
            events::to_core(&mut object);
        }
        let before = state.value(self.resource, old);
        write.update(state, before, object)
    }

    fn patch(&self) -> Result<Answer, Refusal> {
        let kind = PatchKind::of(&self.request.content_type).ok_or_else(Refusal::unknown_media_type)?;
        if kind != PatchKind::Apply {
            return self.write_main(|call, state, write, old| call.patched(kind, state, write, old));
        }
        self.apply()
    }

    fn patched(
        &self,
        kind: PatchKind,
        state: &mut State,
        write: &mut Write<'_>,
        old: &Arc<Object>,
    ) -> Result<Value, Refusal> {
        let patch = kind.read(&self.request.body)?;
        let converts = self.resource.group == "events.k8s.io";
        let mut before = state.value(self.resource, old);
        if kind.leaves_managers(&patch) {
            write.held = managed_fields::take(&mut before);
        }
        let stored = converts.then(|| before.clone());
        if converts {
            events::from_core(&mut before);
        }
        let patched = |before: &Value| {
            let mut object = before.clone();
            kind.patch(&mut object, &patch, self.resource).map(|()| object)
        };
        let mut object = patched(&before)?;
        if kind.renews(&patch, &before, self.resource) {
            write.made = Made::Renewal;
        } else if let Err(refusal) = write.decode(&mut object, Some(&before)) {
            if let Some(held) = write.held.take() {
                managed_fields::put(&mut before, Some(held));
            }
            return Err(patch_kind::unreadable(&patched(&before)?.to_string(), &refusal));
        }
        if converts {
            events::to_core(&mut object);
        }
        write.update(state, stored.unwrap_or(before), object)
    }

    fn apply(&self) -> Result<Answer, Refusal> {
        let applied = body::apply_patch(&self.request.body)?;
        let mut write = Write::new(self.request, self.resource, self.path);
        write.made = Made::Apply;
        if applied["metadata"]["managedFields"].as_array().is_some_and(|list| !list.is_empty()) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        write.check_applied(&applied)?;
        let name = crate::write::name_of(&applied).to_owned();
        if name != self.path.name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.path.name
            )));
        }
        let mut state = self.service.lock();
        let now = state.now();
        let old = state.store.get(self.resource.collection, &self.key()).cloned();
        let manager_name = self.request.manager();
        let manager = patch::apply::Manager {
            name: &manager_name,
            subresource: &self.path.subresource,
            api_version: self.resource.api_version(),
            now: &now,
            reset: reset_fields(self.resource, &self.path.subresource),
        };
        let writer = Writer::new(self.request, self.resource, state.clock.now());
        let live = old.as_ref().map(|old| writer.value(old));
        let force = self.request.query.flag("force");
        let schema = self.resource.schema();
        let mut object = patch::apply::apply(live.as_ref(), &applied, &manager, force, schema)?;
        if self.resource.group == "events.k8s.io" {
            events::to_core(&mut object);
        }
        let (code, object) = match old {
            Some(old) => (StatusCode::OK, write.update(&mut state, old.value(self.resource), object)?),
            None if self.path.subresource.is_empty() => {
                let created = write.create(&mut state, object)?;
                if self.resource.is("apiextensions.k8s.io", "CustomResourceDefinition") && !write.dry_run {
                    chores::establish(&mut state, self.resource, created.clone(), &now);
                }
                (StatusCode::CREATED, created)
            }
            None => return Err(Refusal::not_found(self.resource.target(), &self.path.name)),
        };
        chores::run(&mut state);
        Ok(self.written(&mut state, code, object, write))
    }

    fn delete(&self) -> Result<Answer, Refusal> {
        let options = DeleteOptions::of(self.request)?;
        let mut state = self.service.lock();
        let result = delete::delete(&mut state, self.resource, &self.key(), &options)?;
        chores::run(&mut state);
        let writer = Writer::new(self.request, self.resource, state.clock.now());
        let mut result = result;
        if self.resource.group == "events.k8s.io" && result["kind"] == "Event" {
            events::from_core(&mut result);
        }
        let shown = if result["kind"] == "Status" { result } else { writer.formed(result) };
        Ok(Answer::json(StatusCode::OK, &shown))
    }

    fn delete_collection(&self) -> Result<Answer, Refusal> {
        let options = DeleteOptions::of(self.request)?;
        let selection = list::selection(&self.request.query, self.resource, self.path)?;
        let mut state = self.service.lock();
        let objects: Vec<Arc<Object>> = state
            .store
            .collection(self.resource.collection)
            .objects()
            .values()
            .filter(|object| selection.matches(object))
            .cloned()
            .collect();
        for object in &objects {
            match delete::start(&mut state, self.resource, object, &options) {
                // Some went with others that were deleted before them.
                Ok(_) => {}
                Err(refusal) if refusal.code == StatusCode::NOT_FOUND => {}
                Err(refusal) => return Err(refusal),
            }
        }
        chores::run(&mut state);
        let writer = Writer::new(self.request, self.resource, state.clock.now());
        let meta = crate::form::ListMeta { revision: state.store.revision(), ..Default::default() };
        Ok(Answer::bytes(StatusCode::OK, writer.list(objects.iter(), &meta)))
    }

    fn subresource(&self) -> Result<Answer, Refusal> {
        let name = self.path.subresource.as_str();
        if self.resource.is("", "Pod")
            && let Some(what) = needs_a_process(name)
        {
            let state = self.service.lock();
            self.found(&state)?;
            return Err(Refusal::bad_request(format!(
                "pod \"{}\" is simulated and runs no code, so {what}",
                self.path.name
            )));
        }
        let Some(subresource) = self.resource.subresource(name) else {
            return Err(match &self.resource.custom {
                Some(_) => Refusal::not_found(self.resource.target(), &self.path.name),
                None => Refusal::no_such_path(),
            });
        };
        let verb = match self.request.method {
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "",
        };
        if !subresource.verbs.iter().any(|one| one == verb) {
            return Err(match &self.resource.custom {
                Some(_) => Refusal::verb_not_supported(self.resource.target(), &self.request.method),
                None => Refusal::method_not_allowed(),
            });
        }
        match (name, verb) {
            ("binding", _) => {
                let (body, _) = body::read(self.request, "Binding")?;
                self.bind(&self.key(), &body)
            }
            ("eviction", _) => self.evict(),
            ("token", _) => Err(Refusal::new(
                StatusCode::NOT_IMPLEMENTED,
                "NotImplemented",
                "this cluster gives no service account tokens: it has one user",
            )),
            ("log", _) => Err(Refusal::bad_request(format!(
                "pod \"{}\" is simulated and writes no logs",
                self.path.name
            ))),
            ("scale", "get") => {
                let state = self.service.lock();
                let object = self.found(&state)?.value(self.resource);
                Ok(Answer::json(StatusCode::OK, &scale::of(self.resource, &object)?))
            }
            ("scale", _) => self.scale(),
            (_, "get") => self.get(),
            (_, "patch") => self.patch(),
            (_, _) => self.write_main(Self::replace),
        }
    }

    fn bind_by_body(&self, binding: &Value) -> Result<Answer, Refusal> {
        let pods = self.service.lock().registry.get("", "v1", "pods").ok_or_else(Refusal::no_such_path)?;
        let name = binding["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let call = Call { service: self.service, request: self.request, resource: &pods, path: self.path };
        call.bind(&Key::new(&self.path.namespace, &name), binding)
    }

    fn bind(&self, key: &Key, binding: &Value) -> Result<Answer, Refusal> {
        let mut state = self.service.lock();
        let answer = pods::bind(&mut state, self.resource, key, binding)?;
        Ok(Answer::json(StatusCode::CREATED, &answer))
    }

    fn evict(&self) -> Result<Answer, Refusal> {
        let (mut eviction, _) = body::read(self.request, "Eviction")?;
        let schema = Library::built_in().kind("policy/v1", "Eviction").unwrap_or_else(Schema::anything);
        let mut write = Write::new(self.request, self.resource, self.path);
        write.note_unknown("Eviction", "v1", schema::decode_built_in(&schema, &mut eviction)?)?;
        let mut state = self.service.lock();
        let answer =
            pods::evict(&mut state, self.resource, &self.key(), &eviction, self.request.is_dry_run())?;
        chores::run(&mut state);
        let mut answer = Answer::json(StatusCode::CREATED, &answer);
        answer.warnings = write.warnings;
        Ok(answer)
    }

    fn scale(&self) -> Result<Answer, Refusal> {
        let mut write = Write::new(self.request, self.resource, self.path);
        let mut state = self.service.lock();
        let old = self.found(&state)?;
        let before = old.value(self.resource);
        let mut object = before.clone();
        let mut shown = scale::of(self.resource, &object)?;
        if self.request.method == Method::PATCH {
            let kind = PatchKind::of(&self.request.content_type).ok_or_else(Refusal::unknown_media_type)?;
            kind.patch(&mut shown, &kind.read(&self.request.body)?, self.resource)?;
        } else {
            shown = body::read(self.request, "Scale")?.0;
        }
        let version = shown["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() && version != old.revision.to_string() {
            return Err(Refusal::stale(self.resource.target(), &self.path.name));
        }
        scale::apply(self.resource, &mut object, &shown)?;
        let object = write.update(&mut state, before, object)?;
        chores::run(&mut state);
        Ok(Answer::json(StatusCode::OK, &scale::of(self.resource, &object)?))
    }
}
