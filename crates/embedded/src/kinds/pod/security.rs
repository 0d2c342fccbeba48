//! Rules on security contexts.

use serde_json::Value;

use super::super::get::Get;
use super::super::names::range_text;
use super::super::rules::supported;
use super::containers::descending_path;
use crate::field_error::FieldError;

/// Users and groups are numbered from 0.
fn id(errors: &mut Vec<FieldError>, field: String, value: &Value) {
    let most = i64::from(i32::MAX);
    if value.as_i64().is_some_and(|id| !(0..=most).contains(&id)) {
        errors.push(FieldError::invalid(field, value, range_text(0, most)));
    }
}

/// Rules on a pod's context.
pub(super) fn pod(errors: &mut Vec<FieldError>, spec_field: &str, spec: &Value) {
    let (field, context) = (format!("{spec_field}.securityContext"), spec.at("securityContext"));
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(errors, format!("{field}.{key}"), context.at(key));
    }
    for (index, group) in context.list("supplementalGroups").iter().enumerate() {
        id(errors, format!("{field}.supplementalGroups[{index}]"), group);
    }
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(
            format!("{field}.shareProcessNamespace"),
            &Value::from(true),
            detail,
        ));
    }
    if context.has("fsGroupChangePolicy") {
        let policy = context.at("fsGroupChangePolicy");
        supported(errors, format!("{field}.fsGroupChangePolicy"), policy, &["Always", "OnRootMismatch"]);
    }
    seccomp(errors, &format!("{field}.seccompProfile"), context.at("seccompProfile"));
}

/// Rules on a container's context.
pub(super) fn container(errors: &mut Vec<FieldError>, field: &str, context: &Value) {
    for key in ["runAsUser", "runAsGroup"] {
        id(errors, format!("{field}.{key}"), context.at(key));
    }
    seccomp(errors, &format!("{field}.seccompProfile"), context.at("seccompProfile"));
    let escalation = context.at("allowPrivilegeEscalation");
    if escalation == &Value::from(false) {
        if context.flag("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(shown_context(field, context, detail));
        }
        for capability in context.list("capabilities.add") {
            if capability == "CAP_SYS_ADMIN" {
                let detail =
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
                errors.push(shown_context(field, context, detail));
            }
        }
    }
}

/// The API server shows the whole context with the names of its own type.
fn shown_context(field: &str, context: &Value, detail: &str) -> FieldError {
    let capabilities = match context.at("capabilities") {
        Value::Null => "null".to_owned(),
        both => format!("{{\"Add\":{},\"Drop\":{}}}", both.at("add"), both.at("drop")),
    };
    let shown = format!(
        "{{\"Capabilities\":{capabilities},\"Privileged\":{},\"SELinuxOptions\":{},\"WindowsOptions\":{},\
         \"RunAsUser\":{},\"RunAsGroup\":{},\"RunAsNonRoot\":{},\"ReadOnlyRootFilesystem\":{},\
         \"AllowPrivilegeEscalation\":{},\"ProcMount\":{},\"SeccompProfile\":{},\"AppArmorProfile\":{}}}",
        context.at("privileged"),
        context.at("seLinuxOptions"),
        context.at("windowsOptions"),
        context.at("runAsUser"),
        context.at("runAsGroup"),
        context.at("runAsNonRoot"),
        context.at("readOnlyRootFilesystem"),
        context.at("allowPrivilegeEscalation"),
        context.at("procMount"),
        shown_profile(context.at("seccompProfile")),
        shown_profile(context.at("appArmorProfile")),
    );
    let mut error = FieldError::invalid(field, context, detail);
    error.shown = Some(shown);
    error
}

fn shown_profile(profile: &Value) -> String {
    if profile.is_null() {
        return "null".to_owned();
    }
    let (kind, local) = (profile.at("type"), profile.at("localhostProfile"));
    format!("{{\"Type\":{kind},\"LocalhostProfile\":{local}}}")
}

fn seccomp(errors: &mut Vec<FieldError>, field: &str, profile: &Value) {
    if profile.is_null() {
        return;
    }
    let kind = profile.text("type");
    if kind.is_empty() {
        errors.push(FieldError::required(
            format!("{field}.type"),
            "type is required when seccompProfile is set",
        ));
    } else {
        let accepted = ["Localhost", "RuntimeDefault", "Unconfined"];
        supported(errors, format!("{field}.type"), profile.at("type"), &accepted);
    }
    let local = format!("{field}.localhostProfile");
    match (kind == "Localhost", profile.has("localhostProfile")) {
        (true, false) => {
            errors.push(FieldError::required(local, "must be set when seccomp type is Localhost"));
        }
        (true, true) => descending_path(errors, &local, profile.text("localhostProfile")),
        (false, true) => {
            let mut error =
                FieldError::invalid(local, profile, "can only be set when seccomp type is Localhost");
            error.shown = Some(shown_profile(profile));
            errors.push(error);
        }
        (false, false) => {}
    }
}
