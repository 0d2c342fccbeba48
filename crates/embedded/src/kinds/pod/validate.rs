//! Rules on new pods and on templates of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::get::Get;
use super::super::metadata;
use super::super::names::{check, dns_label, dns_subdomain, qualified_name, range_text};
use super::super::rules::{ip_address, needed, one_of};
use super::{containers, requests, scheduling, security, volumes};
use crate::field_error::FieldError;

/// Rules on a new pod, metadata aside.
pub(in crate::kinds) fn validate_create(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    metadata_and_spec(pod, &mut errors);
    if !pod.list("spec.ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if !pod.text("spec.nodeName").is_empty() && !pod.list("spec.schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden("spec.nodeName", detail));
    }
    errors
}

/// Rules on a pod whether it is new or changed.
pub(super) fn metadata_and_spec(pod: &Value, errors: &mut Vec<FieldError>) {
    pod_annotations(pod.at("metadata"), "metadata.annotations", errors);
    pod_spec(errors, "spec", pod.at("spec"), Some(pod.at("metadata")));
    for list in ["containers", "initContainers"] {
        for (index, container) in pod.at("spec").list(list).iter().enumerate() {
            let image = container.text("image");
            if image.trim() != image {
                errors.push(FieldError::invalid(
                    format!("spec.{list}[{index}].image"),
                    &Value::from(image),
                    "must not have leading or trailing whitespace",
                ));
            }
        }
    }
}

fn pod_annotations(metadata: &Value, field: &str, errors: &mut Vec<FieldError>) {
    if let Some(cost) = metadata.at("annotations").get("controller.kubernetes.io/pod-deletion-cost") {
        let text = cost.as_str().unwrap_or_default();
        let unusual = text.starts_with('+') || (text.starts_with('0') && text.len() > 1);
        if unusual || text.parse::<i32>().is_err() {
            let field = format!("{field}[controller.kubernetes.io/pod-deletion-cost]");
            errors.push(FieldError::invalid(field, cost, "must be a 32bit integer"));
        }
    }
}

/// Rules on the template of a pod; `field` is where it is.
pub(crate) fn template(errors: &mut Vec<FieldError>, field: &str, template: &Value) {
    let holder = template.at("metadata");
    metadata::labels(holder, "labels", &format!("{field}.labels"), errors);
    metadata::annotations(holder, &format!("{field}.annotations"), errors);
    pod_annotations(holder, &format!("{field}.annotations"), errors);
    pod_spec(errors, &format!("{field}.spec"), template.at("spec"), None);
    if !template.list("spec.ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(format!("{field}.spec.ephemeralContainers"), detail));
    }
}

