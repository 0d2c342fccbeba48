//! One question to Azure, before it is sent.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::error::Error;

/// What stays as it is in a path or a query.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'(').remove(b')');

/// As whom a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// As nobody.
    Nobody,
    /// As ourselves.
    Own,
    /// As ourselves, and as somebody who may use the images of AKS.
    WithGallery,
}

/// One question. It cannot be shown, because of what bodies and headers may contain.
#[derive(Clone)]
pub(super) struct Call {
    /// What it is counted as, such as `compute:PutVirtualMachine`.
    pub(super) operation: &'static str,
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
    pub(super) identity: Identity,
}

impl Call {
    /// A question without a body, asked as ourselves.
    pub(super) fn new(operation: &'static str, method: Method, url: String) -> Self {
        Self { operation, method, url, headers: Vec::new(), body: Bytes::new(), identity: Identity::Own }
    }

    /// The same question as somebody else.
    pub(super) fn identity(self, identity: Identity) -> Self {
        Self { identity, ..self }
    }

    /// The same question with a body.
    pub(super) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let written = serde_json::to_vec(body);
        self.body = Bytes::from(written.map_err(|error| self.invalid("body", error))?);
        Ok(self)
    }

    /// The same question with one more header.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Error> {
        let value = HeaderValue::from_str(value).map_err(|error| self.invalid(name, error))?;
        self.headers.push((HeaderName::from_static(name), value));
        Ok(self)
    }

    /// The question where this one is answered from then on: the next page, or how far it is.
    pub(super) fn follow(&self, operation: &'static str, url: String) -> Self {
        Self { identity: self.identity, ..Self::new(operation, Method::GET, url) }
    }

    fn invalid(&self, what: &str, why: impl std::fmt::Display) -> Error {
        Error::new(&self.description(), "", &format!("writing the request's {what}, {why}"))
    }

    /// Where it is asked, if that is an address at all.
    pub(super) fn uri(&self) -> Result<Uri, Error> {
        self.url.parse().map_err(|error| self.invalid("address", error))
    }

    /// What is asked, in a few words: `PUT virtualMachines/aks-a`.
    pub(super) fn description(&self) -> String {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        let path = path
            .split_once("://")
            .map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
        let mut last: Vec<&str> = path.rsplit('/').filter(|segment| !segment.is_empty()).take(2).collect();
        last.reverse();
        format!("{} {}", self.method, last.join("/"))
    }
}

/// An address below `base`.
pub(super) fn address<'a>(
    base: &str,
    path: impl IntoIterator<Item = &'a str>,
    query: &[(&str, &str)],
) -> String {
    let mut url = base.trim_end_matches('/').to_owned();
    for segment in path {
        url.push('/');
        url.extend(utf8_percent_encode(segment, ESCAPED));
    }
    for (name, value) in query {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(name);
        url.push('=');
        url.extend(utf8_percent_encode(value, ESCAPED));
    }
    url
}

/// The parts of a resource ID.
pub(super) fn segments(id: &str) -> impl Iterator<Item = &str> {
    id.split('/').filter(|segment| !segment.is_empty())
}

/// JSON that fits into a header: only ASCII.
pub(super) fn ascii_json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a text cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_escaped_part_by_part() {
        let url = address(
            "https://management.azure.com/",
            ["subscriptions", "s", "resourceGroups", "a b/../(c).é"],
            &[("api-version", "2025-04-01"), ("$filter", "location eq 'eastus'")],
        );
        assert_eq!(
            url,
            "https://management.azure.com/subscriptions/s/resourceGroups/a%20b%2F..%2F(c).%C3%A9?api-version=2025-04-01&$filter=location%20eq%20%27eastus%27"
        );
        assert!(url.parse::<Uri>().is_ok());
        assert_eq!(segments("/subscriptions/s//x/").collect::<Vec<_>>(), ["subscriptions", "s", "x"]);
    }

    #[test]
    fn a_question_is_described_by_what_it_is_about() {
        let described = |url: &str| Call::new("o", Method::GET, url.to_owned()).description();
        assert_eq!(
            described("https://h/a/providers/P/virtualMachines/aks-a?x=/y/z"),
            "GET virtualMachines/aks-a"
        );
        assert_eq!(described("http://127.0.0.1:1/skus"), "GET skus");
        assert_eq!(described("http://h"), "GET ");
    }

    #[test]
    fn headers_take_any_text_as_json() {
        assert_eq!(ascii_json(&["aé𝄞\""]).unwrap(), r#"["a\u00e9\ud834\udd1e\""]"#);
        let call = Call::new("o", Method::PUT, "http://h/a".to_owned());
        let error = call.header("if-match", "a\nb").err().unwrap();
        assert!(error.to_string().starts_with("PUT a, writing the request's if-match, "), "{error}");
    }
}
