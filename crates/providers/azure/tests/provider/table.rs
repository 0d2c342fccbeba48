//! The table of behaviours names every test of this suite, and every row has its test.

use std::collections::BTreeSet;

const SOURCES: [(&str, &str); 11] = [
    ("burst", include_str!("burst.rs")),
    ("controllers", include_str!("controllers.rs")),
    ("ends", include_str!("ends.rs")),
    ("interfaces", include_str!("interfaces.rs")),
    ("launches", include_str!("launches.rs")),
    ("machines", include_str!("machines.rs")),
    ("official", include_str!("official.rs")),
    ("start", include_str!("start.rs")),
    ("takeover", include_str!("takeover.rs")),
    ("updates", include_str!("updates.rs")),
    ("walk", include_str!("walk.rs")),
];

fn in_sources() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (module, source) in SOURCES {
        let lines: Vec<&str> = source.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[test]") {
            let name = pair[1].trim_start_matches("fn ").split('(').next().unwrap_or_default();
            all.insert(format!("provider::{module}::{name}"));
        }
    }
    all
}

#[test]
fn every_test_is_in_the_table_and_every_row_has_its_test() {
    let table = include_str!("../../../../../docs/behaviours-azure.md");
    let listed: BTreeSet<String> = table
        .split('`')
        .filter(|part| part.starts_with("provider::") && !part.contains("::tests::"))
        .map(str::to_owned)
        .collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}
