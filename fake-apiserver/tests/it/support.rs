//! Shared code of the tests: requests as JSON, and a cluster on virtual time.

use fake_apiserver::Cluster;
use shared_json::{Array, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Runs a test's body on a paused clock in a fresh thread whose entropy is seeded.
pub(crate) fn simulate<F>(body: impl FnOnce() -> F + Send)
where
    F: Future<Output = ()>,
{
    seeded_entropy::simulate(client_kit::Seed(1), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(body());
    });
}

/// A container that runs a script.
pub(crate) fn sh(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "busybox:1", "command": ["sh", "-c", script]})
}

/// An object with more fields, or others.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("fields") {
        object[key] = value.clone();
    }
    object
}

/// A request's status code and body.
pub(crate) async fn request(cluster: &Cluster, method: &str, path: &str, body: &Value) -> (u16, Value) {
    send(cluster, method, path, "application/json", body).await
}

/// The same with a content type.
pub(crate) async fn send(
    cluster: &Cluster,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> (u16, Value) {
    let (code, text) = exchange(cluster, method, path, content_type, body).await;
    (code, shared_json::from_str(&text).unwrap_or_default())
}

/// Asks for the protocol `repeat`, and says a word once it is spoken: the answer's status code and protocol, and what comes back.
pub(crate) async fn repeated(cluster: &Cluster, path: &str) -> (u16, String, String) {
    let asked = http::Request::get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "repeat")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .expect("a request");
    let Ok(mut answer) = tower::ServiceExt::oneshot(cluster.server().clone(), asked).await;
    let protocol = answer
        .headers()
        .get("upgrade")
        .and_then(|value| value.to_str().ok());
    let (code, protocol) = (answer.status().as_u16(), protocol.unwrap_or_default().to_owned());
    let mut heard = [0; 5];
    if code == 101 {
        let upgraded = hyper::upgrade::on(&mut answer).await.expect("a connection");
        let mut stream = hyper_util::rt::TokioIo::new(upgraded);
        stream.write_all(b"hello").await.expect("to write");
        stream.read_exact(&mut heard).await.expect("to read");
    }
    (
        code,
        protocol,
        String::from_utf8_lossy(&heard).trim_matches('\0').to_owned(),
    )
}

/// Speaks the protocol `repeat` on a connection whose request has been read up to its empty line: what comes goes back.
pub(crate) async fn repeat(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<()> {
    let head = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: repeat\r\n\r\n";
    stream.write_all(head).await?;
    let mut heard = [0; 64];
    loop {
        let count = stream.read(&mut heard).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&heard[..count]).await?;
    }
}

/// The head of a request, up to its empty line.
pub(crate) async fn head_of_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Plays requests against a fresh cluster and checks each answer. A step is an object:
///
/// * `do`: method and path; a `$name` in it, in the body or in an expected value stands for the value saved under that name;
/// * `body`, and its content `type` if it is not JSON (`json`, `merge`, `strategic`, `apply` are the kinds of patches);
/// * `code`: the expected status; `has`: values by pointer, `null` for values that must be absent;
/// * `events`: for a watch, the lines expected of it, as `ADDED name`;
/// * `save`: names for values of the answer, by pointer; `wait`: seconds to run before the request.
pub(crate) fn play(controllers: bool, steps: Value) {
    play_on(0, controllers, steps);
}

/// The same on a cluster with so many nodes.
pub(crate) fn play_on(nodes: u32, controllers: bool, steps: Value) {
    simulate(move || async move {
        let cluster = Cluster::builder()
            .nodes(nodes)
            .controllers(controllers)
            .start()
            .await
            .expect("a cluster");
        let mut saved: Vec<(String, String)> = Vec::new();
        for (index, step) in steps.as_array().expect("steps").iter().enumerate() {
            if let Some(seconds) = step["wait"].as_u64() {
                cluster.run_for(std::time::Duration::from_secs(seconds)).await;
            }
            let step = substitute(step, &saved);
            let asked = step["do"].as_str().expect("a request");
            let (method, path) = asked.split_once(' ').expect("method and path");
            let media_type = match step["type"].as_str().unwrap_or_default() {
                "" => "application/json",
                "json" => "application/json-patch+json",
                "merge" => "application/merge-patch+json",
                "strategic" => "application/strategic-merge-patch+json",
                "apply" => "application/apply-patch+yaml",
                other => other,
            };
            let (code, text) = exchange(&cluster, method, path, media_type, &step["body"]).await;
            let place = format!("step {index}: {asked}\n{text}");
            assert_eq!(u64::from(code), step["code"].as_u64().unwrap_or(200), "{place}");
            if let Some(expected) = step["events"].as_array() {
                let lines: Array = text.lines().map(event).collect();
                assert_eq!(&lines, expected, "{place}");
                continue;
            }
            let answer: Value = shared_json::from_str(&text).unwrap_or_default();
            for (pointer, value) in step["has"].as_object().into_iter().flatten() {
                assert_eq!(
                    answer.pointer(pointer).unwrap_or(&Value::Null),
                    value,
                    "{pointer}, {place}"
                );
            }
            for (name, pointer) in step["save"].as_object().into_iter().flatten() {
                let value = answer
                    .pointer(pointer.as_str().expect("a pointer"))
                    .cloned()
                    .unwrap_or_default();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                saved.push((format!("${name}"), text));
            }
        }
    });
}

/// A line of a watch in short: its type, and the object's name or the reason of an error.
fn event(line: &str) -> Value {
    let line: Value = shared_json::from_str(line).expect("an event");
    let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let what = format!("{}{}", text("/object/metadata/name"), text("/object/reason"));
    Value::from(format!("{} {what}", text("/type")).trim().to_owned())
}

fn substitute(step: &Value, saved: &[(String, String)]) -> Value {
    match step {
        Value::String(text) => {
            let text = saved
                .iter()
                .rev()
                .fold(text.clone(), |text, (name, value)| text.replace(name, value));
            Value::from(text)
        }
        Value::Array(items) => items.iter().map(|item| substitute(item, saved)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), substitute(value, saved)))
            .collect(),
        other => other.clone(),
    }
}

pub(crate) async fn exchange(
    cluster: &Cluster,
    method: &str,
    path: &str,
    media_type: &str,
    body: &Value,
) -> (u16, String) {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(kube::client::Body::from(bytes))
        .expect("a request");
    let response = cluster.client().send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a body");
    (code, String::from_utf8_lossy(&bytes).into_owned())
}
