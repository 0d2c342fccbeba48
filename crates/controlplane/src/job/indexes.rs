//! Indexed jobs: each completion has a number.

use std::collections::BTreeSet;

use super::Look;
use crate::names;
use crate::object::annotation;
use crate::pod::{Pod, is_active, phase};
use crate::replicaset::count;

/// The number of the completion that a pod works on.
pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    annotation(&pod.metadata, names::JOB_INDEX)?.parse().ok()
}

/// Reads `1,3-5`.
pub(super) fn parse(text: &str) -> BTreeSet<i32> {
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            all.extend(first..=last);
        }
    }
    all
}

/// Writes `1,3-5`.
pub(super) fn print(indexes: &BTreeSet<i32>) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let texts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    texts.join(",")
}

impl Look<'_> {
    pub(super) fn completed_set(&self) -> BTreeSet<i32> {
        let mut all = parse(self.status.completed_indexes.as_deref().unwrap_or_default());
        let done = self.pods.iter().filter(|pod| phase(pod) == "Succeeded").filter_map(|pod| index_of(pod));
        all.extend(done.filter(|index| *index < self.spec.completions.unwrap_or(0)));
        all
    }

    pub(super) fn completed_indexes(&self) -> Option<String> {
        let all = self.completed_set();
        (!all.is_empty()).then(|| print(&all))
    }

    pub(super) fn completed(&self) -> i32 {
        if self.is_indexed() { count(self.completed_set().len()) } else { self.succeeded() }
    }

    /// The lowest numbers that nobody works on.
    pub(super) fn free_indexes(&self, number: usize) -> Vec<i32> {
        let mut taken = self.completed_set();
        taken.extend(self.pods.iter().filter(|pod| is_active(pod)).filter_map(|pod| index_of(pod)));
        (0..self.spec.completions.unwrap_or(0)).filter(|index| !taken.contains(index)).take(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_indexes_are_written_short() {
        let all = BTreeSet::from([0, 1, 3, 4, 5, 9]);
        assert_eq!(print(&all), "0,1,3-5,9");
        assert_eq!(parse("0,1,3-5,9"), all);
    }
}
