//! What a request asks for: its path, its query, and the form of answer it accepts.

use std::borrow::Cow;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};

use crate::faults::Stale;
use crate::refusal::Refusal;

/// How the content types begin by which clients ask for the OpenAPI v2 document in protobuf.
const OPENAPI_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2";

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`, `/version`, `/healthz` and the like.
    Other(String),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources { group: String, version: String },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/PATH`.
    OpenApi(String),
    /// Objects.
    Objects(ObjectPath),
}

/// The path of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for cluster-scoped objects and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for the collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        let segments: Vec<Cow<'_, str>> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy())
            .collect();
        let words: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        match words.as_slice() {
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => {
                Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            ["api", version, rest @ ..] => objects("", version, rest, path),
            ["apis", group, version, rest @ ..] => objects(group, version, rest, path),
            _ => Self::Other(path.to_owned()),
        }
    }
}

fn objects(group: &str, version: &str, rest: &[&str], path: &str) -> Route {
    let found = |namespace: &str, plural: &str, name: &str, subresource: &str| {
        Route::Objects(ObjectPath {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    };
    match rest {
        // A namespace's own subresources; anything else below a namespace is in it.
        ["namespaces", name, sub @ ("status" | "finalize")] => found("", "namespaces", name, sub),
        ["namespaces", namespace, plural] => found(namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => found(namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, sub] => found(namespace, plural, name, sub),
        [plural] => found("", plural, "", ""),
        [plural, name] => found("", plural, name, ""),
        [plural, name, sub] => found("", plural, name, sub),
        _ => Route::Other(path.to_owned()),
    }
}

/// A request, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) route: Route,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
    /// How many changes ago this request reads, when a fault makes it.
    pub(crate) behind: u64,
}

impl Request {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Result<Self, Refusal> {
        let header = |name| header_text(&parts.headers, name);
        let (route, accept) = (Route::of(parts.uri.path()), header(header::ACCEPT));
        let protobuf = route == Route::OpenApiV2 && accept.trim().starts_with(OPENAPI_PROTOBUF);
        Ok(Self {
            method: parts.method.clone(),
            route,
            query: Query::of(parts.uri.query().unwrap_or_default()),
            form: if protobuf { Form::Protobuf } else { Form::of(&accept)? },
            content_type: header(header::CONTENT_TYPE),
            user_agent: header(header::USER_AGENT),
            body,
            behind: parts.extensions.get::<Stale>().map_or(0, |stale| stale.behind),
        })
    }

    /// A request of the server's own.
    pub(crate) fn internal(route: Route, user_agent: &str) -> Self {
        Self {
            method: Method::POST,
            route,
            query: Query::default(),
            form: Form::Object,
            content_type: String::new(),
            user_agent: user_agent.to_owned(),
            body: Bytes::new(),
            behind: 0,
        }
    }

    /// Who writes: `fieldManager`, or the first word of the user agent.
    pub(crate) fn manager(&self) -> String {
        let named = self.query.text("fieldManager");
        if !named.is_empty() {
            return named.to_owned();
        }
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        if agent.is_empty() { "unknown".to_owned() } else { agent.to_owned() }
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.flag("watch")
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        !self.query.text("dryRun").is_empty()
    }
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// The part of the address after the question mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// A parameter, empty when it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Whether a parameter is there and says nothing else.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name), "false" | "0")
    }
}

/// How the answer is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Object,
    /// Rows and columns for people.
    Table,
    /// Metadata only.
    Metadata,
    /// All groups and resources in one document.
    Discovery,
    /// Protobuf, which only the OpenAPI document is written in.
    Protobuf,
}

impl Form {
    fn of(accept: &str) -> Result<Self, Refusal> {
        if accept.trim().is_empty() {
            return Ok(Self::Object);
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let parameter = |name: &str| {
                clause.split(';').map(str::trim).find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
            };
            if !matches!(kind, "application/json" | "*/*" | "application/*" | "text/plain" | "text/*") {
                continue;
            }
            return match (parameter("as"), parameter("v")) {
                (None, _) => Ok(Self::Object),
                (Some("Table"), Some("v1")) => Ok(Self::Table),
                (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("v1")) => {
                    Ok(Self::Metadata)
                }
                (Some("APIGroupDiscoveryList"), Some("v2")) => Ok(Self::Discovery),
                // Another clause may ask for something that exists.
                _ => continue,
            };
        }
        Err(not_acceptable(accept))
    }
}

fn not_acceptable(accept: &str) -> Refusal {
    const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    if accept.contains("application/json") {
        let message = format!("only the following media types are accepted: {TYPES}");
        return Refusal::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
    }
    let message = format!(
        "406: Not Acceptable\n\nAvailable representations: {TYPES}, application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch"
    );
    let mut refusal = Refusal::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
    refusal.details = Some(Box::default());
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects_of(path: &str) -> ObjectPath {
        match Route::of(path) {
            Route::Objects(objects) => objects,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        assert_eq!(objects_of("/api/v1/namespaces/a").plural, "namespaces");
        assert_eq!(objects_of("/api/v1/namespaces/a/finalize").subresource, "finalize");
        let pod = objects_of("/api/v1/namespaces/a/pods/b/eviction");
        assert_eq!((pod.namespace.as_str(), pod.plural.as_str(), pod.name.as_str()), ("a", "pods", "b"));
        assert_eq!(pod.subresource, "eviction");
    }

    #[test]
    fn names_in_paths_may_be_encoded() {
        let role = objects_of("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode");
        assert_eq!(role.name, "system:node");
    }

    #[test]
    fn the_first_form_that_can_be_given_is_given() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(Form::of(table).unwrap(), Form::Table);
        let old_table = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(Form::of(old_table).unwrap(), Form::Object);
        assert_eq!(Form::of("application/vnd.kubernetes.protobuf, */*").unwrap(), Form::Object);
        assert_eq!(Form::of("application/yaml").unwrap_err().code.as_u16(), 406);
    }
}
