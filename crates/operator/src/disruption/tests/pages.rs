//! The page of behaviours names tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut String) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_behaviour_of_disruption_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    sources(&root.join("crates"), &mut all);
    let page = fs::read_to_string(root.join("docs/behaviours.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| 16.") || line.starts_with("| 23-")).collect();
    assert!(rows.len() > 30);
    for row in rows {
        let names: Vec<&str> = row.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names.iter().filter(|name| !name.contains('/')) {
            let function = name.rsplit("::").next().unwrap();
            assert!(all.contains(&format!("fn {function}(")), "{name} does not exist");
        }
    }
}
