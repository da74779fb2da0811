//! Actions of the controller that its watches have not shown yet. Until they have, it does not act on their objects: a pod
//! that was just created must not be created again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Resource;
use tokio::time::Instant;

use crate::ObjectKey;

/// How long an expectation may stay open before it is checked against the server (OpenKruise: 5 minutes).
pub const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(300);

/// A pod, a claim or a workload of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// A pod, by name.
    Pod(String),
    /// A claim, by name.
    Claim(String),
    /// A workload, by its kind and name.
    Workload(&'static str, String),
}

/// The change that is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expected {
    /// It appears.
    Creation,
    /// It goes, or begins to.
    Deletion,
}

/// Whether the actions can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// All of it.
    Yes,
    /// Not yet; it has been expected for so long.
    NotFor(Duration),
    /// Not yet, and of some it is unknown whether they were done at all.
    Doubtful,
}

/// The open expectations.
#[derive(Debug, Default)]
pub struct Expectations(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    sets: BTreeMap<ObjectKey, OfSet>,
    versions: BTreeMap<String, (u64, Instant)>,
}

#[derive(Debug)]
struct OfSet {
    /// The expectations, and whether each is in doubt.
    open: BTreeMap<(Expected, Member), bool>,
    since: Instant,
}

impl Expectations {
    /// Something was, or is about to be, done to a member of `set`.
    pub fn expect(&self, set: &ObjectKey, expected: Expected, member: Member) {
        let mut inner = self.lock();
        let now = Instant::now();
        let of_set = inner.sets.entry(set.clone()).or_insert_with(|| OfSet {
            open: BTreeMap::new(),
            since: now,
        });
        of_set.open.insert((expected, member), false);
        of_set.since = now;
    }

    /// Whether it was done is not known: the server has to be asked before anything else. Nothing, if it was seen meanwhile.
    pub fn doubt(&self, set: &ObjectKey, expected: Expected, member: Member) {
        let mut inner = self.lock();
        let open = inner
            .sets
            .get_mut(set)
            .and_then(|of_set| of_set.open.get_mut(&(expected, member)));
        if let Some(doubtful) = open {
            *doubtful = true;
        }
    }

    /// It was seen, or will not happen.
    pub fn settle(&self, set: &ObjectKey, expected: Expected, member: Member) {
        let mut inner = self.lock();
        if let Some(of_set) = inner.sets.get_mut(set) {
            of_set.open.remove(&(expected, member));
            if of_set.open.is_empty() {
                inner.sets.remove(set);
            }
        }
    }

    /// Whether all of a set's expectations have been seen.
    pub fn of_set(&self, set: &ObjectKey) -> Visible {
        self.lock().sets.get(set).map_or(Visible::Yes, |of_set| {
            if of_set.open.values().any(|doubtful| *doubtful) {
                Visible::Doubtful
            } else {
                Visible::NotFor(of_set.since.elapsed())
            }
        })
    }

    /// The doubtful expectations of a set.
    pub fn doubtful(&self, set: &ObjectKey) -> Vec<(Expected, Member)> {
        let inner = self.lock();
        let open = inner.sets.get(set).into_iter().flat_map(|of_set| &of_set.open);
        open.filter(|(_, doubtful)| **doubtful)
            .map(|(what, _)| what.clone())
            .collect()
    }

