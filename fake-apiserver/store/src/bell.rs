//! Wakes watchers, in the order in which they began to wait.
//!
//! (tokio's `watch` wakes several receivers in an order of its own, drawn from a generator that no seed of ours reaches.)

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Rung when there may be something new.
#[derive(Debug, Default)]
pub(super) struct Bell(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How often it was rung.
    rung: AtomicU64,
    notify: Notify,
}

/// A waiter on a bell.
#[derive(Debug)]
pub(super) struct Listener {
    bell: Arc<Shared>,
    heard: u64,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.0.rung.fetch_add(1, Ordering::AcqRel);
        self.0.notify.notify_waiters();
    }

    /// A new listener that has seen every ring so far.
    pub(super) fn listener(&self) -> Listener {
        Listener {
            heard: self.0.rung.load(Ordering::Acquire),
            bell: Arc::clone(&self.0),
        }
    }
}

impl Listener {
    /// Whatever it was rung for until now has been seen to.
    pub(super) fn hush(&mut self) {
        self.heard = self.bell.rung.load(Ordering::Acquire);
    }

    /// Waits until the bell rings, or returns at once if it rang since the last wait. Never returns once every ringer is dropped.
    /// Cancel-safe.
    pub(super) async fn rung(&mut self) {
        let waiting = self.bell.notify.notified();
        tokio::pin!(waiting);
        // From here on no ring is missed.
        waiting.as_mut().enable();
        let now = self.bell.rung.load(Ordering::Acquire);
        if now == self.heard {
            waiting.await;
        }
        self.heard = self.bell.rung.load(Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn all_are_woken_in_the_order_in_which_they_came() {
        let bell = Bell::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let (mut listener, woken) = (bell.listener(), Arc::clone(&woken));
            tasks.spawn(async move {
                listener.rung().await;
                woken.lock().expect("nobody panics").push(number);
            });
        }
        tokio::task::yield_now().await;
        bell.ring();
        tasks.join_all().await;
        assert_eq!(*woken.lock().expect("nobody panics"), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn what_was_rung_before_is_heard_once() {
        let bell = Bell::default();
        let mut listener = bell.listener();
        assert!(listener.rung().now_or_never().is_none());
        bell.ring();
        bell.ring();
        assert!(listener.rung().now_or_never().is_some());
        assert!(listener.rung().now_or_never().is_none());
        bell.ring();
        listener.hush();
        assert!(listener.rung().now_or_never().is_none());
    }
}
