//! The Go programs that the tests run, built on first use and cached outside the source tree.
//!
//! Each tool is pinned by a Go module, most of them under `tools/`; [`path`] is the one entry point.
//! The cache is `$KARPENTER_TOOLS_DIR`, or `karpenter/tools` in the user's cache directory:
//!
//! ```text
//! <cache>/kubernetes-v1.36.3-<digest>/.lock             held while a tool of this module is built
//!                                    /.kubectl.partial  what `go build` writes
//!                                    /kubectl           renamed into place when complete
//! ```
//!
//! The digest covers everything that decides the binary, so another version gets another directory and a
//! finished file is never stale.
//! To move to another version, change it in the module's `go.mod` (for Kubernetes also in the lines that replace
//! its staging modules) and run `go mod tidy` there.
//!
//! [`moto`], [`azure_sdk`] and [`azure_oav`] are no Go programs: their pinned packages for Python and Node.js are
//! installed beside the others.

mod npm;
mod venv;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

pub use npm::NodeProgram;
pub use venv::Program;

/// How long to leave a module proxy alone after it said "429 Too Many Requests"; its window is one minute.
const RATE_LIMIT_PAUSE: Duration = Duration::from_secs(70);
/// One try and two retries: a proxy that still refuses after two windows will not recover soon.
const ATTEMPTS: u32 = 3;
/// Go names the failing package last, so the end of its output is what explains a failed build.
const SHOWN_LINES: usize = 15;

const KUBERNETES: &str = "tools/kubernetes";
const KWOK: &str = "sigs.k8s.io/kwok";
/// What KWOK does with nodes and pods: at once whatever is asked for, and signs of life.
const KWOK_STAGES: [&str; 5] = [
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
];

/// A program that the tests build from its Go module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// The key-value store below the API server.
    Etcd,
    /// The Kubernetes API server.
    KubeApiserver,
    /// The built-in controllers: deployments, garbage collection, node lifecycle and so on.
    KubeControllerManager,
    /// The scheduler that binds pods to nodes.
    KubeScheduler,
    /// The Kubernetes command line.
    Kubectl,
    /// An older Kubernetes command line, as many people have it.
    OldKubectl,
    /// The chart renderer and installer.
    Helm,
    /// The simulator that keeps nodes without machines alive.
    Kwok,
    /// The original controller with simulated nodes, whose clusters are taken over.
    Upstream,
    /// The original controller for AWS; only recordings of its requests need it.
    UpstreamAws,
    /// Microsoft's types, which read what is said to Azure and by it.
    AzureTypes,
}

/// Where a tool comes from.
struct Source {
    /// Folder in the repository; its last part names the folder in the cache.
    folder: &'static str,
    /// The required module whose version is the tool's version.
    module: &'static str,
    /// The package that `go build` builds.
    package: &'static str,
    /// How long a first build takes, for the person who waits.
    duration: &'static str,
}

impl Source {
    /// Whether the program is part of this repository.
    fn is_own(&self) -> bool {
        self.package.starts_with("karpenter.internal/")
    }
}

