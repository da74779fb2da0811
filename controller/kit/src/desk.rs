//! The writes of objects whose status has several writers in one process: one writer at a time, and none that works with an older
//! version than the last one wrote.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::Seed;
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use tokio::sync::OwnedMutexGuard;

use super::error::{ActError, Kind};
use super::informer::Cached;

/// How often a write is tried when somebody else wrote meanwhile (OpenKruise: 4).
const TRIES_MAX: u32 = 4;
/// How long it waits before each further try (OpenKruise: 500 ms) …
const RETRY_DELAY_MS: u64 = 500;
/// … and at most so much longer (OpenKruise: a tenth).
const RETRY_JITTER_MS: u64 = 50;

/// The last version of each object that this process wrote, and a lock for each, by uid.
pub struct Desk<K> {
    locks: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    latest: Mutex<BTreeMap<String, K>>,
}

impl<K> Default for Desk<K> {
    fn default() -> Self {
        Self {
            locks: Mutex::default(),
            latest: Mutex::default(),
        }
    }
}

/// The result of a wish to write.
#[derive(Debug)]
pub enum Written<T> {
    /// The object is there, and this was decided about it.
    Decided(T),
    /// The object is gone.
    Gone,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The version of an object as a number.
fn version(object: &impl Resource) -> u64 {
    let version = object.meta().resource_version.as_deref().unwrap_or_default();
    version.parse().unwrap_or_default()
}

impl<K: Cached + Serialize + Resource<DynamicType = ()>> Desk<K> {
    /// The lock of an object. It is held until the guard is dropped.
    async fn lock(&self, uid: &str) -> OwnedMutexGuard<()> {
        let lock = Arc::clone(held(&self.locks).entry(uid.to_owned()).or_default());
        lock.lock_owned().await
    }

    /// The newer of an object and of the last version that was written here.
    pub fn newest(&self, object: &K) -> K {
        let uid = object.uid().unwrap_or_default();
        let latest = held(&self.latest);
        let written = latest
            .get(&uid)
            .filter(|written| version(*written) > version(object));
        written.unwrap_or(object).clone()
    }

    /// Takes in a version that this process has written by itself. A pass that sees no change of its own writes compares with it: the cache
    /// may show the version before the write, whose status may be the one that the pass comes to again.
    pub fn keep(&self, written: K) {
        let uid = written.uid().unwrap_or_default();
        held(&self.latest).insert(uid, written);
    }

    /// Forgets an object that is gone or going.
    pub fn forget(&self, uid: &str) {
        held(&self.latest).remove(uid);
        held(&self.locks).remove(uid);
    }

    /// Forgets all objects but those for which `is_there` says so.
    pub fn forget_missing(&self, is_there: impl Fn(&K) -> bool) {
        let mut latest = held(&self.latest);
        latest.retain(|_, object| is_there(object));
        held(&self.locks).retain(|uid, lock| latest.contains_key(uid) || Arc::strong_count(lock) > 1);
    }

    /// Has `decide` look at the newest version of an object, and writes the status that it makes, if it makes one: with the object
    /// as it is to be, or none where nothing changes. After a conflict it looks again, at the version that the server has.
    ///
    /// # Errors
    /// Those of `decide`, and those of the requests.
    pub async fn write<T, E, F, D>(
        &self,
        api: &Api<K>,
        object: &K,
        seed: Seed,
        mut decide: F,
    ) -> Result<Written<T>, E>
    where
        E: From<ActError>,
        F: FnMut(K) -> D,
        D: Future<Output = Result<(Option<K>, T), E>>,
    {
        let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
        let _lock = self.lock(&uid).await;
        let mut current = self.newest(object);
        let mut attempt = 1;
        loop {
            let (changed, decided) = decide(current).await?;
            let Some(changed) = changed else {
                return Ok(Written::Decided(decided));
            };
            let written = api.replace_status(&name, &PostParams::default(), &changed).await;
            match written.map_err(ActError::from) {
                Ok(written) => {
                    held(&self.latest).insert(uid, written);
                    return Ok(Written::Decided(decided));
                }
                Err(error) if error.kind == Kind::NotFound => return Ok(Written::Gone),
                Err(error) if error.kind == Kind::Conflict && attempt < TRIES_MAX => {
                    let jitter = seed.fork(&attempt.to_string()).random().below(RETRY_JITTER_MS);
                    tokio::time::sleep(Duration::from_millis(RETRY_DELAY_MS + jitter)).await;
                    attempt += 1;
                    let found = api.get_opt(&name).await.map_err(ActError::from)?;
                    match found.filter(|found| found.uid().as_deref() == Some(&*uid)) {
                        Some(found) => current = found,
                        None => return Ok(Written::Gone),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