/// Rules on a pod's spec. The metadata is there for pods and not for templates.
fn pod_spec(errors: &mut Vec<FieldError>, field: &str, spec: &Value, pod: Option<&Value>) {
    let names = volumes::validate(errors, &format!("{field}.volumes"), spec.list("volumes"), pod);
    resource_claims(errors, &format!("{field}.resourceClaims"), spec);
    containers::validate(errors, field, spec, &names);
    requests::pod_level(errors, field, spec);
    if spec.flag("hostNetwork") {
        containers::host_network_ports(errors, field, spec, pod.is_some());
    }
    one_of(
        errors,
        format!("{field}.restartPolicy"),
        spec.at("restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    one_of(
        errors,
        format!("{field}.dnsPolicy"),
        spec.at("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    metadata::labels(spec, "nodeSelector", &format!("{field}.nodeSelector"), errors);
    security::pod(errors, field, spec);
    scheduling::affinity(errors, &format!("{field}.affinity"), spec.at("affinity"));
    dns(errors, &format!("{field}.dnsConfig"), spec);
    gates(errors, field, spec);
    scheduling::spread(errors, &format!("{field}.topologySpreadConstraints"), spec);
    names_and_numbers(errors, field, spec);
    scheduling::tolerations(errors, &format!("{field}.tolerations"), spec);
    host_aliases(errors, &format!("{field}.hostAliases"), spec);
    check_if_set(errors, format!("{field}.priorityClassName"), spec.text("priorityClassName"), dns_subdomain);
    if spec.has("runtimeClassName") {
        check(errors, format!("{field}.runtimeClassName"), spec.text("runtimeClassName"), dns_subdomain);
    }
    if spec.has("preemptionPolicy") {
        let accepted = ["PreemptLowerPriority", "Never"];
        one_of(errors, format!("{field}.preemptionPolicy"), spec.at("preemptionPolicy"), &accepted);
    }
    requests::overhead(errors, &format!("{field}.overhead"), spec.at("overhead"));
    if spec.has("os") {
        one_of(errors, format!("{field}.os.name"), spec.at("os.name"), &["linux", "windows"]);
    }
}

fn check_if_set(
    errors: &mut Vec<FieldError>,
    field: String,
    text: &str,
    checker: impl Fn(&str) -> Vec<String>,
) {
    if !text.is_empty() {
        check(errors, field, text, checker);
    }
}

fn names_and_numbers(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    let account = spec.text("serviceAccountName");
    check_if_set(errors, format!("{field}.serviceAccountName"), account, dns_subdomain);
    check_if_set(errors, format!("{field}.nodeName"), spec.text("nodeName"), dns_subdomain);
    if let Some(deadline) = spec.number("activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        errors.push(FieldError::invalid(
            format!("{field}.activeDeadlineSeconds"),
            &Value::from(deadline),
            range_text(1, i64::from(i32::MAX)),
        ));
    }
    check_if_set(errors, format!("{field}.hostname"), spec.text("hostname"), dns_label);
    check_if_set(errors, format!("{field}.subdomain"), spec.text("subdomain"), dns_label);
}

fn gates(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    for (index, gate) in spec.list("readinessGates").iter().enumerate() {
        let field = format!("{field}.readinessGates[{index}].conditionType");
        check(errors, field, gate.text("conditionType"), qualified_name);
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.list("schedulingGates").iter().enumerate() {
        let field = format!("{field}.schedulingGates[{index}]");
        check(errors, field.clone(), gate.text("name"), qualified_name);
        if !seen.insert(gate.text("name")) {
            errors.push(FieldError::duplicate(field, &Value::from(gate.text("name"))));
        }
    }
}

fn dns(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    let config = spec.at("dnsConfig");
    let servers = config.list("nameservers");
    if spec.text("dnsPolicy") == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return errors.push(FieldError::required(field, detail));
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.push(FieldError::required(format!("{field}.nameservers"), detail));
        }
    }
    if servers.len() > 3 {
        errors.push(FieldError::invalid(
            format!("{field}.nameservers"),
            config.at("nameservers"),
            "must not have more than 3 nameservers",
        ));
    }
    for (index, server) in servers.iter().enumerate() {
        ip_address(errors, format!("{field}.nameservers[{index}]"), server.as_str().unwrap_or_default());
    }
    for (index, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            errors.push(FieldError::required(format!("{field}.options[{index}]"), "must not be empty"));
        }
    }
}

fn host_aliases(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    for (index, alias) in spec.list("hostAliases").iter().enumerate() {
        ip_address(errors, format!("{field}[{index}].ip"), alias.text("ip"));
        for (other, name) in alias.list("hostnames").iter().enumerate() {
            let field = format!("{field}[{index}].hostnames[{other}]");
            check(errors, field, name.as_str().unwrap_or_default(), dns_subdomain);
        }
    }
}

fn resource_claims(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (index, claim) in spec.list("resourceClaims").iter().enumerate() {
        let (field, name) = (format!("{field}[{index}]"), claim.text("name"));
        if needed(errors, format!("{field}.name"), name) {
            if seen.insert(name) {
                check(errors, format!("{field}.name"), name, dns_label);
            } else {
                errors.push(FieldError::duplicate(format!("{field}.name"), &Value::from(name)));
            }
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let detail = match sources.iter().filter(|source| claim.has(source)).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(detail) = detail {
            // Shown with the names of the Go type.
            let shown = serde_json::json!({
                "Name": name,
                "ResourceClaimName": claim.at("resourceClaimName"),
                "ResourceClaimTemplateName": claim.at("resourceClaimTemplateName"),
            });
            errors.push(FieldError::invalid(field.clone(), &shown, detail));
        }
        for source in sources {
            if claim.has(source) {
                check(errors, format!("{field}.{source}"), claim.text(source), dns_subdomain);
            }
        }
    }
}
