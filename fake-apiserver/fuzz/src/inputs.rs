//! The use of an input, and the properties that must hold for each: no code panics, and the server's
//! answers can be read.
//!
//! The fuzz targets call these functions with inputs from libFuzzer, and `tests/it/hostile.rs` with the seeds beside this file
//! and with random changes of them.

use std::cell::RefCell;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_apiserver::Cluster;
use fake_apiserver::shared_json::{Value, from_slice, from_str, json};
use fake_apiserver::types::Schema;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;

/// The name of a target, and its function of an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const INPUTS: [Target; 12] = [
    ("create_json", create_json),
    ("create_yaml", create_yaml),
    ("create_protobuf", create_protobuf),
    ("patch_json", patch_json),
    ("patch_merge", patch_merge),
    ("patch_strategic", patch_strategic),
    ("patch_apply", patch_apply),
    ("list", list),
    ("expression", expression),
    ("certificate_request", certificate_request),
    ("schema", schema),
    ("sequence", sequence),
];

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// A request of a sequence ends at such a line.
const NEXT: &[u8] = b"\n---\n";
/// So many requests of a sequence are sent.
const REQUESTS_MAX: usize = 12;
/// A watch is followed for so long.
const WATCHED: Duration = Duration::from_secs(5);

/// A path with a query in the first line, and a JSON body to post there.
pub fn create_json(input: &[u8]) {
    create(JSON, input);
}

/// The same as YAML.
pub fn create_yaml(input: &[u8]) {
    create("application/yaml", input);
}

/// The same as protobuf. An object that parses as JSON is created, and the server's protobuf answer is created again, to the
/// same effect.
pub fn create_protobuf(input: &[u8]) {
    let (path, body) = halves(input, b"\n");
    let Some(path) = dry_path(path) else { return };
    if !body.starts_with(b"{") {
        create(PROTOBUF, input);
        return;
    }
    with_room(|room| {
        let protobuf_of = |body: &[u8]| room.ask(&Method::POST, &path, JSON, PROTOBUF, body);
        let json_of = |body: &[u8]| room.ask(&Method::POST, &path, PROTOBUF, JSON, body);
        let created = protobuf_of(body);
        if created.code != 201 || !created.body.starts_with(b"k8s\0") {
            return;
        }
        // From here on nothing is filled in any more.
        let once = json_of(&created.body);
        if once.code == 201 {
            let twice = json_of(&protobuf_of(&once.body).body);
            let [once, twice] = [once, twice].map(|answer| without_identity(&answer.body));
            assert_eq!(once, twice, "what is created is created again");
        }
    });
}

/// A path with a query in the first line, the object that is there in the second, and the operations of a JSON patch.
pub fn patch_json(input: &[u8]) {
    patch("application/json-patch+json", input);
}

/// The same with a merge patch.
pub fn patch_merge(input: &[u8]) {
    patch("application/merge-patch+json", input);
}

/// The same with a strategic merge patch.
pub fn patch_strategic(input: &[u8]) {
    patch("application/strategic-merge-patch+json", input);
}

/// The same with a configuration that is applied, as YAML; twice, which must be taken as once.
pub fn patch_apply(input: &[u8]) {
    patch("application/apply-patch+yaml", input);
}

/// A path with a query: selectors, pages, tables, watches.
pub fn list(input: &[u8]) {
    let (path, accept) = halves(input, b"\n");
    let (Some(path), Ok(accept)) = (text(path), std::str::from_utf8(accept)) else {
        return;
    };
    with_room(|room| drop(room.ask(&Method::GET, &path, JSON, accept, &[])));
}

/// An expression of a policy: it is read, its types are checked, and if it is taken it is asked about an object.
pub fn expression(input: &[u8]) {
    let Ok(expression) = std::str::from_utf8(input) else {
        return;
    };
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]},
        "validations": [{"expression": expression, "messageExpression": format!("string({expression})")}],
    }});
    let binding =
        json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    with_room(|room| {
        if room.post(POLICIES, &policy) == 201 {
            room.post(BINDINGS, &binding);
            let object =
                json!({"metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"k": "v", "n": "1"}});
            room.post("/api/v1/namespaces/default/configmaps?dryRun=All", &object);
            for collection in [BINDINGS, POLICIES] {
                let deleted = room.ask(&Method::DELETE, &format!("{collection}/p"), JSON, JSON, &[]);
                assert_eq!(deleted.code, 200, "nothing is left behind");
            }
        }
    });
}

/// A client's request for a certificate, in DER.
pub fn certificate_request(input: &[u8]) {
    let pem = format!(
        "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
        STANDARD.encode(input)
    );
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
    }});
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All";
    with_room(|room| {
        room.post(REQUESTS, &request);
    });
}

/// A schema in the first line, and a value: errors are reported, and pruning and defaulting are idempotent.
pub fn schema(input: &[u8]) {
    let (described, value) = halves(input, b"\n");
    let (Ok(described), Ok(mut value)) = (from_slice::<Value>(described), from_slice::<Value>(value)) else {
        return;
    };
    let Ok(schema) = Schema::from_openapi_v3(&described) else {
        return;
    };
    schema.prune(&mut value);
    let mut twice = value.clone();
    assert!(schema.prune(&mut twice).is_empty(), "pruned twice: {value}");
    assert_eq!(twice, value, "pruned twice");
    schema.canonicalize(&mut value);
    schema.default(&mut value);
    let mut twice = value.clone();
    schema.default(&mut twice);
    assert_eq!(twice, value, "defaulted twice");
    schema.validate(&value);
}

