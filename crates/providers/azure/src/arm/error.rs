//! What Azure refused, and everything it said about it.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use super::envelope::{self, Envelope};
use super::transport::TransportError;

/// Where answers say by which number they are found again; the first that is there counts.
const CORRELATION: [&str; 2] = ["x-ms-correlation-request-id", "x-ms-request-id"];

/// A refusal of Azure, or none of its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error {
    /// What was asked for, such as `PUT virtualMachines/aks-a`.
    pub operation: String,
    /// The status, if an answer came.
    pub status: Option<u16>,
    /// The machine-readable reason; empty if there is none.
    pub code: String,
    /// The whole text, with all details, or with the body where there is no text in it.
    pub message: String,
    /// What it consists of, if Azure said so.
    pub details: Vec<Detail>,
    /// By which Azure's support finds the request.
    pub correlation_id: Option<Box<str>>,
}

/// A part of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The machine-readable reason.
    pub code: String,
    /// The text.
    pub message: String,
    /// What was refused, such as the name of a machine.
    pub target: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        if let Some(status) = self.status {
            write!(f, ", {status}")?;
        }
        match (self.code.as_str(), self.message.as_str()) {
            ("", "") => {}
            (code, "") | ("", code) => write!(f, ", {code}")?,
            (code, message) => write!(f, ", {code}: {message}")?,
        }
        match &self.correlation_id {
            Some(id) => write!(f, " (correlation id {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// A refusal with a code that no answer had: by this program, or by a double.
    pub fn new(operation: &str, code: &str, message: &str) -> Self {
        Self {
            operation: operation.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// What an answer says that is none of the expected ones.
    pub fn of_answer(operation: &str, answer: &Response<Bytes>) -> Self {
        Self::read(operation, answer.status(), answer.headers(), envelope::read(answer.body()), answer.body())
    }

    /// Why an operation failed that had begun well, from the answer that says so.
    pub fn of_operation(operation: &str, answer: &Response<Bytes>, state: &str) -> Self {
        let read = envelope::read(answer.body());
        let mut error = Self::read(operation, answer.status(), answer.headers(), read, answer.body());
        if error.code.is_empty() {
            state.clone_into(&mut error.code);
        }
        error
    }

    /// That no answer came.
    pub fn unanswered(operation: &str, error: &TransportError) -> Self {
        Self { operation: operation.to_owned(), message: error.to_string(), ..Self::default() }
    }

    /// That an answer is not what it should be.
    pub fn unreadable(operation: &str, answer: &Response<Bytes>, why: impl fmt::Display) -> Self {
        Self {
            message: format!("reading the answer, {why}"),
            correlation_id: correlation_id(answer.headers()),
            ..Self::new(operation, "", "")
        }
    }

    fn read(
        operation: &str,
        status: StatusCode,
        headers: &HeaderMap,
        envelope: Option<Envelope>,
        body: &[u8],
    ) -> Self {
        let envelope = envelope.unwrap_or_default();
        let code = header(headers, "x-ms-error-code").unwrap_or(envelope.code);
        let message = if envelope.message.is_empty() {
            String::from_utf8_lossy(body).trim().to_owned()
        } else {
            envelope.message
        };
        Self {
            operation: operation.to_owned(),
            status: Some(status.as_u16()),
            code,
            message,
            details: envelope.details,
            correlation_id: correlation_id(headers),
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.status == Some(404)
    }

    /// Whether an AKS machine is not there, which some operations say in their own way.
    pub fn is_machine_not_found(&self) -> bool {
        let unknown = self.status == Some(400)
            && self.code == "InvalidParameter"
            && self.message.contains("Cannot find any valid machines");
        self.is_not_found() || unknown
    }

    /// Whether we are not allowed to ask for this.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.status, Some(401 | 403))
    }

    /// Whether somebody else has changed it meanwhile.
    pub fn is_precondition_failed(&self) -> bool {
        self.status == Some(412)
    }

    /// Whether we ask too often.
    pub fn is_throttled(&self) -> bool {
        self.status == Some(429)
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        self.status.is_none_or(|status| super::retry::STATUSES.contains(&status))
    }

    /// Whether the code is this one, in any spelling.
    pub fn has_code(&self, code: &str) -> bool {
        self.code.eq_ignore_ascii_case(code)
    }
}

fn correlation_id(headers: &HeaderMap) -> Option<Box<str>> {
    CORRELATION.iter().find_map(|name| header(headers, name)).map(String::into_boxed_str)
}

/// The text of a header that is there and not empty.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Bytes> {
        let mut builder = Response::builder().status(status);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(Bytes::from(body.to_owned())).unwrap()
    }

    fn read(status: u16, headers: &[(&str, &str)], body: &str) -> Error {
        Error::of_answer("PUT virtualMachines/aks-a", &answer(status, headers, body))
    }

    // azure.md 24, error envelope
    #[test]
    fn the_header_beats_the_body_and_the_body_is_read_in_all_its_forms() {
        let wrapped = r#"{"error":{"code":"A","message":"m"}}"#;
        let rows = [
            (&[("x-ms-error-code", "H")][..], wrapped, "H", "m"),
            (&[], wrapped, "A", "m"),
            (&[], r#"{"odata.error":{"code":"B","message":{"lang":"en","value":"m"}}}"#, "B", "m"),
            (&[], r#"{"code":"C","message":"m","details":[]}"#, "C", "m"),
            (&[], r#"{"error":"invalid_client","error_description":"m"}"#, "invalid_client", "m"),
            (&[], "<Error><Code>D</Code><Message>m</Message></Error>", "D", "m"),
            (
                &[],
                "\u{feff}<x:error><x:code> D </x:code></x:error>",
                "D",
                "\u{feff}<x:error><x:code> D </x:code></x:error>",
            ),
            (&[], " plain text ", "", "plain text"),
            (&[], "", "", ""),
            (&[], r#"{"other":1}"#, "", r#"{"other":1}"#),
        ];
        for (headers, body, code, message) in rows {
            let error = read(409, headers, body);
            assert_eq!((error.code.as_str(), error.message.as_str()), (code, message), "{body}");
            assert_eq!(error.status, Some(409));
        }
    }

    #[test]
    fn nothing_that_azure_says_is_cut_off() {
        let long = "quota ".repeat(3000);
        let body = format!(
            r#"{{"error":{{"code":"QuotaExceeded","message":"outer","target":"t","details":[
                {{"code":"OperationNotAllowed","message":"{long}","target":"m1","details":[{{"code":"Deep","message":"deeper"}}]}},
                {{"message":"outer"}}],"innererror":{{"errordetail":"inner"}}}}}}"#
        );
        let error = read(400, &[], &body);
        for part in ["outer", long.trim(), "Deep: deeper", "inner"] {
            assert!(error.message.contains(part), "{part}");
        }
        assert_eq!(error.message.matches("outer").count(), 1);
        assert_eq!(error.details[0].target.as_deref(), Some("m1"));
        assert_eq!(error.details[0].code, "OperationNotAllowed");
        assert_eq!(error.details.len(), 2);
    }

    #[test]
    fn the_text_has_what_was_asked_and_by_what_number_support_finds_it() {
        let headers = [("x-ms-request-id", "r"), ("x-ms-correlation-request-id", "c")];
        let error = read(409, &headers, r#"{"error":{"code":"A","message":"m"}}"#);
        assert_eq!(error.to_string(), "PUT virtualMachines/aks-a, 409, A: m (correlation id c)");
        let error = read(500, &headers[..1], "");
        assert_eq!(error.to_string(), "PUT virtualMachines/aks-a, 500 (correlation id r)");
        let error = Error::unanswered("GET skus", &TransportError("connection refused".to_owned()));
        assert_eq!(error.to_string(), "GET skus, connection refused");
    }

    #[test]
    fn what_a_refusal_means_is_in_its_status() {
        assert!(read(404, &[], "").is_not_found() && !read(410, &[], "").is_not_found());
        assert!(read(401, &[], "").is_forbidden() && read(403, &[], "").is_forbidden());
        assert!(read(412, &[], "").is_precondition_failed());
        assert!(read(429, &[], "").is_throttled() && read(429, &[], "").is_transient());
        assert!(read(503, &[], "").is_transient() && !read(409, &[], "").is_transient());
        assert!(Error::unanswered("", &TransportError(String::new())).is_transient());
        assert!(
            read(400, &[("x-ms-error-code", "invalidresourcereference")], "")
                .has_code("InvalidResourceReference")
        );
    }

    // azure.md 11.2
    #[test]
    fn a_machine_that_is_not_there_is_said_in_two_ways() {
        let body = r#"{"code":"InvalidParameter","message":"Cannot find any valid machines to delete"}"#;
        assert!(read(400, &[], body).is_machine_not_found());
        assert!(read(404, &[], "").is_machine_not_found());
        assert!(!read(400, &[], r#"{"code":"InvalidParameter","message":"other"}"#).is_machine_not_found());
    }

    #[test]
    fn an_operation_that_failed_without_a_reason_has_its_state_as_code() {
        let failed = answer(200, &[], r#"{"status":"Canceled"}"#);
        assert_eq!(Error::of_operation("PUT a/b", &failed, "Canceled").code, "Canceled");
        let failed =
            answer(200, &[], r#"{"status":"Failed","error":{"code":"AllocationFailed","message":"m"}}"#);
        let error = Error::of_operation("PUT a/b", &failed, "Failed");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("AllocationFailed", "m"));
    }
}
