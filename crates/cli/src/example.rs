//! `karpenter example`: manifests to try, which are part of the program.

use std::fmt::Write as _;

use anyhow::{Result, bail};

/// Print manifests to try, or the list of them: `karpenter example nodepool inflate | kubectl apply -f -`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which ones; all are listed if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) const NODEPOOL: &str = include_str!("../../../examples/kwok/nodepool.yaml");
pub(crate) const INFLATE: &str = include_str!("../../../examples/inflate.yaml");

/// The manifests with their names and what they are.
const ALL: [(&str, &str, &str); 10] = [
    ("nodepool", "a NodePool and its NodeClass for simulated nodes", NODEPOOL),
    ("inflate", "a Deployment to be scaled up, a processor for each pod", INFLATE),
    (
        "teams",
        "a NodePool that only one team's pods reach",
        include_str!("../../../examples/kwok/teams.yaml"),
    ),
    (
        "disruption",
        "a NodePool whose nodes are seldom disrupted",
        include_str!("../../../examples/kwok/disruption.yaml"),
    ),
    (
        "static",
        "three nodes at all times (gate StaticCapacity)",
        include_str!("../../../examples/kwok/static.yaml"),
    ),
    (
        "overlay",
        "another price for on-demand nodes (gate NodeOverlay)",
        include_str!("../../../examples/kwok/overlay.yaml"),
    ),
    (
        "buffer",
        "room for two more pods (gate CapacityBuffer)",
        include_str!("../../../examples/kwok/buffer.yaml"),
    ),
    ("aws-nodepool", "a NodePool for AWS", include_str!("../../../examples/aws/nodepool.yaml")),
    ("azure-nodepool", "a NodePool for Azure", include_str!("../../../examples/azure/nodepool.yaml")),
    ("azure-inflate", "the Deployment for Azure", include_str!("../../../examples/azure/inflate.yaml")),
];

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.names.is_empty() {
        return crate::print(&list());
    }
    crate::print(&manifests(&args.names)?)
}

fn list() -> String {
    let mut text = "Manifests to try, for `karpenter example NAME... | kubectl apply -f -`:\n\n".to_owned();
    for (name, about, _) in ALL {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {name:<15} {about}");
    }
    text
}

/// The manifests with these names, as one.
fn manifests(names: &[String]) -> Result<String> {
    let mut found = Vec::new();
    for name in names {
        let Some((.., manifest)) = ALL.iter().find(|(known, ..)| known == name) else {
            let known: Vec<&str> = ALL.iter().map(|(name, ..)| *name).collect();
            bail!("there is no example {name}; there are {}", known.join(", "));
        };
        found.push(*manifest);
    }
    Ok(found.join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_manifest_and_the_list_fits_a_terminal() {
        for (name, _, manifest) in ALL {
            let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(manifest).expect(name);
            assert!(!documents.is_empty() && documents.iter().all(|one| one["kind"].is_string()), "{name}");
        }
        assert!(list().lines().all(|line| line.len() <= 80), "{}", list());
    }

    #[test]
    fn several_examples_are_one_manifest() {
        let names = ["nodepool", "inflate"].map(str::to_owned);
        let text = manifests(&names).expect("they exist");
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
        let kinds: Vec<_> = documents.iter().map(|one| one["kind"].as_str().unwrap_or_default()).collect();
        assert_eq!(kinds, ["NodePool", "KWOKNodeClass", "Deployment"]);
    }

    #[test]
    fn an_example_that_does_not_exist_is_refused_with_those_that_do() {
        let error = manifests(&["inflat".to_owned()]).expect_err("a typing mistake").to_string();
        assert!(error.starts_with("there is no example inflat; there are nodepool, inflate"), "{error}");
    }
}
