//! A store's commits on disk: an acknowledged write survives when the process is killed.
//!
//! The journal is one file of lines, each a checksum and a JSON record of one commit. A commit is written before it is
//! acknowledged, and handed to the operating system, not to the disk: it survives the end of the process, not that of the
//! machine. When the journal is opened, a last line that is torn is dropped, and the rest is written anew with the newest
//! version of each object alone, if the disk has room for that.
//!
//! A commit for which the disk has no room does not happen. Later ones do, once there is room again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::Crc;
use machinery::keys::{GroupResource, ObjectKey, Revision};
use serde::Deserialize;
use shared_json::Value;
use tokio::sync::watch;

use super::event::{Event, EventKind, Stored};
use super::store_impl::{CommitError, Store};

const FILE: &str = "journal";
const FRESH: &str = "journal.new";
const LOCK: &str = "lock";

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file of it cannot be read or written.
    #[error("use {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another server uses it.
    #[error("use {0}: another server has it open")]
    InUse(PathBuf),
    /// A line before the last one is damaged.
    #[error("read {path}: line {line} is damaged")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
}

/// One line: the newest revision, and the object's last state; none for one that is gone or for a line that only says the revision.
#[derive(Deserialize)]
struct Record {
    revision: u64,
    #[serde(default)]
    created: u64,
    #[serde(default)]
    group: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    object: Option<Value>,
}

/// A version of an object as the journal has it.
struct Restored {
    revision: Revision,
    created: Revision,
    value: Value,
}

type Objects = BTreeMap<(GroupResource, ObjectKey), Restored>;

/// The contents of a journal when it is opened.
#[derive(Default)]
struct Contents {
    /// The newest revision.
    revision: Revision,
    objects: Objects,
    /// The length of the lines that are whole, in bytes.
    length: u64,
}

/// The file of an open journal.
struct Lines {
    file: File,
    /// The length of the lines that are whole, in bytes.
    length: u64,
    /// How many bytes more there is room for, where a test says so.
    room: Option<u64>,
}

impl Lines {
    /// Adds a line, or nothing.
    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let written = limited(&mut self.file, &mut self.room).write_all(line);
        match written {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Whatever came of the line is no part of it.
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }
}

/// Whether a disk is full, or as much of it as may be used.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A file, as if there were room for so many bytes and no more.
struct Limited<'a> {
    file: &'a mut File,
    room: &'a mut Option<u64>,
}

