//! Kinds that a cluster serves in an older version alone, because an older OpenKruise installed their definitions.
//!
//! The controllers know one version of each kind, the one that OpenKruise 1.9 stores. [`in_known_versions`] gives them a client that
//! sends their requests to the version that there is, and brings objects from one version to the other on the way, as the API server would
//! do for a definition that has both. OpenKruise 1.9 itself leaves such kinds out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use crate::webhook::to_version;
use crate::workloads::DEFINITIONS;

/// How long after a server was found not to serve the known version of a kind, but an older one, it is asked again: a definition that has
/// just come is served version by version.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// A kind that has versions older than the known one.
#[derive(Debug)]
struct Kind {
    group: String,
    plural: String,
    kind: String,
    /// The version that the controllers know.
    known: String,
    /// The versions before it, newest first.
    older: Vec<String>,
}

/// The kinds that have older versions.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let definitions = DEFINITIONS.iter().copied().flatten();
    let kinds = definitions.map(|definition| {
        let (group_version, plural) = definition.resource();
        let (_, kind) = definition.kind();
        let (group, known) = group_version.split_once('/').unwrap_or_default();
        let older = definition
            .versions()
            .into_iter()
            .rev()
            .filter(|version| version != known);
        Kind {
            group: group.to_owned(),
            plural,
            kind,
            known: known.to_owned(),
            older: older.collect(),
        }
    });
    kinds.filter(|kind| !kind.older.is_empty()).collect()
});

impl Kind {
    /// The known version, with its group.
    fn known_version(&self) -> String {
        format!("{}/{}", self.group, self.known)
    }

    /// An object or a list of the kind in `wanted`. Anything else stays as it is.
    fn convert(&self, mut value: Value, wanted: &str) -> Result<Value, String> {
        let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        if kind == self.kind
            && value
                .get("apiVersion")
                .and_then(Value::as_str)
                .is_some_and(|from| self.has(from))
        {
            return to_version(&value, wanted);
        }
        if kind.strip_suffix("List") == Some(&self.kind) {
            if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
                for item in items {
                    *item = self.convert(item.take(), wanted)?;
                }
            }
            value["apiVersion"] = json!(wanted);
        }
        Ok(value)
    }

    /// Whether the kind has an API version.
    fn has(&self, api_version: &str) -> bool {
        let Some((group, version)) = api_version.split_once('/') else {
            return false;
        };
        group == self.group && (version == self.known || self.older.iter().any(|older| older == version))
    }

    /// A patch of the kind in `wanted`: an object that need not have a version. A list of operations stays as it is.
    fn convert_patch(&self, mut patch: Value, wanted: &str) -> Result<Value, String> {
        let Some(fields) = patch.as_object_mut() else {
            return Ok(patch);
        };
        let names = ["apiVersion", "kind"].map(|field| fields.contains_key(field));
        fields
            .entry("apiVersion")
            .or_insert_with(|| json!(self.known_version()));
        fields.entry("kind").or_insert_with(|| json!(self.kind));
        let mut patch = self.convert(patch, wanted)?;
        if let Some(fields) = patch.as_object_mut() {
            for (field, had) in ["apiVersion", "kind"].into_iter().zip(names) {
                if !had {
                    fields.remove(field);
                }
            }
        }
        Ok(patch)
    }
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    /// The list of the resources of a group's version.
    Resources {
        group: &'a str,
        version: &'a str,
    },
    /// Objects of a resource.
    Objects {
        group: &'a str,
        version: &'a str,
        plural: &'a str,
    },
    Other,
}

impl<'a> Target<'a> {
    fn of(path: &'a str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["apis", group, version] => Self::Resources { group, version },
            ["apis", group, version, "namespaces", _, plural, ..] | ["apis", group, version, plural, ..] => {
                Self::Objects {
                    group,
                    version,
                    plural,
                }
            }
            _ => Self::Other,
        }
    }
}

