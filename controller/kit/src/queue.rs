//! A queue of keys to work on: each at most once in the queue and with one worker at a time, later if asked, and with
//! growing delays after failures, as client-go's rate-limiting work queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The delay after the first failure …
const FAILURE_DELAY_MIN: Duration = Duration::from_millis(5);
/// … doubled by each further one up to this.
const FAILURE_DELAY_MAX: Duration = Duration::from_secs(1000);

/// How long a key waits after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryDelays {
    /// The delay after the first failure, doubled by each further one.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

impl Default for RetryDelays {
    /// Those of client-go, and of OpenKruise's flags.
    fn default() -> Self {
        Self {
            first: FAILURE_DELAY_MIN,
            longest: FAILURE_DELAY_MAX,
        }
    }
}

/// The queue.
pub struct WorkQueue<K> {
    inner: Mutex<Inner<K>>,
    changed: Notify,
}

struct Inner<K> {
    ready: VecDeque<K>,
    waiting: BTreeSet<K>,
    working: BTreeSet<K>,
    later: BTreeMap<K, Instant>,
    /// Like `later`, but kept while the key is worked on meanwhile.
    timers: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
    retry: RetryDelays,
    /// How long a key rests after it was worked on, and until when each does.
    rest: Duration,
    resting: BTreeMap<K, Instant>,
    closed: bool,
}

