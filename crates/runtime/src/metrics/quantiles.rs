//! Quantiles of what was observed during the last ten minutes, in little memory.
//!
//! Cormode, Korn, Muthukrishnan and Srivastava, "Effective computation of biased quantiles over data streams"
//! (2005): of all observations, only as many are kept as the wanted quantiles need. To forget old ones, there
//! are several such sketches that began at different times; the oldest is asked, and begins anew when its
//! time is over.

use std::time::Duration;

use tokio::time::Instant;

/// For how long observations count.
const MAX_AGE: Duration = Duration::from_mins(10);
/// How many sketches there are.
const SKETCHES: u32 = 5;
/// How many observations are collected before they go into a sketch together.
const BUFFER: usize = 500;

/// A quantile and the error that its rank may have, as a share of all observations.
type Objectives = &'static [(f64, f64)];

/// Observations of the last ten minutes.
#[derive(Debug)]
pub(super) struct Window {
    objectives: Objectives,
    /// The first is the oldest.
    sketches: Vec<Sketch>,
    /// When the oldest begins anew.
    expires: Instant,
    count: u64,
    sum: f64,
}

impl Window {
    pub(super) fn new(objectives: Objectives, now: Instant) -> Self {
        let sketches = (0..SKETCHES).map(|_| Sketch::default()).collect();
        Self { objectives, sketches, expires: now + MAX_AGE / SKETCHES, count: 0, sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64, now: Instant) {
        self.forget(now);
        self.count += 1;
        self.sum += value;
        for sketch in &mut self.sketches {
            sketch.add(value, self.objectives);
        }
    }

    /// How many observations there have ever been.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all observations there have ever been.
    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    /// Each quantile with its value; not a number if nothing was observed lately.
    pub(super) fn quantiles(&mut self, now: Instant) -> Vec<(f64, f64)> {
        self.forget(now);
        let oldest = &mut self.sketches[0];
        oldest.merge(self.objectives);
        self.objectives
            .iter()
            .map(|(quantile, _)| (*quantile, oldest.query(*quantile, self.objectives)))
            .collect()
    }

    fn forget(&mut self, now: Instant) {
        // After so many turns nothing is left, however long it has been.
        for _ in 0..SKETCHES {
            if now < self.expires {
                return;
            }
            self.sketches.rotate_left(1);
            if let Some(youngest) = self.sketches.last_mut() {
                *youngest = Sketch::default();
            }
            self.expires += MAX_AGE / SKETCHES;
        }
        if now >= self.expires {
            self.expires = now + MAX_AGE / SKETCHES;
        }
    }
}

/// Some of the observations, and how many others each stands for.
#[derive(Debug, Default)]
struct Sketch {
    samples: Vec<Sample>,
    /// The observations that the samples stand for.
    total: f64,
    buffer: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    value: f64,
    /// How many observations are between the sample before and this one, this one included.
    width: f64,
    /// By how much the rank of the sample is uncertain.
    delta: f64,
}

impl Sketch {
    fn add(&mut self, value: f64, objectives: Objectives) {
        self.buffer.push(value);
        if self.buffer.len() >= BUFFER {
            self.merge(objectives);
        }
    }

    /// Takes in what was collected.
    fn merge(&mut self, objectives: Objectives) {
        if self.buffer.is_empty() {
            return;
        }
        self.buffer.sort_by(f64::total_cmp);
        let mut merged = Vec::with_capacity(self.samples.len() + self.buffer.len());
        let mut old = self.samples.iter().copied().peekable();
        let mut rank = 0.0;
        for &value in &self.buffer {
            while let Some(sample) = old.next_if(|sample| sample.value <= value) {
                rank += sample.width;
                merged.push(sample);
            }
            // The ranks of the least and the greatest are known; of others, as well as they must be.
            let is_end = merged.is_empty() || old.peek().is_none();
            let delta =
                if is_end { 0.0 } else { (slack(rank, self.total, objectives).floor() - 1.0).max(0.0) };
            merged.push(Sample { value, width: 1.0, delta });
            self.total += 1.0;
            rank += 1.0;
        }
        merged.extend(old);
        self.samples = merged;
        self.buffer.clear();
        self.compress(objectives);
    }

