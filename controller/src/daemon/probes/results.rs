//! The last results of the probes of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::count::State;
use super::key::ProbeKey;

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// The state.
    pub(super) state: State,
    /// Its text.
    pub(super) message: String,
    /// When the probe ran.
    pub(super) at: Timestamp,
}

/// The results, and which of them are still to be reported. Clones of the reference share them.
#[derive(Debug, Default)]
pub(super) struct Results(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<ProbeKey, ProbeResult>,
    untold: BTreeSet<ProbeKey>,
}

impl Results {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A probe has a result that is to be reported.
    pub(super) fn put(&self, key: &ProbeKey, result: ProbeResult) {
        let mut inner = self.lock();
        inner.known.insert(key.clone(), result);
        inner.untold.insert(key.clone());
    }

    /// A probe is gone.
    pub(super) fn forget(&self, key: &ProbeKey) {
        let mut inner = self.lock();
        inner.known.remove(key);
        inner.untold.remove(key);
    }

    /// All results.
    pub(super) fn all(&self) -> BTreeMap<ProbeKey, ProbeResult> {
        self.lock().known.clone()
    }

    /// The results that are to be reported, which count as reported then.
    pub(super) fn take_untold(&self) -> Vec<(ProbeKey, ProbeResult)> {
        let mut inner = self.lock();
        let untold = std::mem::take(&mut inner.untold);
        let results = untold.into_iter();
        results
            .filter_map(|key| Some((key.clone(), inner.known.get(&key)?.clone())))
            .collect()
    }
}
