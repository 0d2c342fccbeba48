//! The options of writes: `dryRun`, `fieldManager`, `fieldValidation`, `force`.

use http::Method;
use serde_json::{Value, json};

use crate::field_error::FieldError;
use crate::refusal::Refusal;
use crate::request::{Query, Request};

/// How long the name of a field manager may be.
const LONGEST_MANAGER: usize = 128;

/// Refuses options that do not exist.
pub(crate) fn check(request: &Request) -> Result<(), Refusal> {
    let kind = match request.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => return Ok(()),
    };
    let applies = request.content_type.starts_with("application/apply-patch+yaml");
    let mut errors = Vec::new();
    if request.method == Method::PATCH {
        check_force(request, applies, &mut errors);
    }
    check_manager(request.query.text("fieldManager"), &mut errors);
    errors.extend(dry_run(request.query.all("dryRun")));
    let validation = request.query.text("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Strict" | "Warn") {
        let known = ["", "Ignore", "Strict", "Warn"];
        errors.push(FieldError::not_supported("fieldValidation", &Value::from(validation), &known));
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", kind, "", &errors)) }
}

/// What is wrong with a list of dry runs, of which there is one.
pub(crate) fn dry_run<'a>(asked: impl Iterator<Item = &'a str>) -> Option<FieldError> {
    let asked: Vec<&str> = asked.collect();
    let wrong = asked.iter().any(|one| *one != "All");
    wrong.then(|| FieldError::not_supported("dryRun", &json!(asked), &["All"]))
}

/// A number among the parameters, if it is there.
pub(crate) fn number(query: &Query, name: &str) -> Result<Option<i64>, Refusal> {
    let text = query.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |_| Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
    text.parse().map(Some).map_err(wrong)
}

fn check_force(request: &Request, applies: bool, errors: &mut Vec<FieldError>) {
    if applies {
        if request.query.text("fieldManager").is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
    } else if request.query.has("force") {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
}

fn check_manager(name: &str, errors: &mut Vec<FieldError>) {
    if name.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long("fieldManager", LONGEST_MANAGER));
    }
    let unprintable = name.chars().enumerate().find(|(_, one)| one.is_control());
    if let Some((index, one)) = unprintable {
        let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(one));
        errors.push(FieldError::invalid("fieldManager", &Value::from(name), detail));
    }
}