/// The way to the cluster, and the versions that it was found to serve.
struct Versions {
    client: Client,
    /// By the place of a kind in [`KINDS`]: none if the known version is served, else the older one that is.
    found: Vec<OnceLock<Option<String>>>,
}

/// A client of the same cluster that sends requests for the known version of a kind to an older one where the cluster serves no other. It
/// asks which versions there are when the first request for a kind comes.
pub(super) fn in_known_versions(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let found = KINDS.iter().map(|_| OnceLock::new()).collect();
    let versions = Arc::new(Versions { client, found });
    Client::new(
        service_fn(move |request: Request<Body>| {
            let versions = Arc::clone(&versions);
            async move { versions.send(request).await }
        }),
        namespace,
    )
}

/// An answer whose body may be converted while it comes.
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// An answer as it is.
fn plain(answer: Response<Body>) -> Answer {
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

impl Versions {
    async fn send(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let path = request.uri().path().to_owned();
        match Target::of(&path) {
            Target::Resources { group, version } if request.method() == Method::GET => {
                let answer = self.client.send(request).await?;
                self.with_older_resources(answer, group, version).await.map(plain)
            }
            Target::Objects {
                group,
                version,
                plural,
            } => {
                let known = KINDS.iter().zip(&self.found).find(|(kind, _)| {
                    (kind.group.as_str(), kind.known.as_str(), kind.plural.as_str())
                        == (group, version, plural)
                });
                let Some((kind, found)) = known else {
                    return self.send_with_owners(request).await.map(plain);
                };
                match self.older_version(kind, found).await {
                    Some(older) => self.send_in(request, kind, older).await,
                    None => self.send_with_owners(request).await.map(plain),
                }
            }
            _ => self.send_with_owners(request).await.map(plain),
        }
    }

    /// The older version of a kind that the cluster serves in place of the known one.
    async fn older_version<'a>(&self, kind: &Kind, found: &'a OnceLock<Option<String>>) -> Option<&'a str> {
        if let Some(found) = found.get() {
            return found.as_deref();
        }
        let mut older = self.look_for(kind).await?;
        if older.is_some() {
            tokio::time::sleep(ASK_AGAIN).await;
            older = self.look_for(kind).await?;
        }
        found
            .get_or_init(|| {
                if let Some(older) = &older {
                    let Kind {
                        group, plural, known, ..
                    } = kind;
                    tracing::info!(
                        "{plural}.{group} is served in {older} alone: it is worked on there, not in {known}"
                    );
                }
                older
            })
            .as_deref()
    }

    /// The older version of a kind that the cluster serves in place of the known one. None if it does not say, or does not serve the kind.
    async fn look_for(&self, kind: &Kind) -> Option<Option<String>> {
        if self.is_served(kind, &kind.known).await? {
            return Some(None);
        }
        for older in &kind.older {
            if self.is_served(kind, older).await? {
                return Some(Some(older.clone()));
            }
        }
        None
    }

    /// Whether the cluster serves a version of a kind; nothing if it does not say.
    async fn is_served(&self, kind: &Kind, version: &str) -> Option<bool> {
        let list = self.resources(&kind.group, version).await?;
        Some(names(&list).any(|name| name == kind.plural))
    }

    /// The resources of a group's version; none of one that the cluster does not know.
    async fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let request = Request::get(format!("/apis/{group}/{version}"))
            .body(Vec::new())
            .ok()?;
        match self.client.request::<Value>(request).await {
            Ok(list) => Some(list),
            Err(kube::Error::Api(status)) if status.code == 404 => Some(json!({})),
            Err(_) => None,
        }
    }

    /// The list of a version's resources with those that are served in older versions.
    async fn with_older_resources(
        &self,
        answer: Response<Body>,
        group: &str,
        version: &str,
    ) -> Result<Response<Body>, kube::Error> {
        let (mut parts, body) = answer.into_parts();
        let bytes = body.collect_bytes().await?;
        let mut list: Value = match parts.status {
            StatusCode::OK => serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError)?,
            StatusCode::NOT_FOUND => json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"), "resources": [],
            }),
            _ => return Ok(Response::from_parts(parts, Body::from(bytes))),
        };
        let of_version = KINDS.iter().zip(&self.found).filter(|(kind, _)| {
            (kind.group.as_str(), kind.known.as_str()) == (group, version)
                && !names(&list).any(|name| name == kind.plural)
        });
        let asked =
            of_version.map(async |(kind, found)| Some((kind, self.older_version(kind, found).await?)));
        let missing: BTreeMap<&str, &str> = join_all(asked)
            .await
            .into_iter()
            .flatten()
            .map(|(kind, older)| (kind.plural.as_str(), older))
            .collect();
        if missing.is_empty() {
            return Ok(Response::from_parts(parts, Body::from(bytes)));
        }
        for older in missing.values().copied().collect::<BTreeSet<_>>() {
            let Some(of_older) = self.resources(group, older).await else {
                continue;
            };
            let resources = of_older.get("resources").and_then(Value::as_array);
            // With the subresources: `daemonsets/status`.
            let wanted = resources.into_iter().flatten().filter(|resource| {
                let name = resource.get("name").and_then(Value::as_str).unwrap_or_default();
                missing.get(name.split('/').next().unwrap_or_default()) == Some(&older)
            });
            if let Some(all) = list.get_mut("resources").and_then(Value::as_array_mut) {
                all.extend(wanted.cloned());
            }
        }
        parts.status = StatusCode::OK;
        parts
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(answer_of(parts, &list))
    }

    /// Sends a request for objects of a kind to an older version of it.
    async fn send_in(
        &self,
        request: Request<Body>,
        kind: &'static Kind,
        older: &str,
    ) -> Result<Answer, kube::Error> {
        let (mut parts, body) = request.into_parts();
        let is_watch = parts.uri.query().is_some_and(|query| {
            query
                .split('&')
                .any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"))
        });
        let of_known = format!("/apis/{}/{}/", kind.group, kind.known);
        let of_older = format!("/apis/{}/{older}/", kind.group);
        let rest = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let rest = rest.strip_prefix(&of_known).unwrap_or_default();
        parts.uri = Uri::try_from(format!("{of_older}{rest}"))
            .map_err(|error| kube::Error::HttpError(error.into()))?;
        let version = format!("{}/{older}", kind.group);
        let bytes = body.collect_bytes().await?;
        let bytes = match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) => {
                let converted = match parts.method == Method::PATCH {
                    true => kind.convert_patch(value, &version),
                    false => kind.convert(value, &version),
                };
                match converted {
                    Ok(mut value) => {
                        self.name_owners(&mut value);
                        parts.headers.remove(CONTENT_LENGTH);
                        Bytes::from(value.to_string())
                    }
                    Err(message) => return Ok(plain(refused(&message))),
                }
            }
            Err(_) => bytes,
        };
        let answer = self
            .client
            .send(Request::from_parts(parts, Body::from(bytes)))
            .await?;
        if !answer.status().is_success() {
            return Ok(plain(answer));
        }
        let known = kind.known_version();
        let (parts, body) = answer.into_parts();
        if is_watch {
            let lines = converted_lines(body, kind, known);
            return Ok(Response::from_parts(
                parts,
                lines.map_err(Into::into).boxed_unsync(),
            ));
        }
        let bytes = body.collect_bytes().await?;
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
            return Ok(plain(Response::from_parts(parts, Body::from(bytes))));
        };
        match kind.convert(value, &known) {
            Ok(value) => Ok(plain(answer_of(parts, &value))),
            Err(message) => Ok(plain(refused(&message))),
        }
    }

    /// Sends a request of which no object is converted. References in it to objects of kinds that are served in older versions are
    /// written in those, so that the garbage collector finds the owners.
    async fn send_with_owners(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let has_older = self
            .found
            .iter()
            .any(|found| found.get().is_some_and(Option::is_some));
        if !has_older || matches!(*request.method(), Method::GET | Method::DELETE) {
            return self.client.send(request).await;
        }
        let (mut parts, body) = request.into_parts();
        let mut bytes = body.collect_bytes().await?;
        if let Ok(mut value) = serde_json::from_slice::<Value>(&bytes)
            && self.name_owners(&mut value)
        {
            parts.headers.remove(CONTENT_LENGTH);
            bytes = Bytes::from(value.to_string());
        }
        self.client
            .send(Request::from_parts(parts, Body::from(bytes)))
            .await
    }

    /// Writes an object's references in the versions that the cluster serves; whether that changed one.
    fn name_owners(&self, object: &mut Value) -> bool {
        let mut changed = false;
        let mut name = |reference: &mut Value| {
            let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            let (version, kind) = (text("apiVersion"), text("kind"));
            let known = KINDS.iter().zip(&self.found).find(|(known, _)| {
                known.kind == kind
                    && version.strip_prefix(known.group.as_str()) == Some(&format!("/{}", known.known))
            });
            if let Some((kind, found)) = known
                && let Some(Some(older)) = found.get()
            {
                reference["apiVersion"] = json!(format!("{}/{older}", kind.group));
                changed = true;
            }
        };
        let owners = object
            .pointer_mut("/metadata/ownerReferences")
            .and_then(Value::as_array_mut);
        owners.into_iter().flatten().for_each(&mut name);
        // Those of events.
        for field in ["involvedObject", "regarding", "related"] {
            if let Some(reference) = object.get_mut(field) {
                name(reference);
            }
        }
        changed
    }
}

