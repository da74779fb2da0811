//! A position in the log of one table.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use machinery::keys::{Compacted, GroupResource, Revision};

use super::bell::Listener;
use super::event::Event;
use super::scope::Scope;
use super::store_impl::Store;

/// How many events a watcher takes from the log at once: it holds no more than this for a slow reader.
const BATCH_EVENTS: usize = 256;

/// Reads the events of a table, or of a part of it, in order, waiting for new ones.
pub struct Watcher {
    store: Arc<Store>,
    table: GroupResource,
    scope: Scope,
    /// The newest revision that this watcher has seen all events of its scope up to.
    position: Revision,
    taken: VecDeque<Arc<Event>>,
    bell: Listener,
}

impl Store {
    /// A watch of the events of a scope after `from`. It may see others, too. One that is `here`, in this process, is given the objects
    /// themselves.
    ///
    /// # Errors
    /// [`Compacted`] if events after `from` are gone.
    pub fn watch(
        self: &Arc<Self>,
        table_id: &GroupResource,
        scope: Scope,
        from: Revision,
        here: bool,
    ) -> Result<Watcher, Compacted> {
        let bell = self.subscribe(table_id, &scope, from, here)?;
        Ok(Watcher::new(
            Arc::clone(self),
            table_id.clone(),
            scope,
            from,
            bell,
        ))
    }
}

impl Watcher {
    fn new(
        store: Arc<Store>,
        table: GroupResource,
        scope: Scope,
        position: Revision,
        bell: Listener,
    ) -> Self {
        Self {
            store,
            table,
            scope,
            position,
            taken: VecDeque::new(),
            bell,
        }
    }

    /// The revision up to which everything has been delivered: the revision for a bookmark.
    #[must_use]
    pub fn position(&self) -> Revision {
        self.taken.front().map_or(self.position, |event| {
            Revision(event.revision.0.saturating_sub(1))
        })
    }

    /// The next event that is already there.
    ///
    /// # Errors
    /// [`Compacted`] if the watcher fell behind the start of the log.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Compacted> {
        if self.taken.is_empty() {
            self.bell.hush();
            let (events, now) =
                self.store
                    .events_after(&self.table, &self.scope, self.position, BATCH_EVENTS)?;
            // A full batch says nothing of what comes after it; otherwise all up to now has been seen.
            self.position = match events.last() {
                Some(last) if events.len() == BATCH_EVENTS => last.revision,
                _ => now.max(self.position),
            };
            self.taken.extend(events);
        }
        Ok(self.taken.pop_front())
    }

    /// The available next events, as a watch of everything sends them: one text shared by all watchers at this
    /// watcher's position. Must not be called while events [are taken](Self::has_taken).
    ///
    /// # Errors
    /// [`Compacted`] if the watcher fell behind the start of the log.
    pub fn try_text(&mut self) -> Result<Option<Bytes>, Compacted> {
        self.bell.hush();
        let (batch, now) = self
            .store
            .batch_after(&self.table, &self.scope, self.position, BATCH_EVENTS)?;
        // Up to now all has been seen if there was nothing.
        self.position = batch.as_ref().map_or(now.max(self.position), |batch| batch.last);
        Ok(batch.map(|batch| batch.text))
    }

    /// Whether the next event has been taken from the log already.
    pub fn has_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Waits until there may be another event. Cancel-safe.
    pub async fn changed(&mut self) {
        // Of a table that has gone away with its store nothing will ever come.
        self.bell.rung().await;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.store.unwatch(&self.table, &self.scope);
    }
}
