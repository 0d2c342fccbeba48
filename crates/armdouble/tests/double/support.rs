//! A client that knows as little as possible, so that what it sees is what the double says.

use std::time::Duration;

use armdouble::{Double, Kind};
use bytes::Bytes;
use clock::Clock;
use http::{HeaderMap, Method, Request};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const COMPUTE: &str = "2025-04-01";
pub(crate) const NETWORK: &str = "2022-01-01";
pub(crate) const KUBERNETES: &str = "2026-04-02-preview";
pub(crate) const IMAGE: &str = "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.01.0";

/// An answer.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Told {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The code of an error, with or without an envelope.
    pub(crate) fn code(&self) -> &str {
        let wrapped = self.body.pointer("/error/code");
        wrapped.or_else(|| self.body.get("code")).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        let wrapped = self.body.pointer("/error/message");
        wrapped.or_else(|| self.body.get("message")).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn state(&self) -> &str {
        self.body.pointer("/properties/provisioningState").and_then(Value::as_str).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        self
    }
}

pub(crate) struct Azure {
    pub(crate) double: Double,
}

impl Azure {
    pub(crate) fn new() -> Self {
        Self { double: Double::new(Clock::starting_at(Timestamp::UNIX_EPOCH)) }
    }

    pub(crate) fn id(&self, resource_type: &str, name: &str) -> String {
        self.double.change(|world| world.settings.node_id(resource_type, name))
    }

    pub(crate) fn machine_id(&self, name: &str) -> String {
        self.id("Microsoft.Compute/virtualMachines", name)
    }

    pub(crate) fn interface_id(&self, name: &str) -> String {
        self.id("Microsoft.Network/networkInterfaces", name)
    }

    /// The path of a machine of AKS.
    pub(crate) fn aks_machine(&self, name: &str) -> String {
        let (cluster, pool) =
            self.double.change(|world| (world.settings.cluster_id(), world.settings.machines_pool.clone()));
        format!("{cluster}/agentPools/{pool}/machines/{name}")
    }

    pub(crate) async fn send(&self, request: Request<Bytes>) -> Option<Told> {
        let (head, body) = self.double.answer(request).await?.into_parts();
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        let value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).unwrap_or_else(|_| text())
        };
        Some(Told { status: head.status.as_u16(), headers: head.headers, body: value })
    }

    pub(crate) async fn with(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Told {
        let url = if url.starts_with("https") {
            url.to_owned()
        } else {
            format!("https://management.azure.com{url}")
        };
        let mut request = Request::builder().method(method).uri(url).header("authorization", "Bearer token");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        self.send(request.body(body).unwrap()).await.unwrap()
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, version: &str, body: Value) -> Told {
        let separator = if path.contains('?') { '&' } else { '?' };
        let body = if body.is_null() { None } else { Some(body) };
        self.with(method, &format!("{path}{separator}api-version={version}"), &[], body).await
    }

    pub(crate) async fn get(&self, path: &str, version: &str) -> Told {
        self.ask(Method::GET, path, version, Value::Null).await
    }

    pub(crate) async fn get_machine(&self, name: &str) -> Told {
        self.get(&self.machine_id(name), COMPUTE).await
    }

    /// Asks every 3 seconds until an operation is done.
    pub(crate) async fn end(&self, told: &Told) -> Value {
        let url = told.header("azure-asyncoperation").or_else(|| told.header("operation-location")).unwrap();
        loop {
            let polled = self.with(Method::GET, url, &[], None).await.is(200);
            if polled.body["status"] != "InProgress" {
                return polled.body;
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }

    pub(crate) fn interface_body(&self, name: &str) -> Value {
        let subnet = self.double.change(|world| world.settings.subnet_id());
        json!({
            "location": "southcentralus", "tags": {"karpenter.sh_nodepool": "general-purpose"},
            "properties": {
                "ipConfigurations": [{
                    "name": name,
                    "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}},
                }],
                "enableAcceleratedNetworking": false, "enableIPForwarding": false,
            },
        })
    }

    pub(crate) fn machine_body(&self, name: &str, size: &str, zone: &str) -> Value {
        let zones: Vec<&str> = if zone.is_empty() { vec![] } else { vec![zone] };
        json!({
            "location": "southcentralus", "zones": zones, "tags": {"karpenter.sh_nodepool": "general-purpose"},
            "properties": {
                "hardwareProfile": {"vmSize": size},
                "storageProfile": {
                    "imageReference": {"communityGalleryImageId": IMAGE},
                    "osDisk": {"name": name, "createOption": "FromImage", "deleteOption": "Delete", "diskSizeGB": 128},
                },
                "osProfile": {
                    "computerName": name, "adminUsername": "azureuser", "customData": "c2VjcmV0",
                    "linuxConfiguration": {"disablePasswordAuthentication": true},
                },
                "networkProfile": {"networkInterfaces": [{
                    "id": self.interface_id(name), "properties": {"primary": true, "deleteOption": "Delete"},
                }]},
                "priority": "Regular",
            },
        })
    }

    pub(crate) async fn make_interface(&self, name: &str) {
        let body = self.interface_body(name);
        let told = self.ask(Method::PUT, &self.interface_id(name), NETWORK, body).await;
        assert!(told.status == 200 || told.status == 201, "{}", told.body);
        assert_eq!(self.end(&told).await["status"], "Succeeded");
    }

    /// Asks for a virtual machine whose network interface is there.
    pub(crate) async fn put_machine(&self, name: &str, size: &str, zone: &str) -> Told {
        self.make_interface(name).await;
        self.ask(Method::PUT, &self.machine_id(name), COMPUTE, self.machine_body(name, size, zone)).await
    }

    /// A virtual machine that runs.
    pub(crate) async fn make_machine(&self, name: &str) {
        let told = self.put_machine(name, "Standard_D2s_v3", "1").await.is(201);
        assert_eq!(self.end(&told).await["status"], "Succeeded");
    }

    pub(crate) async fn delete_machine(&self, name: &str) -> Told {
        let path = format!("{}?forceDeletion=true", self.machine_id(name));
        self.ask(Method::DELETE, &path, COMPUTE, Value::Null).await
    }

    /// Names of what the Resource Graph knows of a type.
    pub(crate) async fn graph(&self, resource_type: &str) -> Vec<String> {
        let told = self.ask_graph(resource_type, json!({"resultFormat": "objectArray"})).await.is(200);
        let rows = told.body["data"].as_array().unwrap();
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn ask_graph(&self, resource_type: &str, options: Value) -> Told {
        let (subscription, group) = self.double.change(|world| {
            (world.settings.subscription.clone(), world.settings.node_resource_group.to_lowercase())
        });
        let query = format!(
            "Resources\n| where type == \"{resource_type}\"\n| where resourceGroup == \"{group}\"\n\
             | where tags has_cs \"karpenter.sh_nodepool\"\n\
             | where not(tags has_cs \"karpenter.azure.com_aksmachine_nodeclaim\")"
        );
        let body = json!({"query": query, "subscriptions": [subscription], "options": options});
        self.ask(Method::POST, "/providers/Microsoft.ResourceGraph/resources", "2024-04-01", body).await
    }

    pub(crate) fn machines(&self) -> Vec<String> {
        self.double.names(Kind::VirtualMachine)
    }
}

/// Lets time pass.
pub(crate) async fn seconds(number: u64) {
    tokio::time::sleep(Duration::from_secs(number)).await;
}
