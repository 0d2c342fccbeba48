//! The table of behaviours names every test about how Azure is asked, and every row has its test.

use std::collections::BTreeSet;

const SOURCES: [(&str, &str); 13] = [
    ("settings", include_str!("../../src/settings/tests.rs")),
    ("environment", include_str!("../../src/environment.rs")),
    ("auth", include_str!("../../src/auth.rs")),
    ("auth::cached", include_str!("../../src/auth/cached.rs")),
    ("arm", include_str!("../../src/arm/tests.rs")),
    ("arm::call", include_str!("../../src/arm/call.rs")),
    ("arm::types", include_str!("../../src/arm/types.rs")),
    ("arm::graph", include_str!("../../src/arm/graph.rs")),
    ("arm::error", include_str!("../../src/arm/error.rs")),
    ("arm::retry", include_str!("../../src/arm/retry.rs")),
    ("arm::windows", include_str!("../../src/arm/windows.rs")),
    ("arm::running", include_str!("../../src/arm/running/tests.rs")),
    ("tests::arm", include_str!("main.rs")),
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
    let section = table.split("\n## ").find(|section| section.starts_with("How Azure is asked\n")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let listed: BTreeSet<String> = rows.filter_map(|row| Some(row.rsplit('`').nth(1)?.to_owned())).collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}
