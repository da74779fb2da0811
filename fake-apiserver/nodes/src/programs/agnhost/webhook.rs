//! `webhook` and `crd-conversion-webhook`: servers that review and convert objects.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use machinery::meta::{ObjectMeta as _, list, string_map, text};
use network::tls::Encryption;
use shared_json::{Value, json};

use super::super::native::Container;
use super::{Flags, answer, until_asked};

/// The label, or the key of a ConfigMap, that is looked for.
const MARK: &str = "webhook-e2e-test";
/// How long the slow path takes.
const DELAY: Duration = Duration::from_secs(5);

/// The encryption that the flags name, by files of the container.
pub(super) fn encryption(container: &Container, certificate: &str, key: &str) -> Result<Encryption, String> {
    let read = |path: &str| {
        let content = container.read_file(path);
        content.map_err(|error| format!("open {path}: {error}"))
    };
    Encryption::new(&read(certificate)?, &read(key)?).map_err(|error| error.to_string())
}

pub(super) async fn run(mut container: Container, flags: &Flags, converts: bool) -> i32 {
    let certificate = flags.text(&["tls-cert-file"]).unwrap_or_default().to_owned();
    let key = flags
        .text(&["tls-private-key-file"])
        .unwrap_or_default()
        .to_owned();
    let encryption = match encryption(&container, &certificate, &key) {
        Ok(encryption) => encryption,
        Err(why) => {
            container.print_error(&format!("{why}\n"));
            return 255;
        }
    };
    let sidecar = flags.text(&["sidecar-image"]).unwrap_or_default().to_owned();
    let serving = container.serve_encrypted(flags.port("port", 443), encryption, move |request| {
        let sidecar = sidecar.clone();
        async move {
            match converts {
                true => converted(&request),
                false => reviewed(&request, &sidecar).await,
            }
        }
    });
    until_asked(&mut container, serving).await
}

fn told(document: &Value) -> Response<Bytes> {
    let mut response = answer(200, document.to_string());
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn reviewed(request: &Request<Bytes>, sidecar: &str) -> Response<Bytes> {
    let path = request.uri().path();
    if path == "/readyz" {
        return answer(200, "ok");
    }
    let Ok(mut review) = shared_json::from_slice::<Value>(request.body()) else {
        return answer(400, "Request could not be decoded\n");
    };
    let asked = review.get("request").cloned().unwrap_or_default();
    let object = match text(&asked, "operation") {
        "DELETE" => asked.get("oldObject"),
        _ => asked.get("object"),
    };
    let object = object.cloned().unwrap_or_default();
    if path == "/always-allow-delay-5s" {
        tokio::time::sleep(DELAY).await;
    }
    if path == "/pods"
        && string_map(&object, "labels").get(MARK).and_then(Value::as_str) == Some("wait-forever")
    {
        std::future::pending::<()>().await;
    }
    let Some(mut response) = judged(path, &asked, &object, sidecar) else {
        return answer(404, "404 page not found\n");
    };
    response["uid"] = asked.get("uid").cloned().unwrap_or_default();
    review["response"] = response;
    review["request"] = Value::Null;
    told(&review)
}

fn allowed() -> Value {
    json!({"allowed": true})
}

fn denied(message: &str) -> Value {
    json!({"allowed": false, "status": {"message": message, "metadata": {}}})
}

/// A refusal whose text is its reason.
fn denied_for(reason: &str) -> Value {
    json!({"allowed": false, "status": {"reason": reason, "metadata": {}}})
}

fn patched(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())})
}

/// The response of a path; none for one that is not served.
fn judged(path: &str, asked: &Value, object: &Value, sidecar: &str) -> Option<Value> {
    Some(match path {
        "/always-allow-delay-5s" => allowed(),
        "/always-deny" => denied("this webhook denies all requests"),
        "/add-label" => add_label(object),
        "/pods" => pods(object),
        "/pods/attach" => attach(asked, object),
        "/mutating-pods" => {
            let has = has_container(object, "initContainers", "webhook-added-init-container");
            let added = json!([{"image": "webhook-added-image", "name": "webhook-added-init-container", "resources": {}}]);
            match object.name() == "webhook-to-be-mutated" && !has {
                true => patched(&json!([{"op": "add", "path": "/spec/initContainers", "value": added}])),
                false => allowed(),
            }
        }
        "/mutating-pods-sidecar" if sidecar.is_empty() => {
            let message = "No image specified by the sidecar-image parameter";
            json!({"allowed": false, "status": {"status": "Failure", "message": message, "code": 500, "metadata": {}}})
        }
        "/mutating-pods-sidecar" => {
            let added = json!({"image": sidecar, "name": "webhook-added-sidecar", "resources": {}});
            match has_container(object, "containers", "webhook-added-sidecar") {
                true => allowed(),
                false => patched(&json!([{"op": "add", "path": "/spec/containers/-", "value": added}])),
            }
        }
        "/configmaps" => data(asked, object, "configmap", "unwanted key and value"),
        "/custom-resource" => data(asked, object, "custom resource", "unwanted data"),
        "/mutating-configmaps" | "/mutating-custom-resource" => stages(object),
        "/crd" => match string_map(object, "labels").get(MARK).and_then(Value::as_str) {
            Some("webhook-disallow") => denied("the crd contains unwanted label"),
            _ => allowed(),
        },
        _ => return None,
    })
}

fn add_label(object: &Value) -> Value {
    let labels = string_map(object, "labels");
    let (operation, path, value) = match labels.get("added-label").and_then(Value::as_str) {
        Some("yes") => return allowed(),
        Some(_) => ("replace", "/metadata/labels/added-label", json!("yes")),
        None if labels.is_empty() => ("add", "/metadata/labels", json!({"added-label": "yes"})),
        None => ("add", "/metadata/labels/added-label", json!("yes")),
    };
    patched(&json!([{"op": operation, "path": path, "value": value}]))
}

