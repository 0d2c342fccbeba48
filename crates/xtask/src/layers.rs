//! `cargo xtask layers`: proves the dependency rules of ARCHITECTURE.md on cargo's own graph.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use crate::run::root;

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
/// Libraries leave the choice of TLS and allocator to the binary, and cloud SDKs to the providers.
const BINARY_ONLY: &[&str] =
    &["rustls", "openssl", "native-tls", "ring", "aws-lc-rs", "mimalloc", "tikv-jemallocator", "aws-sdk-ec2"];

/// From the bottom up: a crate may use only what stands above it in this list.
const LAYERS: &[Layer] = &[
    Layer { name: "karpenter-units", may_use: &[], never: IMPURE },
    Layer { name: "karpenter-api", may_use: &["karpenter-units"], never: BINARY_ONLY },
    Layer { name: "karpenter", may_use: &["karpenter-units", "karpenter-api"], never: &["openssl", "ring"] },
    // Tests and tools.
    Layer { name: "karpenter-e2e", may_use: &[], never: &["openssl", "ring"] },
    Layer { name: "xtask", may_use: &[], never: &["tokio", "kube-core", "k8s-openapi"] },
];

/// Crates of which only one version may be in the whole graph.
const SINGLE: &[&str] = &["k8s-openapi", "kube-core", "rustls", "tokio", "jiff", "schemars"];

/// The names of all crates.
pub(crate) fn crates() -> impl Iterator<Item = &'static str> {
    LAYERS.iter().map(|layer| layer.name)
}

pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .exec()
        .context("reading the dependency graph")?;
    let problems = problems(&Graph::new(&metadata)?);
    if !problems.is_empty() {
        bail!("the dependency rules are broken:\n  {}", problems.join("\n  "));
    }
    println!("layers: {} crates keep the dependency rules", LAYERS.len());
    Ok(())
}

/// Who depends on whom at build time and run time; tests may depend on anything.
struct Graph {
    names: BTreeMap<PackageId, String>,
    edges: BTreeMap<PackageId, Vec<PackageId>>,
    members: Vec<PackageId>,
}

impl Graph {
    fn new(metadata: &Metadata) -> Result<Self> {
        let resolve = metadata.resolve.as_ref().context("cargo gave no dependency graph")?;
        let edges = resolve.nodes.iter().map(|node| {
            let normal = node.deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
            });
            (node.id.clone(), normal.map(|dependency| dependency.pkg.clone()).collect())
        });
        Ok(Self {
            names: metadata.packages.iter().map(|p| (p.id.clone(), p.name.to_string())).collect(),
            edges: edges.collect(),
            members: metadata.workspace_members.clone(),
        })
    }

    fn name(&self, id: &PackageId) -> &str {
        &self.names[id]
    }

    /// Everything below a crate, with the path that leads there.
    fn below(&self, from: &PackageId) -> BTreeMap<PackageId, Vec<String>> {
        let mut found = BTreeMap::new();
        let mut queue = vec![(from.clone(), vec![self.name(from).to_owned()])];
        while let Some((id, path)) = queue.pop() {
            for next in self.edges.get(&id).into_iter().flatten() {
                if !found.contains_key(next) {
                    let path = [path.clone(), vec![self.name(next).to_owned()]].concat();
                    found.insert(next.clone(), path.clone());
                    queue.push((next.clone(), path));
                }
            }
        }
        found
    }
}

fn problems(graph: &Graph) -> Vec<String> {
    let mut problems = Vec::new();
    let members: BTreeSet<&PackageId> = graph.members.iter().collect();
    for id in &graph.members {
        let name = graph.name(id);
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            problems.push(format!("{name} has no layer: add it to LAYERS and to ARCHITECTURE.md"));
            continue;
        };
        for dependency in graph.edges.get(id).into_iter().flatten().filter(|id| members.contains(id)) {
            let used = graph.name(dependency);
            if !layer.may_use.contains(&used) {
                problems.push(format!("{name} may not use {used}"));
            }
        }
        for (below, path) in graph.below(id) {
            if layer.never.contains(&graph.name(&below)) {
                problems.push(format!("{name} may not reach {}: {}", graph.name(&below), path.join(" → ")));
            }
        }
    }
    for single in SINGLE {
        let versions = graph.names.values().filter(|name| name == single).count();
        if versions > 1 {
            problems.push(format!("{single} is in the graph {versions} times; one version is the rule"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])], members: &[&str]) -> Graph {
        let id = |name: &str| PackageId { repr: name.to_owned() };
        let mut names = BTreeMap::new();
        for (from, to) in edges {
            for name in std::iter::once(from).chain(*to) {
                names.insert(id(name), (*name).to_owned());
            }
        }
        let edges = edges.iter().map(|(from, to)| (id(from), to.iter().map(|name| id(name)).collect()));
        Graph { names, edges: edges.collect(), members: members.iter().map(|name| id(name)).collect() }
    }

    #[test]
    fn a_forbidden_crate_is_found_however_deep() {
        let graph = graph(
            &[("karpenter-units", &["jiff"]), ("jiff", &["helper"]), ("helper", &["tokio"]), ("tokio", &[])],
            &["karpenter-units"],
        );
        assert_eq!(
            problems(&graph),
            ["karpenter-units may not reach tokio: karpenter-units → jiff → helper → tokio"]
        );
    }

    #[test]
    fn arrows_point_one_way() {
        let graph = graph(
            &[("karpenter-units", &["karpenter-api"]), ("karpenter-api", &[])],
            &["karpenter-units", "karpenter-api"],
        );
        assert_eq!(problems(&graph), ["karpenter-units may not use karpenter-api"]);
    }

    #[test]
    fn every_crate_has_a_layer() {
        let graph = graph(&[("newcomer", &[])], &["newcomer"]);
        assert_eq!(problems(&graph), ["newcomer has no layer: add it to LAYERS and to ARCHITECTURE.md"]);
    }
}
