//! The store: tables under one revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use machinery::keys::{Compacted, GroupResource, ObjectKey, Revision};
use shared_json::Value;

use super::batches::{Batch, Batches};
use super::bell::Listener;
use super::common::Common;
use super::event::{Event, EventKind, Stored};
use super::packing::Kept;
use super::scope::Scope;
use super::size::Size;
use super::table::Table;

/// The write that a commit makes.
#[derive(Debug)]
pub enum Change {
    /// Creates or replaces the object.
    Put(Value),
    /// Removes the object; the value is its last state.
    Delete(Value),
}

/// Why a commit did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The object was to be created and exists, or was to be replaced and is at another revision.
    #[error("commit over another version of the object")]
    Stale,
    /// It is larger than a store takes.
    #[error("commit what is too large")]
    TooLarge,
    /// The disk on which commits are written down has no room for it.
    #[error("commit to a full disk")]
    NoSpace,
    /// It could not be written down for another reason.
    #[error("commit to a disk that cannot be written")]
    Unwritten,
}

/// A consistent list.
#[derive(Debug)]
pub struct Snapshot {
    /// The revision of the whole list.
    pub revision: Revision,
    /// The objects, ordered by namespace and name.
    pub items: Vec<Arc<Stored>>,
}

/// Called with each commit, in order, under the store's lock: it must be short and must not call the store.
pub type CommitObserver = Box<dyn Fn(&GroupResource, &Event) + Send + Sync>;

/// Called with each commit before it happens, as an observer is; an error prevents it.
pub(super) type CommitWriter = Box<dyn Fn(&GroupResource, &Event) -> Result<(), CommitError> + Send + Sync>;

#[derive(Default)]
struct Inner {
    revision: Revision,
    common: Common,
    compacted: Revision,
    /// No list or watch may begin at an older revision, though its events may be there still.
    retired: Revision,
    tables: Vec<Table>,
    /// Where each table is.
    places: HashMap<GroupResource, usize, FixedState>,
    observers: Vec<CommitObserver>,
    writer: Option<CommitWriter>,
    batches: Batches,
}

impl Inner {
    fn table(&mut self, id: &GroupResource) -> &mut Table {
        let place = self.place(id);
        &mut self.tables[place]
    }

    fn place(&mut self, id: &GroupResource) -> usize {
        // A table that is asked for the first time has had no event, so nothing of it is compacted but what the
        // store as a whole forgot.
        self.places.get(id).copied().unwrap_or_else(|| {
            self.tables.push(Table::new(self.compacted));
            self.places.insert(id.clone(), self.tables.len() - 1);
            self.tables.len() - 1
        })
    }
}

/// The multi-version store. Cheap to share behind an `Arc`; every method takes one short lock and none awaits.
#[derive(Default)]
pub struct Store {
    inner: Mutex<Inner>,
}

