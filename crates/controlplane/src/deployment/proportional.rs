//! Scaling while a rollout is under way or paused: every set gets its share.

use std::cmp::Reverse;

use super::{Rollout, Set};
use crate::names;
use crate::object::annotation;

impl Rollout<'_> {
    pub(super) fn scale_in_proportion(&mut self) {
        let active = self.all().filter(|set| set.replicas > 0).count();
        if active <= 1 {
            self.scale_only();
        } else if self.is_saturated() {
            for at in 0..self.old.len() {
                self.scale_old(at, 0);
            }
        } else if !self.recreates() {
            self.share();
        }
    }

    /// With one set there is nothing to share; with none the newest gets everything.
    fn scale_only(&mut self) {
        let wanted = self.replicas();
        match self.old.iter().position(|set| set.replicas > 0) {
            Some(at) => self.scale_old(at, wanted),
            None if self.new.is_some() => self.scale_new(wanted),
            None => {
                if let Some(last) = self.old.len().checked_sub(1) {
                    self.scale_old(last, wanted);
                }
            }
        }
    }

    fn is_saturated(&self) -> bool {
        let Some(new) = &self.new else { return false };
        let desired =
            annotation(&new.object.metadata, names::DESIRED_REPLICAS).and_then(|text| text.parse().ok());
        let wanted = self.replicas();
        new.replicas == wanted && desired == Some(wanted) && new.available() == wanted
    }

    fn share(&mut self) {
        let wanted = self.replicas();
        let (_, surge) = self.bounds();
        let allowed = if wanted > 0 { wanted + surge } else { 0 };
        let add = allowed - self.total();
        // `None` stands for the new set.
        let mut order: Vec<(Option<usize>, Set)> =
            self.old.iter().cloned().enumerate().map(|(at, set)| (Some(at), set)).collect();
        order.extend(self.new.clone().map(|set| (None, set)));
        order.retain(|(_, set)| set.replicas > 0);
        let newest_first = add > 0;
        order.sort_by_key(|(_, set)| {
            let age = set.object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
            (Reverse(set.replicas), if newest_first { -age } else { age })
        });
        let mut added = 0;
        let mut sizes: Vec<i32> = Vec::new();
        for (_, set) in &order {
            let share = if add == 0 { 0 } else { self.share_of(set, add, added) };
            added += share;
            sizes.push(set.replicas + share);
        }
        if let Some(first) = sizes.first_mut() {
            *first = (*first + add - added).max(0);
        }
        for ((at, _), size) in order.iter().zip(sizes) {
            match at {
                Some(at) => self.refresh_old(*at, size),
                None => self.refresh_new(size),
            }
        }
    }

    fn share_of(&self, set: &Set, add: i32, added: i32) -> i32 {
        let left = add - added;
        let fraction = if self.replicas() == 0 {
            -set.replicas
        } else {
            let (_, surge) = self.bounds();
            let most = i64::from(self.replicas() + surge);
            let before = annotation(&set.object.metadata, names::MAX_REPLICAS)
                .and_then(|text| text.parse::<i64>().ok())
                .filter(|before| *before > 0)
                .unwrap_or_else(|| {
                    i64::from(self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(1))
                        .max(1)
                });
            // Rounded to the nearest, half away from zero.
            let size = (2 * i64::from(set.replicas) * most + before) / (2 * before);
            i32::try_from(size).unwrap_or(i32::MAX) - set.replicas
        };
        if add > 0 { fraction.min(left) } else { fraction.max(left) }
    }

    /// Sets whose size stays are written too, so that they remember the new number of replicas.
    fn refresh_old(&mut self, at: usize, replicas: i32) {
        if self.old[at].replicas == replicas {
            let object = std::sync::Arc::clone(&self.old[at].object);
            self.refresh(&object);
        } else {
            self.scale_old(at, replicas);
        }
    }

    fn refresh_new(&mut self, replicas: i32) {
        match self.new.clone() {
            Some(new) if new.replicas == replicas => self.refresh(&new.object),
            _ => self.scale_new(replicas),
        }
    }
}
