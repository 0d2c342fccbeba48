//! Random numbers from a seed, for waits that should differ.

use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// A sequence of numbers that looks random and is the same for the same seed.
#[derive(Debug)]
pub(crate) struct Random(Mutex<Pcg64Mcg>);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(Pcg64Mcg::seed_from_u64(seed)))
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn fraction(&self) -> f64 {
        self.0.lock().random_range(0.0..1.0)
    }
}