impl Store {
    /// An empty store at revision 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.lock().revision
    }

    /// Registers an observer of all commits from now on.
    pub fn observe(&self, observer: CommitObserver) {
        self.lock().observers.push(observer);
    }

    /// Has each commit from now on written down first.
    pub(super) fn write_down(&self, writer: CommitWriter) {
        self.lock().writer = Some(writer);
    }

    /// Restores an object from the journal; watchers get no event.
    pub(super) fn restore(&self, table: &GroupResource, stored: Stored) {
        let mut inner = self.lock();
        inner.table(table).put_back(stored);
    }

    /// Continues after `revision`. Objects from before it exist, and events from before it do not.
    pub(super) fn resume_at(&self, revision: Revision) {
        self.lock().revision = revision;
        self.compact(revision);
    }

    /// The newest version of an object.
    #[must_use]
    pub fn get(&self, table: &GroupResource, key: &ObjectKey) -> Option<Arc<Stored>> {
        let inner = self.lock();
        let table = inner.tables.get(*inner.places.get(table)?)?;
        table.get(key)
    }

    /// How many objects a table has.
    #[must_use]
    pub fn count(&self, table: &GroupResource) -> usize {
        let inner = self.lock();
        let place = inner.places.get(table);
        place
            .and_then(|place| inner.tables.get(*place))
            .map_or(0, Table::count)
    }

    /// Writes one change. `expected` is the version it is based on: `None` for an object that must not exist.
    ///
    /// # Errors
    /// [`CommitError::Stale`] if the object is not at `expected`; [`CommitError::TooLarge`] if it has over a mebibyte and a half;
    /// [`CommitError::NoSpace`] and [`CommitError::Unwritten`] if a journal cannot write it down.
    pub fn commit(
        &self,
        table_id: &GroupResource,
        key: &ObjectKey,
        expected: Option<Revision>,
        change: Change,
    ) -> Result<Arc<Stored>, CommitError> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let revision = inner.revision.next();
        let place = inner.place(table_id);
        let table = &mut inner.tables[place];
        let previous = table.get(key);
        if previous.as_ref().map(|stored| stored.revision) != expected {
            return Err(CommitError::Stale);
        }
        let (kind, mut value) = match (change, &previous) {
            (Change::Put(value), None) => (EventKind::Added, value),
            (Change::Put(value), Some(_)) => (EventKind::Modified, value),
            (Change::Delete(value), Some(_)) => (EventKind::Deleted, value),
            (Change::Delete(_), None) => return Err(CommitError::Stale),
        };
        set_resource_version(&mut value, revision);
        let before = previous
            .as_deref()
            .filter(|before| before.value.in_memory().is_some());
        let old = before.and_then(|before| before.value.in_memory());
        let size = match table.keeps_fields() {
            true => inner.common.share(&mut value, old),
            false => Size::of(&value, old),
        };
        let size_before = before.map_or(0, |before| before.size_max);
        let size_max = match kind {
            EventKind::Deleted => size.max(size_before),
            _ => size.checked(&value, size_before).ok_or(CommitError::TooLarge)?,
        };
        let created = previous.as_ref().map_or(revision, |stored| stored.created);
        let object = Arc::new(Stored::new(key.clone(), revision, created, value, size_max));
        let event = Arc::new(Event::new(kind, Arc::clone(&object), previous, size.fresh));
        if let Some(writer) = &inner.writer {
            writer(table_id, &event)?;
        }
        table.append(Arc::clone(&event));
        inner.revision = revision;
        for observer in &inner.observers {
            observer(table_id, &event);
        }
        Ok(object)
    }

    /// The objects of a namespace (all namespaces for `None`) at `at` (now for `None`), after the key `start`.
    ///
    /// # Errors
    /// [`Compacted`] if `at` is older than the log or newer than the store.
    pub fn list(
        &self,
        table_id: &GroupResource,
        namespace: Option<&str>,
        at: Option<Revision>,
        start: Option<&ObjectKey>,
    ) -> Result<Snapshot, Compacted> {
        let (revision, items) = self.scan(table_id, namespace, at, start)?;
        Ok(Snapshot {
            revision,
            items: items.collect(),
        })
    }

    /// The objects of a scope as they are now, without a look at others, if that can be; of a namespace if one is given.
    pub fn list_indexed(
        &self,
        table_id: &GroupResource,
        scope: &Scope,
        namespace: Option<&str>,
    ) -> Option<Snapshot> {
        let mut inner = self.lock();
        let revision = inner.revision;
        let items = inner.table(table_id).indexed(scope, namespace)?;
        Some(Snapshot {
            revision,
            items: items.iter().map(Kept::stored).collect(),
        })
    }

    /// [`Store::list`] for callers that may stop early: gives the revision, and then each object in turn.
    ///
    /// # Errors
    /// As of [`Store::list`].
    pub fn scan(
        &self,
        table_id: &GroupResource,
        namespace: Option<&str>,
        at: Option<Revision>,
        start: Option<&ObjectKey>,
    ) -> Result<(Revision, impl ExactSizeIterator<Item = Arc<Stored>>), Compacted> {
        let mut inner = self.lock();
        let (now, retired) = (inner.revision, inner.retired);
        let table = inner.table(table_id);
        let compacted = table.compacted.max(retired);
        let items: Vec<Kept> = match at.filter(|at| *at < now) {
            None => table.range(namespace, start).cloned().collect(),
            Some(at) if at < compacted => {
                return Err(Compacted {
                    requested: at,
                    compacted,
                });
            }
            Some(at) => table
                .at(at)
                .into_iter()
                .filter(|(key, _)| namespace.is_none_or(|ns| key.namespace == ns))
                .filter(|(key, _)| start.is_none_or(|start| key > start))
                .map(|(_, kept)| kept)
                .collect(),
        };
        Ok((at.unwrap_or(now), items.into_iter().map(|kept| kept.stored())))
    }

    /// The bell of a watch of a scope after `from`; used by [`Watcher`](crate::Watcher). One that is `here` is in this process.
    ///
    /// # Errors
    /// [`Compacted`] if events after `from` are gone.
    pub(super) fn subscribe(
        &self,
        table_id: &GroupResource,
        scope: &Scope,
        from: Revision,
        here: bool,
    ) -> Result<Listener, Compacted> {
        let mut inner = self.lock();
        let retired = inner.retired;
        let table = inner.table(table_id);
        let compacted = match table.has_event_in(from, retired) {
            true => table.compacted.max(retired),
            false => table.compacted,
        };
        if from < compacted {
            return Err(Compacted {
                requested: from,
                compacted,
            });
        }
        if here {
            table.watch_here();
        }
        Ok(table.subscribe(scope, from))
    }

    /// A watch is over; used by [`Watcher`](crate::Watcher).
    pub(super) fn unwatch(&self, table_id: &GroupResource, scope: &Scope) {
        if *scope != Scope::All {
            self.lock().table(table_id).unsubscribe(scope);
        }
    }

    /// The events of a table after `from`, oldest first, at most `limit`; used by [`Watcher`](crate::Watcher).
    pub(super) fn events_after(
        &self,
        table_id: &GroupResource,
        scope: &Scope,
        from: Revision,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, Revision), Compacted> {
        let mut inner = self.lock();
        let now = inner.revision;
        let table = inner.table(table_id);
        let events = table.after(scope, from, limit);
        let events = events.ok_or(Compacted {
            requested: from,
            compacted: table.compacted,
        })?;
        Ok((events, now))
    }

    /// The same as text: the batch that begins with the first of these events, made if there is none.
    pub(super) fn batch_after(
        &self,
        table_id: &GroupResource,
        scope: &Scope,
        from: Revision,
        limit: usize,
    ) -> Result<(Option<Batch>, Revision), Compacted> {
        let (first, now) = self.events_after(table_id, scope, from, 1)?;
        let Some(first) = first.first() else {
            return Ok((None, now));
        };
        if let Some(batch) = self.lock().batches.at(scope, first.revision) {
            return Ok((Some(batch.clone()), now));
        }
        let (events, now) = self.events_after(table_id, scope, from, limit)?;
        let next = self.lock().batches.next(scope, &events);
        // Nobody waits while objects are encoded.
        let batch = Batch::of(scope, &events, next);
        if let Some(batch) = &batch {
            self.lock().batches.keep(batch.clone());
        }
        Ok((batch, now))
    }

    /// From now on refuses lists at older revisions than this one, and watches that would begin with older events. Watches that
    /// have begun go on.
    pub fn retire(&self, revision: Revision) {
        let mut inner = self.lock();
        inner.retired = inner.retired.max(revision.min(inner.revision));
    }

    /// Forgets all events up to and including `revision`, as etcd's compaction does.
    pub fn compact(&self, revision: Revision) {
        let mut inner = self.lock();
        let revision = revision.min(inner.revision);
        inner.compacted = inner.compacted.max(revision);
        for table in &mut inner.tables {
            table.compact(revision);
        }
    }
}