    /// The open expectations of a set.
    pub fn open(&self, set: &ObjectKey) -> Vec<(Expected, Member)> {
        self.lock()
            .sets
            .get(set)
            .map(|of_set| of_set.open.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// The set is gone.
    pub fn forget_set(&self, set: &ObjectKey) {
        self.lock().sets.remove(set);
    }

    /// The object with `uid` was written, and has `version` since.
    pub fn expect_version(&self, uid: &str, version: &str) {
        let Ok(version) = version.parse() else { return };
        let mut inner = self.lock();
        let entry = inner
            .versions
            .entry(uid.to_owned())
            .or_insert((version, Instant::now()));
        if version >= entry.0 {
            *entry = (version, Instant::now());
        }
    }

    /// Whether `version` of the object is at least the one written last. Versions that are no numbers are taken as new.
    pub fn of_version(&self, uid: &str, version: &str) -> Visible {
        let mut inner = self.lock();
        let Some((expected, since)) = inner.versions.get(uid).copied() else {
            return Visible::Yes;
        };
        if version.parse::<u64>().is_ok_and(|version| version < expected) {
            return Visible::NotFor(since.elapsed());
        }
        inner.versions.remove(uid);
        Visible::Yes
    }

    /// How long the cache may still take to show the last write to an object, of which it has `version`; none if it shows that write. A
    /// write that was not seen in time is waited for no longer.
    pub fn unseen(&self, uid: &str, version: &str) -> Option<Duration> {
        match self.of_version(uid, version) {
            Visible::NotFor(age) if age < EXPECTATION_TIMEOUT => Some(EXPECTATION_TIMEOUT - age),
            Visible::NotFor(_) => {
                self.forget_version(uid);
                None
            }
            Visible::Yes | Visible::Doubtful => None,
        }
    }

    /// The same of an object as the cache has it.
    pub fn unseen_object(&self, cached: &impl Resource) -> Option<Duration> {
        let (uid, version) = identity(cached);
        self.unseen(uid, version)
    }

    /// The object was written, and is this since.
    pub fn expect_object(&self, written: &impl Resource) {
        let (uid, version) = identity(written);
        self.expect_version(uid, version);
    }

    /// The object is gone.
    pub fn forget_object(&self, object: &impl Resource) {
        self.forget_version(identity(object).0);
    }

    /// The object is gone.
    pub fn forget_version(&self, uid: &str) {
        self.lock().versions.remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The uid and the version of an object; empty where it has none.
fn identity(object: &impl Resource) -> (&str, &str) {
    let metadata = object.meta();
    (
        metadata.uid.as_deref().unwrap_or_default(),
        metadata.resource_version.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_set_waits_for_all_of_them() {
        let expectations = Expectations::default();
        let set = ObjectKey::new("default", "sample");
        let pod = |name: &str| Member::Pod(name.to_owned());
        assert_eq!(expectations.of_set(&set), Visible::Yes);
        expectations.expect(&set, Expected::Creation, pod("a"));
        expectations.expect(&set, Expected::Deletion, pod("b"));
        expectations.settle(&set, Expected::Deletion, pod("a"));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(expectations.of_set(&set), Visible::NotFor(Duration::from_secs(7)));
        expectations.settle(&set, Expected::Creation, pod("a"));
        assert_eq!(expectations.open(&set), [(Expected::Deletion, pod("b"))]);
        expectations.settle(&set, Expected::Deletion, pod("b"));
        assert_eq!(expectations.of_set(&set), Visible::Yes);
    }

    #[test]
    fn a_doubt_ends_with_what_it_is_about() {
        let expectations = Expectations::default();
        let set = ObjectKey::new("default", "sample");
        let pod = |name: &str| Member::Pod(name.to_owned());
        expectations.doubt(&set, Expected::Creation, pod("a"));
        assert_eq!(expectations.of_set(&set), Visible::Yes, "nothing is expected");
        expectations.expect(&set, Expected::Creation, pod("a"));
        expectations.doubt(&set, Expected::Creation, pod("a"));
        expectations.expect(&set, Expected::Creation, pod("b"));
        assert_eq!(expectations.of_set(&set), Visible::Doubtful);
        expectations.settle(&set, Expected::Creation, pod("a"));
        assert_ne!(expectations.of_set(&set), Visible::Doubtful);
    }

    #[tokio::test(start_paused = true)]
    async fn versions_only_grow() {
        let expectations = Expectations::default();
        expectations.expect_version("u", "10");
        expectations.expect_version("u", "9");
        let seen = |version: &str| expectations.of_version("u", version) == Visible::Yes;
        assert_eq!(
            (seen("9"), seen("10"), seen("1")),
            (false, true, true),
            "forgotten once it was seen"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_waited_for_and_not_for_ever() {
        let expectations = Expectations::default();
        expectations.expect_version("u", "10");
        tokio::time::advance(Duration::from_secs(100)).await;
        let waits = ["9", "10"].map(|version| expectations.unseen("u", version));
        assert_eq!(waits, [Some(Duration::from_secs(200)), None]);
        expectations.expect_version("u", "10");
        tokio::time::advance(EXPECTATION_TIMEOUT).await;
        assert_eq!(expectations.unseen("u", "9"), None);
        assert_eq!(expectations.of_version("u", "9"), Visible::Yes, "forgotten");
    }
}