fn has_container(pod: &Value, field: &str, name: &str) -> bool {
    list(pod, &format!("spec.{field}"))
        .iter()
        .any(|container| text(container, "name") == name)
}

fn pods(pod: &Value) -> Value {
    let mut why = Vec::new();
    if string_map(pod, "labels").get(MARK).and_then(Value::as_str) == Some("webhook-disallow") {
        why.push("the pod contains unwanted label;");
    }
    for container in list(pod, "spec.containers") {
        if text(container, "name").contains("webhook-disallow") {
            why.push("the pod contains unwanted container name;");
        }
    }
    if why.is_empty() {
        allowed()
    } else {
        denied(&why.join(" "))
    }
}

fn attach(asked: &Value, options: &Value) -> Value {
    let is_meant = text(asked, "name") == "to-be-attached-pod"
        && options.get("stdin").and_then(Value::as_bool) == Some(true)
        && text(options, "container") == "container1";
    match is_meant {
        true => denied("attaching to pod 'to-be-attached-pod' is not allowed"),
        false => allowed(),
    }
}

/// A ConfigMap, or an object with data like one's.
fn data(asked: &Value, object: &Value, kind: &str, unwanted: &str) -> Value {
    let marked = object.pointer(&format!("/data/{MARK}")).and_then(Value::as_str);
    match (marked, text(asked, "operation")) {
        (Some("webhook-disallow"), "CREATE" | "UPDATE") => {
            denied_for(&format!("the {kind} contains {unwanted}"))
        }
        (Some("webhook-nondeletable"), "DELETE") => denied_for(&format!(
            "the {kind} cannot be deleted because it contains unwanted key and value"
        )),
        _ => allowed(),
    }
}

fn stages(object: &Value) -> Value {
    let is = |key: &str| object.pointer(&format!("/data/{key}")).and_then(Value::as_str) == Some("yes");
    let stage = match (is("mutation-stage-1"), is("mutation-start")) {
        (true, _) => "mutation-stage-2",
        (false, true) => "mutation-stage-1",
        (false, false) => return allowed(),
    };
    patched(&json!([{"op": "add", "path": format!("/data/{stage}"), "value": "yes"}]))
}

/// Converts objects of `stable.example.com` between a field `hostPort` and two fields.
fn converted(request: &Request<Bytes>) -> Response<Bytes> {
    if request.uri().path() == "/readyz" {
        return answer(200, "ok");
    }
    let Ok(mut review) = shared_json::from_slice::<Value>(request.body()) else {
        return answer(400, "Request could not be decoded\n");
    };
    let asked = review.get("request").cloned().unwrap_or_default();
    let wanted = text(&asked, "desiredAPIVersion");
    let objects: Result<Vec<Value>, String> = list(&asked, "objects")
        .iter()
        .map(|object| convert(object, wanted))
        .collect();
    let uid = asked.get("uid").cloned().unwrap_or_default();
    review["response"] = match objects {
        Ok(objects) => json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}),
        Err(why) => {
            json!({"uid": uid, "result": {"status": "Failure", "message": why}, "convertedObjects": []})
        }
    };
    review["request"] = Value::Null;
    told(&review)
}

fn convert(object: &Value, wanted: &str) -> Result<Value, String> {
    let mut out = object.clone();
    let Some(fields) = out.as_object_mut() else {
        return Err("no object".to_owned());
    };
    match (text(object, "apiVersion"), wanted) {
        ("stable.example.com/v1", "stable.example.com/v2") => {
            if let Some(both) = fields.remove("hostPort") {
                let both = both.as_str().unwrap_or_default().to_owned();
                let parts: Vec<&str> = both.split(':').collect();
                let [host, port] = parts.as_slice() else {
                    return Err(format!("invalid hostPort value `{both}`"));
                };
                fields.insert("host", Value::from(*host));
                fields.insert("port", Value::from(*port));
            }
        }
        ("stable.example.com/v2", "stable.example.com/v1") => {
            let (host, port) = (fields.remove("host"), fields.remove("port"));
            if host.is_some() || port.is_some() {
                let of = |part: &Option<Value>| {
                    part.as_ref()
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                fields.insert("hostPort", Value::from(format!("{}:{}", of(&host), of(&port))));
            }
        }
        (from, to) if from == to => {
            return Err(format!(
                "conversion from a version to itself should not call the webhook: {to}"
            ));
        }
        (from, _) => return Err(format!("unexpected conversion version {from:?}")),
    }
    fields.insert("apiVersion", Value::from(wanted));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"apiVersion": "stable.example.com/v1", "hostPort": "a:1"}), "v2", Ok(json!({"apiVersion": "stable.example.com/v2", "host": "a", "port": "1"})))]
    #[case(json!({"apiVersion": "stable.example.com/v2", "host": "a", "port": "1"}), "v1", Ok(json!({"apiVersion": "stable.example.com/v1", "hostPort": "a:1"})))]
    #[case(json!({"apiVersion": "stable.example.com/v1"}), "v2", Ok(json!({"apiVersion": "stable.example.com/v2"})))]
    #[case(json!({"apiVersion": "stable.example.com/v1", "hostPort": "a"}), "v2", Err("invalid hostPort value `a`"))]
    #[case(json!({"apiVersion": "example.com/v1"}), "v2", Err("unexpected conversion version \"example.com/v1\""))]
    #[case(json!(1), "v2", Err("no object"))]
    fn conversions(#[case] object: Value, #[case] version: &str, #[case] expected: Result<Value, &str>) {
        let found = convert(&object, &format!("stable.example.com/{version}"));
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}
