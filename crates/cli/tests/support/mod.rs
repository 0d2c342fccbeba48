//! A cluster that answers, for commands that ask one.

use std::io::Write as _;

use api::provider::Provider;
use clock::Clock;
use embedded::Server;
use http::Method;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

/// An API server in this process with the definitions of a provider.
pub(crate) struct Cluster {
    server: Server,
    pub(crate) kubeconfig: NamedTempFile,
    /// What answers; ends with it.
    _runtime: Runtime,
}

impl Cluster {
    pub(crate) fn start(provider: Provider) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = {
            let _inside = runtime.enter();
            Server::new(Clock::system(), &embedded::Options::default())
        };
        let (listener, address) = runtime.block_on(embedded::http_server::bind_loopback()).expect("a port");
        runtime.spawn(embedded::http_server::serve_plain(server.service(), listener));
        let cluster = Self { server, kubeconfig: kubeconfig(&address.to_string()), _runtime: runtime };
        for definition in api::crds::documents(provider) {
            cluster.put(&definition.document);
        }
        cluster
    }

    /// Puts an object with its status into the cluster.
    pub(crate) fn put(&self, object: &Value) {
        self.server.apply(object, "test").unwrap_or_else(|refusal| panic!("{refusal:?} for {object}"));
        if object["status"].is_object() {
            let path = format!("{}/status", self.server.path_of(object).expect("a known kind"));
            let status = json!({"status": object["status"]});
            let (code, answer) =
                self.server.send(Method::PATCH, &path, "application/merge-patch+json", &status);
            assert!(code.is_success(), "{answer}");
        }
    }
}

/// A kubeconfig for an API server without secrets.
pub(crate) fn kubeconfig(address: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: \
         'http://{address}'}}}}]\nusers: [{{name: a, user: {{}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: \
         a}}}}]\n"
    );
    file.write_all(config.as_bytes()).expect("it can be written");
    file
}
