//! The record of a run: every commit, in order.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use client_kit::SharedClock;
use machinery::types::rfc3339;
use store::{Event, GroupResource, Store};

/// The commits of a run as text, one line each: time, revision, kind of commit, the object.
pub struct Trace {
    clock: SharedClock,
    lines: Mutex<String>,
}

impl Trace {
    /// Begins to record a store's commits.
    pub(super) fn of(store: &Store, clock: SharedClock) -> std::sync::Arc<Self> {
        let trace = std::sync::Arc::new(Self {
            clock,
            lines: Mutex::default(),
        });
        let recorder = std::sync::Arc::clone(&trace);
        store.observe(Box::new(move |table, event| recorder.record(table, event)));
        trace
    }

    fn record(&self, table: &GroupResource, event: &Event) {
        let now = self.clock.now();
        let ms = now.as_millisecond().rem_euclid(1000);
        let object = event.object.bytes();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String cannot fail.
        let _ = writeln!(
            lines,
            "{} .{ms:03} {} {} {table} {} {}",
            rfc3339(now),
            event.revision,
            event.kind.as_str(),
            event.object.key,
            String::from_utf8_lossy(&object),
        );
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
