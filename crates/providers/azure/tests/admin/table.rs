//! The table of behaviours names every test about setting it up and looking it over, and every row has its test.

use std::collections::BTreeSet;

const SOURCES: [(&str, &str); 7] = [
    ("configure", include_str!("../../src/configure/tests.rs")),
    ("doctor::classes", include_str!("../../src/doctor/classes.rs")),
    ("doctor::cluster", include_str!("../../src/doctor/cluster.rs")),
    ("doctor::network", include_str!("../../src/doctor/network.rs")),
    ("doctor::permissions", include_str!("../../src/doctor/permissions.rs")),
    ("doctor::token", include_str!("../../src/doctor/token.rs")),
    ("admin", include_str!("main.rs")),
];

fn in_sources() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (module, source) in SOURCES {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
        for pair in lines.windows(2).filter(|pair| is_test(pair[0])) {
            let name = pair[1].trim_start_matches("async ").trim_start_matches("fn ");
            all.insert(format!("{module}::{}", name.split('(').next().unwrap_or_default()));
        }
    }
    all
}

#[test]
fn every_test_is_in_the_table_and_every_row_has_its_test() {
    let table = include_str!("../../../../../docs/behaviours-azure.md");
    let section = table
        .split("\n## ")
        .find(|section| section.starts_with("Setting it up and looking it over\n"))
        .expect("it is in the document");
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let listed: BTreeSet<String> = rows.filter_map(|row| Some(row.rsplit('`').nth(1)?.to_owned())).collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}

#[test]
fn the_guide_names_every_setting_and_every_reason() {
    let guide = include_str!("../../../../../docs/azure.md");
    for flag in api::names::flags::azure::ALL {
        for text in [format!("`--{}`", flag.flag), format!("`{}`", flag.env)] {
            assert!(guide.contains(&text), "docs/azure.md does not name {text}");
        }
    }
    // That images are looked up anew is nothing to do anything about.
    let reasons = api::names::reasons::azure::ALL.iter().filter(|reason| **reason != "KubernetesUpgrade");
    for reason in reasons {
        assert!(guide.contains(&format!("`{reason}`")), "docs/azure.md does not name {reason}");
    }
}
