//! A work queue: keys and their times, each key at most once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// The delay after the first failure, doubled by each further one up to the longest (client-go's).
const FAILURE_DELAY_MIN: Duration = Duration::from_millis(5);
const FAILURE_DELAY_MAX: Duration = Duration::from_secs(1000);

/// A queue of things to do, now or later.
pub(crate) struct Queue<T> {
    ready: VecDeque<T>,
    waiting: BTreeSet<T>,
    later: BTreeMap<T, Instant>,
    by_time: BTreeSet<(Instant, T)>,
    failures: BTreeMap<T, u32>,
    delay_max: Duration,
}

impl<T: Ord + Clone> Queue<T> {
    pub(crate) fn new() -> Self {
        Self::with_delay_max(FAILURE_DELAY_MAX)
    }

    /// One that waits no longer than this after failures.
    pub(crate) fn with_delay_max(delay_max: Duration) -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            later: BTreeMap::new(),
            by_time: BTreeSet::new(),
            failures: BTreeMap::new(),
            delay_max,
        }
    }

    pub(super) fn add(&mut self, thing: T) {
        if self.waiting.insert(thing.clone()) {
            self.ready.push_back(thing);
        }
    }

    /// Later, or earlier if that was asked before.
    pub(crate) fn add_after(&mut self, thing: T, delay: Duration) {
        let at = Instant::now() + delay;
        match self.later.get(&thing) {
            Some(before) if *before <= at => return,
            Some(before) => {
                self.by_time.remove(&(*before, thing.clone()));
            }
            None => {}
        }
        self.later.insert(thing.clone(), at);
        self.by_time.insert((at, thing));
    }

    /// After a delay that grows with each failure.
    pub(crate) fn add_failed(&mut self, thing: T) {
        let failures = self.failures.entry(thing.clone()).or_insert(0);
        let delay = FAILURE_DELAY_MIN.saturating_mul(2_u32.saturating_pow(*failures));
        *failures = failures.saturating_add(1);
        self.add_after(thing, delay.min(self.delay_max));
    }

    pub(crate) fn succeeded(&mut self, thing: &T) {
        self.failures.remove(thing);
    }

    /// The things that wait for their time, and that time, the first one first.
    pub(crate) fn next(&self) -> impl Iterator<Item = (Instant, &T)> {
        self.by_time.iter().map(|(at, thing)| (*at, thing))
    }

    /// When there is something to do next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        if self.ready.is_empty() {
            self.by_time.first().map(|(at, _)| *at)
        } else {
            Some(Instant::now())
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let now = Instant::now();
        while let Some((at, _)) = self.by_time.first()
            && *at <= now
            && let Some((_, thing)) = self.by_time.pop_first()
        {
            self.later.remove(&thing);
            self.add(thing);
        }
        let thing = self.ready.pop_front()?;
        self.waiting.remove(&thing);
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn things_wait_once_and_come_when_they_are_due() {
        let mut queue = Queue::new();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        queue.add_after("c", Duration::from_secs(9));
        queue.add_after("c", Duration::from_secs(3));
        let next: Vec<(Duration, &str)> = queue
            .next()
            .map(|(at, thing)| (at - Instant::now(), *thing))
            .collect();
        assert_eq!(next, [(Duration::from_secs(3), "c")]);
        assert_eq!(
            (queue.pop(), queue.pop(), queue.pop()),
            (Some("a"), Some("b"), None)
        );
        tokio::time::sleep_until(queue.next_due().unwrap()).await;
        assert_eq!((queue.pop(), queue.pop()), (Some("c"), None));
        assert_eq!(queue.next_due(), None);
        for delay in [5, 10, 20] {
            let start = Instant::now();
            queue.add_failed("d");
            tokio::time::sleep_until(queue.next_due().unwrap()).await;
            assert_eq!((start.elapsed().as_millis(), queue.pop()), (delay, Some("d")));
        }
    }
}
