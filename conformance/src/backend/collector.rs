//! Watches a live cluster and writes down its history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use client_kit::{JsonChange, SharedClock, watch_json};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::core::ApiResource;
use shared_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::history::{Change, ChangeKind, text};
use crate::recording::choices::Choices;

/// The name that recordings give to events.
const EVENTS: &str = "events";

/// Collects the changes of some kinds of objects.
pub struct Collector {
    history: Arc<Mutex<Vec<Change>>>,
    began: Timestamp,
    /// The number of its watches that have not delivered their initial objects yet.
    behind: watch::Receiver<usize>,
    /// Aborts the watches when dropped.
    _watches: JoinSet<()>,
}

impl Collector {
    /// Begins to watch `kinds` in all namespaces; each comes with the name that recordings give it. `choices` get each change.
    #[must_use]
    pub fn start(
        client: &Client,
        clock: &SharedClock,
        kinds: Vec<(String, ApiResource)>,
        choices: Option<&Arc<Choices>>,
    ) -> Arc<Self> {
        let history = Arc::new(Mutex::new(Vec::new()));
        let began = clock.now();
        let began_ms = began.as_millisecond();
        let mut watches = JoinSet::new();
        let (synced, behind) = watch::channel(kinds.len());
        for (name, kind) in kinds {
            let (client, clock, history) = (client.clone(), Arc::clone(clock), Arc::clone(&history));
            let (synced, choices) = (synced.clone(), choices.cloned());
            watches.spawn(async move {
                let root = if kind.group.is_empty() {
                    "api".to_owned()
                } else {
                    format!("apis/{}", kind.group)
                };
                let path = format!("/{root}/{}/{}", kind.version, kind.plural);
                let mut known = Known::new();
                let mut began = false;
                let mut changes = watch_json(client, &path, "", false);
                while let Some(change) = changes.next().await {
                    let at_ms = clock.now().as_millisecond() - began_ms;
                    if matches!(change, JsonChange::Synced) && !std::mem::replace(&mut began, true) {
                        synced.send_modify(|behind| *behind -= 1);
                    }
                    // What is there at first is part of the picture; what had happened before is not part of this history.
                    let is_past = !began && name == EVENTS;
                    if let Some(change) = translate(&mut known, &name, at_ms, change)
                        && !is_past
                    {
                        if let Some(choices) = &choices {
                            choices.note(&change);
                        }
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
            began,
            behind,
            _watches: watches,
        })
    }

    /// Waits until all that was there when it began has been seen.
    pub(super) async fn synced(&self) {
        // An error would mean that its watches are gone: there is nothing to wait for then.
        let _ = self.behind.clone().wait_for(|behind| *behind == 0).await;
    }

    /// When it began: the history's times count from here.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.began
    }

    /// The changes so far.
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

/// The last version of each object, by uid.
type Known = BTreeMap<String, Arc<Value>>;

/// A change as histories hold it.
fn translate(known: &mut Known, resource: &str, at_ms: i64, change: JsonChange) -> Option<Change> {
    let (kind, object) = match change {
        JsonChange::Present(object) => {
            let version = |object: &Value| text(object, "/metadata/resourceVersion");
            match known.insert(text(&object, "/metadata/uid"), Arc::clone(&object)) {
                // A list after an interruption repeats what is known.
                Some(before) if version(&before) == version(&object) => return None,
                Some(_) => (ChangeKind::Modified, object),
                None => (ChangeKind::Added, object),
            }
        }
        JsonChange::Gone(object) => {
            let last = known.remove(&text(&object, "/metadata/uid"));
            // What vanished during an interruption comes with no more than its uid.
            let object = match last {
                Some(last) if object.get("kind").is_none() => last,
                _ => object,
            };
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
