//! `nettest`: counts the messages that it gets from others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use shared_json::{Value, json};

use super::super::native::Container;
use super::{Flags, answer, until_asked};

/// The messages by their source.
type Received = BTreeMap<String, u64>;

pub(super) async fn run(mut container: Container, flags: &Flags) -> i32 {
    let hostname = container.hostname.clone();
    let received: Arc<Mutex<Received>> = Arc::default();
    let serving = container.serve(flags.port("port", 8080), move |request| {
        let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
        std::future::ready(reply(&mut received, &hostname, &request))
    });
    until_asked(&mut container, serving).await
}

fn reply(received: &mut Received, hostname: &str, request: &Request<Bytes>) -> Response<Bytes> {
    match request.uri().path() {
        "/read" => {
            let counts: Value = received
                .iter()
                .map(|(name, count)| (name.as_str(), *count))
                .collect();
            let state = json!({
                "Hostname": hostname, "Sent": {}, "Received": counts, "Errors": null, "Log": [], "StillContactingPeers": false,
            });
            answer(200, state.to_string())
        }
        "/write" => {
            let message = shared_json::from_slice::<Value>(request.body()).unwrap_or_default();
            let Some(source) = message.get("Source").and_then(Value::as_str) else {
                return answer(500, "unable to decode the message\n");
            };
            *received.entry(source.to_owned()).or_default() += 1;
            answer(200, json!({"Hostname": hostname}).to_string())
        }
        "/status" => answer(200, "pass"),
        _ => answer(404, "404 page not found\n"),
    }
}
