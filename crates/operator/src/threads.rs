//! Work on all cores.

use std::num::NonZero;
use std::thread;

/// On how many cores some things are looked at, if so many of them are worth a core.
pub(crate) fn threads(count: usize, worth: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(count / worth).max(1)
}

/// What comes of shares of a list, in their order. There is more than one if so many things are worth a core.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    all: &[T],
    worth: usize,
    work: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    let count = threads(all.len(), worth);
    if count == 1 {
        return vec![work(all)];
    }
    let work = &work;
    thread::scope(|scope| {
        let shares = all.chunks(all.len().div_ceil(count));
        let running: Vec<_> = shares.map(|share| scope.spawn(move || work(share))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back_in_order_and_nothing_is_lost() {
        for count in [0, 1, 7, 8, 9, 100] {
            let all: Vec<usize> = (0..count).collect();
            let parts = in_parallel(&all, 4, <[usize]>::to_vec);
            assert_eq!(parts.concat(), all);
        }
    }

    #[test]
    fn few_things_are_not_worth_a_thread() {
        let here = thread::current().id();
        assert_eq!(in_parallel(&[1, 2, 3], 4, |_| thread::current().id()), [here]);
        assert_eq!(threads(0, 4), 1);
    }
}
