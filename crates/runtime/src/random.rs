//! Random numbers from a seed, where their quality does not matter: for waits that should differ, and for
//! identifiers.

/// A sequence of numbers that looks random.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (Steele, Lea and Flood's SplitMix).
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to 1, without 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_spread_and_repeatable() {
        let mut random = Random::new(7);
        let all: Vec<f64> = (0..1000).map(|_| random.fraction()).collect();
        assert!(all.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = all.iter().sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
        assert!((Random::new(7).fraction() - all[0]).abs() < f64::EPSILON);
    }
}
