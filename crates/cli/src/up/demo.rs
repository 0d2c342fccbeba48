//! `karpenter up --demo`: the walk-through, told as it happens.
//!
//! A NodePool is created, a Deployment scaled to five, a node appears and the pods run; the Deployment is deleted,
//! and the node goes. Each step is seen in the cluster before the next one is told.

use std::time::Duration;

use anyhow::{Result, bail};
use embedded::Server;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects;

const POOL: &str = include_str!("../../../../examples/kwok/nodepool.yaml");
const WORKLOAD: &str = include_str!("../../../../examples/inflate.yaml");
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/inflate";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// How many pods the walk-through asks for.
const REPLICAS: usize = 5;
/// How long a step may take; each takes a few seconds when all is well.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often the cluster is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Plays the walk-through.
pub(crate) async fn play(server: &Server) -> Result<()> {
    let demo = Demo { server, start: Instant::now() };
    demo.say("$ kubectl apply -f examples/kwok/nodepool.yaml")?;
    demo.apply(POOL)?;
    demo.until("the NodePool to be ready", "The NodePool is ready to launch nodes.", || {
        demo.get("/apis/karpenter.sh/v1/nodepools/default").is_some_and(|pool| is_true(&pool, "Ready"))
    })
    .await?;

    demo.say("$ kubectl apply -f examples/inflate.yaml; kubectl scale deployment inflate --replicas 5")?;
    demo.apply(WORKLOAD)?;
    demo.send(Method::PATCH, DEPLOYMENT, &json!({"spec": {"replicas": REPLICAS}}))?;
    demo.until("the pods to wait", "Five pods wait: no node has room for them.", || {
        let pods = demo.list(PODS);
        pods.len() == REPLICAS && pods.iter().all(|pod| pod["spec"]["nodeName"].is_null())
    })
    .await?;
    demo.until("a node", "", || demo.list(NODES).iter().any(|node| is_true(node, "Ready"))).await?;
    let claims = demo.list(CLAIMS);
    let Some(claim) = claims.first() else { bail!("there is a node, but no NodeClaim for it") };
    let label = |name: &str| claim["metadata"]["labels"][name].as_str().unwrap_or("?").to_owned();
    demo.say(&format!(
        "One node is launched for all of them: {} ({}) in {}.",
        label("node.kubernetes.io/instance-type"),
        label("karpenter.sh/capacity-type"),
        label("topology.kubernetes.io/zone"),
    ))?;
    demo.until("the pods to run", "All five pods run.", || {
        demo.list(PODS).iter().filter(|pod| pod["status"]["phase"] == "Running").count() == REPLICAS
    })
    .await?;

    demo.say("$ kubectl delete deployment inflate")?;
    demo.send(Method::DELETE, DEPLOYMENT, &Value::Null)?;
    demo.until(
        "the pods to go",
        "The pods are gone. The node is empty, and goes after half a minute without pods.",
        || demo.list(PODS).is_empty(),
    )
    .await?;
    demo.until("the node to be drained", "The node is being drained.", || {
        let taints = |node: &Value| node["spec"]["taints"].to_string().contains("karpenter.sh/disrupted");
        let nodes = demo.list(NODES);
        nodes.is_empty() || nodes.iter().all(taints)
    })
    .await?;
    demo.until("the node to go", "The node is gone, and so is its NodeClaim.", || {
        demo.list(NODES).is_empty() && demo.list(CLAIMS).is_empty()
    })
    .await
}

struct Demo<'a> {
    server: &'a Server,
    start: Instant,
}

impl Demo<'_> {
    fn say(&self, what: &str) -> Result<()> {
        crate::print(&format!("{:>6.1} s  {what}\n", self.start.elapsed().as_secs_f64()))
    }

    fn apply(&self, yaml: &str) -> Result<()> {
        for source in objects::parse(yaml, "the example")? {
            objects::apply(self.server, &source.object, &source.origin)?;
        }
        Ok(())
    }

    fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let (code, answer) = self.server.send(method, path, "application/merge-patch+json", body);
        if !code.is_success() {
            bail!("{path}: {}", answer["message"].as_str().unwrap_or("refused"));
        }
        Ok(answer)
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.send(Method::GET, path, &Value::Null).ok()
    }

    fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until something is seen in the cluster, and tells it.
    async fn until(&self, what: &str, done: &str, holds: impl Fn() -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > end {
                bail!("waited for {what} for {} seconds in vain", PATIENCE.as_secs());
            }
            tokio::time::sleep(LOOK).await;
        }
        if done.is_empty() { Ok(()) } else { self.say(done) }
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    })
}
