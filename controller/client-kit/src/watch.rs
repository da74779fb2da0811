//! Watching objects as plain JSON.
//!
//! kube's `watcher` decodes into a type and keeps all that the type needs; a program that handles objects as JSON (simulated
//! nodes, built-in controllers, recorders) pays for that twice. This is the same loop for [`shared_json::Value`]: a streaming
//! list, then a watch from where it ended, resumed after interruptions, begun anew after `410 Gone`, with growing delays
//! between failures.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::header::ACCEPT;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use shared_json::{Text, Value, json};
use tokio::time::Instant;

use crate::local::{LocalObjects, accepted};
use lines::{Lines, Told};

mod lines;

/// How long the first retry after a failure waits, and the longest that any waits (kube's and client-go's 800 ms and 30 s).
const RETRY_MIN: Duration = Duration::from_millis(800);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this without a line counts as a failure (client-go's reflector).
const SHORT: Duration = Duration::from_secs(1);

/// A change of an object. Watchers of one process that get the same change from a server in it share the object.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonChange {
    /// The object is there, as it is now.
    Present(Arc<Value>),
    /// The object is gone; its last known state.
    Gone(Arc<Value>),
    /// All objects that were there when the watch began have been sent.
    Synced,
}

/// The `Accept` header of a request for metadata only.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

struct Watch {
    client: Client,
    path: String,
    query: String,
    metadata_only: bool,
    /// Objects that are known to be there: their last version, by uid.
    known: HashMap<Text, Option<Arc<Value>>, FixedState>,
    /// Those of them that the list under way has sent again.
    listed: Option<Vec<Text>>,
    resource_version: String,
    stream: Option<Lines>,
    opened: Instant,
    /// Whether a line has come from the stream.
    heard: bool,
    pending: Vec<JsonChange>,
    delay: Duration,
    keep: bool,
}

/// Watches the objects at `path`, such as `/api/v1/pods`, narrowed by `query`, such as `fieldSelector=spec.nodeName%3Dn`.
///
/// `metadata.managedFields` are left out. The stream never ends; failures are retried and logged. With `keep` the last
/// version of every object is remembered, so that objects that vanish during an interruption are reported as gone; without it
/// they are only known by uid and reported as gone with nothing but that.
#[must_use]
pub fn watch_json(client: Client, path: &str, query: &str, keep: bool) -> BoxStream<'static, JsonChange> {
    Watch::new(client, path, query, keep, false).changes()
}

/// The same for watchers that need no more than the identity of an object: the objects are `PartialObjectMetadata`, and an object that
/// vanished during an interruption is reported as gone with nothing but its uid.
#[must_use]
pub fn watch_metadata(client: Client, path: &str, query: &str) -> BoxStream<'static, JsonChange> {
    Watch::new(client, path, query, false, true).changes()
}

impl Watch {
    fn new(client: Client, path: &str, query: &str, keep: bool, metadata_only: bool) -> Self {
        Self {
            client,
            path: path.to_owned(),
            query: query.to_owned(),
            metadata_only,
            known: HashMap::default(),
            listed: None,
            resource_version: String::new(),
            stream: None,
            opened: Instant::now(),
            heard: false,
            pending: Vec::new(),
            delay: RETRY_MIN,
            keep,
        }
    }

