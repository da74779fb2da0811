//! The objects of one resource and the log of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use machinery::keys::{ObjectKey, Revision};

use super::bell::{Bell, Listener};
use super::event::{Event, EventKind, Stored};
use super::index::Index;
use super::packing::{Kept, Packer, Small};
use super::scope::{Parts, Scope};

/// How many events a table's log keeps. A real server compacts etcd every five minutes and keeps a window of some
/// thousands of events in its watch cache; a watcher that is further behind gets `410 Gone`.
pub(super) const LOG_EVENTS_MAX: usize = 100_000;
/// The additional events for each existing object: a client that creates or removes many objects at once puts every watcher
/// behind by that much.
const LOG_EVENTS_PER_OBJECT: usize = 4;
/// The bytes that a table's logged objects may take, and the additional bytes for each existing object. A watcher that falls
/// behind must list, and a list costs as much as the existing objects.
const LOG_BYTES_MAX: usize = 3 << 20;
const LOG_BYTES_PER_OBJECT: usize = 1 << 10;
/// The number of a table's newest events that are kept whole. Older ones, which few watchers ask for, are kept in the smaller
/// form: the fields, most of which an object shares with its next version, or the encoding, if there is one.
pub(super) const LOG_WHOLE_EVENTS: usize = 64;
/// A table of more objects than these without watchers of this process keeps only the encodings of objects that have not changed
/// for so many events. With such a watcher the fields are in memory anyway.
const WHOLE_OBJECTS: usize = 1000;
/// Of more objects than these the encodings are packed.
const UNPACKED_OBJECTS: usize = 4096;

/// An event that no watcher is expected to ask for soon.
struct Packed {
    kind: EventKind,
    object: Kept,
    previous: Option<Kept>,
}

enum Form {
    /// An event as it is, and its previous object if that was packed.
    Whole(Arc<Event>, Option<Arc<Small>>),
    Packed(Box<Packed>),
}

struct Logged {
    revision: Revision,
    /// The approximate memory of this event alone, in bytes. The previous object is counted for its own event.
    bytes: usize,
    form: Form,
}

impl Logged {
    fn new(event: &Arc<Event>, before: Option<Arc<Small>>) -> Self {
        Self {
            revision: event.revision,
            bytes: event.fresh_bytes + size_of::<Stored>(),
            form: Form::Whole(Arc::clone(event), before),
        }
    }

    fn event(&self) -> Arc<Event> {
        match &self.form {
            Form::Whole(event, _) => Arc::clone(event),
            Form::Packed(packed) => {
                let object = packed.object.stored();
                let previous = packed.previous.as_ref().map(Kept::stored);
                Arc::new(Event::new(packed.kind, object, previous, self.bytes))
            }
        }
    }

    /// Keeps an event's objects in these forms.
    fn keep(&mut self, kind: EventKind, object: Kept, previous: Option<Kept>) {
        let packed = Packed {
            kind,
            object,
            previous,
        };
        self.form = Form::Packed(Box::new(packed));
    }

    /// Keeps the object's encoding alone, in this form.
    fn pack(&mut self, kind: EventKind, object: Kept, previous: Option<Kept>) {
        self.bytes = match &object {
            Kept::Whole(object) => object.bytes().len() + size_of::<Stored>(),
            Kept::Small(small) => small.bytes(),
        };
        self.keep(kind, object, previous);
    }
}

pub(super) struct Table {
    objects: BTreeMap<ObjectKey, Kept>,
    packer: Packer,
    log: VecDeque<Logged>,
    /// The total size of the log's events, in bytes.
    log_bytes: usize,
    /// Whether a client of this process has watched it.
    is_watched_here: bool,
    /// Every event after this revision is in the log.
    pub(super) compacted: Revision,
    bell: Bell,
    parts: Parts,
    /// From when it is first asked for.
    index: Option<Index>,
}

impl Table {
    pub(super) fn new(compacted: Revision) -> Self {
        Self {
            objects: BTreeMap::new(),
            packer: Packer::default(),
            log: VecDeque::new(),
            log_bytes: 0,
            is_watched_here: false,
            compacted,
            bell: Bell::default(),
            parts: Parts::default(),
            index: None,
        }
    }

