//! `cargo xtask tidy`: proves the rules for files and documents that no other tool knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

use crate::run::root;

/// Beyond this a file has more than one subject.
const MAX_LINES: usize = 900;

pub(crate) fn check() -> Result<()> {
    let root = root();
    let mut problems = Vec::new();
    let mut sizes = Vec::new();
    for path in sources(&root.join("crates"))? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        problems.extend(source_problems(&name, &text));
        if !is_test(&name) {
            sizes.push((text.lines().count(), name));
        }
    }
    problems.extend(document_problems(&root)?);
    print_sizes(&mut sizes);
    if !problems.is_empty() {
        bail!("untidy:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

fn sources(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("listing {}", directory.display()))?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("tests.rs")
}

fn source_problems(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push(format!("{name}: begins without a `//!` header that says what the file is for"));
    }
    if !is_test(name) && text.lines().count() > MAX_LINES {
        problems.push(format!("{name}: has more than {MAX_LINES} lines; find a seam"));
    }
    // Written apart so that this file does not accuse itself.
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("#[ig", "nore")] {
        if let Some(line) = text.lines().position(|line| line.contains(mark)) {
            problems.push(format!("{name}:{}: {mark} marks unfinished work", line + 1));
        }
    }
    problems
}

/// Every crate is in ARCHITECTURE.md, every dependency in docs/dependencies.md.
fn document_problems(root: &Path) -> Result<Vec<String>> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    let (architecture, dependencies) = (read("ARCHITECTURE.md")?, read("docs/dependencies.md")?);
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading the workspace")?;
    let mut problems = Vec::new();
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    for package in &metadata.packages {
        let folder = package.manifest_path.parent().and_then(|path| path.strip_prefix(root).ok());
        let folder = folder.map_or("", |path| path.as_str());
        if !architecture.contains(&format!("`{folder}`")) {
            problems.push(format!("ARCHITECTURE.md: does not mention `{folder}`"));
        }
        listed.extend(package.dependencies.iter().filter(|d| d.path.is_none()).map(|d| d.name.as_str()));
    }
    for name in listed {
        if !dependencies.contains(&format!("| `{name}` |")) {
            problems.push(format!("docs/dependencies.md: has no line for `{name}`"));
        }
    }
    Ok(problems)
}

fn print_sizes(sizes: &mut [(usize, String)]) {
    sizes.sort_unstable();
    let at = |percent: usize| sizes.get(sizes.len().saturating_sub(1) * percent / 100).map_or(0, |s| s.0);
    println!("tidy: {} source files, lines: median {}, 95th percentile {}", sizes.len(), at(50), at(95));
    for (lines, name) in sizes.iter().rev().take(3) {
        println!("tidy: {lines:>5} {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_file_says_what_it_is_for() {
        assert_eq!(source_problems("crates/a/src/lib.rs", "//! Adds.\n"), Vec::<String>::new());
        assert_eq!(
            source_problems("crates/a/src/lib.rs", "pub fn add() {}\n"),
            ["crates/a/src/lib.rs: begins without a `//!` header that says what the file is for"]
        );
    }

    #[test]
    fn long_files_are_found_but_tests_may_be_long() {
        let text = format!("//! Long.\n{}", "\n".repeat(MAX_LINES));
        assert_eq!(source_problems("crates/a/src/lib.rs", &text).len(), 1);
        assert_eq!(source_problems("crates/a/tests/all.rs", &text), Vec::<String>::new());
    }

    #[test]
    fn unfinished_marks_are_found() {
        let text = concat!("//! A file.\n// TO", "DO later\n");
        assert_eq!(source_problems("a.rs", text).len(), 1);
    }
}
