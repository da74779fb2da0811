//! Watches a live cluster and writes down its history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use client_kit::{JsonChange, SharedClock, watch_json};
use futures::StreamExt as _;
use kube::Client;
use kube::core::ApiResource;
use tokio::task::JoinSet;

use crate::history::{Change, ChangeKind, text};

/// Collects the changes of some kinds of objects.
pub struct Collector {
    history: Arc<Mutex<Vec<Change>>>,
    /// Aborts the watches when dropped.
    _watches: JoinSet<()>,
}

impl Collector {
    /// Begins to watch `kinds` in all namespaces; each comes with the name that recordings give it.
    #[must_use]
    pub fn start(client: &Client, clock: &SharedClock, kinds: Vec<(String, ApiResource)>) -> Arc<Self> {
        let history = Arc::new(Mutex::new(Vec::new()));
        let began_ms = clock.now().as_millisecond();
        let mut watches = JoinSet::new();
        for (name, kind) in kinds {
            let (client, clock, history) = (client.clone(), Arc::clone(clock), Arc::clone(&history));
            watches.spawn(async move {
                let root = if kind.group.is_empty() {
                    "api".to_owned()
                } else {
                    format!("apis/{}", kind.group)
                };
                let path = format!("/{root}/{}/{}", kind.version, kind.plural);
                let mut versions: BTreeMap<String, String> = BTreeMap::new();
                let mut changes = watch_json(client, &path, "", true);
                while let Some(change) = changes.next().await {
                    let at_ms = clock.now().as_millisecond() - began_ms;
                    if let Some(change) = translate(&mut versions, &name, at_ms, change) {
                        history
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(change);
                    }
                }
            });
        }
        Arc::new(Self {
            history,
            _watches: watches,
        })
    }

    /// What has been seen so far.
    #[must_use]
    pub fn history(&self) -> Vec<Change> {
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How much has been seen so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether nothing has been seen yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A change as histories tell it; `versions` holds the last version of each object, by uid.
fn translate(
    versions: &mut BTreeMap<String, String>,
    resource: &str,
    at_ms: i64,
    change: JsonChange,
) -> Option<Change> {
    let (kind, object) = match change {
        JsonChange::Present(object) => {
            let version = text(&object, "/metadata/resourceVersion");
            match versions.insert(text(&object, "/metadata/uid"), version.clone()) {
                // A list after an interruption repeats what is known.
                Some(before) if before == version => return None,
                Some(_) => (ChangeKind::Modified, object),
                None => (ChangeKind::Added, object),
            }
        }
        JsonChange::Gone(object) => {
            versions.remove(&text(&object, "/metadata/uid"));
            (ChangeKind::Deleted, object)
        }
        JsonChange::Synced => return None,
    };
    Some(Change {
        at_ms,
        resource: resource.to_owned(),
        kind,
        object,
    })
}
