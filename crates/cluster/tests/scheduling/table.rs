//! Every behaviour in `docs/behaviours.md` has its tests, and every test its behaviour.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// How many behaviours each section has.
const SECTIONS: [(&str, usize); 7] =
    [("27.2", 23), ("27.3", 11), ("27.4", 21), ("27.5", 2), ("27.6", 14), ("27.7", 6), ("27.8", 7)];

type Named = BTreeMap<String, BTreeSet<String>>;

/// Tests by the numbers in the comments above them.
fn in_sources() -> Named {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheduling");
    let mut found = Named::new();
    for entry in fs::read_dir(folder).expect("this folder") {
        let path = entry.expect("a file").path();
        let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let mut ids: Vec<String> = Vec::new();
        for line in fs::read_to_string(&path).expect("a source").lines() {
            if let Some(id) = line.strip_prefix("/// 27.") {
                ids.extend(format!("27.{id}").split_whitespace().map(str::to_owned));
            } else if let Some(rest) = line.strip_prefix("fn ") {
                let name = rest.split(['(', '<']).next().unwrap_or_default();
                for id in ids.drain(..) {
                    found.entry(id).or_default().insert(format!("{module}::{name}"));
                }
            }
        }
    }
    found
}

fn table() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/behaviours.md");
    fs::read_to_string(path).expect("the table of behaviours")
}

/// The rows of our sections: number, behaviour, tests.
fn rows() -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut section = "";
    let text = table();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.split_whitespace().next().unwrap_or_default();
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let is_ours = SECTIONS.iter().any(|(own, _)| *own == section);
        if let ([id, behaviour, tests], true) = (&cells[..], is_ours)
            && id.starts_with(section)
        {
            rows.push(((*id).to_owned(), (*behaviour).to_owned(), (*tests).to_owned()));
        }
    }
    rows
}

#[test]
fn the_table_and_the_tests_agree() {
    let mut listed = Named::new();
    for (id, behaviour, tests) in rows() {
        assert!(!behaviour.is_empty(), "{id} says nothing");
        // Those of running controllers are compared where they are, in `operator/tests/behaviours.rs`.
        let names = tests.split('`').skip(1).step_by(2).filter(|name| !name.starts_with("operator::"));
        let names = names.map(str::to_owned).collect();
        assert!(listed.insert(id.clone(), names).is_none(), "{id} is listed twice");
    }
    let written = in_sources();
    assert_eq!(listed.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>());
    for (id, names) in &listed {
        assert_eq!(names, &written[id], "{id}");
    }
}

#[test]
fn no_behaviour_is_missing() {
    let ids: BTreeSet<String> = rows().into_iter().map(|(id, ..)| id).collect();
    for (section, count) in SECTIONS {
        for number in 1..=count {
            let id = format!("{section}-{number:02}");
            assert!(ids.contains(&id), "{id} is not listed");
        }
    }
    assert_eq!(ids.len(), SECTIONS.iter().map(|(_, count)| count).sum::<usize>());
}

#[test]
fn tests_that_noticed_broken_rules_still_exist() {
    let text = table();
    let (_, broken) = text.split_once("## Rules broken on purpose").expect("the section");
    let all: BTreeSet<String> = in_sources().into_values().flatten().collect();
    let modules: BTreeSet<&str> = all.iter().filter_map(|name| Some(name.split_once("::")?.0)).collect();
    for name in broken.split('`').skip(1).step_by(2) {
        let is_ours = name.split_once("::").is_some_and(|(module, _)| modules.contains(module));
        assert!(!is_ours || all.contains(name), "{name} does not exist");
    }
}
