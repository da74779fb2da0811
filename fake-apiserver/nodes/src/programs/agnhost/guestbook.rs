//! `guestbook`: a primary, replicas that register with it, and a front end that asks both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use shared_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::native::Container;
use super::super::web::{Url, ask};
use super::{Flags, Query, answer, until_asked};
use crate::nic::Nic;

/// For how long a replica tries to register.
const REGISTRATION: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);

struct Book {
    nic: Nic,
    backend: u16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Map,
    replicas: Vec<String>,
}

pub(super) async fn run(mut container: Container, flags: &Flags) -> i32 {
    let book = Arc::new(Book {
        nic: container.nic.clone(),
        backend: flags.port("backend-port", 6379),
        state: Mutex::default(),
    });
    let serving = container.serve(flags.port("http-port", 80), {
        let book = Arc::clone(&book);
        move |request| {
            let book = Arc::clone(&book);
            async move { book.answer(&request).await }
        }
    });
    let primary = flags.text(&["replicaof"]).unwrap_or_default().to_owned();
    let address = container.address();
    let registering = async {
        let own = address.map(|address| address.to_string()).unwrap_or_default();
        if primary.is_empty() || book.register(&primary, &own).await {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        code = until_asked(&mut container, serving) => code,
        // It could not register in time.
        () = registering => 1,
    }
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks another server of the book.
    async fn ask(&self, host: &str, request: &str) -> Result<String, String> {
        let url = Url::read(&format!("http://{host}:{}/{request}", self.backend));
        let url = url.ok_or_else(|| format!("invalid host {host}"))?;
        let asked = ask(
            &self.nic,
            &url,
            (Method::GET, HeaderMap::new(), Bytes::new()),
            "Go-http-client/1.1",
        );
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(reply)) => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("context deadline exceeded".to_owned()),
        }
    }

    /// Registers as a replica, and takes the entries so far. Whether that was done in time.
    async fn register(&self, primary: &str, own: &str) -> bool {
        let started = Instant::now();
        while started.elapsed() < REGISTRATION {
            if let Ok(text) = self.ask(primary, &format!("register?host={own}")).await
                && let Ok(told) = shared_json::from_str::<Value>(&text)
            {
                let entries = told.get("data").and_then(Value::as_object).cloned();
                self.lock().entries = entries.unwrap_or_default();
                return true;
            }
            tokio::time::sleep(PAUSE).await;
        }
        false
    }

    async fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let query = Query::of(request);
        let (key, value) = (query.text("key"), query.text("value"));
        match request.uri().path() {
            "/register" => {
                let mut state = self.lock();
                let told = json!({"data": Value::from(state.entries.clone())});
                state.replicas.push(query.text("host").to_owned());
                answer(200, told.to_string())
            }
            "/get" => {
                let state = self.lock();
                let data = match key {
                    "" => Value::from(state.entries.clone()),
                    key => state.entries.get(key).cloned().unwrap_or_else(|| Value::from("")),
                };
                answer(200, json!({"data": data}).to_string())
            }
            "/set" if key.is_empty() => answer(400, "cannot set with empty key.\n"),
            "/set" => {
                let replicas = {
                    let mut state = self.lock();
                    state.entries.insert(key, Value::from(value));
                    state.replicas.clone()
                };
                for replica in replicas {
                    if let Err(error) = self.ask(&replica, &request_of("set", key, value)).await {
                        let text =
                            format!("encountered error while propagating to replica '{replica}': {error}\n");
                        return answer(417, text);
                    }
                }
                answer(200, json!({"message": "Updated"}).to_string())
            }
            "/guestbook" => self.front(&query).await,
            _ => answer(404, "404 page not found\n"),
        }
    }

    /// The front end: writes go to the primary, reads to a replica.
    async fn front(&self, query: &Query) -> Response<Bytes> {
        let command = query.text("cmd").to_lowercase();
        let (key, value) = (query.text("key"), query.text("value"));
        let host = match command.as_str() {
            "get" => "agnhost-replica",
            "set" if key.is_empty() => return answer(400, "cannot set with empty key.\n"),
            "set" => "agnhost-primary",
            _ => return answer(400, format!("unsupported cmd: '{command}'\n")),
        };
        if let Err(error) = self.nic.resolve(host) {
            return answer(400, format!("host and/or port param are invalid. {error}\n"));
        }
        match self.ask(host, &request_of(&command, key, value)).await {
            Ok(text) => answer(200, text),
            Err(error) => answer(417, format!("encountered error: {error}\n")),
        }
    }
}

fn request_of(command: &str, key: &str, value: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("key", key)
        .append_pair("value", value)
        .finish();
    format!("{command}?{query}")
}
