//! `cargo xtask layers`: proves the dependency rules of ARCHITECTURE.md on cargo's own graph.
//!
//! Each crate is looked at alone: what it needs at build time and run time, with the features it asks for
//! itself. Its tests may depend on anything.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::run::{cargo_output, root};

/// What a crate may use.
struct Layer {
    name: &'static str,
    /// Crates of ours it may depend on directly.
    may_use: &'static [&'static str],
    /// Crates that may not be anywhere below it.
    never: &'static [&'static str],
}

/// Clocks, I/O and Kubernetes have no place in pure code.
const IMPURE: &[&str] =
    &["tokio", "hyper", "reqwest", "kube", "kube-core", "k8s-openapi", "rand", "getrandom", "async-trait"];
/// Libraries leave the choice of TLS and allocator to the binary, and cloud SDKs to who talks to clouds. Below all
/// crates of AWS' SDK is `aws-smithy-types`.
const BINARY_ONLY: &[&str] = &[
    "rustls",
    "openssl",
    "native-tls",
    "ring",
    "aws-lc-rs",
    "mimalloc",
    "tikv-jemallocator",
    "aws-smithy-types",
];
/// What turns objects into decisions never asks a cluster itself.
const NO_CLIENT: &[&str] =
    &["tokio", "hyper", "kube-client", "kube-runtime", "rustls", "openssl", "aws-smithy-types"];
/// What brings an SDK brings its TLS, too, but only the one that we have anyway.
const ONE_TLS: &[&str] = &["openssl", "native-tls", "ring", "mimalloc", "tikv-jemallocator"];

/// From the bottom up: a crate may use only what stands above it in this list.
const LAYERS: &[Layer] = &[
    Layer { name: "karpenter-units", may_use: &[], never: IMPURE },
    Layer { name: "karpenter-engine", may_use: &["karpenter-units"], never: IMPURE },
    Layer { name: "karpenter-api", may_use: &["karpenter-units"], never: BINARY_ONLY },
    Layer {
        name: "karpenter-cluster",
        may_use: &["karpenter-units", "karpenter-engine", "karpenter-api"],
        never: NO_CLIENT,
    },
    Layer { name: "karpenter-clock", may_use: &[], never: BINARY_ONLY },
    Layer {
        name: "karpenter-runtime",
        may_use: &["karpenter-units", "karpenter-api", "karpenter-cluster", "karpenter-clock"],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-cloud",
        may_use: &[
            "karpenter-units",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
        ],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-provider-kwok",
        may_use: &[
            "karpenter-units",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
            "karpenter-cloud",
        ],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-aws",
        may_use: &[
            "karpenter-units",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
            "karpenter-cloud",
        ],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-aws-sdk",
        may_use: &["karpenter-api", "karpenter-runtime", "karpenter-aws"],
        never: ONE_TLS,
    },
    Layer {
        name: "karpenter-azure",
        may_use: &[
            "karpenter-units",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
            "karpenter-cloud",
        ],
        never: BINARY_ONLY,
    },
    Layer { name: "karpenter-azure-http", may_use: &["karpenter-azure"], never: ONE_TLS },
    Layer {
        name: "karpenter-operator",
        may_use: &[
            "karpenter-units",
            "karpenter-engine",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
            "karpenter-cloud",
        ],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-embedded",
        may_use: &["karpenter-units", "karpenter-clock"],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-controlplane",
        may_use: &["karpenter-units", "karpenter-clock"],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter-testkit",
        may_use: &["karpenter-clock", "karpenter-embedded", "karpenter-controlplane"],
        never: BINARY_ONLY,
    },
    Layer {
        name: "karpenter",
        may_use: &[
            "karpenter-units",
            "karpenter-engine",
            "karpenter-api",
            "karpenter-cluster",
            "karpenter-clock",
            "karpenter-runtime",
            "karpenter-cloud",
            "karpenter-provider-kwok",
            "karpenter-aws",
            "karpenter-aws-sdk",
            "karpenter-azure",
            "karpenter-azure-http",
            "karpenter-operator",
            "karpenter-embedded",
            "karpenter-controlplane",
        ],
        never: &["openssl", "ring"],
    },
    // Tests and tools.
    Layer {
        name: "karpenter-armdouble",
        may_use: &["karpenter-azure", "karpenter-clock"],
        never: BINARY_ONLY,
    },
    Layer { name: "karpenter-e2e", may_use: &[], never: &["openssl", "ring"] },
    Layer { name: "xtask", may_use: &[], never: &["tokio", "kube-core", "k8s-openapi"] },
];

