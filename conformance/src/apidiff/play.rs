//! One case, played on one server.

use std::collections::BTreeMap;
use std::time::Duration;

use client_kit::{Seed, SharedClock};
use futures::StreamExt as _;
use futures::future::join_all;
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body;
use shared_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::case::{Case, Part, Step, Until};
use super::compare::sorted_text;
use super::normalise::Normaliser;
use super::reduce::{Reduction, is_automatic_event};
use super::request::{Answer, Prepared, Variables, escaped, headers_of};
use super::{pointer, view};

/// The letters of the text that makes names unique.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz";
const UNIQUE_LETTERS: usize = 6;
/// How much of a case's name its namespace has.
const NAME_CHARS: usize = 38;
const UNTIL: Duration = Duration::from_secs(15);
const EVERY: Duration = Duration::from_millis(100);
const COLLECT: Duration = Duration::from_secs(8);
const QUIET: Duration = Duration::from_millis(300);
const OPENING: Duration = Duration::from_secs(3);
/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "/object/metadata/annotations/k8s.io~1initial-events-end";

/// The server that cases are played on.
pub struct Server {
    /// A client of the server, as an administrator.
    pub client: kube::Client,
    /// A client without credentials; `None` where the server does not authenticate.
    pub anonymous: Option<kube::Client>,
    /// The server's time.
    pub clock: SharedClock,
    /// `host:port`, as answers may contain it; empty for a server without.
    pub address: String,
    /// Whether the server goes with the case, so that nothing need be cleaned up.
    pub disposable: bool,
}

/// Plays a case and gives the values to compare, one for each step that has some.
///
/// # Errors
/// A request that cannot be made.
pub async fn play(case: &Case, server: &Server) -> Result<Vec<Value>, String> {
    let mut player = Player::new(case, server);
    let result = player.all().await;
    player.clean_up().await;
    result
}

struct Player<'a> {
    case: &'a Case,
    server: &'a Server,
    namespace: String,
    variables: Variables,
    normaliser: Normaliser,
    watches: BTreeMap<String, Watch>,
    /// The paths of objects that the case made outside the namespace, and in it.
    created: Vec<String>,
    created_inside: Vec<String>,
}

struct Watch {
    status: u16,
    headers: BTreeMap<String, Vec<String>>,
    events: mpsc::UnboundedReceiver<Value>,
    /// Aborts the reader when dropped.
    _reader: JoinSet<()>,
}

impl<'a> Player<'a> {
    fn new(case: &'a Case, server: &'a Server) -> Self {
        let now = server.clock.now();
        let moment = if server.disposable { 0 } else { now.as_nanosecond() };
        let mut random = Seed(u64::try_from(moment).unwrap_or_default())
            .fork(&case.id())
            .random();
        let unique: String = (0..UNIQUE_LETTERS)
            .filter_map(|_| LETTERS.get(random.below(LETTERS.len() as u64) as usize))
            .map(|letter| char::from(*letter))
            .collect();
        let name: String = case
            .name
            .chars()
            .map(|char| {
                if char.is_ascii_lowercase() || char.is_ascii_digit() {
                    char
                } else {
                    '-'
                }
            })
            .take(NAME_CHARS)
            .collect();
        let namespace = format!("apidiff-{}-{unique}", name.trim_matches('-'));
        let fixed = format!("{case:?}");
        let mut normaliser = Normaliser::new(case.patterns.clone(), fixed, now);
        normaliser.literal(&namespace, "${ns}");
        normaliser.literal(&unique, "${u}");
        normaliser.literal(&server.address, "<hostport>");
        let variables = [("ns", &namespace), ("u", &unique)]
            .map(|(name, value)| (name.to_owned(), Value::from(value.as_str())));
        Self {
            case,
            server,
            namespace,
            variables: Variables(BTreeMap::from(variables)),
            normaliser,
            watches: BTreeMap::new(),
            created: Vec::new(),
            created_inside: Vec::new(),
        }
    }

