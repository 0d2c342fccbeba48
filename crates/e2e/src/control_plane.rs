//! One Kubernetes control plane on loopback, in a temporary directory of its own.
//!
//! [`ControlPlane::start`] is the entry; [`ControlPlane::builder`] leaves components out or adds flags.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use tempfile::TempDir;

use crate::certificates::{Certificates, random_token};
use crate::process::Process;
use crate::saved::Saved;
use crate::tools::{self, Tool, last_lines, say};
use crate::{Component, poll};

/// Ten times what a busy 2-core machine needs: only a broken start waits this long.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// A port is free when it is chosen and may be taken a moment later; three such accidents in a row are not one.
const START_ATTEMPTS: u32 = 3;
/// Enough of a log to see why a component gave up.
const SHOWN_LINES: usize = 20;
/// When set to anything but the empty string, the directory of every control plane is kept.
const KEEP_VARIABLE: &str = "KARPENTER_E2E_KEEP";

/// Says which components run and with which flags.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    scheduler: bool,
    controller_manager: bool,
    kwok: bool,
    args: Vec<(Component, String)>,
    feature_gates: Vec<String>,
    saved: Option<Arc<Saved>>,
}

impl Builder {
    /// Adds kube-scheduler, which binds pods to nodes.
    #[must_use]
    pub fn with_scheduler(mut self) -> Self {
        self.scheduler = true;
        self
    }

    /// Adds kube-controller-manager, which makes pods of deployments and collects garbage.
    #[must_use]
    pub fn with_controller_manager(mut self) -> Self {
        self.controller_manager = true;
        self
    }

    /// Adds KWOK, which makes nodes with the annotation `kwok.x-k8s.io/node: fake` ready and their pods run.
    #[must_use]
    pub fn with_kwok(mut self) -> Self {
        self.kwok = true;
        self
    }

    /// Appends a flag such as `--node-monitor-grace-period=10s`; it wins over the one given by default.
    #[must_use]
    pub fn arg(mut self, component: Component, arg: &str) -> Self {
        self.args.push((component, arg.to_owned()));
        self
    }

    /// Switches a feature gate in every Kubernetes component.
    #[must_use]
    pub fn feature_gate(mut self, name: &str, enabled: bool) -> Self {
        self.feature_gates.push(format!("{name}={enabled}"));
        self
    }

    /// Begins with what another control plane knew when it ended.
    #[must_use]
    pub fn with_state_of(mut self, saved: &Arc<Saved>) -> Self {
        self.saved = Some(Arc::clone(saved));
        self
    }

    fn components(&self) -> Vec<Component> {
        let optional = [
            (self.scheduler, Component::Scheduler),
            (self.controller_manager, Component::ControllerManager),
            (self.kwok, Component::Kwok),
        ];
        let chosen = optional.into_iter().filter_map(|(wanted, component)| wanted.then_some(component));
        [Component::Etcd, Component::ApiServer].into_iter().chain(chosen).collect()
    }

    /// Starts the components and returns when all are ready.
    pub fn start(&self) -> Result<ControlPlane> {
        // A first build takes minutes, in which nothing should run and wait.
        for component in self.components() {
            tools::path(component.tool())?;
        }
        retry_lost_ports(|| {
            let mut plane = ControlPlane::prepare()?;
            if let Some(saved) = &self.saved {
                saved.put(&plane.file("etcd"))?;
            }
            plane.launch(self).map_err(|error| {
                if lost_a_port(&error) {
                    return error;
                }
                plane.keep = true;
                error.context(format!("logs are kept in {}", plane.dir.path().display()))
            })?;
            Ok(plane)
        })
    }
}

/// A running control plane; dropping it ends every process and removes its directory.
///
/// The directory is kept when the thread that drops it panics, so that a failed test leaves its logs.
#[derive(Debug)]
pub struct ControlPlane {
    // The processes end before the directory goes.
    processes: Vec<(Component, Process)>,
    dir: TempDir,
    ports: Ports,
    ca_pem: String,
    token: String,
    kubectl: PathBuf,
    keep: bool,
}

#[derive(Debug)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
    scheduler: u16,
    controller_manager: u16,
    kwok: u16,
}

