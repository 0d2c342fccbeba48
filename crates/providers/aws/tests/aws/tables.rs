//! The table of behaviours names every test, and every test is in the table.

use std::collections::BTreeSet;

/// Numbers of tests: `fn a12_` in the sources.
fn in_sources() -> BTreeSet<String> {
    let sources = [
        include_str!("account.rs"),
        include_str!("capacity.rs"),
        include_str!("classes.rs"),
        include_str!("controllers.rs"),
        include_str!("doctor.rs"),
        include_str!("drift.rs"),
        include_str!("edges.rs"),
        include_str!("filters.rs"),
        include_str!("golden.rs"),
        include_str!("instance_types.rs"),
        include_str!("interruptions.rs"),
        include_str!("launch_templates.rs"),
        include_str!("launches.rs"),
        include_str!("limits.rs"),
        include_str!("machines.rs"),
        include_str!("offerings.rs"),
        include_str!("oracle.rs"),
        include_str!("provider.rs"),
        include_str!("upkeep.rs"),
        include_str!("user_data.rs"),
        include_str!("validation.rs"),
    ];
    let names = sources.iter().flat_map(|source| source.lines()).filter_map(|line| line.strip_prefix("fn a"));
    let tests = names.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    tests.map(|rest| format!("a{}", rest.split('(').next().unwrap_or_default())).collect()
}

#[test]
fn every_test_is_in_the_table_and_every_row_has_its_test() {
    let table = include_str!("../../../../../docs/behaviours-aws.md");
    let rows = table.lines().filter(|line| line.starts_with("| a"));
    let listed: BTreeSet<String> = rows
        .filter_map(|row| row.split('`').nth(1))
        .filter_map(|test| test.rsplit("::").next().map(str::to_owned))
        .collect();
    let differing: Vec<String> = in_sources().symmetric_difference(&listed).cloned().collect();
    assert_eq!(differing, Vec::<String>::new());
}
