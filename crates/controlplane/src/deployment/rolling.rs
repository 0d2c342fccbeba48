//! Rolling updates: up with the new set as far as the surge allows, down with the old ones as far as enough
//! replicas stay available.

use super::Rollout;

impl Rollout<'_> {
    pub(super) fn roll(&mut self) {
        if self.creates.is_some() {
            return;
        }
        let target = self.new_replicas();
        if self.new.as_ref().is_some_and(|new| new.replicas != target) {
            self.scale_new(target);
            return;
        }
        self.shrink_old();
    }

    /// How many replicas the new set may have now.
    pub(super) fn new_replicas(&self) -> i32 {
        let current = self.new.as_ref().map_or(0, |new| new.replicas);
        let wanted = self.replicas();
        if self.recreates() || current >= wanted {
            return wanted;
        }
        let (_, surge) = self.bounds();
        let room = wanted + surge - self.total();
        if room <= 0 { current } else { current + room.min(wanted - current) }
    }

    fn shrink_old(&mut self) {
        let (unavailable, _) = self.bounds();
        let needed = self.replicas() - unavailable;
        let missing_new = self.new.as_ref().map_or(0, |new| new.replicas - new.available());
        let most = self.total() - needed - missing_new;
        if most <= 0 || self.old.iter().all(|set| set.replicas == 0) {
            return;
        }
        // Replicas that are not available serve nobody, so they go first.
        let mut cleaned = 0;
        for at in 0..self.old.len() {
            let (replicas, available) = (self.old[at].replicas, self.old[at].available());
            let step = (most - cleaned).min(replicas - available).max(0);
            if step > 0 {
                self.scale_old(at, replicas - step);
                cleaned += step;
            }
        }
        let available: i32 = self.all().map(super::Set::available).sum();
        let mut left = available - needed;
        for at in 0..self.old.len() {
            let replicas = self.old[at].replicas;
            let step = left.min(replicas).max(0);
            if step > 0 {
                self.scale_old(at, replicas - step);
                left -= step;
            }
        }
    }
}
