//! Events live for some time after they were last written (the real server's `--event-ttl`, a lease of etcd); then they are deleted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::SharedClock;
use jiff::Timestamp;
use store::{Change, CommitError, GroupResource, ObjectKey, Revision, Store, Stored};
use tokio::sync::Notify;

/// The default lifetime of events.
pub const EVENT_LIFE: Duration = Duration::from_secs(3600);

/// The writes of events, the oldest first.
#[derive(Default)]
pub(crate) struct Expiry {
    written: Mutex<VecDeque<Written>>,
    first: Notify,
}

/// A write: when, at which revision, of which event.
struct Written {
    at: Timestamp,
    revision: Revision,
    key: ObjectKey,
}

fn table() -> GroupResource {
    GroupResource::new("", "events")
}

impl Expiry {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down that an object was written, if it is an event.
    pub(crate) fn note(&self, table: &GroupResource, stored: &Stored, now: Timestamp) {
        if table.resource != "events" || !table.group.is_empty() {
            return;
        }
        let written = Written {
            at: now,
            revision: stored.revision,
            key: stored.key.clone(),
        };
        let mut queue = self.lock();
        queue.push_back(written);
        if queue.len() == 1 {
            self.first.notify_one();
        }
    }

    /// The time of the oldest write that is known.
    fn oldest(&self) -> Option<Timestamp> {
        self.lock().front().map(|written| written.at)
    }

    /// The writes up to this time, which are known no longer.
    fn take(&self, until: Timestamp) -> Vec<Written> {
        let mut queue = self.lock();
        let count = queue.iter().take_while(|written| written.at <= until).count();
        queue.drain(..count).collect()
    }
}

/// Deletes events that have not been written for `life`, until dropped. Those that are there already live as long from now on.
pub(crate) async fn expire_events(
    store: Arc<Store>,
    clock: SharedClock,
    expiry: Arc<Expiry>,
    life: Duration,
) {
    if let Ok(list) = store.list(&table(), None, None, None) {
        for stored in &list.items {
            expiry.note(&table(), stored, clock.now());
        }
    }
    loop {
        let Some(oldest) = expiry.oldest() else {
            expiry.first.notified().await;
            continue;
        };
        let now = clock.now();
        let left = oldest
            .saturating_add(life)
            .ok()
            .and_then(|due| Duration::try_from(due.duration_since(now)).ok())
            .unwrap_or_default();
        if !left.is_zero() {
            tokio::time::sleep(left).await;
            continue;
        }
        let Ok(until) = now.saturating_sub(life) else {
            return;
        };
        for written in expiry.take(until) {
            let key = &written.key;
            // One that was written again lives on, and is known by that write.
            let found = store.get(&table(), key);
            if let Some(stored) = found.filter(|stored| stored.revision == written.revision) {
                let change = Change::Delete(stored.value.clone());
                let deleted = store.commit(&table(), key, Some(stored.revision), change);
                tracing::trace!(name = %key.name, deleted = deleted.is_ok(), "an event has expired");
                if deleted.is_err_and(|error| error != CommitError::Stale) {
                    // A disk that is full now need not be so later.
                    expiry.note(&table(), &stored, now);
                }
            }
        }
    }
}
