//! An API server with one object, for tests of writers that get into each other's way.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A server that has one object. A write of its status with an old version is refused.
#[derive(Clone)]
pub(crate) struct OneObject(Arc<Mutex<Value>>);

impl OneObject {
    /// A server with this object.
    pub(crate) fn new(object: Value) -> Self {
        Self(Arc::new(Mutex::new(object)))
    }

    /// The object as it is now.
    pub(crate) fn object<K: serde::de::DeserializeOwned>(&self) -> K {
        serde_json::from_value(self.0.lock().unwrap().clone()).unwrap()
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let mut stored = self.0.lock().unwrap();
        let name = format!("/{}", stored["metadata"]["name"].as_str().unwrap());
        match method {
            "GET" if path.ends_with(&name) => (200, stored.clone()),
            "PUT" if path.ends_with(&format!("{name}/status")) => {
                let sent: Value = serde_json::from_slice(body).unwrap();
                let version = &stored["metadata"]["resourceVersion"];
                if sent["metadata"]["resourceVersion"] != *version {
                    let conflict = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict",
                        "code": 409, "message": "Operation cannot be fulfilled: the object has been modified" });
                    return (409, conflict);
                }
                let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
                stored["metadata"]["resourceVersion"] = json!(next.to_string());
                stored["status"] = sent["status"].clone();
                (200, stored.clone())
            }
            // Events.
            _ => (201, serde_json::from_slice(body).unwrap_or_else(|_| json!({}))),
        }
    }

    /// A client of the server. Each answer takes a millisecond, in which others are answered.
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
                let (code, answer) = server.answer(parts.method.as_str(), parts.uri.path(), &body);
                let response = hyper::Response::builder().status(code);
                response.body(Body::from(answer.to_string().into_bytes()))
            }
        });
        Client::new(service, "default")
    }
}