/// Requests that stand upon each other, on a server of their own: method, path and content type in the first line of each, then its
/// body, and `---` in a line between two.
pub fn sequence(input: &[u8]) {
    let room = Room::new();
    let mut rest = input;
    for _ in 0..REQUESTS_MAX {
        let (request, behind) = halves(rest, NEXT);
        let (line, body) = halves(request, b"\n");
        let Ok(line) = std::str::from_utf8(line) else {
            return;
        };
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (method, path, content_type) = (word(), word(), word());
        if let (Ok(method), Some(path)) = (method.parse::<Method>(), text(path.as_bytes())) {
            room.ask(&method, &path, content_type, JSON, body);
        }
        if behind.is_empty() {
            return;
        }
        rest = behind;
    }
}

/// The parts before and behind the first of these.
fn halves<'a>(input: &'a [u8], mark: &[u8]) -> (&'a [u8], &'a [u8]) {
    match input.windows(mark.len()).position(|window| window == mark) {
        Some(place) => (
            input.get(..place).unwrap_or_default(),
            input.get(place + mark.len()..).unwrap_or_default(),
        ),
        None => (input, &[]),
    }
}

/// A path that a client could send.
fn text(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    let is_path = path.starts_with('/') && path.parse::<http::Uri>().is_ok();
    is_path.then(|| path.to_owned())
}

/// A path at which nothing is changed for good.
fn dry_path(path: &[u8]) -> Option<String> {
    let path = text(path)?;
    // Of an option that is given twice the first one counts.
    Some(match path.split_once('?') {
        Some((before, query)) => format!("{before}?dryRun=All&{query}"),
        None => format!("{path}?dryRun=All"),
    })
}

fn create(content_type: &str, input: &[u8]) {
    let (path, body) = halves(input, b"\n");
    if let Some(path) = dry_path(path) {
        with_room(|room| drop(room.ask(&Method::POST, &path, content_type, JSON, body)));
    }
}

fn patch(content_type: &str, input: &[u8]) {
    let (path, rest) = halves(input, b"\n");
    let (object, body) = halves(rest, b"\n");
    let Some(path) = text(path) else { return };
    let room = Room::new();
    let named = path.split('?').next().unwrap_or_default();
    if let Some((collection, _)) = named.rsplit_once('/').filter(|_| !object.is_empty()) {
        room.ask(&Method::POST, collection, JSON, JSON, object);
    }
    let first = room.ask(&Method::PATCH, &path, content_type, JSON, body);
    // What asks for a version asks for another one the second time.
    let is_the_same_again = content_type.contains("apply")
        && !path.contains("dryRun")
        && !body
            .windows(b"resourceVersion".len())
            .any(|window| window == b"resourceVersion");
    if is_the_same_again && (200..300).contains(&first.code) {
        let again = room.ask(&Method::PATCH, &path, content_type, JSON, body);
        assert!(
            again.code == 200 || again.code == 409,
            "applied again: {}",
            again.code
        );
    }
}

/// An object without the fields that differ each time it is created.
fn without_identity(body: &[u8]) -> Value {
    let mut object: Value = from_slice(body).unwrap_or_default();
    for field in ["metadata", "status"] {
        if let Some(object) = object.as_object_mut() {
            object.remove(field);
        }
    }
    object
}

struct Answer {
    code: u16,
    body: Bytes,
}

/// A server with some objects, on virtual time.
struct Room {
    runtime: tokio::runtime::Runtime,
    cluster: Cluster,
}

thread_local! {
    /// The server for whatever leaves nothing behind.
    static ROOM: RefCell<Option<Room>> = const { RefCell::new(None) };
}

fn with_room(act: impl FnOnce(&Room)) {
    ROOM.with_borrow_mut(|room| act(room.get_or_insert_with(Room::new)));
}

impl Room {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let objects: Vec<Value> = from_str(include_str!("objects.json")).expect("objects");
        let start = async {
            let builder = Cluster::builder().seed(1).nodes(0).controllers(false);
            let builder = objects
                .into_iter()
                .fold(builder, |builder, object| builder.object(object));
            builder.start().await.expect("a cluster")
        };
        let cluster = runtime.block_on(start);
        Self { runtime, cluster }
    }

    fn post(&self, path: &str, object: &Value) -> u16 {
        self.ask(&Method::POST, path, JSON, JSON, object.to_string().as_bytes())
            .code
    }

    /// Sends a request, and looks at the answer.
    fn ask(&self, method: &Method, path: &str, content_type: &str, accept: &str, body: &[u8]) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept)
            .body(Full::new(Bytes::copy_from_slice(body)));
        let Ok(request) = request else {
            return Answer {
                code: 0,
                body: Bytes::new(),
            };
        };
        let answer = self.runtime.block_on(async {
            let Ok(response) = self.cluster.server().clone().oneshot(request).await;
            let (parts, body) = response.into_parts();
            let body = tokio::time::timeout(WATCHED, body.collect()).await;
            let bytes = match body {
                Ok(Ok(body)) => body.to_bytes(),
                _ => Bytes::new(),
            };
            (parts, bytes)
        });
        let (parts, body) = answer;
        let code = parts.status.as_u16();
        let is_json = parts
            .headers
            .get("content-type")
            .is_some_and(|content_type| content_type == JSON);
        if is_json && !body.is_empty() {
            let first = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let read = from_slice::<Value>(&body).or_else(|_| from_slice::<Value>(first));
            let read = read.unwrap_or_else(|error| panic!("{method} {path}: {code} is no JSON: {error}"));
            assert!(
                code < 400 || read["code"] == code,
                "{method} {path}: {code} has no status: {read}"
            );
        }
        Answer { code, body }
    }
}
