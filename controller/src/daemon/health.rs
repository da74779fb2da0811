//! The health of a daemon: whether its caches have seen all objects that exist.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::v1alpha1::{ContainerRecreateRequest, NodePodProbe};
use crate::api::v1beta1::NodeImage;
use crate::kit::{Cached, Informer, Runtime};

/// The check of a daemon that does not run.
const STARTED: &str = "daemonStarted";

/// A kind whose cache is checked.
pub(super) trait Checked: Cached {
    /// The name of the check, OpenKruise's.
    const CHECK: &'static str;
}

impl Checked for NodeImage {
    const CHECK: &'static str = "nodeImageInformerSynced";
}

impl Checked for ContainerRecreateRequest {
    const CHECK: &'static str = "crrInformerSynced";
}

impl Checked for NodePodProbe {
    const CHECK: &'static str = "nodePodProbeInformerSynced";
}

/// The checks of a daemon. Copies share them.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<BTreeMap<&'static str, bool>>>);

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(BTreeMap::from([(STARTED, false)]))))
    }
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first check that fails; none if the daemon has seen all objects that it watches.
    #[must_use]
    pub fn failing(&self) -> Option<&'static str> {
        let checks = self.lock();
        let failing = checks.iter().find(|(_, is_met)| !**is_met);
        failing.map(|(name, _)| *name)
    }

    /// Adds the check of a cache, which is met once the cache has seen all objects.
    pub(super) fn follow<K: Checked>(&self, runtime: &mut Runtime, cache: &Informer<K>) {
        self.lock().insert(K::CHECK, false);
        let (health, cache) = (self.clone(), cache.clone());
        runtime.watch(Box::pin(async move {
            cache.wait_synced().await;
            health.lock().insert(K::CHECK, true);
        }));
    }

    /// All checks have been added.
    pub(super) fn begin(&self) {
        self.lock().insert(STARTED, true);
    }
}
