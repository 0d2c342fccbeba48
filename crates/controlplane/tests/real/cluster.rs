//! A real API server and scheduler with simulated kubelets, and with our controllers or the real ones.

use std::sync::LazyLock;
use std::time::Duration;

use clock::Clock;
use controlplane::{KubeletOptions, Options};
use e2e::ControlPlane;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

pub(crate) struct Cluster {
    plane: ControlPlane,
    _runtime: Runtime,
}

/// Our cluster and theirs, started once.
pub(crate) fn pair() -> (&'static Cluster, &'static Cluster) {
    static PAIR: LazyLock<(Cluster, Cluster)> = LazyLock::new(|| {
        std::thread::scope(|scope| {
            let ours = scope.spawn(|| Cluster::start(true));
            let theirs = scope.spawn(|| Cluster::start(false));
            (ours.join().expect("our cluster"), theirs.join().expect("their cluster"))
        })
    });
    (&PAIR.0, &PAIR.1)
}

impl Cluster {
    fn start(ours: bool) -> Self {
        let builder = ControlPlane::builder().with_scheduler();
        let builder = if ours { builder } else { builder.with_controller_manager() };
        let plane = builder.start().expect("a control plane");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("tokio");
        let kubelet = KubeletOptions { pod_start: Duration::from_millis(100), ..KubeletOptions::default() };
        let options = Options {
            scheduler: false,
            workloads: ours,
            garbage: ours,
            node_lifecycle: ours,
            kubelet: Some(kubelet),
            ..Options::default()
        };
        let path = plane.kubeconfig_path();
        runtime.spawn(async move {
            let client = connect(&path).await;
            controlplane::run(client, Clock::system(), options).await
        });
        let cluster = Self { plane, _runtime: runtime };
        for number in 1..=3 {
            let node = format!(
                "
                apiVersion: v1
                kind: Node
                metadata: {{name: node-{number}, labels: {{topology.kubernetes.io/zone: zone-{number}}}}}
                "
            );
            cluster.plane.kubectl_with_input(&["apply", "-f", "-"], &node).expect("a node");
        }
        cluster.kubectl(&["wait", "node", "--all", "--for=condition=Ready", "--timeout=30s"]);
        cluster
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        self.plane.kubectl(args).expect("kubectl")
    }

    pub(crate) fn apply(&self, namespace: &str, manifest: &str) {
        let _ = self
            .plane
            .kubectl_with_input(&["apply", "-n", namespace, "-f", "-"], manifest)
            .expect("kubectl apply");
    }

    pub(crate) fn wait(&self, namespace: &str, command: &[&str]) {
        let mut args = vec!["-n", namespace];
        args.extend(command);
        if let Err(error) = self.plane.kubectl(&args) {
            let state = self.kubectl(&["-n", namespace, "get", "all,pdb,pvc,events", "-o", "wide"]);
            panic!("{command:?}: {error:#}\n{state}");
        }
    }

    /// The objects of these kinds once they have not changed for a while.
    pub(crate) fn settled(&self, namespace: &str, kinds: &str, limit: Duration) -> Vec<Value> {
        let mut last = String::new();
        let mut quiet = 0;
        e2e::poll("nothing to change any more", limit, || {
            std::thread::sleep(Duration::from_millis(250));
            let now = self.plane.kubectl(&["-n", namespace, "get", kinds, "-o", "json"])?;
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            Ok((quiet >= 6).then_some(()))
        })
        .expect("a quiet cluster");
        let answer: Value = serde_json::from_str(&last).expect("JSON");
        answer["items"].as_array().cloned().unwrap_or_default()
    }
}

async fn connect(path: &std::path::Path) -> Client {
    let file = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a config");
    Client::try_from(config).expect("a client")
}