impl Tool {
    /// Every tool that tests run, in the order in which [`build_all`] builds them.
    pub const ALL: [Self; 10] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::OldKubectl,
        Self::Helm,
        Self::Kwok,
        Self::Upstream,
        Self::AzureTypes,
    ];

    /// The file name of the program.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::OldKubectl => "kubectl-1.32",
            Self::Helm => "helm",
            Self::Kwok => "kwok",
            Self::Upstream => "upstream-controller",
            Self::UpstreamAws => "upstream-aws-controller",
            Self::AzureTypes => "azure-types",
        }
    }

    const fn source(self) -> Source {
        match self {
            Self::Etcd => Source {
                folder: "tools/etcd",
                module: "go.etcd.io/etcd/server/v3",
                package: "go.etcd.io/etcd/server/v3",
                duration: "about 1 minute",
            },
            Self::KubeApiserver => kubernetes("k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::KubeControllerManager => kubernetes("k8s.io/kubernetes/cmd/kube-controller-manager"),
            Self::KubeScheduler => kubernetes("k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubectl => kubernetes("k8s.io/kubernetes/cmd/kubectl"),
            Self::OldKubectl => Source {
                folder: "tools/kubectl-1.32",
                module: "k8s.io/kubectl",
                package: "karpenter.internal/tools/kubectl-1.32",
                duration: "about 2 minutes",
            },
            Self::Helm => Source {
                folder: "tools/helm",
                module: "helm.sh/helm/v3",
                package: "helm.sh/helm/v3/cmd/helm",
                duration: "about 2 minutes",
            },
            Self::Kwok => Source {
                folder: "tools/kwok",
                module: KWOK,
                package: "sigs.k8s.io/kwok/cmd/kwok",
                duration: "about 3 minutes",
            },
            Self::Upstream => Source {
                folder: "bench/upstream",
                module: "sigs.k8s.io/karpenter",
                package: "sigs.k8s.io/karpenter/kwok",
                duration: "about 5 minutes",
            },
            Self::UpstreamAws => Source {
                folder: "tools/upstream-aws",
                module: "github.com/aws/karpenter-provider-aws",
                package: "github.com/aws/karpenter-provider-aws/cmd/controller",
                duration: "about 9 minutes",
            },
            Self::AzureTypes => Source {
                folder: "tools/azure-types",
                module: "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7",
                package: "karpenter.internal/tools/azure-types",
                duration: "about 2 minutes",
            },
        }
    }

    /// Linker flags: no debug information, and the version that the project's own release build would stamp.
    fn ldflags(self, version: &str, go_mod: &str) -> Result<String> {
        let stamps = match self {
            Self::Etcd | Self::Kwok | Self::Upstream | Self::UpstreamAws | Self::AzureTypes => vec![],
            Self::KubeApiserver | Self::KubeControllerManager | Self::KubeScheduler | Self::Kubectl => {
                let (major, minor) = major_minor(version)?;
                let package = "k8s.io/component-base/version";
                vec![
                    format!("{package}.gitVersion={version}"),
                    format!("{package}.gitMajor={major}"),
                    format!("{package}.gitMinor={minor}"),
                ]
            }
            Self::OldKubectl => {
                // The module's version is that of Kubernetes with a zero in front.
                let (_, minor) = major_minor(version)?;
                let package = "k8s.io/component-base/version";
                vec![
                    format!("{package}.gitVersion={}", version.replacen("v0.", "v1.", 1)),
                    format!("{package}.gitMajor=1"),
                    format!("{package}.gitMinor={minor}"),
                ]
            }
            // Without these Helm believes that it talks to Kubernetes 1.20 and renders APIs long removed.
            Self::Helm => {
                let (_, minor) = major_minor(&required_version(go_mod, "k8s.io/client-go")?)?;
                let mut stamps = vec![format!("helm.sh/helm/v3/internal/version.version={version}")];
                for package in ["pkg/chartutil", "pkg/lint/rules"] {
                    stamps.push(format!("helm.sh/helm/v3/{package}.k8sVersionMajor=1"));
                    stamps.push(format!("helm.sh/helm/v3/{package}.k8sVersionMinor={minor}"));
                }
                stamps
            }
        };
        Ok(stamps.iter().fold("-s -w".to_owned(), |flags, stamp| format!("{flags} -X {stamp}")))
    }
}

const fn kubernetes(package: &'static str) -> Source {
    Source {
        folder: KUBERNETES,
        module: "k8s.io/kubernetes",
        package,
        duration: "about 8 minutes on 2 cores for the first of the Kubernetes tools",
    }
}

/// The path of the finished program, which is built first if the cache does not hold it.
pub fn path(tool: Tool) -> Result<PathBuf> {
    Workshop::from_environment()?.path(tool)
}

/// The file that tells KWOK what to do with nodes and pods; it is kept beside the program.
pub fn kwok_stages() -> Result<PathBuf> {
    Workshop::from_environment()?.kwok_stages()
}

/// The moto server with our launcher; its packages are installed first if the cache does not hold them.
pub fn moto() -> Result<Program> {
    Workshop::from_environment()?.moto()
}

/// A walk through Azure's API by its official SDK for Python, which is installed first if the cache does not hold it.
pub fn azure_sdk() -> Result<Program> {
    Workshop::from_environment()?.azure_sdk()
}

/// Microsoft's validator `oav`, which is installed first if the cache does not hold it.
pub fn azure_oav() -> Result<NodeProgram> {
    Workshop::from_environment()?.azure_oav()
}

/// Builds every tool that the cache does not hold and returns their paths.
pub fn build_all() -> Result<Vec<PathBuf>> {
    let workshop = Workshop::from_environment()?;
    workshop.moto()?;
    workshop.azure_sdk()?;
    workshop.azure_oav()?;
    Tool::ALL.into_iter().map(|tool| workshop.path(tool)).collect()
}

/// Everything that a build takes from its surroundings.
#[derive(Clone)]
struct Workshop {
    go: PathBuf,
    python: PathBuf,
    npm: PathBuf,
    sources: PathBuf,
    /// Which minor version of Kubernetes' own programs, if not the newest: `1.32` is the module of `kubernetes-1.32`.
    kubernetes: Option<String>,
    cache: PathBuf,
    rate_limit_pause: Duration,
    /// Tells the person who waits.
    say: fn(&str),
}

/// The pinned files of one tool, read and understood.
struct Pin {
    source: Source,
    folder: PathBuf,
    version: String,
    go_version: String,
    ldflags: String,
    digest: u64,
}

impl Workshop {
    fn from_environment() -> Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let cache = match (set("KARPENTER_TOOLS_DIR"), set("XDG_CACHE_HOME"), set("HOME")) {
            (Some(tools), _, _) => PathBuf::from(tools),
            (None, Some(caches), _) => Path::new(&caches).join("karpenter/tools"),
            (None, None, Some(home)) => Path::new(&home).join(".cache/karpenter/tools"),
            (None, None, None) => bail!("set KARPENTER_TOOLS_DIR or HOME: the built tools need a place"),
        };
        Ok(Self {
            go: PathBuf::from("go"),
            python: PathBuf::from("python3"),
            npm: PathBuf::from("npm"),
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
            kubernetes: set("KUBERNETES").map(|version| version.to_string_lossy().into_owned()),
            cache: std::path::absolute(cache)?,
            rate_limit_pause: RATE_LIMIT_PAUSE,
            say,
        })
    }

    fn path(&self, tool: Tool) -> Result<PathBuf> {
        let pin = self.pin(tool)?;
        let name = pin.folder.file_name().unwrap_or_default().to_string_lossy();
        let folder = self.cache.join(format!("{name}-{}-{:016x}", pin.version, pin.digest));
        let finished = folder.join(tool.name());
        if finished.exists() {
            return Ok(finished);
        }

        let _lock = self.lock(&folder, pin.source.module)?;
        // The process that held the lock may have built it.
        if !finished.exists() {
            let partial = folder.join(format!(".{}.partial", tool.name()));
            self.build(tool, &pin, &partial)?;
            fs::rename(&partial, &finished)?;
        }
        Ok(finished)
    }

    /// Waits until nobody else makes something in a folder, and keeps others from it as long as the lock lives.
    fn lock(&self, folder: &Path, what: &str) -> Result<File> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = File::create(folder.join(".lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                (self.say)(&format!("waiting for another process that builds {what} ..."));
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(lock)
    }

    fn kwok_stages(&self) -> Result<PathBuf> {
        let stages = self.path(Tool::Kwok)?.with_file_name("stages.yaml");
        if stages.exists() {
            return Ok(stages);
        }
        let pin = self.pin(Tool::Kwok)?;
        let fetched = self.go(&pin).args(["mod", "download", "-json", KWOK]).output()?;
        let text = both_streams(&fetched);
        let described: serde_json::Value = serde_json::from_slice(&fetched.stdout).with_context(|| {
            format!("go mod download of {KWOK} failed:\n{}", last_lines(&text, SHOWN_LINES))
        })?;
        let module = described["Dir"].as_str().with_context(|| format!("{KWOK} is not there: {text}"))?;
        let mut all = String::new();
        for stage in KWOK_STAGES {
            let file = Path::new(module).join(format!("kustomize/stage/{stage}.yaml"));
            let text = fs::read_to_string(&file);
            all.extend(["---\n", &text.with_context(|| format!("cannot read {}", file.display()))?, "\n"]);
        }
        // Others may be about to do the same: each writes a file of its own, and the last one counts.
        let mut partial = tempfile::NamedTempFile::new_in(stages.parent().unwrap_or(&self.cache))?;
        partial.write_all(all.as_bytes())?;
        partial.persist(&stages)?;
        Ok(stages)
    }

    /// The folder of a tool's module in the repository.
    fn folder(&self, source: &Source) -> Result<String> {
        let newest = source.folder.to_owned();
        // The command line is no part of a cluster.
        let is_cluster = source.folder == KUBERNETES && !source.package.ends_with("/kubectl");
        let Some(version) = self.kubernetes.as_ref().filter(|_| is_cluster) else {
            return Ok(newest);
        };
        let folder = format!("{KUBERNETES}-{version}");
        if self.sources.join(&folder).join("go.mod").exists() {
            return Ok(folder);
        }
        let go_mod = fs::read_to_string(self.sources.join(&newest).join("go.mod"))?;
        let (major, minor) = major_minor(&required_version(&go_mod, source.module)?)?;
        if *version == format!("{major}.{minor}") {
            return Ok(newest);
        }
        bail!(
            "KUBERNETES={version:?} is no version that can be built: expected one with a folder {KUBERNETES}-VERSION, \
             or {major}.{minor}"
        )
    }

    fn pin(&self, tool: Tool) -> Result<Pin> {
        let source = tool.source();
        let folder = self.sources.join(self.folder(&source)?);
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
        let version = required_version(&go_mod, source.module)?;
        let go_version = go_mod
            .lines()
            .find_map(|line| line.strip_prefix("go "))
            .with_context(|| format!("{}/go.mod has no go line", source.folder))?
            .trim()
            .to_owned();
        let ldflags = tool.ldflags(&version, &go_mod)?;
        // Most tools are programs of other modules; a program of our own is part of what decides the binary.
        let own = source.is_own().then(|| fs::read_to_string(folder.join("main.go")).ok()).flatten();
        let parts = [Some(&go_mod), Some(&go_sum), Some(&ldflags), own.as_ref()];
        let digest = fnv1a(&parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>());
        Ok(Pin { source, folder, version, go_version, ldflags, digest })
    }

    fn build(&self, tool: Tool, pin: &Pin, output: &Path) -> Result<()> {
        self.check_go(tool, pin)?;
        (self.say)(&format!("building {} {} once, {} ...", tool.name(), pin.version, pin.source.duration));
        let mut attempt = 1;
        loop {
            let built = self
                .go(pin)
                .args(["build", "-mod=readonly", "-ldflags", &pin.ldflags, "-o"])
                .arg(output)
                .arg(pin.source.package)
                .output()?;
            if built.status.success() {
                return Ok(());
            }
            let text = both_streams(&built);
            if attempt < ATTEMPTS && text.contains("429 Too Many Requests") {
                let seconds = self.rate_limit_pause.as_secs();
                (self.say)(&format!("the Go module proxy asks for a pause; trying again in {seconds} s ..."));
                thread::sleep(self.rate_limit_pause);
                attempt += 1;
                continue;
            }
            bail!("go build of {} failed:\n{}", tool.name(), last_lines(&text, SHOWN_LINES));
        }
    }

    /// Asks Go which toolchain it would use, so that a missing or old one is told in one sentence.
    fn check_go(&self, tool: Tool, pin: &Pin) -> Result<()> {
        let (major, minor) = major_minor(&pin.go_version)?;
        let needed = |found: &str| {
            anyhow!(
                "Go {major}.{minor} or newer is needed to build {}{found}: \
                 install it from your package manager or go.dev and put `go` on PATH",
                tool.name()
            )
        };
        let answer = match self.go(pin).args(["env", "GOVERSION"]).output() {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(needed("")),
            Err(error) => return Err(error).context("cannot run `go env`"),
        };
        let text = both_streams(&answer);
        let found = text.trim().strip_prefix("go").and_then(|version| major_minor(version).ok());
        match found {
            Some(found) if answer.status.success() && found >= (major, minor) => Ok(()),
            _ => Err(needed(&format!(" (`go` says: {})", last_lines(&text, 1)))),
        }
    }

    fn go(&self, pin: &Pin) -> Command {
        let mut command = Command::new(&self.go);
        command
            .current_dir(&pin.folder)
            // A module may need a newer Go than the installed one; `auto` fetches that one and only then.
            .env("GOTOOLCHAIN", "auto")
            .env("GOWORK", "off")
            // The tools run on this machine, whatever the caller cross-compiles.
            .env_remove("GOOS")
            .env_remove("GOARCH");
        command
    }
}

/// The version of `module` in the require lines of a `go.mod`.
fn required_version(go_mod: &str, module: &str) -> Result<String> {
    go_mod
        .lines()
        .find_map(|line| {
            let mut words = line.trim().trim_start_matches("require ").split_whitespace();
            (words.next() == Some(module)).then(|| words.next()).flatten()
        })
        .map(str::to_owned)
        .with_context(|| format!("go.mod does not require {module}"))
}

/// The first two numbers of `v1.36.3`, `1.26.0` or `1.26rc1`.
fn major_minor(version: &str) -> Result<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    });
    let pair = (numbers.next().flatten(), numbers.next().flatten());
    let (Some(major), Some(minor)) = pair else { bail!("`{version}` is not a version") };
    Ok((major, minor))
}

/// FNV-1a over the parts and their borders; the standard library's hashes may differ between Rust versions.
fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn both_streams(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// The end of a log, for error messages.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Tells the person who waits; unlike `eprintln!` this is not hidden by the test runner.
pub(crate) fn say(line: &str) {
    // Nobody listening is no reason to fail.
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
