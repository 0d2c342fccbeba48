//! Sizes that were offered when the table was made.
//!
//! A size of a known family behaves as its siblings do. What a family that came later needs, nobody has tried: its
//! machines are the last choice, not the cheapest one.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::tables;

/// Names and families of the table.
static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let text = tables::unpacked(include_bytes!("../../data/sizes.csv.gz"));
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    });
    let (names, families) = rows.unzip();
    Known { names, families }
});

struct Known {
    names: BTreeSet<String>,
    families: BTreeSet<String>,
}

/// Whether a size was offered when the table was made.
pub(crate) fn is_name(name: &str) -> bool {
    KNOWN.names.contains(name)
}

/// Whether sizes of a family were offered when the table was made.
pub(crate) fn is_family(family: &str) -> bool {
    KNOWN.families.contains(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 4.1
    #[test]
    fn the_table_has_all_names_and_families() {
        assert_eq!((KNOWN.names.len(), KNOWN.families.len()), (1502, 190));
        assert!(is_name("Standard_D2s_v3") && is_family("standardDSv3Family"));
        assert!(!is_name("Standard_D2s_v99") && !is_family(""));
    }
}
