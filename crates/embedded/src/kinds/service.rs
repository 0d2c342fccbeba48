//! Rules on services.

use std::collections::BTreeSet;

use serde_json::Value;

use super::get::Get;
use super::metadata;
use super::names::{check, dns_label, dns_subdomain, port_name, qualified_name};
use super::rules::{ip_address, needed, one_of, port_number, supported};
use crate::field_error::FieldError;

/// Rules on a new service, metadata aside.
pub(super) fn validate(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = service.at("spec");
    let kind = spec.text("type");
    let headless = spec.text("clusterIP") == "None";
    let ports = spec.list("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &Value::from("None"), detail));
    }
    if kind == "ExternalName" {
        for key in ["clusterIP", "clusterIPs"] {
            if spec.has(key) {
                let detail = "may not be set for ExternalName services";
                errors.push(FieldError::forbidden("spec.clusterIPs", detail));
                break;
            }
        }
        // A dot at the end is fine here.
        let name = spec.text("externalName").trim_end_matches('.');
        if name.is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        } else {
            check(&mut errors, "spec.externalName", name, dns_subdomain);
        }
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        self::port(&mut errors, &format!("spec.ports[{index}]"), port, ports.len() > 1, &mut names);
    }
    metadata::labels(spec, "selector", "spec.selector", &mut errors);
    one_of(&mut errors, "spec.sessionAffinity".to_owned(), spec.at("sessionAffinity"), &["ClientIP", "None"]);
    let address = spec.text("clusterIP");
    if !address.is_empty() && !headless && kind != "ExternalName" {
        ip_address(&mut errors, "spec.clusterIPs[0]".to_owned(), address);
    }
    for (index, address) in spec.list("externalIPs").iter().enumerate() {
        ip_address(&mut errors, format!("spec.externalIPs[{index}]"), address.as_str().unwrap_or_default());
    }
    let accepted = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(&mut errors, "spec.type".to_owned(), spec.at("type"), &accepted);
    if kind == "ClusterIP" {
        for (index, port) in ports.iter().enumerate() {
            if port.number("nodePort").is_some_and(|port| port != 0) {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.push(FieldError::forbidden(format!("spec.ports[{index}].nodePort"), detail));
            }
        }
    }
    unique_ports(&mut errors, ports);
    if spec.has("allocateLoadBalancerNodePorts") && kind != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden("spec.allocateLoadBalancerNodePorts", detail));
    }
    if spec.has("internalTrafficPolicy") {
        let policy = spec.at("internalTrafficPolicy");
        supported(&mut errors, "spec.internalTrafficPolicy".to_owned(), policy, &["Cluster", "Local"]);
    }
    errors
}

fn port<'a>(
    errors: &mut Vec<FieldError>,
    field: &str,
    port: &'a Value,
    name_needed: bool,
    names: &mut BTreeSet<&'a str>,
) {
    let name = port.text("name");
    if name_needed {
        needed(errors, format!("{field}.name"), name);
    }
    if !name.is_empty() {
        check(errors, format!("{field}.name"), name, dns_label);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{field}.name"), &Value::from(name)));
        }
    }
    port_number(errors, format!("{field}.port"), port.number("port").unwrap_or_default());
    one_of(errors, format!("{field}.protocol"), port.at("protocol"), &["SCTP", "TCP", "UDP"]);
    match port.at("targetPort") {
        Value::String(name) => check(errors, format!("{field}.targetPort"), name, port_name),
        number => port_number(errors, format!("{field}.targetPort"), number.as_i64().unwrap_or_default()),
    }
    if port.has("appProtocol") {
        check(errors, format!("{field}.appProtocol"), port.text("appProtocol"), qualified_name);
    }
}

fn unique_ports(errors: &mut Vec<FieldError>, ports: &[Value]) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.text("protocol"), port.number("port").unwrap_or_default());
        if !seen.insert((protocol, number)) {
            let mut error = FieldError::duplicate(format!("spec.ports[{index}]"), port);
            // Only what makes it a duplicate is shown, with the names of Go's own type.
            error.shown = Some(format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\
                 \"NodePort\":0}}",
                Value::from(protocol)
            ));
            errors.push(error);
        }
    }
}

/// Rules on a changed service, metadata aside.
pub(super) fn validate_update(service: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (new, before) = (service.text("spec.clusterIP"), old.text("spec.clusterIP"));
    let external = |service: &Value| service.text("spec.type") == "ExternalName";
    if !external(service) && !external(old) && !before.is_empty() && new != before {
        let addresses = service.at("spec.clusterIPs");
        let detail =
            if new.is_empty() { "primary clusterIP can not be unset" } else { "may not change once set" };
        errors.push(FieldError::invalid("spec.clusterIPs[0]", addresses, detail));
    }
    errors.extend(validate(service));
    errors
}
