//! Polling: waiting until another look at a condition may give another result.

use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::store::Store;
use tokio::time::Instant;

use crate::backend::Backend;

/// How often Chainsaw looks.
const POLL: Duration = Duration::from_millis(500);

/// Waits between two looks at a cluster.
///
/// The times are Chainsaw's, every half second, so that a scenario goes on at the same moment on any cluster. But where the
/// store can be asked, there is no look at one that has not been written to since the last: it would show the same.
pub(super) struct Pace {
    store: Option<Arc<Store>>,
}

/// The state that a look showed; `None` where it cannot be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(Option<u64>);

impl Pace {
    pub(super) fn of(backend: &Backend) -> Self {
        Self {
            store: match backend {
                Backend::Fake(cluster) => Some(Arc::clone(cluster.store())),
                Backend::Real(_) => None,
            },
        }
    }

    /// To be called before a look, so that writes during it count as new.
    pub(super) fn now(&self) -> Seen {
        Seen(self.store.as_ref().map(|store| store.revision().0))
    }

    /// Waits until another look may show something else than the one at `seen`, or until the deadline.
    pub(super) async fn wait(&self, seen: Seen, deadline: Instant) {
        loop {
            tokio::time::sleep(POLL.min(deadline.saturating_duration_since(Instant::now()))).await;
            if seen.0.is_none() || self.now() != seen || Instant::now() >= deadline {
                return;
            }
        }
    }
}
