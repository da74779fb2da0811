//! A watch, followed from its beginning: its events must add up to the objects of a list.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use futures::TryStreamExt as _;
use kube::Client;
use shared_json::Value;

/// Objects by namespace and name: their versions.
type Versions = BTreeMap<String, String>;

/// The objects that the events of a watch add up to. Clones are the same watch.
#[derive(Clone)]
pub(super) struct Replay {
    path: &'static str,
    seen: Arc<Mutex<Versions>>,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn key(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

impl Replay {
    pub(super) fn new(path: &'static str) -> Self {
        Self {
            path,
            seen: Arc::default(),
        }
    }

    /// Watches until dropped; ends with the error.
    pub(super) async fn follow(self, client: Client) -> String {
        match self.try_follow(&client).await {
            Ok(()) => format!("{}: the watch is over", self.path),
            Err(error) => format!("{}: {error}", self.path),
        }
    }

    async fn try_follow(&self, client: &Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let request = http::Request::get(self.path).body(Vec::new())?;
        let list: Value = client.request(request).await?;
        let mut version = text(&list, "/metadata/resourceVersion").to_owned();
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
                seen.insert(key(item), text(item, "/metadata/resourceVersion").to_owned());
            }
        }
        loop {
            let path = format!(
                "{}?watch=1&resourceVersion={version}&allowWatchBookmarks=true",
                self.path
            );
            let request = http::Request::get(path).body(Vec::new())?;
            let mut lines = client.request_stream(request).await?.lines();
            // A watch ends from time to time; the next goes on where it was.
            while let Some(line) = lines.try_next().await? {
                let event: Value = shared_json::from_str(&line)?;
                let object = event.get("object").unwrap_or(&Value::Null);
                if text(&event, "/type") == "ERROR" {
                    return Err(format!("the watch was refused: {object}").into());
                }
                version = text(object, "/metadata/resourceVersion").to_owned();
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                match text(&event, "/type") {
                    "BOOKMARK" => {}
                    "DELETED" => {
                        seen.remove(&key(object));
                    }
                    _ => {
                        seen.insert(key(object), version.clone());
                    }
                }
            }
        }
    }

    /// Whether the watch agrees with a list, within some time: later changes must be delivered first.
    pub(super) async fn agrees(&self, client: &Client, patience: Duration) -> Result<(), String> {
        let mut difference = String::new();
        let agreed = async {
            loop {
                let request = http::Request::get(self.path)
                    .body(Vec::new())
                    .map_err(|error| error.to_string())?;
                let list: Value = client.request(request).await.map_err(|error| error.to_string())?;
                let items = list.get("items").and_then(Value::as_array);
                let listed: Versions = items
                    .into_iter()
                    .flatten()
                    .map(|item| (key(item), text(item, "/metadata/resourceVersion").to_owned()))
                    .collect();
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if seen == listed {
                    return Ok(());
                }
                let differs = |key: &&String| seen.get(*key) != listed.get(*key);
                let keys: Vec<&String> = seen.keys().chain(listed.keys()).filter(differs).take(5).collect();
                difference = format!("{}: watch and list differ in {keys:?}", self.path);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(patience, agreed).await {
            Ok(agreed) => agreed,
            Err(_) => Err(difference),
        }
    }
}