    /// Another watcher of the events after `from`.
    pub(super) fn subscribe(&mut self, scope: &Scope, from: Revision) -> Listener {
        if scope.indexed().is_some() {
            self.index();
        }
        let start = self.log.partition_point(|logged| logged.revision <= from);
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
        let stay = scope
            .indexed()
            .is_some_and(|text| self.index.as_ref().is_some_and(|index| index.has(text)));
        self.parts.leave(scope, stay);
    }

    fn index(&mut self) -> &Index {
        let objects = &self.objects;
        self.index.get_or_insert_with(|| {
            let mut index = Index::default();
            for (key, kept) in objects {
                kept.stored().value.with(|object| index.add(key, object));
            }
            index
        })
    }

    /// The objects of a scope that is one name or [indexed](Scope::indexed), of a namespace if one is given, ordered by key. None if they
    /// cannot be found without a full scan.
    pub(super) fn indexed(&mut self, scope: &Scope, namespace: Option<&str>) -> Option<Vec<Kept>> {
        if let Scope::Field("metadata.name", name) = scope {
            let in_none = || {
                self.objects
                    .keys()
                    .next()
                    .is_none_or(|key| key.namespace.is_empty())
            };
            let namespace = namespace.or_else(|| in_none().then_some(""))?;
            let found = self.objects.get(&ObjectKey::new(namespace, name));
            return Some(found.cloned().into_iter().collect());
        }
        let text = scope.indexed()?;
        self.index();
        let keys = self.index.as_ref()?.keys(text);
        let keys = keys.filter(|key| namespace.is_none_or(|namespace| key.namespace == *namespace));
        Some(keys.filter_map(|key| self.objects.get(key)).cloned().collect())
    }

    /// A client of this process watches it, and gets the objects themselves.
    pub(super) fn watch_here(&mut self) {
        self.is_watched_here = true;
    }

    /// Whether objects stay in memory with their fields.
    pub(super) fn keeps_fields(&self) -> bool {
        self.is_watched_here
    }

    pub(super) fn count(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.objects.get(key).map(Kept::stored)
    }

    /// An object that was there before.
    pub(super) fn put_back(&mut self, stored: Stored) {
        let key = stored.key.clone();
        self.index = None;
        self.objects.insert(key, Kept::Whole(Arc::new(stored)));
    }

    pub(super) fn append(&mut self, event: Arc<Event>) {
        let key = &event.object.key;
        let before = match event.kind {
            EventKind::Deleted => self.objects.remove(key),
            EventKind::Added | EventKind::Modified => {
                let kept = Kept::Whole(Arc::clone(&event.object));
                self.objects.insert(key.clone(), kept)
            }
        };
        let before = before.and_then(Kept::packed);
        let logged = Logged::new(&event, before);
        self.log_bytes += logged.bytes;
        self.log.push_back(logged);
        self.settle();
        let bytes_max = LOG_BYTES_MAX + LOG_BYTES_PER_OBJECT * self.objects.len();
        let events_max = LOG_EVENTS_MAX.max(LOG_EVENTS_PER_OBJECT * self.objects.len());
        while self.log.len() > events_max || self.log_bytes > bytes_max {
            let Some(dropped) = self.log.pop_front() else {
                break;
            };
            self.log_bytes = self.log_bytes.saturating_sub(dropped.bytes);
            self.compacted = dropped.revision;
        }
        self.bell.ring();
        self.parts.tell(&event, self.compacted);
        let emptied = self.index.as_mut().and_then(|index| index.follow(&event));
        if let Some(text) = emptied {
            self.parts.forget(&Scope::of_index(&text));
        }
    }

