//! A request, read once.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use jiff::Timestamp;
use serde_json::Value;

use crate::answer::Refusal;
use crate::route::{Kind, Route, route};

/// A request as the services see it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) now: Timestamp,
    pub(crate) method: Method,
    /// Where the client believes to be, such as `https://management.azure.com`; links begin with it.
    pub(crate) base: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) route: Route,
}

/// What failures are looked up by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) size: String,
    /// Empty for a machine without a zone.
    pub(crate) zone: String,
    pub(crate) priority: String,
}

impl Call {
    pub(crate) fn new(request: Request<Bytes>, now: Timestamp) -> Self {
        let (head, body) = request.into_parts();
        let host = head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
        let authority =
            head.uri.authority().map(http::uri::Authority::as_str).or(host).unwrap_or("localhost");
        let base = format!("{}://{authority}", head.uri.scheme_str().unwrap_or("http"));
        let query = head.uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let path = head.uri.path().to_owned();
        Self { now, method: head.method, base, route: route(&path), path, query, headers: head.headers, body }
    }

    /// A parameter; names are compared as Azure does, whatever their case.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn json(&self) -> Result<Value, Refusal> {
        serde_json::from_slice(&self.body).map_err(|error| Refusal::bad_json(&error.to_string()))
    }

    /// A link to the same list from an element on.
    pub(crate) fn next_link(&self, parameter: &str, from: usize) -> String {
        let others = self.query.iter().filter(|(key, _)| !key.eq_ignore_ascii_case(parameter));
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(others)
            .append_pair(parameter, &from.to_string())
            .finish();
        format!("{}{}?{query}", self.base, self.path)
    }

    pub(crate) fn facts(&self) -> Facts {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        facts(self.route.kind, self.route.name(), &body)
    }
}

pub(crate) fn facts(kind: Kind, name: &str, body: &Value) -> Facts {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let size = match kind {
        Kind::Machine => text("/properties/hardware/vmSize"),
        _ => text("/properties/hardwareProfile/vmSize"),
    };
    Facts { name: name.to_owned(), size, zone: text("/zones/0"), priority: text("/properties/priority") }
}
