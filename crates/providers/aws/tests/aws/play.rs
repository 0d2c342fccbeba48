//! A cluster, an AWS in the process, and the provider between them, in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use aws::double::{Double, Stored};
use aws::port::{Image, SecurityGroup, Services, TypeInZone};
use aws::provider::{Aws, Setup};
use aws::settings::AwsSettings;
use cloud::{CloudProvider as _, Error, Instance, Overlays};
use cluster::state::{Kind, State};
use embedded::faults::Faulty;
use runtime::events::Recorder;
use runtime::limit::Limiter;
use runtime::metrics::Registry;
use runtime::settings::{Command, Settings};
use runtime::{Api, Cluster};
use serde_json::{Value, json};
use testkit::World;
use tokio::sync::watch;

use crate::support::{REGION, ZONES, cluster, info};

pub(crate) const WATCHED: [Kind; 4] = [Kind::NodeClass, Kind::NodePool, Kind::NodeClaim, Kind::Node];
pub(crate) const CLASSES: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) double: Double,
    pub(crate) aws: Aws,
    pub(crate) metrics: Registry,
    pub(crate) events: Recorder,
    /// What stands between the provider and the API server.
    pub(crate) faults: Faulty,
}

pub(crate) fn settings(more: &[&str]) -> Settings {
    let arguments = ["--cluster-name=test-cluster"].iter().chain(more).map(|text| (*text).to_owned());
    match Settings::parse(Provider::Aws, arguments, |_| None) {
        Ok(Command::Run(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

impl Play {
    /// An AWS with some types in all zones, and a cluster with a NodePool.
    pub(crate) fn new(types: &[&str]) -> Self {
        Self::with(types, &[])
    }

    pub(crate) fn with(types: &[&str], arguments: &[&str]) -> Self {
        Self::asking(types, arguments, Double::services)
    }

    /// With something between the provider and AWS, which can be changed before anything is asked.
    pub(crate) fn asking(
        types: &[&str],
        arguments: &[&str],
        services: impl FnOnce(&Double) -> Services,
    ) -> Self {
        Self::build(types, arguments, services, None)
    }

    /// With NodeOverlays, of which none are in force at first.
    pub(crate) fn overlaid(types: &[&str], overlays: &Overlays) -> Self {
        let gates = ["--feature-gates=NodeOverlay=true"];
        Self::build(types, &gates, Double::services, Some(overlays.clone()))
    }

    fn build(
        types: &[&str],
        arguments: &[&str],
        services: impl FnOnce(&Double) -> Services,
        overlays: Option<Overlays>,
    ) -> Self {
        let world = World::builder(1).without_scheduler().start();
        for crd in api::crds::documents(Provider::Aws) {
            world.apply(&crd.document.to_string());
        }
        let double = Double::new(world.clock());
        fill(&double, types);
        let services = services(&double);
        let settings = settings(arguments);
        let kinds = &WATCHED;
        let cluster_state =
            world.block_on(async { Cluster::new(State::awaiting(Provider::Aws, kinds), world.clock()) });
        let faults = Faulty::new(world.server().service(), 1);
        let client = world.block_on(async { kube::Client::new(faults.clone(), "default") });
        for kind in kinds {
            world.spawn(runtime::watch::watch(client.clone(), cluster_state.clone(), *kind));
        }
        let limiter = Arc::new(world.block_on(async { Limiter::new(2000.0, 3000) }));
        let (metrics, events) = (Registry::for_provider(Provider::Aws), Recorder::new(Provider::Aws));
        let aws = world.block_on(async {
            let aws = Aws::new(Setup {
                services,
                region: REGION.to_owned(),
                cluster_info: cluster(),
                settings: AwsSettings::new(&settings).unwrap(),
                gates: settings.gates,
                min_values_policy: settings.min_values_policy,
                api: Api::new(client, cluster_state.clone(), Provider::Aws, limiter),
                cluster: cluster_state,
                clock: world.clock(),
                events: events.clone(),
                metrics: metrics.clone(),
                overlays,
            });
            aws.refresh_instance_types().await.unwrap();
            aws
        });
        let mut play = Self { world, double, aws, metrics, events, faults };
        play.pass(1);
        play
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// A NodeClass that is ready, whoever made it so, with fields of spec and status changed.
    pub(crate) fn ready_class(&mut self, name: &str, spec: &Value, status: &Value) {
        self.world.apply(&class(name, spec).to_string());
        let generation =
            self.world.get(&format!("{CLASSES}/{name}")).unwrap()["metadata"]["generation"].clone();
        let mut found = json!({
            "subnets": [
                {"id": "subnet-a1", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
                {"id": "subnet-b1", "zone": ZONES[1], "zoneID": "us-east-1b-id"},
            ],
            "securityGroups": [{"id": "sg-1", "name": "one"}],
            "amis": [
                {"id": "ami-amd", "name": "amd", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
                {"id": "ami-arm", "name": "arm", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]},
            ],
            "instanceProfile": "profile-1",
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "observedGeneration": generation, "lastTransitionTime": self.world.now(),
            }],
        });
        found.as_object_mut().unwrap().extend(status.as_object().cloned().unwrap_or_default());
        self.world.patch(&format!("{CLASSES}/{name}/status"), &json!({"status": found}));
        self.pass(1);
    }

    /// Starts all controllers; this process leads.
    pub(crate) fn start(&mut self) {
        self.start_some(|_| true);
        self.aws.know(|known| known.kubernetes = "1.34".parse().ok());
    }

    /// Starts the controllers with some names.
    pub(crate) fn start_some(&mut self, is_meant: impl Fn(&str) -> bool) {
        let (leads, leading) = watch::channel(true);
        let controllers = self.world.block_on(async { self.aws.controllers() });
        for controller in controllers.into_iter().filter(|controller| is_meant(controller.name)) {
            self.world.spawn(controller.run(leading.clone(), Registry::default()));
        }
        // It leads as long as the world lasts.
        std::mem::forget(leads);
    }

    /// Status, reason and message of a condition of a NodeClass.
    pub(crate) fn condition(&self, class: &str, kind: &str) -> (String, String, String) {
        let object = self.world.get(&format!("{CLASSES}/{class}")).unwrap();
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|each| each["type"] == kind).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// A NodePool of a NodeClass.
    pub(crate) fn pool(&mut self, name: &str, class: &str, template: &Value) {
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
            }}},
        });
        merge(&mut pool["spec"]["template"], template);
        self.world.apply(&pool.to_string());
        self.pass(1);
    }

    /// Launches an instance for a claim with requirements, writes the claim, and lets its Node join. The ID of the
    /// instance.
    pub(crate) fn node(&mut self, name: &str, requirements: &[(&str, &str, &[&str])]) -> String {
        let asked = crate::support::claim(requirements);
        let launched = self.create(&asked).unwrap();
        let status = launched.status.clone().unwrap();
        let mut written = serde_json::to_value(&asked).unwrap();
        let mut labels = launched.metadata.labels.clone().unwrap();
        labels.insert("karpenter.sh/nodepool".to_owned(), "pool-1".to_owned());
        written["apiVersion"] = "karpenter.sh/v1".into();
        written["kind"] = "NodeClaim".into();
        written["metadata"] = json!({
            "name": name, "labels": labels, "annotations": launched.metadata.annotations,
            "finalizers": ["karpenter.sh/termination"],
        });
        written["status"] = json!({"providerID": status.provider_id, "imageID": status.image_id, "nodeName": format!("node-{name}")});
        self.world.apply(&written.to_string());
        labels.insert("karpenter.sh/registered".to_owned(), "true".to_owned());
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{name}"), "labels": labels},
            "spec": {"providerID": status.provider_id},
            "status": {"capacity": {"cpu": "2", "memory": "7900Mi"}},
        });
        self.world.apply(&node.to_string());
        self.pass(1);
        status.provider_id.rsplit('/').next().unwrap().to_owned()
    }

    /// A claim as the cluster has it.
    pub(crate) fn claim(&self, name: &str) -> Value {
        self.world.get(&format!("{CLAIMS}/{name}")).unwrap()
    }

    /// Whether a claim is on its way out.
    pub(crate) fn is_ending(&self, name: &str) -> bool {
        !self.claim(name)["metadata"]["deletionTimestamp"].is_null()
    }

    /// The reasons of events about an object, each once.
    pub(crate) fn told(&self, kind: Kind, name: &str) -> BTreeSet<String> {
        let events = self.events.published();
        let about = events.iter().filter(|event| event.about.kind == kind && &*event.about.name == name);
        about.map(|event| event.reason.to_string()).collect()
    }

    pub(crate) fn create(&self, claim: &NodeClaim) -> Result<Instance, Error> {
        self.world.block_on(self.aws.create(claim))
    }

    /// All offerings that were asked for, in order: capacity type, instance type and zone.
    pub(crate) fn asked(&self) -> Vec<String> {
        let fleets = self.double.calls().into_iter().filter(|call| call.operation == "ec2:CreateFleet");
        fleets
            .flat_map(|call| {
                let mut words: Vec<String> = call.about.split(' ').map(str::to_owned).collect();
                let kind = words[1].clone();
                words.drain(..2);
                words.into_iter().map(|offer| format!("{kind} {offer}")).collect::<Vec<_>>()
            })
            .collect()
    }
}