    /// Brings the event that has just left the newest ones into the form in which it stays, and its object, if it is the present one.
    fn settle(&mut self) {
        let Some(index) = self.log.len().checked_sub(LOG_WHOLE_EVENTS + 1) else {
            return;
        };
        let Some(logged) = self.log.get_mut(index) else {
            return;
        };
        let Form::Whole(event, packed_before) = &logged.form else {
            return;
        };
        let (event, packed_before) = (Arc::clone(event), packed_before.clone());
        let object = &event.object;
        let is_large = self.objects.len() > WHOLE_OBJECTS;
        let is_huge = self.objects.len() > UNPACKED_OBJECTS;
        let present = self.objects.get_mut(&object.key);
        let present = present.filter(|present| present.revision() == object.revision);
        if self.is_watched_here {
            let object = match present {
                Some(present) => {
                    *present = Kept::Whole(object.settled());
                    present.clone()
                }
                None => Kept::Whole(object.followed()),
            };
            logged.keep(event.kind, object, None);
            let previous = event
                .previous
                .as_ref()
                .map(|previous| self.settle_before(previous));
            if let Some(Form::Packed(packed)) = self.log.get_mut(index).map(|logged| &mut logged.form) {
                packed.previous = previous.map(Kept::Whole);
            }
            return;
        }
        // What is gone has its fields for itself.
        let is_gone = event.kind == EventKind::Deleted;
        if !is_large && !is_gone && !object.value.is_encoded() {
            return;
        }
        let kept = match is_huge {
            true => Kept::Small(Arc::new(self.packer.pack(object))),
            false => Kept::Whole(Arc::new(object.cold())),
        };
        if let Some(present) = present.filter(|_| is_large) {
            *present = kept.clone();
        }
        let previous = event.previous.as_ref();
        let previous = packed_before
            .map(Kept::Small)
            .or_else(|| previous.map(|previous| self.kept_before(previous)));
        if let Some(logged) = self.log.get_mut(index) {
            let before = logged.bytes;
            logged.pack(event.kind, kept, previous);
            self.log_bytes = (self.log_bytes + logged.bytes).saturating_sub(before);
        }
    }

    /// The log's form of a version that has a successor. The writer of the successor has read its fields: they are dropped.
    fn kept_before(&mut self, previous: &Arc<Stored>) -> Kept {
        let place = self
            .log
            .binary_search_by_key(&previous.revision, |logged| logged.revision);
        match place
            .ok()
            .and_then(|place| self.log.get_mut(place))
            .map(|logged| &mut logged.form)
        {
            Some(Form::Packed(packed)) => {
                if let Kept::Whole(object) = &packed.object
                    && object.value.in_memory().is_some()
                {
                    packed.object = Kept::Whole(object.light());
                }
                packed.object.clone()
            }
            _ => Kept::Whole(previous.light()),
        }
    }

    /// A version that another has followed: its fields were made again for that. It is the same in the log.
    fn settle_before(&mut self, previous: &Arc<Stored>) -> Arc<Stored> {
        let settled = previous.followed();
        let place = self
            .log
            .binary_search_by_key(&previous.revision, |logged| logged.revision);
        if let Some(Form::Packed(packed)) = place
            .ok()
            .and_then(|place| self.log.get_mut(place))
            .map(|logged| &mut logged.form)
        {
            packed.object = Kept::Whole(Arc::clone(&settled));
        }
        settled
    }

    /// Forgets the events up to and including `revision`.
    pub(super) fn compact(&mut self, revision: Revision) {
        while self.log.front().is_some_and(|logged| logged.revision <= revision) {
            let dropped = self.log.pop_front();
            let bytes = dropped.map_or(0, |dropped| dropped.bytes);
            self.log_bytes = self.log_bytes.saturating_sub(bytes);
        }
        self.compacted = self.compacted.max(revision);
        // Wakes the watchers that are now too far behind.
        self.bell.ring();
        self.parts.wake();
    }

    /// Whether the log has an event after `from`, up to and including `until`.
    pub(super) fn has_event_in(&self, from: Revision, until: Revision) -> bool {
        let first = self.log.partition_point(|logged| logged.revision <= from);
        self.log.get(first).is_some_and(|logged| logged.revision <= until)
    }

    /// The events of a scope after `revision`, oldest first, at most `limit`; none if some of them are gone.
    pub(super) fn after(&self, scope: &Scope, revision: Revision, limit: usize) -> Option<Vec<Arc<Event>>> {
        let place = |revision: Revision| self.log.partition_point(|logged| logged.revision < revision);
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
    ) -> impl Iterator<Item = &Kept> {
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
            .map(|(_, kept)| kept)
    }

    /// The objects as they were at `revision`: the current ones with the later events undone.
    pub(super) fn at(&self, revision: Revision) -> BTreeMap<ObjectKey, Kept> {
        let mut objects = self.objects.clone();
        let start = self.log.partition_point(|logged| logged.revision <= revision);
        for logged in self.log.range(start..).rev() {
            let event = logged.event();
            match &event.previous {
                Some(previous) => objects.insert(previous.key.clone(), Kept::Whole(Arc::clone(previous))),
                None => objects.remove(&event.object.key),
            };
        }
        objects
    }
}