/// The names in a list of resources.
fn names(list: &Value) -> impl Iterator<Item = &str> {
    let resources = list.get("resources").and_then(Value::as_array);
    resources
        .into_iter()
        .flatten()
        .filter_map(|resource| resource.get("name")?.as_str())
}

/// An answer with another body.
fn answer_of(mut parts: hyper::http::response::Parts, value: &Value) -> Response<Body> {
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(value.to_string().into_bytes()))
}

/// The answer to a request whose object has no form in the version that the cluster serves.
fn refused(message: &str) -> Response<Body> {
    let code = StatusCode::UNPROCESSABLE_ENTITY;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid",
        "message": message, "code": code.as_u16(),
    });
    let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
    *answer.status_mut() = code;
    answer
}

/// A watch whose objects are brought to the version `known`.
fn converted_lines(
    body: impl hyper::body::Body<Data = Bytes, Error = kube::Error> + Send + 'static,
    kind: &'static Kind,
    known: String,
) -> impl hyper::body::Body<Data = Bytes, Error = kube::Error> + Send {
    let mut rest: Vec<u8> = Vec::new();
    let frames = body.into_data_stream().map(move |chunk| {
        rest.extend_from_slice(&chunk?);
        let end = rest
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut out = Vec::new();
        for line in rest
            .drain(..end)
            .as_slice()
            .split_inclusive(|byte| *byte == b'\n')
        {
            out.extend(converted_line(line, kind, &known));
        }
        Ok::<_, kube::Error>(Frame::data(Bytes::from(out)))
    });
    StreamBody::new(frames)
}

fn converted_line(line: &[u8], kind: &Kind, known: &str) -> Vec<u8> {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return line.to_vec();
    };
    let Some(object) = event.get_mut("object") else {
        return line.to_vec();
    };
    match kind.convert(object.take(), known) {
        Ok(converted) => *object = converted,
        Err(message) => {
            tracing::warn!("an object of {} is left out: {message}", kind.plural);
            return Vec::new();
        }
    }
    let mut text = event.to_string().into_bytes();
    text.push(b'\n');
    text
}

#[cfg(test)]
#[path = "older_versions_tests.rs"]
mod tests;
