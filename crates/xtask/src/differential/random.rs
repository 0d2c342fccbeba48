//! Repeatable chance: the same seed always gives the same numbers, on every machine and in every version.

/// Numbers from a seed, by the SplitMix64 method.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("a usize has at most 64 bits");
        usize::try_from(self.next() % end).expect("it is below a usize")
    }

    /// A number from `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of some, all equally likely.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of some, each with its weight.
    pub(crate) fn weighted<'a, T>(&mut self, from: &'a [(usize, T)]) -> &'a T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, each) in from {
            if left < *weight {
                return each;
            }
            left -= weight;
        }
        unreachable!("a number below the sum of weights lies in one of them")
    }

    /// `count` different ones, in their order; all if there are fewer.
    pub(crate) fn some<T: Clone>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = count.min(from.len());
        let mut chosen = Vec::with_capacity(left);
        for (position, each) in from.iter().enumerate() {
            if self.below(from.len() - position) < left {
                chosen.push(each.clone());
                left -= 1;
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_numbers() {
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_selection_has_the_wanted_size_and_keeps_its_order() {
        let mut random = Random::new(0);
        for _ in 0..100 {
            let chosen = random.some(&[1, 2, 3, 4, 5], 3);
            assert_eq!(chosen.len(), 3);
            assert!(chosen.is_sorted());
        }
        assert_eq!(random.some(&[1, 2], 3), [1, 2]);
    }
}
