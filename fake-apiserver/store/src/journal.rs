//! A store's commits on disk: an acknowledged write survives when the process is killed.
//!
//! The journal is one file of lines, each a checksum and a JSON record of one commit. A commit is written before it is
//! acknowledged, and handed to the operating system, not to the disk: it survives the end of the process, not that of the
//! machine. When the journal is opened, a last line that is torn is dropped, and the rest is written anew with the newest
//! version of each object alone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::Crc;
use machinery::keys::{GroupResource, ObjectKey, Revision};
use serde::Deserialize;
use shared_json::Value;
use tokio::sync::watch;

use super::event::{Event, EventKind, Stored};
use super::store_impl::Store;

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

/// An open journal, which writes down a store's commits.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
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
        let (revision, objects) = match File::open(&path) {
            Ok(file) => read(&path, BufReader::new(file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Revision::default(), Objects::new()),
            Err(error) => return Err(at(&path)(error)),
        };
        let held = revision > Revision::default();
        let fresh = directory.join(FRESH);
        rewrite(&fresh, revision, &objects).map_err(at(&fresh))?;
        fs::rename(&fresh, &path).map_err(at(&path))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(at(&path))?;
        for ((table, key), object) in objects {
            store.restore(
                &table,
                Stored::alone(key, object.revision, object.created, object.value),
            );
        }
        store.resume_at(revision);
        let journal = std::sync::Arc::new(Self {
            path,
            file: Mutex::new(file),
            broken: watch::Sender::new(false),
            _lock: lock,
        });
        let writer = std::sync::Arc::clone(&journal);
        store.observe(Box::new(move |table, event| writer.write(table, event)));
        Ok((journal, held))
    }

    fn write(&self, table: &GroupResource, event: &Event) {
        let object = (event.kind != EventKind::Deleted).then_some(&*event.object);
        let line = line(event.revision, table, &event.object, object.is_some());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            tracing::error!(%error, path = %self.path.display(), "write down a commit");
            self.broken.send_replace(true);
        }
    }

    /// Ready once a commit could not be written down: then the server must not acknowledge anything more.
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

/// The newest revision, and the objects that are there then.
fn read(path: &Path, mut file: impl io::BufRead) -> Result<(Revision, Objects), JournalError> {
    let (mut revision, mut objects) = (Revision::default(), Objects::new());
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let count = file
            .read_until(b'\n', &mut line)
            .map_err(|source| JournalError::File {
                path: path.to_owned(),
                source,
            })?;
        if count == 0 {
            break;
        }
        let Some(record) = record(&line) else {
            let last = file
                .fill_buf()
                .map_err(|source| JournalError::File {
                    path: path.to_owned(),
                    source,
                })?
                .is_empty();
            if last {
                // The process was killed in the middle of it, and nobody was told of it.
                break;
            }
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                line: number,
            });
        };
        revision = revision.max(Revision(record.revision));
        if record.resource.is_empty() {
            continue;
        }
        let table = GroupResource::new(&record.group, &record.resource);
        let key = ObjectKey::new(&record.namespace, &record.name);
        match record.object {
            Some(value) => {
                let restored = Restored {
                    revision: Revision(record.revision),
                    created: Revision(record.created),
                    value,
                };
                objects.insert((table, key), restored);
            }
            None => {
                objects.remove(&(table, key));
            }
        }
    }
    Ok((revision, objects))
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

/// Writes a journal that holds nothing but these objects, and waits until the disk has it.
fn rewrite(path: &Path, revision: Revision, objects: &Objects) -> io::Result<()> {
    let file = File::create(path)?;
    let mut writer = BufWriter::new(file);
    writer.write_all(&with_checksum(format!("{{\"revision\":{revision}}}").as_bytes()))?;
    for ((table, key), object) in objects {
        let stored = Stored::alone(key.clone(), object.revision, object.created, object.value.clone());
        writer.write_all(&line(object.revision, table, &stored, true))?;
    }
    writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
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
}
