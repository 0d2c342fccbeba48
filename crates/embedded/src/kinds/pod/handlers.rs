//! Rules on probes and lifecycle handlers.

use serde_json::Value;

use super::super::get::Get;
use super::super::names::{check, pattern_text, port_name};
use super::super::rules::{needed, not_negative, port_number, supported};
use crate::field_error::FieldError;

/// Rules on everything a container is asked while it runs.
pub(super) fn all(errors: &mut Vec<FieldError>, field: &str, container: &Value, spec: &Value) {
    for key in ["postStart", "preStop"] {
        let handler = container.at("lifecycle").at(key);
        if !handler.is_null() {
            self::handler(errors, &format!("{field}.lifecycle.{key}"), handler, spec);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(key);
        if probe.is_null() {
            continue;
        }
        let field = format!("{field}.{key}");
        self::probe(errors, &field, probe, spec);
        if key == "readinessProbe" {
            if probe.has("terminationGracePeriodSeconds") {
                errors.push(FieldError::invalid(
                    format!("{field}.terminationGracePeriodSeconds"),
                    probe.at("terminationGracePeriodSeconds"),
                    "must not be set for readinessProbes",
                ));
            }
        } else if probe.number("successThreshold").unwrap_or_default() != 1 {
            let threshold = probe.at("successThreshold");
            errors.push(FieldError::invalid(format!("{field}.successThreshold"), threshold, "must be 1"));
        }
    }
}

fn probe(errors: &mut Vec<FieldError>, field: &str, probe: &Value, spec: &Value) {
    handler(errors, field, probe, spec);
    for key in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        not_negative(errors, format!("{field}.{key}"), probe.at(key));
    }
    if let Some(seconds) = probe.number("terminationGracePeriodSeconds")
        && seconds <= 0
    {
        errors.push(FieldError::invalid(
            format!("{field}.terminationGracePeriodSeconds"),
            &Value::from(seconds),
            "must be greater than 0",
        ));
    }
}

fn handler(errors: &mut Vec<FieldError>, field: &str, handler: &Value, spec: &Value) {
    let mut given = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = handler.at(key);
        if action.is_null() {
            continue;
        }
        given += 1;
        let field = format!("{field}.{key}");
        if given > 1 {
            errors.push(FieldError::forbidden(field, "may not specify more than 1 handler type"));
            continue;
        }
        match key {
            "exec" => {
                if action.list("command").is_empty() {
                    errors.push(FieldError::required(format!("{field}.command"), ""));
                }
            }
            "httpGet" => http_get(errors, &field, action),
            "sleep" => sleep(errors, &field, action, spec),
            _ => port(errors, format!("{field}.port"), action.at("port")),
        }
    }
    if given == 0 {
        errors.push(FieldError::required(field, "must specify a handler type"));
    }
}

fn http_get(errors: &mut Vec<FieldError>, field: &str, action: &Value) {
    needed(errors, format!("{field}.path"), action.text("path"));
    port(errors, format!("{field}.port"), action.at("port"));
    supported(errors, format!("{field}.scheme"), action.at("scheme"), &["HTTP", "HTTPS"]);
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        if name.is_empty() || !name.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric()) {
            let what = "a valid HTTP header must consist of alphanumeric characters or '-'";
            let detail = pattern_text(what, "[-A-Za-z0-9]+", &["X-Header-Name"]);
            errors.push(FieldError::invalid(format!("{field}.httpHeaders"), &Value::from(name), detail));
        }
    }
}

fn sleep(errors: &mut Vec<FieldError>, field: &str, action: &Value, spec: &Value) {
    let Some(grace) = spec.number("terminationGracePeriodSeconds") else { return };
    let seconds = action.number("seconds").unwrap_or_default();
    if seconds < 0 || seconds > grace {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(field, &Value::from(seconds), detail));
    }
}

/// A port by number or by name.
fn port(errors: &mut Vec<FieldError>, field: String, port: &Value) {
    match port {
        Value::String(name) => check(errors, field, name, port_name),
        number => port_number(errors, field, number.as_i64().unwrap_or_default()),
    }
}