    /// Lets samples stand for their left neighbours where ranks need not be known that well.
    fn compress(&mut self, objectives: Objectives) {
        let mut kept: Vec<Sample> = Vec::with_capacity(self.samples.len());
        let mut rank_after = self.total;
        let mut samples = self.samples.iter().rev().copied();
        let Some(mut current) = samples.next() else { return };
        let mut remaining = self.samples.len() - 1;
        for sample in samples {
            remaining -= 1;
            let rank = rank_after - current.width - sample.width;
            let fits = sample.width + current.width + current.delta <= slack(rank, self.total, objectives);
            // The least stays by itself, so that it is known exactly, as the greatest is anyway.
            if fits && remaining > 0 {
                current.width += sample.width;
            } else {
                rank_after -= current.width;
                kept.push(current);
                current = sample;
            }
        }
        kept.push(current);
        kept.reverse();
        self.samples = kept;
    }

    fn query(&self, quantile: f64, objectives: Objectives) -> f64 {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return f64::NAN };
        if quantile <= 0.0 {
            return first.value;
        }
        let wanted = (quantile * self.total).ceil();
        let most = wanted + (slack(wanted, self.total, objectives) / 2.0).ceil();
        if quantile >= 1.0 {
            return last.value;
        }
        // A stream of few observations is kept whole; then the rank itself is meant.
        let exact = self.samples.iter().all(|sample| sample.width <= 1.0 && sample.delta <= 0.0);
        let mut rank = 0.0;
        let mut value = first.value;
        for sample in &self.samples {
            rank += sample.width;
            if exact && rank >= wanted {
                return sample.value;
            }
            if rank + sample.delta > most {
                return value;
            }
            value = sample.value;
        }
        value
    }
}

/// How uncertain a rank may be without harm to any of the quantiles.
fn slack(rank: f64, total: f64, objectives: Objectives) -> f64 {
    let of = |(quantile, error): (f64, f64)| {
        if quantile * total <= rank {
            if quantile <= 0.0 { f64::INFINITY } else { 2.0 * error * rank / quantile }
        } else if quantile >= 1.0 {
            f64::INFINITY
        } else {
            // What begins here may reach beyond the quantile; it is judged by where it ends.
            let share = 2.0 * error / (1.0 - quantile);
            (total - rank) * share / (1.0 + share)
        }
    };
    objectives.iter().copied().map(of).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use api::names::metrics::OBJECTIVES;

    use super::*;

    /// Numbers from 0 to `count`, a power of two, each once, in a wild order.
    fn shuffled(count: u32) -> impl Iterator<Item = f64> {
        // The factor is odd.
        (0..count).map(move |i| f64::from(i.wrapping_mul(77_777) % count))
    }

    #[tokio::test(start_paused = true)]
    async fn quantiles_are_within_their_errors_in_little_memory() {
        let now = Instant::now();
        for count in [1 << 10, 1 << 17] {
            let mut window = Window::new(OBJECTIVES, now);
            shuffled(count).for_each(|value| window.observe(value, now));
            for (quantile, value) in window.quantiles(now) {
                let rank = value / f64::from(count);
                assert!((rank - quantile).abs() <= 0.0101, "{quantile} of {count} is at {rank}");
            }
            assert!(window.sketches[0].samples.len() < 500, "{} samples", window.sketches[0].samples.len());
            assert_eq!(window.count(), u64::from(count));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_observations_are_known_exactly() {
        let now = Instant::now();
        let mut window = Window::new(OBJECTIVES, now);
        (1..=10).rev().for_each(|value| window.observe(f64::from(value), now));
        let expected = [(0.0, 1.0), (0.5, 5.0), (0.9, 9.0), (0.99, 10.0), (1.0, 10.0)];
        assert_eq!(window.quantiles(now), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn observations_are_forgotten_after_ten_minutes_but_still_counted() {
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_mins(minutes);
        let mut window = Window::new(OBJECTIVES, start);
        window.observe(1.0, at(1));
        window.observe(2.0, at(9));
        let least = |window: &mut Window, minutes| window.quantiles(at(minutes))[0].1;
        assert!((least(&mut window, 9) - 1.0).abs() < 1e-9);
        assert!((least(&mut window, 11) - 2.0).abs() < 1e-9);
        assert!((least(&mut window, 17) - 2.0).abs() < 1e-9);
        assert!(least(&mut window, 18).is_nan());
        window.observe(5.0, at(1000));
        assert!((least(&mut window, 1009) - 5.0).abs() < 1e-9);
        assert!(least(&mut window, 1010).is_nan());
        assert!((window.sum() - 8.0).abs() < 1e-9 && window.count() == 3);
    }
}
