//! The sample API server of Kubernetes' tests (`sample-apiserver`): a program of pods that serves the group `wardle.example.com` behind
//! an APIService.
//!
//! It is a server of this crate within the pod, with two definitions. Requests come by HTTPS on the port 443, as from the API server that
//! passes them on; whoever reaches the port may do everything.

use std::sync::Arc;

use bytes::Bytes;
use client_kit::{Seed, SeededNames, TokioClock};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use machinery::status::ApiError;
use network::tls::Encryption;
use nodes::{Container, ContainerProgram};
use server::Server;
use shared_json::{Value, json};
use tower::ServiceExt as _;

use crate::metrics_api::json_response;

/// The image, for every tag.
pub(crate) const IMAGE: &str = "registry.k8s.io/e2e-test-images/sample-apiserver";
const GROUP: &str = "wardle.example.com";
const PORT: u16 = 443;

/// The program of the image.
pub(crate) fn program() -> Arc<dyn ContainerProgram> {
    Arc::new(run)
}

async fn run(mut container: Container) -> i32 {
    match encryption(&container) {
        Ok(encryption) => {
            let server = server(&mut container);
            let serving =
                container.serve_encrypted(PORT, encryption, move |request| answer(server.clone(), request));
            // It ends at once when it is asked to.
            serving.await;
            1
        }
        Err(why) => {
            container.print_error(&format!("Error: {why}\n"));
            1
        }
    }
}

/// The certificate and the key that the arguments name.
fn encryption(container: &Container) -> Result<Encryption, String> {
    let named = |flag: &str| {
        let mut words = container.command.iter().chain(&container.args).rev();
        let value = words.find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
        value.ok_or_else(|| format!("{flag} is required here"))
    };
    let read = |path: &str| {
        let content = container.read_file(path);
        content.map_err(|error| format!("open {path}: {error}"))
    };
    let certificate = read(named("--tls-cert-file")?)?;
    let key = read(named("--tls-private-key-file")?)?;
    Encryption::new(&certificate, &key).map_err(|error| error.to_string())
}

/// An empty server with the two kinds.
fn server(container: &mut Container) -> Server {
    let seed = Seed(container.random());
    let clock = Arc::new(TokioClock::starting_at(container.now()));
    let names = Arc::new(SeededNames::new(seed.fork("names")));
    let server = Server::new(clock, seed, names, Vec::new());
    for definition in definitions() {
        // They are part of the program, and a test reads them.
        if let Err(errors) = server.define(&definition) {
            tracing::warn!(?errors, "define a kind of the sample API server");
        }
    }
    server
}

fn definitions() -> [Value; 2] {
    let text = || json!({"type": "string"});
    let definition = |kind: &str, plural: &str, scope: &str, versions: &[(&str, Value)]| {
        let versions = versions.iter().enumerate().map(|(index, (name, properties))| {
            let mut properties = properties.clone();
            for field in ["apiVersion", "kind"] {
                properties[field] = text();
            }
            properties["metadata"] = json!({"type": "object"});
            let schema = json!({"type": "object", "properties": properties});
            json!({"name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema": schema}})
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}"), "uid": plural},
            "spec": {
                "group": GROUP, "scope": scope,
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                "versions": Value::from_iter(versions),
            },
            "status": {
                "acceptedNames": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                "storedVersions": ["v1alpha1"],
                "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
            },
        })
    };
    let kind_of_reference = || json!({"type": "string", "enum": ["Flunder", "Fischer", ""]});
    let flunder = |references: Value| {
        let spec = json!({"type": "object", "properties": references});
        json!({"spec": spec, "status": {"type": "object"}})
    };
    let old = flunder(json!({"reference": text(), "referenceType": kind_of_reference()}));
    let new = flunder(json!({
        "flunderReference": text(), "fischerReference": text(), "referenceType": kind_of_reference(),
    }));
    let fischer = json!({"disallowedFlunders": {"type": "array", "items": text()}});
    [
        definition(
            "Flunder",
            "flunders",
            "Namespaced",
            &[("v1alpha1", old), ("v1beta1", new)],
        ),
        definition("Fischer", "fischers", "Cluster", &[("v1alpha1", fischer)]),
    ]
}

/// Answers a request about the group, and about the server's health and documents. It serves nothing else.
async fn answer(server: Server, request: Request<Bytes>) -> Response<Bytes> {
    let path = request.uri().path();
    let own = format!("/apis/{GROUP}");
    let is_own = path
        .strip_prefix(&own)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_other = (path.starts_with("/apis/") && !is_own) || path.starts_with("/api/");
    let watches = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    if is_other {
        return refused(&ApiError::no_such_resource());
    }
    if watches {
        return refused(&ApiError::method_not_allowed());
    }
    if let Some(namespace) = namespace_of(path, &own)
        && request.method() == http::Method::POST
    {
        make_namespace(&server, namespace).await;
    }
    let Ok(response) = server.oneshot(request.map(Full::new)).await;
    let (head, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => Response::from_parts(head, body.to_bytes()),
        Err(error) => refused(&ApiError::internal(error.to_string())),
    }
}

fn namespace_of<'a>(path: &'a str, own: &str) -> Option<&'a str> {
    let mut parts = path.strip_prefix(own)?.split('/').skip(2);
    parts.next().filter(|part| *part == "namespaces")?;
    parts.next()
}

/// The namespaces are the other server's: one that a request names is there.
async fn make_namespace(server: &Server, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let request = Request::post("/api/v1/namespaces")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(object.to_string())));
    if let Ok(request) = request {
        // It may be there already.
        let Ok(_answer) = server.clone().oneshot(request).await;
    }
}

fn refused(error: &ApiError) -> Response<Bytes> {
    json_response(error.code, &error.to_status())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    async fn ask(server: &Server, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(body))
            .expect("a request");
        let response = answer(server.clone(), request).await;
        let code = response.status().as_u16();
        (code, shared_json::from_slice(response.body()).unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn it_serves_its_group_and_nothing_else() {
        let clock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
        let names = Arc::new(SeededNames::new(Seed(1)));
        let server = Server::new(clock, Seed(1), names, Vec::new());
        for definition in definitions() {
            server.define(&definition).expect("a definition");
        }
        let flunders = "/apis/wardle.example.com/v1alpha1/namespaces/n/flunders";
        let flunder = json!({
            "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}, "spec": {"reference": "b"},
        });
        let (code, made) = ask(&server, "POST", flunders, flunder).await;
        assert_eq!((code, &made["spec"]["reference"]), (201, &json!("b")));
        let (_, list) = ask(&server, "GET", flunders, Value::Null).await;
        assert_eq!(list["items"].as_array().map(|items| items.len()), Some(1));
        let (code, _) = ask(&server, "DELETE", &format!("{flunders}/a"), Value::Null).await;
        assert_eq!(code, 200);
        let (_, list) = ask(&server, "GET", flunders, Value::Null).await;
        assert_eq!(list["items"].as_array().map(|items| items.len()), Some(0));
        for (path, expected) in [
            ("/apis/wardle.example.com/v1alpha1", 200),
            ("/apis/wardle.example.com/v1beta1/flunders", 200),
            ("/apis/wardle.example.com/v1beta1/fischers", 404),
            ("/readyz", 200),
            ("/api/v1/pods", 404),
            ("/apis/apps/v1/deployments", 404),
            ("/apis/wardle.example.com/v1alpha1/flunders?watch=true", 405),
        ] {
            assert_eq!(ask(&server, "GET", path, Value::Null).await.0, expected, "{path}");
        }
    }
}