impl<K: Ord + Clone> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// A queue in which nothing waits.
    pub fn new() -> Self {
        Self::with_rest(Duration::ZERO)
    }

    /// A queue whose keys rest after they were worked on: a key that is added meanwhile waits until the rest is over, so that
    /// a burst of events costs a few passes instead of one each.
    pub fn with_rest(rest: Duration) -> Self {
        let inner = Inner {
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            working: BTreeSet::new(),
            later: BTreeMap::new(),
            timers: BTreeMap::new(),
            failures: BTreeMap::new(),
            retry: RetryDelays::default(),
            rest,
            resting: BTreeMap::new(),
            closed: false,
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }
    }

    /// The same queue with other delays after failures.
    pub fn with_retry(self, retry: RetryDelays) -> Self {
        self.lock().retry = retry;
        self
    }

    /// Puts `key` into the queue. While a worker has it, it comes back when that one is done.
    pub fn add(&self, key: K) {
        let mut inner = self.lock();
        let now = Instant::now();
        let until = inner.resting.get(&key).copied().filter(|until| *until > now);
        let changed = match until {
            Some(until) => inner.add_at(key, until),
            None => inner.add(key),
        };
        drop(inner);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Puts `key` into the queue after `delay`, or earlier if that was asked before.
    pub fn add_after(&self, key: K, delay: Duration) {
        let at = Instant::now() + delay;
        {
            self.lock().add_at(key, at);
        }
        self.changed.notify_one();
    }

    /// Puts `key` into the queue after `delay`, also if it is worked on before; or earlier if that was asked before. So does client-go
    /// with the delays that events ask for.
    pub fn add_surely_after(&self, key: K, delay: Duration) {
        let at = Instant::now() + delay;
        {
            let mut inner = self.lock();
            let timer = inner.timers.entry(key).or_insert(at);
            *timer = at.min(*timer);
        }
        self.changed.notify_one();
    }

    /// Puts `key` into the queue after a delay that grows with each failure.
    pub fn add_failed(&self, key: K) {
        let delay = {
            let mut inner = self.lock();
            let retry = inner.retry;
            let failures = inner.failures.entry(key.clone()).or_insert(0);
            let delay = retry.first.saturating_mul(2_u32.saturating_pow(*failures));
            *failures = failures.saturating_add(1);
            delay.min(retry.longest)
        };
        self.add_after(key, delay);
    }

    /// Forgets the failures of `key`.
    pub fn forget(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// The next key, once there is one; none when the queue is closed. Call [`done`](Self::done) afterwards.
    ///
    /// A later time for the key is dropped: the pass over the key decides anew.
    pub async fn next(&self) -> Option<K> {
        loop {
            let next_due = {
                let mut inner = self.lock();
                if inner.closed {
                    return None;
                }
                inner.take_due(Instant::now());
                if let Some(key) = inner.ready.pop_front() {
                    inner.waiting.remove(&key);
                    inner.later.remove(&key);
                    inner.working.insert(key.clone());
                    if !inner.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                inner.later.values().chain(inner.timers.values()).min().copied()
            };
            match next_due {
                None => self.changed.notified().await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = self.changed.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// The worker is done with `key`.
    pub fn done(&self, key: &K) {
        let mut inner = self.lock();
        inner.working.remove(key);
        if !inner.rest.is_zero() {
            let now = Instant::now();
            let until = now + inner.rest;
            inner.resting.retain(|_, until| *until > now);
            inner.resting.insert(key.clone(), until);
            if inner.waiting.remove(key) {
                inner.add_at(key.clone(), until);
                self.changed.notify_one();
            }
        } else if inner.waiting.contains(key) {
            inner.ready.push_back(key.clone());
            self.changed.notify_one();
        }
    }

    /// Lets every worker end.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> Inner<K> {
    /// Puts `key` into the queue at a time, or earlier if that was asked before. Whether anything changed.
    fn add_at(&mut self, key: K, at: Instant) -> bool {
        match self.later.get_mut(&key) {
            Some(before) if *before <= at => false,
            Some(before) => {
                *before = at;
                true
            }
            None => {
                self.later.insert(key, at);
                true
            }
        }
    }

    fn add(&mut self, key: K) -> bool {
        if !self.waiting.insert(key.clone()) || self.working.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    fn take_due(&mut self, now: Instant) {
        let mut due: Vec<(Instant, K)> = self
            .later
            .iter()
            .chain(&self.timers)
            .filter(|(_, at)| **at <= now)
            .map(|(key, at)| (*at, key.clone()))
            .collect();
        due.sort();
        self.later.retain(|_, at| *at > now);
        self.timers.retain(|_, at| *at > now);
        for (_, key) in due {
            self.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_sure_delay_outlasts_a_pass() {
        let queue = WorkQueue::new();
        let began = Instant::now();
        queue.add_after("a", Duration::from_secs(5));
        queue.add_surely_after("a", Duration::from_secs(6));
        queue.add_surely_after("a", Duration::from_secs(7));
        queue.add("a");
        for at_s in [0, 6] {
            assert_eq!(queue.next().await, Some("a"));
            assert_eq!(began.elapsed().as_secs(), at_s);
            queue.done(&"a");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_comes_back_after_its_worker() {
        let queue = WorkQueue::new();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        assert_eq!(queue.next().await, Some("b"), "a is being worked on");
        queue.done(&"a");
        assert_eq!(queue.next().await, Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn later_means_later_and_the_earliest_counts() {
        let queue = WorkQueue::new();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(30));
        queue.add_after("a", Duration::from_secs(10));
        queue.add_after("a", Duration::from_secs(20));
        queue.add_after("b", Duration::from_secs(5));
        assert_eq!(queue.next().await, Some("b"));
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_resting_key_answers_a_burst_once() {
        let queue = WorkQueue::with_rest(Duration::from_millis(10));
        let start = Instant::now();
        queue.add("a");
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        queue.done(&"a");
        for _ in 0..5 {
            queue.add("a");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed(), Duration::from_millis(10));
        queue.done(&"a");
        let more = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(more.is_err(), "nothing was added since");
    }

    #[rstest::rstest]
    #[case::those_of_client_go(RetryDelays::default(), [5, 10, 20, 40])]
    #[case::others(RetryDelays { first: Duration::from_millis(7), longest: Duration::from_millis(20) }, [7, 14, 20, 20])]
    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time(#[case] retry: RetryDelays, #[case] expected: [u128; 4]) {
        let queue = WorkQueue::new().with_retry(retry);
        let mut delays = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            queue.add_failed("a");
            let key = queue.next().await.unwrap();
            delays.push(start.elapsed().as_millis());
            queue.done(&key);
        }
        assert_eq!(delays, expected);
        queue.forget(&"a");
        let start = Instant::now();
        queue.add_failed("a");
        queue.next().await;
        assert_eq!(start.elapsed().as_millis(), expected[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_all_workers() {
        let queue = Arc::new(WorkQueue::<u8>::new());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.close();
        for worker in workers {
            assert_eq!(worker.await.unwrap(), None);
        }
    }
}
