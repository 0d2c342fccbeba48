//! The cells of services, endpoints and other kinds about networks.

use serde_json::{Value, json};

use super::cells::{is_default, labels, or, selector, unknown};
use crate::kinds::Get;

pub(super) fn service(service: &Value, age: &Value) -> Vec<Value> {
    let spec = service.at("spec");
    let ports: Vec<String> = spec
        .list("ports")
        .iter()
        .map(|port| {
            let number = port.number("port").unwrap_or_default();
            let protocol = port.text("protocol");
            match port.number("nodePort").unwrap_or_default() {
                0 => format!("{number}/{protocol}"),
                node_port => format!("{number}:{node_port}/{protocol}"),
            }
        })
        .collect();
    let address = spec.list("clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
    vec![
        json!(service.text("metadata.name")),
        json!(spec.text("type")),
        or(address, "<none>"),
        external_address(service),
        or(&ports.join(","), "<none>"),
        age.clone(),
        json!(labels(spec.at("selector"))),
    ]
}

fn load_balancer(status: &Value) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for ingress in status.list("ingress") {
        let text = if ingress.text("ip").is_empty() { ingress.text("hostname") } else { ingress.text("ip") };
        if !text.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }
    all.sort_unstable();
    all
}

fn external_address(service: &Value) -> Value {
    let given: Vec<&str> = service.list("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" => or(&given.join(","), "<none>"),
        "LoadBalancer" => {
            let mut all = load_balancer(service.at("status.loadBalancer"));
            all.extend(given);
            or(&all.join(","), "<pending>")
        }
        "ExternalName" => json!(service.text("spec.externalName")),
        _ => json!("<unknown>"),
    }
}

/// A few of many.
fn shortened(all: &[String]) -> String {
    const MOST: usize = 3;
    match all {
        [] => "<unset>".to_owned(),
        [few @ .., _] if few.len() < MOST => all.join(","),
        _ => {
            let shown = all.get(..MOST).unwrap_or_default().join(",");
            format!("{shown} + {} more...", all.len() - MOST)
        }
    }
}

pub(super) fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in object.list("subsets") {
        let ports = subset.list("ports");
        let addresses = || subset.list("addresses").iter().map(|address| address.text("ip"));
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let number = port.number("port").unwrap_or_default();
            all.extend(addresses().map(|address| format!("{address}:{number}")));
        }
    }
    if object.list("subsets").is_empty() {
        return "<none>".to_owned();
    }
    if all.is_empty() { String::new() } else { shortened(&all) }
}

pub(super) fn endpoint_slice(slice: &Value, age: &Value) -> Vec<Value> {
    let ports: Vec<String> = slice
        .list("ports")
        .iter()
        .map(|port| match (port.number("port"), port.at("name").as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = slice
        .list("endpoints")
        .iter()
        .flat_map(|endpoint| endpoint.list("addresses"))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    vec![
        json!(slice.text("metadata.name")),
        json!(slice.text("addressType")),
        json!(shortened(&ports)),
        json!(shortened(&addresses)),
        age.clone(),
    ]
}

pub(super) fn networking(kind: &str, object: &Value, age: &Value) -> Vec<Value> {
    let name = object.text("metadata.name");
    match kind {
        "Ingress" => {
            let hosts: Vec<String> = object
                .list("spec.rules")
                .iter()
                .map(|rule| rule.text("host").to_owned())
                .filter(|host| !host.is_empty())
                .collect();
            let hosts = if hosts.is_empty() { "*".to_owned() } else { shortened(&hosts) };
            let ports = if object.list("spec.tls").is_empty() { "80" } else { "80, 443" };
            let address = load_balancer(object.at("status.loadBalancer")).join(",");
            let class = or(object.text("spec.ingressClassName"), "<none>");
            vec![json!(name), class, json!(hosts), json!(address), json!(ports), age.clone()]
        }
        "IngressClass" => {
            let default = is_default(object, &["ingressclass.kubernetes.io/is-default-class"]);
            let shown = if default { format!("{name} (default)") } else { name.to_owned() };
            let parameters = object.at("spec.parameters");
            let text = match (parameters.is_null(), parameters.text("apiGroup")) {
                (true, _) => "<none>".to_owned(),
                (false, "") => format!("{}/{}", parameters.text("kind"), parameters.text("name")),
                (false, group) => {
                    format!("{}.{group}/{}", parameters.text("kind"), parameters.text("name"))
                }
            };
            vec![json!(shown), json!(object.text("spec.controller")), json!(text), age.clone()]
        }
        "NetworkPolicy" => vec![json!(name), json!(selector(object.at("spec.podSelector"))), age.clone()],
        "ServiceCIDR" => {
            let ranges: Vec<&str> = object.list("spec.cidrs").iter().filter_map(Value::as_str).collect();
            vec![json!(name), json!(ranges.join(",")), age.clone()]
        }
        _ => unknown(object),
    }
}
