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
use super::tell::Terminal;
use crate::example;

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
/// How long nothing is told at most.
const SILENCE: Duration = Duration::from_secs(10);

/// Plays the walk-through. What the controller decides meanwhile is told by others.
pub(crate) async fn play(server: &Server, terminal: &Terminal) -> Result<()> {
    let demo = Demo { server, terminal };
    demo.say("$ karpenter example nodepool | kubectl apply -f -");
    demo.apply(example::NODEPOOL)?;
    demo.until("the NodePool to be ready", "The NodePool is ready to launch nodes.", || {
        demo.get("/apis/karpenter.sh/v1/nodepools/default").is_some_and(|pool| is_true(&pool, "Ready"))
    })
    .await?;

    demo.say("$ karpenter example inflate | kubectl apply -f -");
    demo.apply(example::INFLATE)?;
    demo.say("$ kubectl scale deployment inflate --replicas 5");
    demo.send(Method::PATCH, DEPLOYMENT, &json!({"spec": {"replicas": REPLICAS}}))?;
    demo.until("the pods to wait", "Five pods wait: no node has room for them.", || {
        let pods = demo.list(PODS);
        pods.len() == REPLICAS && pods.iter().all(|pod| pod["spec"]["nodeName"].is_null())
    })
    .await?;
    demo.until("a node for them", "", || !demo.list(CLAIMS).is_empty()).await?;
    demo.until("the node to be ready", "One node is there for all of them.", || {
        demo.list(NODES).iter().any(|node| is_true(node, "Ready"))
    })
    .await?;
    demo.until("the pods to run", "All five pods run.", || {
        demo.list(PODS).iter().filter(|pod| pod["status"]["phase"] == "Running").count() == REPLICAS
    })
    .await?;

    demo.say("$ kubectl delete deployment inflate");
    demo.send(Method::DELETE, DEPLOYMENT, &Value::Null)?;
    demo.until(
        "the pods to go",
        "The pods are gone. The node goes when it has been empty for 30 s (the NodePool's consolidateAfter)\n          \
         and still is 15 s later.",
        || demo.list(PODS).is_empty(),
    )
    .await?;
    demo.until("the node to have been empty for long enough", "The node is being drained.", || {
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
    terminal: &'a Terminal,
}

impl Demo<'_> {
    fn say(&self, what: &str) {
        self.terminal.say("", what);
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
        let start = Instant::now();
        let mut told = start;
        while !holds() {
            let now = Instant::now();
            if now > start + PATIENCE {
                bail!("waited for {what} for {} seconds in vain", PATIENCE.as_secs());
            }
            if now >= told + SILENCE {
                told = now;
                self.say(&format!("... {} s: waiting for {what}", (now - start).as_secs()));
            }
            tokio::time::sleep(LOOK).await;
        }
        if !done.is_empty() {
            self.say(done);
        }
        Ok(())
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    })
}
