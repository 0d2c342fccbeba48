//! Sets of instance types as bits, so that a thousand of them are asked one question in a few instructions.

/// A set of small integers below a bound that all masks of one catalogue share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Mask {
    words: Box<[u64]>,
}

impl Mask {
    /// The empty set of integers below `bound`.
    pub fn empty(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(64)].into_boxed_slice() }
    }

    /// All integers below `bound`.
    pub fn full(bound: usize) -> Self {
        let mut mask = Self { words: vec![u64::MAX; bound.div_ceil(64)].into_boxed_slice() };
        if let Some(last) = mask.words.last_mut().filter(|_| !bound.is_multiple_of(64)) {
            *last = (1 << (bound % 64)) - 1;
        }
        mask
    }

    /// Adds an integer.
    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Removes an integer.
    pub fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// Whether an integer is in the set.
    pub fn contains(&self, index: usize) -> bool {
        self.words[index / 64] & (1 << (index % 64)) != 0
    }

    /// Keeps what is in the other set too.
    pub fn and(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Adds what is in the other set.
    pub fn or(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes what is in the other set.
    pub fn and_not(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Whether the sets have anything in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// How many integers there are.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The integers in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(position, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(position * 64 + bit)
            })
        })
    }
}
