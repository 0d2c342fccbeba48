//! `cargo xtask cloudformation`: keeps the policies in the CloudFormation template equal to those of
//! `deploy/aws/policies`, which Terraform reads itself.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::run::root;

/// The line above a policy of the template: after it comes the name of its file.
const MARK: &str = "      # policies/";
/// The line after it, which the policy follows.
const DOCUMENT: &str = "      PolicyDocument: !Sub |";
const INDENT: &str = "        ";
/// What the template calls what the policies name shortly.
const NAMES: [(&str, &str); 4] = [
    ("${Partition}", "${AWS::Partition}"),
    ("${Region}", "${AWS::Region}"),
    ("${AccountId}", "${AWS::AccountId}"),
    ("${QueueName}", "${Queue.QueueName}"),
];

/// The folder with everything that an administrator needs on AWS.
pub(crate) fn folder() -> PathBuf {
    root().join("deploy/aws")
}

/// Puts the policies into the template.
pub(crate) fn write() -> Result<()> {
    let fresh = fresh()?;
    fs::write(folder().join("cloudformation.yaml"), fresh).context("writing the template")
}

/// Fails if the policies in the template are not those of the files.
pub(crate) fn check() -> Result<()> {
    if fresh()? != template()? {
        bail!("deploy/aws/cloudformation.yaml is out of date: run `cargo xtask cloudformation`");
    }
    Ok(())
}

fn template() -> Result<String> {
    fs::read_to_string(folder().join("cloudformation.yaml")).context("reading the template")
}

fn fresh() -> Result<String> {
    filled(&template()?, |name| {
        let path = folder().join("policies").join(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    })
}

/// The template with the policies as they are now.
fn filled(template: &str, policy: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut text = String::new();
    let mut lines = template.lines().peekable();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(name) = line.strip_prefix(MARK) else { continue };
        if lines.next() != Some(DOCUMENT) {
            bail!("`{MARK}{name}` is not followed by `{DOCUMENT}`");
        }
        text.push_str(DOCUMENT);
        text.push('\n');
        while lines.next_if(|line| line.starts_with(INDENT)).is_some() {}
        let mut policy = policy(name)?;
        for (short, long) in NAMES {
            policy = policy.replace(short, long);
        }
        for line in policy.lines() {
            text.push_str(INDENT);
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
#[path = "cloudformation_tests.rs"]
mod tests;