/// Crates of which only one version may be in the whole graph.
const SINGLE: &[&str] =
    &["k8s-openapi", "kube-core", "hyper", "rustls", "aws-lc-rs", "tokio", "jiff", "schemars"];

/// The names of all crates.
pub(crate) fn crates() -> impl Iterator<Item = &'static str> {
    LAYERS.iter().map(|layer| layer.name)
}

pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading the workspace")?;
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let direct = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development && dependency.path.is_some());
        problems.extend(
            Crate {
                name: &package.name,
                uses: direct.map(|dependency| dependency.name.as_str()).collect(),
                below: below(&package.name)?,
            }
            .problems(),
        );
    }
    problems.extend(duplicates(&cargo_output(&["tree", "--workspace", "--duplicates", "--depth", "0"])?));
    if !problems.is_empty() {
        bail!("the dependency rules are broken:\n  {}", problems.join("\n  "));
    }
    println!("layers: {} crates keep the dependency rules", LAYERS.len());
    Ok(())
}

/// Everything a crate needs, however far below it.
fn below(package: &str) -> Result<BTreeSet<String>> {
    let tree =
        ["tree", "--package", package, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let names = cargo_output(&tree)?;
    Ok(names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

/// A crate of ours and what it depends on.
struct Crate<'a> {
    name: &'a str,
    /// Crates of ours it uses directly.
    uses: Vec<&'a str>,
    /// Everything it needs.
    below: BTreeSet<String>,
}

impl Crate<'_> {
    fn problems(&self) -> Vec<String> {
        let name = self.name;
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            return vec![format!("{name} has no layer: add it to LAYERS and to ARCHITECTURE.md")];
        };
        let above = self.uses.iter().filter(|used| !layer.may_use.contains(used));
        let forbidden = layer.never.iter().filter(|never| self.below.contains(**never));
        above
            .map(|used| format!("{name} may not use {used}"))
            .chain(forbidden.map(|never| {
                format!("{name} may not need {never}: see `cargo tree --package {name} --invert {never}`")
            }))
            .collect()
    }
}

/// Crates of which there are several versions although one is the rule.
fn duplicates(tree: &str) -> Vec<String> {
    let versions: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    SINGLE
        .iter()
        .filter(|single| versions.iter().filter(|(name, _)| name == *single).count() > 1)
        .map(|single| format!("{single} is there in several versions: see `cargo tree --duplicates`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, uses: &[&str], below: &[&str]) -> Vec<String> {
        let below = below.iter().map(|name| (*name).to_owned()).collect();
        Crate { name, uses: uses.to_vec(), below }.problems()
    }

    #[test]
    fn a_forbidden_crate_is_found_however_deep() {
        assert_eq!(
            problems("karpenter-units", &[], &["jiff", "helper", "tokio"]),
            ["karpenter-units may not need tokio: see `cargo tree --package karpenter-units --invert tokio`"]
        );
    }

    #[test]
    fn arrows_point_one_way() {
        assert_eq!(
            problems("karpenter-units", &["karpenter-api"], &["karpenter-api"]),
            ["karpenter-units may not use karpenter-api"]
        );
        assert_eq!(
            problems("karpenter-api", &["karpenter-units"], &["karpenter-units"]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn every_crate_has_a_layer() {
        assert_eq!(
            problems("newcomer", &[], &[]),
            ["newcomer has no layer: add it to LAYERS and to ARCHITECTURE.md"]
        );
    }

    #[test]
    fn two_versions_of_one_crate_are_found() {
        assert_eq!(
            duplicates("syn v2.0.119\nsyn v3.0.9\njiff v0.2.39\njiff v0.2.39 (*)\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            duplicates("k8s-openapi v0.28.0\n\nk8s-openapi v0.29.0\n"),
            ["k8s-openapi is there in several versions: see `cargo tree --duplicates`"]
        );
    }
}