    fn changes(self) -> BoxStream<'static, JsonChange> {
        stream::unfold(self, |mut watch| async move { Some((watch.next().await, watch)) }).boxed()
    }

    async fn next(&mut self) -> JsonChange {
        loop {
            if let Some(change) = self.pending.pop() {
                return change;
            }
            let Some(stream) = self.stream.as_mut() else {
                self.connect().await;
                continue;
            };
            match stream.next().await {
                Ok(Some(Told::Failed { code, message })) => {
                    tracing::debug!(message, path = self.path, "watch");
                    if code == 410 {
                        self.resource_version.clear();
                    }
                    self.stream = None;
                    self.pause().await;
                }
                Ok(Some(told)) => {
                    self.heard = true;
                    self.delay = RETRY_MIN;
                    if let Some(change) = self.take(told) {
                        return change;
                    }
                }
                // A watch ends when its time is over; the next goes on where it ended.
                Ok(None) => {
                    self.stream = None;
                    if !self.heard && self.opened.elapsed() < SHORT {
                        self.pause().await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, path = self.path, "watch");
                    self.stream = None;
                    self.pause().await;
                }
            }
        }
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.delay).await;
        self.delay = (self.delay * 2).min(RETRY_MAX);
    }

    async fn connect(&mut self) {
        let from = if self.resource_version.is_empty() {
            self.listed = Some(Vec::new());
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned()
        } else {
            format!("resourceVersion={}", self.resource_version)
        };
        let separator = if self.query.is_empty() { "" } else { "&" };
        let uri = format!(
            "{}?watch=true&allowWatchBookmarks=true&{from}{separator}{}",
            self.path, self.query
        );
        let mut request = http::Request::get(uri);
        if self.metadata_only {
            request = request.header(ACCEPT, METADATA_ONLY);
        }
        let opened = match request.body(Body::empty()) {
            Ok(request) => open(&self.client, request).await,
            Err(error) => Err(kube::Error::HttpError(error)),
        };
        match opened {
            Ok(stream) => {
                self.stream = Some(stream);
                self.opened = Instant::now();
                self.heard = false;
            }
            Err(error) => {
                tracing::debug!(%error, path = self.path, "open a watch");
                self.resource_version.clear();
                self.pause().await;
            }
        }
    }

    fn take(&mut self, told: Told) -> Option<JsonChange> {
        match told {
            Told::Present(object) => Some(self.present(object)),
            Told::Gone(object) => {
                self.note(&object);
                self.known.remove(&uid(&object));
                Some(JsonChange::Gone(object))
            }
            Told::Bookmark { version, ends } => {
                self.resource_version = version;
                if ends { self.synced() } else { None }
            }
            // Seen to before.
            Told::Failed { .. } => None,
        }
    }

    /// Remembers how far the watch has come.
    fn note(&mut self, object: &Value) {
        if self.listed.is_none()
            && let Some(version) = metadata(object, "resourceVersion").and_then(Value::as_str)
        {
            version.clone_into(&mut self.resource_version);
        }
    }

    fn present(&mut self, object: Arc<Value>) -> JsonChange {
        self.note(&object);
        let uid = uid(&object);
        if let Some(listed) = &mut self.listed {
            listed.push(uid.clone());
        }
        self.known.insert(uid, self.keep.then(|| Arc::clone(&object)));
        JsonChange::Present(object)
    }

    /// Ends a list: a known object that it did not have is gone.
    fn synced(&mut self) -> Option<JsonChange> {
        let mut listed = self.listed.take()?;
        listed.sort_unstable();
        let mut gone: Vec<Text> = self
            .known
            .keys()
            .filter(|uid| listed.binary_search(uid).is_err())
            .cloned()
            .collect();
        gone.sort_unstable();
        self.pending.push(JsonChange::Synced);
        for uid in gone {
            let last = self.known.remove(&uid).flatten();
            let last = last.unwrap_or_else(|| Arc::new(json!({"metadata": {"uid": uid}})));
            self.pending.push(JsonChange::Gone(last));
        }
        self.pending.pop()
    }
}

/// Opens a watch.
async fn open(client: &Client, mut request: http::Request<Body>) -> Result<Lines, kube::Error> {
    let local = LocalObjects::default();
    request.extensions_mut().insert(local.clone());
    let answer = accepted(client.send(request).await?).await?;
    Ok(Lines::of(answer.into_body().into_data_stream(), local))
}

fn metadata<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(field)
}

fn uid(object: &Value) -> Text {
    match metadata(object, "uid") {
        Some(Value::String(uid)) => uid.clone(),
        _ => Text::new(),
    }
}