    async fn all(&mut self) -> Result<Vec<Value>, String> {
        self.prepare().await?;
        let mut results = Vec::new();
        let case = self.case;
        for step in &case.setup {
            if let Some(result) = self.step(step).await? {
                let status = if result.get("timedOut").is_some() {
                    Value::from("timed out")
                } else {
                    result.get("status").cloned().unwrap_or_default()
                };
                results.push(json!({"setup": status}));
            }
        }
        for step in &case.steps {
            results.extend(self.step(step).await?);
        }
        Ok(results)
    }

    /// Makes the case's namespace and the objects that controllers would put into it.
    async fn prepare(&mut self) -> Result<(), String> {
        if self.case.no_namespace {
            return Ok(());
        }
        let mut metadata = json!({"name": self.namespace});
        for (field, given) in [
            ("labels", &self.case.ns_labels),
            ("annotations", &self.case.ns_annotations),
        ] {
            if let Some(given) = given {
                metadata[field] = self.variables.filled(given);
            }
        }
        let namespace = self.namespace.clone();
        let post = |path: String, body: Value| Step {
            method: Some("POST".to_owned()),
            path,
            body: Some(body.into()),
            ..Step::default()
        };
        let answer = self
            .request(&post(
                "/api/v1/namespaces".to_owned(),
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
            ))
            .await?;
        if !matches!(answer.status, 200 | 201) {
            return Err(format!(
                "make the case's namespace: {} {}",
                answer.status, answer.text
            ));
        }
        let inside = |resource: &str| format!("/api/v1/namespaces/{namespace}/{resource}");
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.request(&post(inside("serviceaccounts"), account)).await?;
        let authority = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {}});
        self.request(&post(inside("configmaps"), authority)).await?;
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<Option<Value>, String> {
        if let Some(seconds) = step.sleep {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            return Ok(None);
        }
        if let Some(name) = &step.watch {
            let watch = self.open(step).await?;
            let mut result = json!({"status": watch.status});
            if let Some(kind) = watch.headers.get("content-type").and_then(|kinds| kinds.first()) {
                result["headers"] = json!({"content-type": kind});
            }
            self.watches.insert(name.clone(), watch);
            return Ok(Some(result));
        }
        if let Some(name) = &step.collect {
            return self.collect(name, step).await.map(Some);
        }
        if step.webhook_requests.is_some() {
            return Err("play a case with webhooks: this runner has none".to_owned());
        }
        if let Some(requests) = &step.parallel {
            let requests = requests
                .iter()
                .map(|step| self.variables.prepared(step))
                .collect::<Vec<_>>();
            let answers = join_all(requests.iter().map(|request| self.send(request))).await;
            let mut statuses = answers
                .into_iter()
                .map(|answer| answer.map(|answer| answer.status))
                .collect::<Result<Vec<_>, _>>()?;
            statuses.sort_unstable();
            return Ok(Some(json!({"statuses": statuses})));
        }
        let Some(until) = &step.until else {
            let answer = self.request(step).await?;
            self.capture(step, &answer);
            let parts = step
                .compare
                .as_deref()
                .unwrap_or(&[Part::Status, Part::Headers, Part::Body]);
            return Ok(Some(self.result(step, &answer, parts)));
        };
        let deadline = Instant::now() + step.timeout.map_or(UNTIL, Duration::from_secs_f64);
        loop {
            let answer = self.request(step).await?;
            if self.holds(until, &answer) {
                self.capture(step, &answer);
                let parts = step.compare.as_deref().unwrap_or(&[Part::Status]);
                return Ok(Some(self.result(step, &answer, parts)));
            }
            if Instant::now() > deadline {
                self.capture(step, &answer);
                let text: String = answer.text.chars().take(300).collect();
                return Ok(Some(
                    json!({"timedOut": true, "status": answer.status, "body": text}),
                ));
            }
            tokio::time::sleep(step.every.map_or(EVERY, Duration::from_secs_f64)).await;
        }
    }

    fn holds(&self, until: &Until, answer: &Answer) -> bool {
        if until.status.is_some_and(|status| answer.status != status)
            || until.not_status == Some(answer.status)
            || until.text.as_ref().is_some_and(|text| !text.is_in(&answer.text))
        {
            return false;
        }
        let Some(at) = &until.ptr else { return true };
        let at = self.variables.filled_text(at);
        let found = answer
            .json
            .as_ref()
            .map_or_else(Vec::new, |json| pointer::find(json, &at));
        if let Some(wanted) = &until.equals {
            found.contains(&&self.variables.filled(wanted))
        } else if let Some(expression) = &until.matches {
            found.iter().any(|value| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                expression.is_in(&text)
            })
        } else {
            found.is_empty() == until.absent
        }
    }

    fn capture(&mut self, step: &Step, answer: &Answer) {
        for (variable, at) in &step.capture {
            let value = answer.json.as_ref().and_then(|json| pointer::get(json, at));
            let value = value.cloned().unwrap_or_else(|| Value::from(""));
            self.variables.0.insert(variable.clone(), value);
        }
    }

    fn reduction(&self, step: &Step) -> Reduction<'_> {
        Reduction {
            namespace: &self.namespace,
            managed_fields: step.managed_fields.unwrap_or(self.case.managed_fields),
            ignore: self.case.ignore.iter().chain(&step.ignore).cloned().collect(),
        }
    }

    /// The compared parts of an answer.
    fn result(&mut self, step: &Step, answer: &Answer, parts: &[Part]) -> Value {
        let mut out = Map::new();
        if parts.contains(&Part::Status) {
            out.insert("status".to_owned(), Value::from(answer.status));
        }
        if parts.contains(&Part::Headers) {
            let mut headers = Map::new();
            for name in ["content-type", "warning"]
                .into_iter()
                .chain(step.hdr.iter().map(String::as_str))
            {
                let Some(values) = answer.headers.get(name) else {
                    continue;
                };
                let mut values: Vec<String> =
                    values.iter().map(|value| self.normaliser.text(value)).collect();
                if name == "vary" {
                    values.sort();
                }
                let value = match values.as_slice() {
                    [one] => Value::from(one.as_str()),
                    _ => json!(values),
                };
                headers.insert(name.to_owned(), value);
            }
            if !headers.is_empty() {
                out.insert("headers".to_owned(), Value::Object(headers));
            }
        }
        if parts.contains(&Part::Body) {
            let views = step.view.as_ref().map(|views| views.all());
            let body = match (&answer.json, views) {
                (Some(json), views) => {
                    let reduced = self.reduction(step).apply(json);
                    view::look(views.unwrap_or_default(), reduced, &answer.text)
                }
                (None, Some(views)) => view::look(views, Value::Null, &answer.text),
                (None, None) => Value::from(answer.text.as_str()),
            };
            let body = match (&answer.json, body) {
                (None, Value::String(text)) => Value::from(self.normaliser.text(&text)),
                (_, body) => self.normaliser.value(&body),
            };
            out.insert("body".to_owned(), body);
        }
        Value::Object(out)
    }

    async fn collect(&mut self, name: &str, step: &Step) -> Result<Value, String> {
        let Some(mut watch) = self.watches.remove(name) else {
            return Err(format!("read the watch \"{name}\": there is none"));
        };
        let deadline = Instant::now() + step.timeout.map_or(COLLECT, Duration::from_secs_f64);
        let quiet = step.quiet.map_or(QUIET, Duration::from_secs_f64);
        let (mut events, mut closed) = (Vec::new(), false);
        loop {
            let enough = step.count > 0 && events.len() >= step.count && !step.end;
            let until = if enough {
                deadline.min(Instant::now() + quiet)
            } else {
                deadline
            };
            match tokio::time::timeout_at(until, watch.events.recv()).await {
                Err(_) => break,
                Ok(None) => {
                    closed = true;
                    break;
                }
                Ok(Some(event)) => {
                    let kind = pointer::text(&event, "/type");
                    // Periodic bookmarks come at times of the server's choosing.
                    let periodic = kind == "BOOKMARK"
                        && !step.bookmarks
                        && pointer::text(&event, INITIAL_EVENTS_END).is_empty();
                    if !periodic
                        && !step.skip_types.iter().any(|skipped| skipped == kind)
                        && !is_automatic_event(&event)
                    {
                        events.push(event);
                    }
                }
            }
        }
        if !step.close {
            self.watches.insert(name.to_owned(), watch);
        }
        let mut out: Vec<Value> = events.iter().map(|event| self.event(step, event)).collect();
        if step.dedupe {
            out.dedup();
        }
        if step.unordered {
            out.sort_by_cached_key(sorted_text);
        }
        let mut result = json!({"events": out});
        if step.end {
            result["closed"] = Value::from(closed);
        }
        Ok(result)
    }

    fn event(&mut self, step: &Step, event: &Value) -> Value {
        let mut reduction = self.reduction(step);
        reduction.ignore = reduction
            .ignore
            .iter()
            .map(|ignored| format!("/object{ignored}"))
            .collect();
        let mut event = reduction.apply(event);
        if pointer::text(&event, "/type") == "BOOKMARK"
            && !pointer::text(&event, "/object/metadata/resourceVersion").is_empty()
        {
            pointer::set(
                &mut event,
                "/object/metadata/resourceVersion",
                Value::from("<rv>"),
            );
        }
        let views = step.view.as_ref().map(|views| views.all()).unwrap_or_default();
        let event = view::look(views, event, "");
        self.normaliser.value(&event)
    }

    // Requests.

    async fn open_response(&self, request: &Prepared) -> Result<http::Response<Body>, String> {
        let failed = |why: &dyn std::fmt::Display| format!("ask {} {}: {why}", request.method, request.uri);
        let uri: Uri = escaped(&request.uri)
            .parse()
            .map_err(|error: http::uri::InvalidUri| failed(&error))?;
        let mut built = Request::builder().method(request.method.as_str()).uri(uri);
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|error| failed(&error))?;
            built = built.header(
                name,
                HeaderValue::from_bytes(value.as_bytes()).map_err(|error| failed(&error))?,
            );
        }
        let body = Body::from(request.body.clone().unwrap_or_default());
        let built = built.body(body).map_err(|error| failed(&error))?;
        let client = if request.anonymous {
            self.server.anonymous.as_ref().unwrap_or(&self.server.client)
        } else {
            &self.server.client
        };
        client.send(built).await.map_err(|error| failed(&error))
    }

    async fn send(&self, request: &Prepared) -> Result<Answer, String> {
        let response = self.open_response(request).await?;
        let (head, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map_err(|error| format!("read the answer to {} {}: {error}", request.method, request.uri))?
            .to_bytes();
        // The answer to HEAD has no body on a connection; in process nobody takes it off.
        let bytes = if request.method == "HEAD" {
            Default::default()
        } else {
            bytes
        };
        Ok(Answer::new(
            head.status.as_u16(),
            headers_of(&head.headers),
            &bytes,
        ))
    }

    /// Makes a step's request, and remembers the objects that it made.
    async fn request(&mut self, step: &Step) -> Result<Answer, String> {
        let request = self.variables.prepared(step);
        let answer = self.send(&request).await?;
        if let Some(json) = &answer.json {
            if pointer::text(json, "/kind") == "Service" {
                self.normaliser.address(pointer::text(json, "/spec/clusterIP"));
            }
            self.remember(&request, answer.status, json);
        }
        Ok(answer)
    }

    fn remember(&mut self, request: &Prepared, status: u16, json: &Value) {
        let path = request.uri.split('?').next().unwrap_or_default();
        let method = request.method.as_str();
        let name = pointer::text(json, "/metadata/name");
        let writes = matches!(method, "POST" | "PUT" | "PATCH") && matches!(status, 200 | 201);
        if !writes || name.is_empty() || request.uri.contains("dryRun") {
            return;
        }
        let named = if method == "POST" {
            format!("{path}/{name}")
        } else {
            path.to_owned()
        };
        if !path.contains("/namespaces/") {
            if !self.created.contains(&named) {
                self.created.push(named);
            }
        } else if path.contains(&format!("/namespaces/{}/", self.namespace))
            && status == 201
            && !matches!(pointer::text(json, "/kind"), "TokenRequest" | "Status")
        {
            self.created_inside.push(named);
        }
    }

    async fn open(&self, step: &Step) -> Result<Watch, String> {
        let request = self.variables.prepared(step);
        let opened = tokio::time::timeout(OPENING, self.open_response(&request)).await;
        let response = opened.map_err(|_| format!("watch {}: no answer", request.uri))??;
        let (head, body) = response.into_parts();
        let (sender, events) = mpsc::unbounded_channel();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            // What is no watch ends without a line break.
            let frames = body
                .into_data_stream()
                .map(|frame| frame.map(|bytes| bytes.to_vec()));
            let mut frames = frames.chain(futures::stream::iter([Ok(vec![b'\n'])]));
            let mut line = Vec::new();
            while let Some(Ok(frame)) = frames.next().await {
                for byte in frame {
                    if byte != b'\n' {
                        line.push(byte);
                        continue;
                    }
                    if line.is_empty() {
                        continue;
                    }
                    let event = shared_json::from_slice(&line)
                        .unwrap_or_else(|_| json!({"text": String::from_utf8_lossy(&line)}));
                    line.clear();
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Watch {
            status: head.status.as_u16(),
            headers: headers_of(&head.headers),
            events,
            _reader: reader,
        })
    }

    // What is left behind.

    async fn clean_up(&mut self) {
        self.watches.clear();
        if self.server.disposable {
            return;
        }
        let case = self.case;
        for step in &case.cleanup {
            self.quietly(step).await;
        }
        let step = |method: &str, path: &str| Step {
            method: Some(method.to_owned()),
            path: path.to_owned(),
            ..Step::default()
        };
        for path in std::mem::take(&mut self.created_inside).iter().rev() {
            let delete = Step {
                query: Some(Value::from("gracePeriodSeconds=0&propagationPolicy=Background")),
                ..step("DELETE", path)
            };
            self.remove(&delete).await;
        }
        for path in std::mem::take(&mut self.created).iter().rev() {
            self.remove(&step("DELETE", path)).await;
            if let Some(name) = path.strip_prefix("/api/v1/namespaces/") {
                // Where no controller finishes it.
                let finalize = Step {
                    body: Some(json!({
                        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []},
                    }).into()),
                    ..step("PUT", &format!("{path}/finalize"))
                };
                self.quietly(&finalize).await;
            }
        }
    }

    async fn remove(&mut self, delete: &Step) {
        let answer = self.quietly(delete).await;
        let left = answer.and_then(|answer| answer.json).is_some_and(|json| {
            pointer::get(&json, "/metadata/finalizers")
                .and_then(Value::as_array)
                .is_some_and(|finalizers| !finalizers.is_empty())
        });
        if left
            && !delete.path.contains("/customresourcedefinitions/")
            && !delete.path.starts_with("/api/v1/namespaces/")
        {
            let release = Step {
                method: Some("PATCH".to_owned()),
                path: delete.path.clone(),
                body: Some(json!({"metadata": {"finalizers": null}}).into()),
                headers: [(
                    "content-type".to_owned(),
                    Value::from("application/merge-patch+json"),
                )]
                .into_iter()
                .collect(),
                ..Step::default()
            };
            self.quietly(&release).await;
        }
    }

    async fn quietly(&mut self, step: &Step) -> Option<Answer> {
        let request = self.variables.prepared(step);
        self.send(&request).await.ok()
    }
}
