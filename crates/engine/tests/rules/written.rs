//! Requirements as a NodeClaim writes them.

use engine::requirement::Requirement;
use engine::universe::Universe;
use engine::written;

use crate::naive::Ask;
use crate::shapes::shapes;

/// What is written for a label of which all this is asked: operator and values, then the demand for choice.
fn written(asks: &[Ask], min_values: Option<u32>) -> Vec<String> {
    let mut universe = Universe::default();
    let (hostname, key) = (universe.key("kubernetes.io/hostname"), universe.key("example.com/key"));
    let mut requirements: Vec<_> =
        asks.iter().map(|ask| (key, ask.requirement_of(key, &mut universe))).collect();
    requirements.push((key, Requirement::exists().with_min_values(min_values)));
    requirements.push((hostname, Requirement::exists()));
    for name in written::SIMULATED {
        requirements.push((universe.key(name), Requirement::exists()));
    }
    let set = universe.set(requirements);
    let entries = written::requirements(&universe, set, hostname);
    assert!(entries.iter().all(|entry| entry.key == "example.com/key" && entry.min_values == min_values));
    entries
        .iter()
        .map(|entry| format!("{} {}", entry.operator, entry.values.join(" ")).trim_end().to_owned())
        .collect()
}

#[test]
fn a_shape_is_written_with_inclusive_bounds_and_its_demand_for_choice() {
    let expected = [
        "Exists",
        "DoesNotExist",
        "In A",
        "In B",
        "In A B",
        "NotIn A",
        "In 1",
        "In 9",
        "In 1 9",
        "NotIn 1 2",
        "Gte 2",
        "Gte 10",
        "Lte 0",
        "Lte 8",
    ];
    for (shape, expected) in shapes().into_iter().zip(expected) {
        for min_values in [None, Some(1), Some(3)] {
            assert_eq!(written(std::slice::from_ref(&shape), min_values), [expected]);
        }
    }
}

#[test]
fn bounds_and_excluded_values_are_entries_of_their_own() {
    for min_values in [None, Some(2)] {
        assert_eq!(written(&[Ask::Gt(1), Ask::Lt(9)], min_values), ["Gte 2", "Lte 8"]);
        let excluding = [Ask::Gte(1), Ask::Lte(9), Ask::NotIn(vec!["5", "2", "12"])];
        assert_eq!(written(&excluding, min_values), ["Gte 1", "Lte 9", "NotIn 2 5"]);
        assert_eq!(written(&[Ask::Gt(9), Ask::Lt(1)], min_values), ["DoesNotExist"]);
        assert_eq!(written(&[Ask::Gt(1), Ask::In(vec!["9", "1", "10"])], min_values), ["In 10 9"]);
    }
}
