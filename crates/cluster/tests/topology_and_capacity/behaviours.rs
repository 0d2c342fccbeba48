//! Checks that every behaviour of `docs/behaviours.md` is shown by the tests that it names.
//!
//! A test says which behaviours it shows in its comment, as in `/// 27.15-07`; a row of the page says the same in
//! words and names the test. Neither may be without the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sections that are shown here, and how many behaviours each has.
const SECTIONS: [(&str, usize); 7] =
    [("27.9", 3), ("27.10", 4), ("27.11", 9), ("27.12", 2), ("27.13", 5), ("27.15", 15), ("27.16", 11)];

/// Where else than in this folder such tests are.
const ELSEWHERE: [&str; 1] = ["engine/src/solve/reserve/tests.rs"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder").to_owned()
}

fn ids() -> BTreeSet<String> {
    let numbers = SECTIONS.iter().flat_map(|(section, count)| (1..=*count).map(move |n| (section, n)));
    numbers.map(|(section, number)| format!("{section}-{number:02}")).collect()
}

/// What looks like the number of a behaviour of one of the sections.
fn ids_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    let of_section =
        |word: &&str| SECTIONS.iter().any(|(section, _)| word.starts_with(&format!("{section}-")));
    words.filter(of_section).map(str::to_owned).collect()
}

/// The tests of the sources, each with the behaviours that it shows.
fn tests() -> BTreeMap<String, BTreeSet<String>> {
    let folder = crates().join("cluster/tests/topology_and_capacity");
    let entries = fs::read_dir(folder).expect("the folder of this test can be listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.retain(|path| path.file_stem().is_some_and(|stem| stem != "behaviours"));
    paths.extend(ELSEWHERE.map(|path| crates().join(path)));
    let mut tests = BTreeMap::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source can be read");
        let mut module = path.file_stem().expect("a source has a name").to_string_lossy().into_owned();
        if module == "tests" {
            module =
                path.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        }
        let (mut shown, mut is_test) = (BTreeSet::new(), false);
        for line in text.lines().map(str::trim_start) {
            if let Some(comment) = line.strip_prefix("///") {
                shown.extend(ids_in(comment));
            } else if line.starts_with("#[test]") {
                is_test = true;
            } else if let Some(rest) = line.strip_prefix("fn ") {
                let name = rest.split('(').next().expect("a function has a name");
                if is_test {
                    tests.insert(format!("{module}::{name}"), std::mem::take(&mut shown));
                }
                shown.clear();
                is_test = false;
            }
        }
    }
    tests
}

/// A row of the page: what it is about, and the tests that it names.
struct Row {
    ids: BTreeSet<String>,
    tests: Vec<String>,
    text: String,
}

fn rows() -> Vec<Row> {
    let page = crates().parent().expect("the crates are in the repository").join("docs/behaviours.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let mut rows = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, text, shown, _] = cells[..] else { continue };
        let ids = ids_in(id);
        // Names of tests stand in backquotes, so every second part is one.
        // Those of running controllers are compared where they are, in `operator/tests/behaviours.rs`.
        let tests = shown.split('`').skip(1).step_by(2).filter(|name| !name.starts_with("operator::"));
        let tests = tests.map(str::to_owned).collect();
        if !ids.is_empty() {
            rows.push(Row { ids, tests, text: text.to_owned() });
        }
    }
    rows
}

#[test]
fn every_behaviour_has_a_row_and_a_test_or_says_where_it_is_shown() {
    let rows = rows();
    let listed: BTreeSet<String> = rows.iter().flat_map(|row| row.ids.clone()).collect();
    assert_eq!(listed, ids(), "the page lists just the behaviours of its sections");
    let shown: BTreeSet<String> = tests().into_values().flatten().collect();
    assert_eq!(shown, ids(), "each behaviour is shown by a test");
    for row in rows {
        assert!(!row.text.is_empty(), "{:?} says nothing", row.ids);
    }
}

#[test]
fn rows_and_tests_name_each_other() {
    let tests = tests();
    let mut named = BTreeMap::<String, BTreeSet<String>>::new();
    for row in rows() {
        for test in row.tests {
            assert!(tests.contains_key(&test), "{test} of {:?} does not exist", row.ids);
            named.entry(test).or_default().extend(row.ids.clone());
        }
    }
    for (test, shown) in tests {
        let rows = named.remove(&test).unwrap_or_default();
        assert_eq!(rows, shown, "the page and the comment of {test} disagree");
    }
}

/// Sections whose tests are in other crates.
const ELSEWHERE_SECTIONS: [&str; 2] = ["16.26-", "27.19-"];

/// The text of all sources below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a source can be read"));
        }
    }
}

#[test]
fn tests_of_other_crates_that_rows_name_exist() {
    let mut text = String::new();
    for name in ["api", "cli", "cloud", "cluster", "operator", "testkit"] {
        sources(&crates().join(name), &mut text);
    }
    let page = crates().parent().expect("the crates are in the repository").join("docs/behaviours.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let mut count = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, _, shown, _] = cells[..] else { continue };
        if !ELSEWHERE_SECTIONS.iter().any(|section| id.starts_with(section)) {
            continue;
        }
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{id} names no test");
        for test in tests {
            let name = test.rsplit("::").next().unwrap_or_default();
            assert!(text.contains(&format!("fn {name}(")), "{test} of {id} does not exist");
        }
        count += 1;
    }
    assert_eq!(count, 43, "no row is lost");
}