fn limited<'a>(file: &'a mut File, room: &'a mut Option<u64>) -> Limited<'a> {
    Limited { file, room }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(room) = self.room.as_mut() else {
            return self.file.write(bytes);
        };
        let length = bytes.len().min(usize::try_from(*room).unwrap_or(usize::MAX));
        if length == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = self.file.write(bytes.get(..length).unwrap_or_default())?;
        *room -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An open journal, which writes down a store's commits.
pub struct Journal {
    path: PathBuf,
    lines: Mutex<Lines>,
    broken: watch::Sender<bool>,
    /// Held as long as the journal is open.
    _lock: File,
}

impl Journal {
    /// Opens the journal of a directory, creating the directory if needed, and fills an empty store with its records. From
    /// then on the store's commits are written down. Returns the journal, and whether it held anything.
    ///
    /// # Errors
    /// If the directory cannot be used, another server uses it, or a record in it is damaged.
    pub fn open(directory: &Path, store: &Store) -> Result<(std::sync::Arc<Self>, bool), JournalError> {
        Self::open_within(directory, store, None)
    }

    /// The same as if the disk had room for so many bytes more, and for no more: for tests.
    ///
    /// # Errors
    /// As of [`Journal::open`].
    pub fn open_within(
        directory: &Path,
        store: &Store,
        room: Option<u64>,
    ) -> Result<(std::sync::Arc<Self>, bool), JournalError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::File { path, source }
        };
        fs::create_dir_all(directory).map_err(at(directory))?;
        let lock_path = directory.join(LOCK);
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(directory.to_owned())),
            Err(TryLockError::Error(source)) => return Err(at(&lock_path)(source)),
        }
        let path = directory.join(FILE);
        let mut contents = match File::open(&path) {
            Ok(file) => read(&path, BufReader::new(file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Contents::default(),
            Err(error) => return Err(at(&path)(error)),
        };
        let held = contents.revision > Revision::default();
        let mut room = room;
        let fresh = directory.join(FRESH);
        match rewrite(&fresh, &contents, &mut room) {
            Ok(length) => {
                fs::rename(&fresh, &path).map_err(at(&path))?;
                contents.length = length;
            }
            // The old one goes on, without the end of a line that is torn.
            Err(error) if held && is_full(&error) => {
                tracing::warn!(%error, path = %fresh.display(), "write a journal anew");
                fs::remove_file(&fresh).map_err(at(&fresh))?;
            }
            Err(error) => return Err(at(&fresh)(error)),
        }
        let file = OpenOptions::new().append(true).open(&path).map_err(at(&path))?;
        file.set_len(contents.length).map_err(at(&path))?;
        for ((table, key), object) in contents.objects {
            store.restore(
                &table,
                Stored::alone(key, object.revision, object.created, object.value),
            );
        }
        store.resume_at(contents.revision);
        let lines = Lines {
            file,
            length: contents.length,
            room,
        };
        let journal = std::sync::Arc::new(Self {
            path,
            lines: Mutex::new(lines),
            broken: watch::Sender::new(false),
            _lock: lock,
        });
        let writer = std::sync::Arc::clone(&journal);
        store.write_down(Box::new(move |table, event| writer.write(table, event)));
        Ok((journal, held))
    }

    /// From now on it is as if the disk had room for so many bytes more; for no more than there is if none is given. For tests.
    pub fn set_room(&self, room: Option<u64>) {
        self.lines().room = room;
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, table: &GroupResource, event: &Event) -> Result<(), CommitError> {
        let object = (event.kind != EventKind::Deleted).then_some(&*event.object);
        let line = line(event.revision, table, &event.object, object.is_some());
        self.lines().add(&line).map_err(|error| {
            if is_full(&error) {
                tracing::warn!(%error, path = %self.path.display(), "write down a commit");
                return CommitError::NoSpace;
            }
            tracing::error!(%error, path = %self.path.display(), "write down a commit");
            self.broken.send_replace(true);
            CommitError::Unwritten
        })
    }

    /// The file, for messages about it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ready once a commit could not be written down although the disk is not full: then nothing more will be.
    pub async fn broken(&self) {
        let mut broken = self.broken.subscribe();
        if broken.wait_for(|broken| *broken).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn with_checksum(record: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(record);
    let mut line = format!("{:08x} ", crc.sum()).into_bytes();
    line.extend_from_slice(record);
    line.push(b'\n');
    line
}

fn line(revision: Revision, table: &GroupResource, stored: &Stored, lives: bool) -> Vec<u8> {
    let text = |text: &str| Value::from(text).to_string();
    let mut record = format!(
        "{{\"revision\":{revision},\"created\":{},\"group\":{},\"resource\":{},\"namespace\":{},\"name\":{}",
        stored.created,
        text(&table.group),
        text(&table.resource),
        text(&stored.key.namespace),
        text(&stored.key.name),
    )
    .into_bytes();
    if lives {
        record.extend_from_slice(b",\"object\":");
        record.extend_from_slice(&stored.bytes());
    }
    record.push(b'}');
    with_checksum(&record)
}

/// Reads the lines of a journal.
fn read(path: &Path, mut file: impl io::BufRead) -> Result<Contents, JournalError> {
    let mut contents = Contents::default();
    let mut line = Vec::new();
    let failed = |source| JournalError::File {
        path: path.to_owned(),
        source,
    };
    for number in 1.. {
        line.clear();
        let count = file.read_until(b'\n', &mut line).map_err(failed)?;
        if count == 0 {
            break;
        }
        let Some(record) = record(&line) else {
            if file.fill_buf().map_err(failed)?.is_empty() {
                // The process was killed in the middle of it, and nobody was told of it.
                break;
            }
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                line: number,
            });
        };
        contents.length += count as u64;
        contents.add(record);
    }
    Ok(contents)
}

impl Contents {
    fn add(&mut self, record: Record) {
        let revision = Revision(record.revision);
        self.revision = self.revision.max(revision);
        if record.resource.is_empty() {
            return;
        }
        let table = GroupResource::new(&record.group, &record.resource);
        let key = ObjectKey::new(&record.namespace, &record.name);
        let Some(value) = record.object else {
            self.objects.remove(&(table, key));
            return;
        };
        let restored = Restored {
            revision,
            created: Revision(record.created),
            value,
        };
        self.objects.insert((table, key), restored);
    }
}

fn record(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, record) = (line.get(..8)?, line.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    let mut crc = Crc::new();
    crc.update(record);
    (crc.sum() == sum)
        .then(|| shared_json::from_slice(record).ok())
        .flatten()
}

