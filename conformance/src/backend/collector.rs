//! Watches a live cluster and writes down its history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use client_kit::SharedClock;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::history::{Change, ChangeKind};

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
                let mut known: BTreeMap<String, Value> = BTreeMap::new();
                let api: Api<DynamicObject> = Api::all_with(client, &kind);
                let mut events = watcher(api, watcher::Config::default().streaming_lists())
                    .default_backoff()
                    .boxed();
                loop {
                    let event = match events.try_next().await {
                        Ok(Some(event)) => event,
                        Ok(None) => return,
                        Err(error) => {
                            tracing::debug!(%error, kind = %kind.kind, "watch for the history");
                            continue;
                        }
                    };
                    let at_ms = clock.now().as_millisecond() - began_ms;
                    if let Some(change) = change(&mut known, &name, at_ms, event) {
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
}

fn change(
    known: &mut BTreeMap<String, Value>,
    resource: &str,
    at_ms: i64,
    event: watcher::Event<DynamicObject>,
) -> Option<Change> {
    let (object, gone) = match event {
        watcher::Event::Apply(object) | watcher::Event::InitApply(object) => (object, false),
        watcher::Event::Delete(object) => (object, true),
        watcher::Event::Init | watcher::Event::InitDone => return None,
    };
    let uid = object.uid().unwrap_or_default();
    let mut object = serde_json::to_value(object).ok()?;
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
    let kind = if gone {
        known.remove(&uid);
        ChangeKind::Deleted
    } else {
        match known.insert(uid, object.clone()) {
            // A list after an interruption repeats what is known.
            Some(before) if before == object => return None,
            Some(_) => ChangeKind::Modified,
            None => ChangeKind::Added,
        }
    };
    Some(Change {
        at_ms,
        resource: resource.to_owned(),
        kind,
        object,
    })
}
