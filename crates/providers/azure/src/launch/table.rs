//! The table of behaviours names every test about what is launched, and every row has its test.

use std::collections::BTreeSet;

const SOURCES: [(&str, &str); 28] = [
    ("class", include_str!("../class.rs")),
    ("tags", include_str!("../tags.rs")),
    ("node_labels", include_str!("../node_labels/tests.rs")),
    ("network", include_str!("../network.rs")),
    ("version", include_str!("../version.rs")),
    ("hash", include_str!("../hash.rs")),
    ("images", include_str!("../images.rs")),
    ("images::definitions", include_str!("../images/definitions.rs")),
    ("images::newest", include_str!("../images/newest.rs")),
    ("images::choice", include_str!("../images/choice.rs")),
    ("bootstrap", include_str!("../bootstrap.rs")),
    ("bootstrap::shell", include_str!("../bootstrap/shell.rs")),
    ("bootstrap::containerd", include_str!("../bootstrap/containerd.rs")),
    ("bootstrap::kubelet_flags", include_str!("../bootstrap/kubelet_flags.rs")),
    ("bootstrap::scriptless", include_str!("../bootstrap/scriptless/tests.rs")),
    ("bootstrap::service", include_str!("../bootstrap/service/tests.rs")),
    ("vm::name", include_str!("../vm/name.rs")),
    ("vm::nic", include_str!("../vm/nic.rs")),
    ("vm::body", include_str!("../vm/body.rs")),
    ("vm::extension", include_str!("../vm/extension.rs")),
    ("vm::instance", include_str!("../vm/instance.rs")),
    ("machine::name", include_str!("../machine/name.rs")),
    ("machine::body", include_str!("../machine/body.rs")),
    ("machine::config", include_str!("../machine/config.rs")),
    ("machine::existing", include_str!("../machine/existing.rs")),
    ("machine::batch", include_str!("../machine/batch.rs")),
    ("machine::state", include_str!("../machine/state.rs")),
    ("machine::cache", include_str!("../machine/cache.rs")),
];

fn in_sources() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (module, source) in SOURCES {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[test]") {
            let name = pair[1].trim_start_matches("fn ").split('(').next().unwrap_or_default();
            all.insert(format!("{module}::{name}"));
        }
    }
    all
}

#[test]
fn every_test_is_in_the_table_and_every_row_has_its_test() {
    let table = include_str!("../../../../../docs/behaviours-azure.md");
    let section = table.split("\n## ").find(|section| section.starts_with("What is launched\n")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let listed: BTreeSet<String> = rows.filter_map(|row| Some(row.rsplit('`').nth(1)?.to_owned())).collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}