impl ControlPlane {
    /// Starts etcd, the API server, the scheduler and the controller manager.
    pub fn start() -> Result<Self> {
        Self::builder().with_scheduler().with_controller_manager().start()
    }

    /// A control plane of etcd and the API server, to which the builder adds.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The complete control plane that all tests of one test binary share; give each test its own namespace.
    ///
    /// It ends with the process, because a static is never dropped but its pipes close.
    pub fn shared() -> Result<&'static Self> {
        static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start().map_err(|error| format!("{error:#}")));
        shared.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// A kubeconfig with the rights of `system:masters`.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// Where the API server listens: `https://127.0.0.1:<port>`.
    pub fn server_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.apiserver)
    }

    /// The certificate authority that signed the API server's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The bearer token of a member of `system:masters`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where the logs, keys and data of this control plane are.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// What a component has written so far.
    pub fn logs(&self, component: Component) -> Result<String> {
        let process = self.processes.iter().find(|(found, _)| *found == component);
        process.with_context(|| format!("{component} was not started"))?.1.log()
    }

    /// Runs kubectl and returns its standard output; a failure carries what it wrote to standard error.
    pub fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with_input(args, "")
    }

    /// Runs kubectl with a manifest on standard input, as in `["apply", "-f", "-"]`.
    pub fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<String> {
        let output = self.run_kubectl(args, input)?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {} failed: {}", args.join(" "), message.trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A command for `tool` that talks to this control plane, for kubectl and Helm calls of any other shape.
    pub fn command(&self, tool: Tool) -> Result<Command> {
        let mut command = Command::new(tools::path(tool)?);
        self.point_here(&mut command);
        Ok(command)
    }

    /// Starts a program that works on this cluster, with these environment variables; it ends with its
    /// [`Process`], and its log is among those of the components.
    pub fn run(
        &self,
        name: &str,
        program: &Path,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Process> {
        let mut words = vec![format!("KUBECONFIG={}", self.kubeconfig_path().display())];
        words.extend(environment.iter().map(|(variable, value)| format!("{variable}={value}")));
        words.push(program.display().to_string());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let leftovers = (!self.keep).then(|| self.dir.path());
        Process::spawn(Path::new("/usr/bin/env"), &words, self.file(&format!("{name}.log")), leftovers)
    }

    /// Ends every process and removes the directory, as dropping does.
    pub fn stop(self) {}

    /// Ends every process, and keeps what the cluster knew for others to begin with.
    pub fn save(mut self) -> Result<Saved> {
        self.end();
        Saved::take(&self.file("etcd"))
    }

    fn end(&mut self) {
        // All at once, then one by one: waiting is the slow part.
        for (_, process) in &mut self.processes {
            process.kill();
        }
        for (_, process) in &mut self.processes {
            process.stop();
        }
    }

    fn run_kubectl(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut command = Command::new(&self.kubectl);
        self.point_here(&mut command);
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdin = child.stdin.take().context("the pipe asked for is there")?;
        // A kubectl that reads no input closes the pipe; what it then says is the better error.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        Ok(child.wait_with_output()?)
    }

    /// Keeps kubectl and Helm away from the user's own cluster, preferences and caches.
    fn point_here(&self, command: &mut Command) {
        command
            .env("KUBECONFIG", self.kubeconfig_path())
            .env("KUBECACHEDIR", self.file("kubectl-cache"))
            .env("KUBERC", "off")
            .env("HELM_CACHE_HOME", self.file("helm/cache"))
            .env("HELM_CONFIG_HOME", self.file("helm/config"))
            .env("HELM_DATA_HOME", self.file("helm/data"));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Chooses ports and writes every file that the components read.
    fn prepare() -> Result<Self> {
        let kubectl = tools::path(Tool::Kubectl)?;
        let dir = tempfile::Builder::new().prefix("karpenter-e2e-").tempdir()?;
        let certificates = Certificates::generate()?;
        let token = random_token()?;
        let [etcd, etcd_peer, apiserver, scheduler, controller_manager, kwok] = free_ports()?;
        let ports = Ports { etcd, etcd_peer, apiserver, scheduler, controller_manager, kwok };
        let ca_pem = certificates.authority.clone();
        let keep = std::env::var_os(KEEP_VARIABLE).is_some_and(|value| !value.is_empty());
        let plane = Self { processes: vec![], dir, ports, ca_pem, token, kubectl, keep };

        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: e2e\n\
             clusters:\n- name: e2e\n  cluster:\n    server: {}\n    certificate-authority: ca.crt\n\
             users:\n- name: admin\n  user:\n    token: {}\n\
             contexts:\n- name: e2e\n  context:\n    cluster: e2e\n    user: admin\n",
            plane.server_url(),
            plane.token,
        );
        fs::write(plane.kubeconfig_path(), kubeconfig)?;
        fs::write(plane.file("ca.crt"), certificates.authority)?;
        fs::write(plane.file("serving.crt"), certificates.serving)?;
        fs::write(plane.file("serving.key"), certificates.serving_key)?;
        fs::write(plane.file("service-account.key"), certificates.service_account_key)?;
        fs::write(plane.file("service-account.pub"), certificates.service_account_public_key)?;
        fs::write(plane.file("tokens.csv"), format!("{},admin,admin,system:masters\n", plane.token))?;
        Ok(plane)
    }

    fn launch(&mut self, builder: &Builder) -> Result<()> {
        self.spawn(Component::Etcd, builder)?;
        self.spawn(Component::ApiServer, builder)?;
        let server = self.server_url();
        self.wait_for(&server, "/readyz")?;
        // The server is ready a moment before it has made its namespaces, and tests begin by using one.
        self.wait_for(&server, "/api/v1/namespaces/default")?;

        // The others give up when they find no API server, so they come last.
        let mut health = vec![];
        if builder.scheduler {
            self.spawn(Component::Scheduler, builder)?;
            health.push((self.ports.scheduler, "/readyz"));
        }
        if builder.controller_manager {
            self.spawn(Component::ControllerManager, builder)?;
            // It has no other health endpoint.
            health.push((self.ports.controller_manager, "/healthz"));
        }
        if builder.kwok {
            self.spawn(Component::Kwok, builder)?;
            health.push((self.ports.kwok, "/readyz"));
        }
        health.iter().try_for_each(|(port, path)| self.wait_for(&format!("https://127.0.0.1:{port}"), path))
    }

    fn spawn(&mut self, component: Component, builder: &Builder) -> Result<()> {
        let mut args = match component {
            Component::Etcd => self.etcd_args(),
            Component::ApiServer => self.apiserver_args(),
            Component::Scheduler => self.client_args(self.ports.scheduler),
            Component::ControllerManager => self.controller_manager_args(),
            Component::Kwok => self.kwok_args()?,
        };
        let has_gates = !matches!(component, Component::Etcd | Component::Kwok);
        if has_gates && !builder.feature_gates.is_empty() {
            args.push(format!("--feature-gates={}", builder.feature_gates.join(",")));
        }
        args.extend(builder.args.iter().filter(|(of, _)| *of == component).map(|(_, arg)| arg.clone()));

        let log = self.file(&format!("{component}.log"));
        let leftovers = (!self.keep).then(|| self.dir.path());
        let process = Process::spawn(&tools::path(component.tool())?, &args, log, leftovers)?;
        self.processes.push((component, process));
        Ok(())
    }

    fn etcd_args(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        vec![
            format!("--data-dir={}", self.file("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // The data need not survive a crash of the machine.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn apiserver_args(&self) -> Vec<String> {
        let mut args = self.serving_args(self.ports.apiserver);
        args.extend([
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            // A documentation address (RFC 5737): the server refuses to advertise loopback, and left to
            // itself it looks for an outside address, which a machine without a network does not have.
            "--advertise-address=192.0.2.1".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", self.file("tokens.csv").display()),
            "--authorization-mode=RBAC".to_owned(),
            // Pods need no service account, so tests can create them without a controller manager.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file("service-account.pub").display()),
            format!("--service-account-signing-key-file={}", self.file("service-account.key").display()),
        ]);
        args
    }

    fn controller_manager_args(&self) -> Vec<String> {
        let mut args = self.client_args(self.ports.controller_manager);
        args.extend([
            format!("--service-account-private-key-file={}", self.file("service-account.key").display()),
            format!("--root-ca-file={}", self.file("ca.crt").display()),
            // Otherwise it creates a directory in the system's own tree.
            format!("--flex-volume-plugin-dir={}", self.file("flex-volumes").display()),
        ]);
        args
    }

    fn kwok_args(&self) -> Result<Vec<String>> {
        Ok(vec![
            format!("--kubeconfig={}", self.kubeconfig_path().display()),
            format!("--config={}", tools::kwok_stages()?.display()),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
            format!("--server-address=127.0.0.1:{}", self.ports.kwok),
            format!("--tls-cert-file={}", self.file("serving.crt").display()),
            format!("--tls-private-key-file={}", self.file("serving.key").display()),
        ])
    }

    /// What the scheduler and the controller manager have in common.
    fn client_args(&self, port: u16) -> Vec<String> {
        let kubeconfig = self.kubeconfig_path();
        let mut args = self.serving_args(port);
        args.extend(["", "authentication-", "authorization-"].map(|use_of_it| {
            // The latter two let the admin token read the component's metrics.
            format!("--{use_of_it}kubeconfig={}", kubeconfig.display())
        }));
        args.extend([
            // Nothing in the cluster says how else to authenticate; looking for it only fills the log.
            "--authentication-skip-lookup=true".to_owned(),
            "--leader-elect=false".to_owned(),
        ]);
        args
    }

    fn serving_args(&self, port: u16) -> Vec<String> {
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.file("serving.crt").display()),
            format!("--tls-private-key-file={}", self.file("serving.key").display()),
        ]
    }

    /// Waits until `path` on `server` answers, or says why it never will.
    fn wait_for(&mut self, server: &str, path: &str) -> Result<()> {
        let mut answer = String::new();
        let ready = poll(&format!("{server}{path}"), READY_TIMEOUT, || {
            for (component, process) in &mut self.processes {
                if let Some(status) = process.exit_status()? {
                    let log = last_lines(&process.log()?, SHOWN_LINES);
                    bail!("{component} ended early ({status}); its last lines:\n{log}");
                }
            }
            // A server that has lost its etcd accepts the request and never answers.
            let limit = "--request-timeout=3s";
            let output = self.run_kubectl(&["--server", server, limit, "get", "--raw", path], "")?;
            answer = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok(output.status.success().then_some(()))
        });
        ready.with_context(|| format!("last answer: {}", answer.trim()))
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
        if self.keep || std::thread::panicking() {
            self.dir.disable_cleanup(true);
            say(&format!("the control plane's files are kept in {}", self.dir.path().display()));
        }
    }
}

/// Ports that are free now; all are held until the last is chosen, so that they differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = vec![];
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

/// Whether somebody took a port between our choice and its use; the log lines in the error tell.
fn lost_a_port(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

fn retry_lost_ports<T>(mut start: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match start() {
            Err(error) if attempt < START_ATTEMPTS && lost_a_port(&error) => attempt += 1,
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a start is tried whose attempts fail like this.
    fn attempts(failures: &[&str]) -> (u32, bool) {
        let mut attempts = 0;
        let mut failures = failures.iter();
        let outcome = retry_lost_ports(|| {
            attempts += 1;
            failures.next().map_or(Ok(()), |failure| Err(anyhow!("{failure}").context("etcd ended early")))
        });
        (attempts, outcome.is_ok())
    }

    #[test]
    fn a_start_that_lost_a_port_is_tried_again() {
        const LOST: &str = "listen tcp 127.0.0.1:2379: bind: address already in use";
        assert_eq!(attempts(&[]), (1, true));
        assert_eq!(attempts(&[LOST, LOST]), (3, true));
        assert_eq!(attempts(&[LOST, LOST, LOST]), (3, false));
        assert_eq!(attempts(&["unknown flag"]), (1, false));
    }

    #[test]
    fn free_ports_differ() {
        let mut ports: [u16; 20] = free_ports().unwrap();
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
    }
}