fn fill(double: &Double, types: &[&str]) {
    let image = |id: &str, architecture: &str| Stored {
        item: Image {
            id: id.to_owned(),
            name: id.to_owned(),
            architecture: architecture.to_owned(),
            ..Image::default()
        },
        tags: [("image".to_owned(), "yes".to_owned())].into(),
    };
    double.change(|world| {
        world.types = types.iter().map(|name| info(name)).collect();
        let places = types.iter().flat_map(|name| ZONES.iter().map(move |zone| (*name, *zone)));
        let places =
            places.map(|(name, zone)| TypeInZone { instance_type: name.to_owned(), zone: zone.to_owned() });
        world.places = places.collect();
        let tags = || [("cluster".to_owned(), "test".to_owned())].into();
        world.add_subnet("subnet-a1", ZONES[0], 4000, tags());
        world.add_subnet("subnet-b1", ZONES[1], 4000, tags());
        let group = SecurityGroup { id: "sg-1".to_owned(), name: "one".to_owned() };
        world.security_groups.push(Stored { item: group, tags: tags() });
        world.images = vec![image("ami-amd", "x86_64"), image("ami-arm", "arm64")];
        world.roles.insert("node-role".to_owned());
        "1.34".clone_into(&mut world.cluster.version);
        world.cluster.service_ipv4_cidr = Some("10.0.0.0/16".to_owned());
    });
}

/// A NodeClass that selects everything that there is.
pub(crate) fn class(name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "role": "node-role", "amiFamily": "AL2023", "amiSelectorTerms": [{"tags": {"image": "yes"}}],
            "subnetSelectorTerms": [{"tags": {"cluster": "test"}}],
            "securityGroupSelectorTerms": [{"tags": {"cluster": "test"}}],
        },
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().cloned().unwrap_or_default());
    fields.retain(|_, value| !value.is_null());
    object
}

pub(crate) fn instance_type(launched: &Instance) -> &str {
    &launched.metadata.labels.as_ref().unwrap()["node.kubernetes.io/instance-type"]
}

/// Puts fields of one object into another.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
