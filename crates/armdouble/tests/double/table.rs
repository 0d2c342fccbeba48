//! The table of behaviours names every test of this suite, and every row has its test.

use std::collections::BTreeSet;

const SOURCES: [(&str, &str); 11] = [
    ("batches", include_str!("batches.rs")),
    ("burst", include_str!("burst.rs")),
    ("catalogue", include_str!("catalogue.rs")),
    ("graph", include_str!("graph.rs")),
    ("interfaces", include_str!("interfaces.rs")),
    ("operations", include_str!("operations.rs")),
    ("over_http", include_str!("over_http.rs")),
    ("quota", include_str!("quota.rs")),
    ("refusals", include_str!("refusals.rs")),
    ("tokens", include_str!("tokens.rs")),
    ("virtual_machines", include_str!("virtual_machines.rs")),
];

fn in_sources() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (module, source) in SOURCES {
        let lines: Vec<&str> = source.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with("#[tokio::test")) {
            let name = pair[1].trim_start_matches("async fn ").split('(').next().unwrap_or_default();
            all.insert(format!("double::{module}::{name}"));
        }
    }
    all
}

#[test]
fn every_test_is_in_the_table_and_every_row_has_its_test() {
    let table = include_str!("../../../../docs/behaviours-azure.md");
    let listed: BTreeSet<String> =
        table.split('`').filter(|part| part.starts_with("double::")).map(str::to_owned).collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}
