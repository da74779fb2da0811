//! The objects of one resource and the log of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::bell::{Bell, Listener};
use super::event::{Event, EventKind, Stored};
use super::key::{ObjectKey, Revision};
use super::scope::{Parts, Scope};

/// How many events a table's log keeps. A real server compacts etcd every five minutes and keeps a window of some
/// thousands of events in its watch cache; a watcher that is further behind is told `410 Gone`.
pub(super) const LOG_EVENTS_MAX: usize = 100_000;
/// How many bytes the objects of a table's log may take, and how many more for each object that there is: who falls behind has
/// to list, and that costs what there is.
const LOG_BYTES_MAX: usize = 4 << 20;
const LOG_BYTES_PER_OBJECT: usize = 12 << 10;
/// How many of the newest events of a table are kept as they are. Older ones keep nothing but their encoded objects, which
/// are several times smaller; hardly any watcher is that far behind.
const LOG_WHOLE_EVENTS: usize = 256;
/// A table of more objects than these keeps only the encodings of those that have not changed for so many events.
const WHOLE_OBJECTS: usize = 1000;

/// An event that nobody is expected to ask for soon.
struct Packed {
    revision: Revision,
    kind: EventKind,
    object: Stored,
    previous: Option<Stored>,
}

enum Logged {
    Whole(Arc<Event>),
    Packed(Box<Packed>),
}

impl Logged {
    fn revision(&self) -> Revision {
        match self {
            Self::Whole(event) => event.revision,
            Self::Packed(packed) => packed.revision,
        }
    }

    /// The size of the object, where it is all that is kept. What was before is another event's object.
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(_) => 0,
            Self::Packed(packed) => packed.object.bytes().len(),
        }
    }

    fn event(&self) -> Arc<Event> {
        match self {
            Self::Whole(event) => Arc::clone(event),
            Self::Packed(packed) => Arc::new(Event::new(
                packed.kind,
                Arc::new(packed.object.cold()),
                packed.previous.as_ref().map(|previous| Arc::new(previous.cold())),
            )),
        }
    }

    /// Keeps the encodings alone. Gives the object that it was about, if that is still one.
    fn pack(&mut self) -> Option<Arc<Stored>> {
        let Self::Whole(event) = self else { return None };
        let event = Arc::clone(event);
        *self = Self::Packed(Box::new(Packed {
            revision: event.revision,
            kind: event.kind,
            object: event.object.cold(),
            previous: event.previous.as_ref().map(|previous| previous.cold()),
        }));
        (event.kind != EventKind::Deleted).then(|| Arc::clone(&event.object))
    }
}

pub(super) struct Table {
    pub(super) objects: BTreeMap<ObjectKey, Arc<Stored>>,
    log: VecDeque<Logged>,
    /// The size of the objects of the log's packed events.
    log_bytes: usize,
    /// Every event after this revision is in the log.
    pub(super) compacted: Revision,
    bell: Bell,
    parts: Parts,
}

