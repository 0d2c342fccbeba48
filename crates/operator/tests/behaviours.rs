//! The tests that `docs/behaviours.md` names in its sections about controllers exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The numbers of sections whose tests are wherever what they show is.
const SECTIONS: [&str; 6] = ["16.", "23.", "27.14", "27.18", "27.19", "27.20"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Tests and scenarios, each with the file and the folders it is in.
fn functions() -> BTreeSet<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder");
    let mut paths = Vec::new();
    sources(crates, &mut paths);
    let mut all = BTreeSet::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source can be read");
        let parts = path.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
        let modules: Vec<String> = parts.collect();
        for line in text.lines().map(str::trim_start) {
            let line = line.strip_prefix("pub(super) ").unwrap_or(line);
            let line = line.strip_prefix("async ").unwrap_or(line);
            let Some(rest) = line.strip_prefix("fn ") else { continue };
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            all.extend(modules.iter().map(|module| (module.clone(), name.to_owned())));
        }
    }
    all
}

#[test]
fn every_test_that_is_named_exists() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/behaviours.md");
    let page = fs::read_to_string(page).expect("the table of behaviours");
    let functions = functions();
    let mut count = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, behaviour, tests] = cells[..] else { continue };
        if !SECTIONS.iter().any(|section| id.starts_with(section)) {
            continue;
        }
        assert!(!behaviour.is_empty(), "{id} says nothing");
        // What has a slash is a file.
        let names = tests.split('`').skip(1).step_by(2);
        let mut names = names.filter(|name| !name.contains('/')).peekable();
        assert!(names.peek().is_some(), "{id} names no test: {behaviour}");
        for name in names {
            // A name without a module may be anywhere.
            let exists = match name.rsplit_once("::") {
                Some((module, test)) => {
                    let module = module.rsplit("::").next().unwrap_or(module);
                    functions.contains(&(module.to_owned(), test.to_owned()))
                }
                None => functions.iter().any(|(_, test)| test == name),
            };
            assert!(exists, "{name} of {id} does not exist");
            count += 1;
        }
    }
    assert!(count > 0, "the page has lost its sections");
}