/// Writes a journal that holds nothing but these objects, and waits until the disk has it; gives its length in bytes.
fn rewrite(path: &Path, contents: &Contents, room: &mut Option<u64>) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let mut writer = BufWriter::new(limited(&mut file, room));
    let first = with_checksum(format!("{{\"revision\":{}}}", contents.revision).as_bytes());
    writer.write_all(&first)?;
    let mut length = first.len();
    for ((table, key), object) in &contents.objects {
        let stored = Stored::alone(key.clone(), object.revision, object.created, object.value.clone());
        let line = line(object.revision, table, &stored, true);
        writer.write_all(&line)?;
        length += line.len();
    }
    writer.flush()?;
    drop(writer);
    file.sync_all()?;
    Ok(length as u64)
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::super::scope::Scope;
    use super::super::store_impl::Change;
    use super::*;

    fn maps() -> GroupResource {
        GroupResource::new("", "configmaps")
    }

    fn put(store: &Store, name: &str, value: u64, expected: Option<Revision>) -> Revision {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"v": value.to_string()}});
        let key = ObjectKey::new("a", name);
        let stored = store.commit(&maps(), &key, expected, Change::Put(object));
        stored.expect("a commit").revision
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("journal-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn contents(store: &Store) -> Vec<(String, String, u64)> {
        let list = store.list(&maps(), None, None, None).expect("a list");
        let of = |stored: &std::sync::Arc<Stored>| {
            let value = stored.value["data"]["v"].as_str().unwrap_or_default().to_owned();
            (stored.key.name.to_string(), value, stored.revision.0)
        };
        list.items.iter().map(of).collect()
    }

    #[test]
    fn what_was_committed_is_there_again() {
        let path = directory("again");
        let store = Store::new();
        let (journal, held) = Journal::open(&path, &store).expect("a journal");
        assert!(!held);
        let first = put(&store, "x", 1, None);
        put(&store, "x", 2, Some(first));
        let gone = put(&store, "y", 1, None);
        let last_state = Change::Delete(json!({"metadata": {"name": "y"}}));
        store
            .commit(&maps(), &ObjectKey::new("a", "y"), Some(gone), last_state)
            .expect("a deletion");
        let busy = Journal::open(&path, &Store::new()).err();
        assert!(matches!(busy, Some(JournalError::InUse(_))), "{busy:?}");
        let (before, revision) = (contents(&store), store.revision());
        drop((store, journal));

        for _ in 0..2 {
            let store = Store::new();
            let (_journal, held) = Journal::open(&path, &store).expect("a journal");
            assert!(held);
            assert_eq!((contents(&store), store.revision()), (before.clone(), revision));
            // Whoever watched before must list again.
            let store = std::sync::Arc::new(store);
            assert!(store.watch(&maps(), Scope::All, first, false).is_err());
            assert!(store.watch(&maps(), Scope::All, revision, false).is_ok());
        }
        fs::remove_dir_all(&path).expect("to clean up");
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_a_damaged_one_is_an_error() {
        let path = directory("torn");
        let store = Store::new();
        let opened = Journal::open(&path, &store).expect("a journal");
        for name in ["a", "b", "c"] {
            put(&store, name, 1, None);
        }
        drop((store, opened));
        let file = path.join(FILE);
        let whole = fs::read(&file).expect("the journal");
        for cut in 1..60 {
            fs::write(&file, &whole[..whole.len() - cut]).expect("to write");
            let store = Store::new();
            let opened = Journal::open(&path, &store).expect("a journal");
            assert_eq!(contents(&store).len(), 2, "{cut} bytes less");
            drop(opened);
        }
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&file, &damaged).expect("to write");
        let error = Journal::open(&path, &Store::new()).err();
        assert!(
            matches!(error, Some(JournalError::Damaged { line: 3, .. })),
            "{error:?}"
        );
        fs::remove_dir_all(&path).expect("to clean up");
    }

    #[test]
    fn a_full_disk_takes_nothing_until_there_is_room() {
        let path = directory("full");
        let (store, key) = (Store::new(), ObjectKey::new("a", "y"));
        let (journal, _) = Journal::open(&path, &store).expect("a journal");
        let first = put(&store, "x", 1, None);
        let object = json!({"metadata": {"name": "y"}, "data": {"v": "1"}});
        for room in [0, 1, 100] {
            journal.set_room(Some(room));
            let full = store.commit(&maps(), &key, None, Change::Put(object.clone()));
            assert_eq!(full.err(), Some(CommitError::NoSpace));
            assert_eq!((contents(&store).len(), store.revision()), (1, first));
        }
        drop((store, journal));
        // A start from a full disk serves what is there, and writes again once there is room.
        for room in [0, 60] {
            let store = Store::new();
            let (journal, held) = Journal::open_within(&path, &store, Some(room)).expect("a journal");
            assert_eq!((held, contents(&store).len(), store.revision()), (true, 1, first));
            let full = store.commit(&maps(), &key, None, Change::Put(object.clone()));
            assert_eq!(full.err(), Some(CommitError::NoSpace));
            journal.set_room(None);
            let name = format!("z{room}");
            put(&store, &name, 1, None);
            let gone = store
                .get(&maps(), &ObjectKey::new("a", &name))
                .expect("an object");
            let change = Change::Delete(json!({"metadata": {"name": name}}));
            let deleted = store.commit(&maps(), &gone.key, Some(gone.revision), change);
            assert!(deleted.is_ok(), "{deleted:?}");
            drop((store, journal));
            // The next look finds the revision of a fresh store again.
            fs::write(path.join(FILE), with_checksum(line_of_x(first).as_bytes())).expect("to write");
        }
        fs::remove_dir_all(&path).expect("to clean up");
    }

    /// The record of the object `x` at its first revision.
    fn line_of_x(revision: Revision) -> String {
        format!(
            "{{\"revision\":{revision},\"created\":{revision},\"group\":\"\",\"resource\":\"configmaps\",\"namespace\":\"a\",\
             \"name\":\"x\",\"object\":{{\"metadata\":{{\"name\":\"x\"}},\"data\":{{\"v\":\"1\"}}}}}}"
        )
    }
}
