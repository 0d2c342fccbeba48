//! `karpenter crds`: the custom resource definitions of one provider, as YAML.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use api::crds::{self, Crd};
use api::provider::Provider;

/// Print the custom resource definitions of one provider, ready for `kubectl apply -f -`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose NodeClass and label rules: kwok, aws or azure
    #[arg(long, value_name = "NAME", default_value_t = Provider::Kwok)]
    provider: Provider,
    /// Write one file per definition into this directory instead of printing
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let crds = crds::documents(args.provider);
    let Some(directory) = &args.directory else {
        let documents = crds.iter().map(to_yaml).collect::<Result<Vec<_>>>()?;
        return crate::print(&documents.join("---\n"));
    };
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    for crd in &crds {
        let path = directory.join(&crd.file_name);
        fs::write(&path, to_yaml(crd)?).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn to_yaml(crd: &Crd) -> Result<String> {
    serde_saphyr::to_string(&crd.document).with_context(|| format!("printing {} as YAML", crd.file_name))
}