impl Table {
    pub(super) fn new(compacted: Revision) -> Self {
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            log_bytes: 0,
            compacted,
            bell: Bell::default(),
            parts: Parts::default(),
        }
    }

    /// Another watcher of the events after `from`.
    pub(super) fn subscribe(&mut self, scope: &Scope, from: Revision) -> Listener {
        let start = self.log.partition_point(|logged| logged.revision() <= from);
        let log = &self.log;
        let known = || {
            let events = log.range(start..).map(Logged::event);
            let concerned = events.filter(|event| scope.concerns(event));
            concerned.map(|event| event.revision).collect()
        };
        let part = self.parts.join(scope, known);
        part.unwrap_or_else(|| self.bell.listener())
    }

    /// A watcher is gone.
    pub(super) fn unsubscribe(&mut self, scope: &Scope) {
        self.parts.leave(scope);
    }

    pub(super) fn append(&mut self, event: Arc<Event>) {
        match event.kind {
            EventKind::Deleted => {
                self.objects.remove(&event.object.key);
            }
            EventKind::Added | EventKind::Modified => {
                self.objects
                    .insert(event.object.key.clone(), Arc::clone(&event.object));
            }
        }
        self.log.push_back(Logged::Whole(Arc::clone(&event)));
        let old = self.log.len().checked_sub(LOG_WHOLE_EVENTS + 1);
        if let Some(old) = old
            .and_then(|index| self.log.get_mut(index))
            .and_then(Logged::pack)
            && self.objects.len() > WHOLE_OBJECTS
            && let Some(current) = self.objects.get_mut(&old.key)
            && Arc::ptr_eq(current, &old)
        {
            *current = Arc::new(old.cold());
        }
        if let Some(packed) = self.log.len().checked_sub(LOG_WHOLE_EVENTS + 1) {
            self.log_bytes += self.log.get(packed).map_or(0, Logged::bytes);
        }
        let bytes_max = LOG_BYTES_MAX + LOG_BYTES_PER_OBJECT * self.objects.len();
        while self.log.len() > LOG_EVENTS_MAX || self.log_bytes > bytes_max {
            let Some(dropped) = self.log.pop_front() else {
                break;
            };
            self.log_bytes = self.log_bytes.saturating_sub(dropped.bytes());
            self.compacted = dropped.revision();
        }
        self.bell.ring();
        self.parts.tell(&event, self.compacted);
    }

    /// Forgets the events up to and including `revision`.
    pub(super) fn compact(&mut self, revision: Revision) {
        while self
            .log
            .front()
            .is_some_and(|logged| logged.revision() <= revision)
        {
            let dropped = self.log.pop_front();
            let bytes = dropped.as_ref().map_or(0, Logged::bytes);
            self.log_bytes = self.log_bytes.saturating_sub(bytes);
        }
        self.compacted = self.compacted.max(revision);
        // Wakes the watchers that are now too far behind.
        self.bell.ring();
        self.parts.wake();
    }

    /// The events of a scope after `revision`, oldest first, at most `limit`; none if some of them are gone.
    pub(super) fn after(&self, scope: &Scope, revision: Revision, limit: usize) -> Option<Vec<Arc<Event>>> {
        let place = |revision: Revision| self.log.partition_point(|logged| logged.revision() < revision);
        if *scope == Scope::All {
            let start = place(revision.next());
            let events = self.log.range(start..).take(limit).map(Logged::event);
            return (revision >= self.compacted).then(|| events.collect());
        }
        let revisions = self.parts.after(scope, revision, self.compacted)?;
        let events = revisions
            .take(limit)
            .filter_map(|revision| self.log.get(place(revision)));
        Some(events.map(Logged::event).collect())
    }

    /// The objects of a namespace (all for `None`), ordered by key, after `start`.
    pub(super) fn range(
        &self,
        namespace: Option<&str>,
        start: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &Arc<Stored>> {
        let namespace_start = namespace.map(|ns| ObjectKey::new(ns, ""));
        let lower = match (start, namespace_start) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(key)) => Bound::Included(key),
            (None, None) => Bound::Unbounded,
        };
        let namespace = namespace.map(str::to_owned);
        self.objects
            .range((lower, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.as_ref().is_none_or(|ns| key.namespace == *ns))
            .map(|(_, stored)| stored)
    }

    /// The objects as they were at `revision`: the current ones with the later events undone.
    pub(super) fn at(&self, revision: Revision) -> BTreeMap<ObjectKey, Arc<Stored>> {
        let mut objects = self.objects.clone();
        let start = self.log.partition_point(|logged| logged.revision() <= revision);
        for logged in self.log.range(start..).rev() {
            let event = logged.event();
            match &event.previous {
                Some(previous) => objects.insert(previous.key.clone(), Arc::clone(previous)),
                None => objects.remove(&event.object.key),
            };
        }
        objects
    }
}
