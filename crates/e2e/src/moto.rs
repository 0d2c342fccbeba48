//! AWS on loopback: the moto server, filled with what a cluster needs. Entry: [`Moto::start`].

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;
use crate::tools::{self, last_lines};
use crate::{free_ports, poll};

/// Ten times what a busy 2-core machine needs: only a broken start waits this long.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// Long enough for thousands of instances.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
const SHOWN_LINES: usize = 20;

/// What there is of AWS at the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// The name of the cluster.
    pub cluster: String,
    /// The cluster's name for other services.
    pub cluster_arn: String,
    /// The region.
    pub region: String,
    /// The subnets of the cluster; they have the tag `karpenter.sh/discovery` with the name of the cluster.
    pub subnets: Vec<MadeSubnet>,
    /// The security groups of the cluster; they have the same tag.
    pub security_groups: Vec<MadeSecurityGroup>,
    /// The role of nodes.
    pub role: String,
    /// An instance profile with that role.
    pub instance_profile: String,
    /// The name of the interruption queue.
    pub queue: String,
}

/// A subnet.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeSubnet {
    /// Its ID.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// The zone's ID.
    pub zone_id: String,
}

/// A security group.
#[derive(Clone, Debug, Deserialize)]
pub struct MadeSecurityGroup {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A running moto server; dropping it ends it.
#[derive(Debug)]
pub struct Moto {
    // It ends before its directory goes.
    _process: Process,
    dir: TempDir,
    port: u16,
    made: Made,
}

impl Moto {
    /// Starts AWS for a cluster of a Kubernetes version such as `1.36`; everything that is asked of it is recorded.
    pub fn start(cluster: &str, kubernetes: &str) -> Result<Self> {
        let program = tools::moto()?;
        let dir = tempfile::Builder::new().prefix("karpenter-moto-").tempdir()?;
        let [port] = free_ports()?;
        let file = |name: &str| dir.path().join(name);
        let text = |path: PathBuf| path.display().to_string();
        let arguments = [
            // Nothing is written beside the sources.
            "-B".to_owned(),
            text(program.script),
            format!("--port={port}"),
            format!("--cluster={cluster}"),
            format!("--kubernetes={kubernetes}"),
            format!("--ready={}", text(file("ready.json"))),
            format!("--record={}", text(file("requests.jsonl"))),
        ];
        let mut process = Process::spawn(&program.python, &arguments, file("moto.log"), Some(dir.path()))?;
        let made = poll("moto", READY_TIMEOUT, || {
            if let Some(status) = process.exit_status()? {
                bail!(
                    "moto ended early ({status}); its last lines:\n{}",
                    last_lines(&process.log()?, SHOWN_LINES)
                );
            }
            Ok(fs::read_to_string(file("ready.json")).ok())
        })?;
        let made = serde_json::from_str(&made).context("what moto's launcher wrote")?;
        Ok(Self { _process: process, dir, port, made })
    }

    /// What there is at the start.
    pub fn made(&self) -> &Made {
        &self.made
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What tells an SDK to use it and nothing else.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.url()),
            ("AWS_REGION", self.made.region.clone()),
            ("AWS_ACCESS_KEY_ID", "testing".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "testing".to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ]
    }

    /// Instances, launch templates and instance profiles.
    pub fn state(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.ask("GET", "/karpenter/state", "")?)?)
    }

    /// The instances that are not gone.
    pub fn instances(&self) -> Result<Vec<Value>> {
        let state = self.state()?;
        let all = state["instances"].as_array().context("there is a list of instances")?;
        Ok(all.iter().filter(|each| each["state"] != "terminated").cloned().collect())
    }

    /// Puts a message into the interruption queue.
    pub fn send(&self, message: &Value) -> Result<()> {
        self.ask("POST", "/karpenter/message", &message.to_string()).map(drop)
    }

    /// Everything that was asked since the start, in order.
    pub fn requests(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.dir.path().join("requests.jsonl"))?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("moto answers in HTTP")?;
        let status = head.lines().next().unwrap_or_default();
        ensure!(status.contains(" 200 "), "moto answered {method} {path} with {status}: {body}");
        Ok(body.to_owned())
    }
}