fn set_resource_version(value: &mut Value, revision: Revision) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;
    use crate::table::LOG_WHOLE_EVENTS;

    fn pods() -> GroupResource {
        GroupResource::new("", "pods")
    }

    fn put(store: &Store, name: &str, expected: Option<u64>) -> Result<u64, CommitError> {
        let change = Change::Put(json!({"metadata": {"name": name}}));
        let stored = store.commit(
            &pods(),
            &ObjectKey::new("a", name),
            expected.map(Revision),
            change,
        )?;
        assert_eq!(
            stored.value["metadata"]["resourceVersion"],
            stored.revision.to_string()
        );
        Ok(stored.revision.0)
    }

    fn names(snapshot: &Snapshot) -> Vec<&str> {
        snapshot
            .items
            .iter()
            .map(|stored| stored.key.name.as_str())
            .collect()
    }

    #[test]
    fn commits_are_ordered_and_conditional() {
        let store = Store::new();
        assert_eq!(put(&store, "x", None), Ok(1));
        assert_eq!(put(&store, "x", None), Err(CommitError::Stale));
        assert_eq!(put(&store, "x", Some(1)), Ok(2));
        assert_eq!(put(&store, "x", Some(1)), Err(CommitError::Stale));
        assert_eq!(store.revision(), Revision(2));
    }

    #[test]
    fn nothing_begins_before_what_is_retired() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        for (name, before) in [("x", None), ("x", Some(1)), ("y", None), ("y", Some(3))] {
            put(&store, name, before)?;
        }
        let mut running = store.watch(&pods(), Scope::All, Revision(0), false)?;
        store.retire(Revision(2));
        let watches = |from| store.watch(&pods(), Scope::All, Revision(from), false).is_ok();
        let lists = |at| store.list(&pods(), None, Some(Revision(at)), None).is_ok();
        assert_eq!([0, 1, 2, 3].map(watches), [false, false, true, true]);
        assert_eq!([0, 1, 2, 3].map(lists), [false, false, true, true]);
        assert_eq!(running.try_next()?.map(|event| event.revision), Some(Revision(1)));
        // Where nothing has happened, nothing is missed.
        let others = GroupResource::new("", "secrets");
        assert!(store.watch(&others, Scope::All, Revision(1), false).is_ok());
        Ok(())
    }

    #[test]
    fn events_that_are_long_past_are_told_as_they_were() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        put(&store, "x", None)?;
        for revision in 1..=600 {
            put(&store, "x", Some(revision))?;
        }
        let mut watcher = store.watch(&pods(), Scope::All, Revision(0), false)?;
        let mut previous: Option<Arc<Stored>> = None;
        for revision in 1..=601_u64 {
            let event = watcher.try_next()?.ok_or("an event is missing")?;
            assert_eq!(event.revision, Revision(revision));
            assert_eq!(
                event.object.value["metadata"]["resourceVersion"],
                revision.to_string()
            );
            assert_eq!(
                event.object.bytes(),
                event.object.value.to_string(),
                "both forms of the object agree"
            );
            assert_eq!(
                event.previous.as_ref().map(|stored| &*stored.value),
                previous.as_ref().map(|stored| &*stored.value)
            );
            previous = Some(Arc::clone(&event.object));
        }
        assert!(watcher.try_next()?.is_none());
        let then = store.list(&pods(), None, Some(Revision(5)), None)?;
        assert_eq!(
            then.items.first().map(|stored| stored.revision),
            Some(Revision(5))
        );
        Ok(())
    }

    #[test]
    fn of_many_objects_those_that_rest_are_kept_small() -> Result<(), Box<dyn std::error::Error>> {
        let store = Store::new();
        for index in 0..6000 {
            put(&store, &format!("x{index:04}"), None)?;
        }
        let all = store.list(&pods(), None, None, None)?.items;
        // Those that left the newest events when the table had more than a thousand objects. The last of them are packed.
        assert_eq!(
            all.iter()
                .filter(|stored| stored.value.in_memory().is_none())
                .count(),
            5000
        );
        for stored in &all {
            let looked = stored
                .value
                .with(|value| value["metadata"]["name"] == *stored.key.name);
            assert!(looked && stored.value["metadata"]["resourceVersion"] == stored.revision.to_string());
        }
        Ok(())
    }

    #[test]
    fn what_a_writer_looked_at_is_let_go_when_its_write_rests() -> Result<(), Box<dyn std::error::Error>> {
        let store = Store::new();
        let name = |index: u64| format!("x{index:04}");
        for index in 0..3000 {
            put(&store, &name(index), None)?;
        }
        let mut before = Vec::new();
        for index in 1000..2000 {
            let found = store.get(&pods(), &ObjectKey::new("a", &name(index)));
            let found = found.ok_or("an object is missing")?;
            assert!(found.value.in_memory().is_none() && found.value["metadata"].is_object());
            before.push(Arc::downgrade(&found));
            put(&store, &name(index), Some(index + 1))?;
        }
        let with_fields = before
            .iter()
            .filter(|version| {
                version
                    .upgrade()
                    .is_some_and(|version| version.value.in_memory().is_some())
            })
            .count();
        // The newest events are as they were.
        assert_eq!(with_fields, LOG_WHOLE_EVENTS);
        Ok(())
    }

    #[test]
    fn what_was_packed_is_told_and_listed_as_it_was() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        let name = |index: u64| format!("x{index:04}");
        for index in 0..6000 {
            put(&store, &name(index), None)?;
        }
        // Each is written again, and every second one removed.
        for index in 0..6000 {
            put(&store, &name(index), Some(index + 1))?;
        }
        for index in (0..6000).step_by(2) {
            let key = ObjectKey::new("a", &name(index));
            let last = store.get(&pods(), &key).ok_or("an object is missing")?;
            let gone = Change::Delete(last.value.clone());
            store.commit(&pods(), &key, Some(last.revision), gone)?;
        }
        let mut watcher = store.watch(&pods(), Scope::All, Revision(5900), false)?;
        let mut told = 0;
        while let Some(event) = watcher.try_next()? {
            let before = event.previous.as_ref().map(|stored| stored.revision);
            let number = event.revision.0;
            let expected = match number {
                0..=6000 => None,
                6001..=12_000 => Some(number - 6000),
                _ => Some((number - 12_001) * 2 + 6001),
            };
            assert_eq!(before, expected.map(Revision));
            for stored in event.previous.iter().chain([&event.object]) {
                assert_eq!(
                    stored.value["metadata"]["resourceVersion"],
                    stored.revision.to_string()
                );
            }
            told += 1;
        }
        assert_eq!(told, 9100);
        let then = store.list(&pods(), None, Some(Revision(6000)), None)?.items;
        assert!(then.iter().map(|stored| stored.revision.0).eq(1..=6000));
        Ok(())
    }

    #[test]
    fn watches_at_the_same_place_share_a_text() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        let watch = |from| store.watch(&pods(), Scope::Namespace("a".to_owned()), Revision(from), false);
        let (mut one, mut other, mut late) = (watch(0)?, watch(0)?, watch(2)?);
        for index in 0..300 {
            put(&store, &format!("x{index:04}"), None)?;
        }
        let mut all: Vec<u8> = Vec::new();
        while let Some(text) = one.try_text()? {
            let same = other.try_text()?.ok_or("a text is missing")?;
            assert_eq!((text.as_ptr(), text.len()), (same.as_ptr(), same.len()));
            all.extend_from_slice(&text);
        }
        assert_eq!(one.position(), Revision(300));
        assert_eq!(other.try_text()?, None);
        let mut watcher = watch(0)?;
        let mut each: Vec<u8> = Vec::new();
        let mut before_late = 0;
        while let Some(event) = watcher.try_next()? {
            each.extend_from_slice(&event.frame());
            if event.revision == Revision(2) {
                before_late = each.len();
            }
        }
        assert_eq!(all, each);
        // One that began elsewhere is soon where the others are, and has missed nothing.
        let mut rest = late.try_text()?.ok_or("a text is missing")?.to_vec();
        let mut again = watch(late.position().0)?;
        while let Some(text) = late.try_text()? {
            assert_eq!(again.try_text()?.map(|text| text.as_ptr()), Some(text.as_ptr()));
            rest.extend_from_slice(&text);
        }
        assert_eq!(rest, &each[before_late..]);
        // What it needs is gone.
        let mut behind = watch(0)?;
        store.compact(Revision(10));
        assert!(behind.try_text().is_err());
        Ok(())
    }

    #[test]
    fn what_is_watched_here_is_not_encoded() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        let mut watcher = store.watch(&pods(), Scope::All, Revision(0), true)?;
        for index in 0..1500 {
            put(&store, &format!("x{index:04}"), None)?;
        }
        let all = store.list(&pods(), None, None, None)?.items;
        for stored in &all {
            let event = watcher.try_next()?.ok_or("an event is missing")?;
            assert!(Arc::ptr_eq(&event.object, stored) && !stored.value.is_encoded());
        }
        Ok(())
    }

    #[test]
    fn what_another_has_followed_is_not_kept_encoded() -> Result<(), Box<dyn std::error::Error>> {
        let store = Arc::new(Store::new());
        let mut watcher = store.watch(&pods(), Scope::All, Revision(0), true)?;
        let key = ObjectKey::new("a", "x");
        put(&store, "x", None)?;
        put(&store, "y", None)?;
        for revision in 1..=600 {
            let last = store.get(&pods(), &key).ok_or("the object is missing")?;
            assert!(!last.bytes().is_empty() && last.local().is_object());
            put(&store, "x", Some(if revision == 1 { 1 } else { revision + 1 }))?;
        }
        for _ in 0..300 {
            let event = watcher.try_next()?.ok_or("an event is missing")?;
            let is_present = &*event.object.key.name == "y";
            assert!(is_present || !event.object.value.is_encoded());
            assert_eq!(
                event.object.value["metadata"]["resourceVersion"],
                event.revision.to_string()
            );
        }
        Ok(())
    }

    #[test]
    fn a_list_at_an_old_revision_is_what_it_was_then() -> Result<(), Box<dyn std::error::Error>> {
        let store = Store::new();
        put(&store, "x", None)?;
        put(&store, "y", None)?;
        let gone = Change::Delete(json!({"metadata": {"name": "x"}}));
        store.commit(&pods(), &ObjectKey::new("a", "x"), Some(Revision(1)), gone)?;
        assert_eq!(names(&store.list(&pods(), None, None, None)?), ["y"]);
        assert_eq!(
            names(&store.list(&pods(), Some("a"), Some(Revision(2)), None)?),
            ["x", "y"]
        );
        assert_eq!(names(&store.list(&pods(), None, Some(Revision(1)), None)?), ["x"]);
        store.compact(Revision(2));
        assert!(store.list(&pods(), None, Some(Revision(1)), None).is_err());
        assert_eq!(
            names(&store.list(&pods(), None, Some(Revision(2)), None)?),
            ["x", "y"]
        );
        Ok(())
    }

    #[test]
    fn a_mebibyte_and_a_half_and_no_more() {
        let (store, maps) = (Store::new(), GroupResource::new("", "configmaps"));
        let key = ObjectKey::new("a", "x");
        let mut last: Option<Arc<Stored>> = None;
        let mut put = |length: usize| {
            let mut object = match &last {
                Some(last) => (*last.value).clone(),
                None => json!({"metadata": {"name": "x"}, "data": {}}),
            };
            object["data"]["k"] = json!("x".repeat(length));
            let expected = last.as_ref().map(|last| last.revision);
            let stored = store.commit(&maps, &key, expected, Change::Put(object))?;
            last = Some(stored);
            Ok::<_, CommitError>(())
        };
        // The sum of all that was ever new is more than an object may have; what it has is not.
        let lengths = [
            1_500_000, 1_000_000, 1_400_000, 1_600_000, 10, 1_600_000, 1_500_000,
        ];
        let taken: Vec<bool> = lengths.map(|length| put(length) == Ok(())).into();
        assert_eq!(taken, [true, true, true, false, true, false, true]);
    }
}
