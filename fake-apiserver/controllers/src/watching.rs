//! Shared code of the built-in controllers: watching a kind as JSON, and discovering the kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{JsonChange, watch_json};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::Client;
use kube::core::ApiResource;
use shared_json::Value;

/// A change of an object.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Present(Arc<Value>),
    Gone(Arc<Value>),
}

/// Watches all objects of a kind; errors are retried with growing delays and never end the stream.
pub(super) fn watch(client: &Client, kind: &ApiResource) -> BoxStream<'static, Change> {
    changes(watch_json(client.clone(), &path_of(kind), "", false))
}

/// The same of the objects' metadata alone.
pub(super) fn watch_metadata(client: &Client, kind: &ApiResource) -> BoxStream<'static, Change> {
    changes(client_kit::watch_metadata(client.clone(), &path_of(kind), ""))
}

fn path_of(kind: &ApiResource) -> String {
    let root = if kind.group.is_empty() {
        "api".to_owned()
    } else {
        format!("apis/{}", kind.group)
    };
    format!("/{root}/{}/{}", kind.version, kind.plural)
}

fn changes(watch: BoxStream<'static, JsonChange>) -> BoxStream<'static, Change> {
    watch
        .filter_map(|change| async {
            match change {
                JsonChange::Present(object) => Some(Change::Present(object)),
                JsonChange::Gone(object) => Some(Change::Gone(object)),
                JsonChange::Synced => None,
            }
        })
        .boxed()
}

/// A kind that can be listed, and whether its objects live in namespaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServedKind {
    pub resource: Arc<ApiResource>,
    pub namespaced: bool,
}

/// A kind in one of its versions, which need not be the preferred one; none if it is not served.
pub(super) async fn kind_of(
    client: &Client,
    api_version: &str,
    kind: &str,
) -> Result<Option<ServedKind>, kube::Error> {
    let found = match api_version.split_once('/') {
        Some(_) => client.list_api_group_resources(api_version).await,
        None => client.list_core_api_resources(api_version).await,
    };
    let list = match found {
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
        other => other?,
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let entry = list
        .resources
        .into_iter()
        .find(|entry| entry.kind == kind && !entry.name.contains('/'));
    Ok(entry.map(|entry| ServedKind {
        namespaced: entry.namespaced,
        resource: Arc::new(ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: entry.kind,
            plural: entry.name,
        }),
    }))
}

/// The kinds of a server, as far as discovery lists them.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Every kind whose objects can be listed, watched and deleted, in the server's preferred version of each.
    pub kinds: Vec<ServedKind>,
    /// The errors of groups whose kinds could not be discovered, by version.
    pub failed: BTreeMap<String, String>,
}

/// The message of an API error, or of a failed connection.
pub(super) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Which kinds there are. A version that cannot be asked about does not keep the others from being found.
///
/// # Errors
/// The server does not even say which versions there are.
pub(super) async fn served_kinds(client: &Client) -> Result<Served, kube::Error> {
    let mut out = Served::default();
    let mut lists = Vec::new();
    for version in client.list_core_api_versions().await?.versions {
        match client.list_core_api_resources(&version).await {
            Ok(list) => lists.push(list),
            Err(error) => drop(out.failed.insert(version, words(&error))),
        }
    }
    for group in client.list_api_groups().await?.groups {
        // Events are served twice; the core group has them.
        if group.name == "events.k8s.io" {
            continue;
        }
        for version in group.versions {
            match client.list_api_group_resources(&version.group_version).await {
                Ok(list) => lists.push(list),
                Err(error) => drop(out.failed.insert(version.group_version, words(&error))),
            }
        }
    }
    for list in lists {
        let (group, version) = list
            .group_version
            .split_once('/')
            .unwrap_or(("", &list.group_version));
        for entry in list.resources {
            let all = ["list", "watch", "delete"]
                .iter()
                .all(|verb| entry.verbs.iter().any(|v| v == verb));
            let known = out
                .kinds
                .iter()
                .any(|kind| kind.resource.group == group && kind.resource.plural == entry.name);
            if !all || known || entry.name.contains('/') {
                continue;
            }
            let resource = ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: list.group_version.clone(),
                kind: entry.kind,
                plural: entry.name,
            };
            out.kinds.push(ServedKind {
                resource: Arc::new(resource),
                namespaced: entry.namespaced,
            });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use shared_json::json;

    use super::*;

    /// The discovery of a server with two versions of a group `e.com`; requests below `broken` get an error.
    fn answer(path: &str, broken: &str) -> (StatusCode, Value) {
        let versions = |versions: &[&str]| -> Vec<Value> {
            let of = |version: &&str| json!({"groupVersion": format!("e.com/{version}"), "version": version});
            versions.iter().map(of).collect()
        };
        let kinds = |group_version: &str, names: &[(&str, &[&str])]| {
            let resources: Vec<Value> = names
                .iter()
                .map(|(name, verbs)| {
                    json!({"name": name, "singularName": "", "kind": name, "namespaced": true, "verbs": verbs})
                })
                .collect();
            json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources})
        };
        let all: &[&str] = &["list", "watch", "delete"];
        let found = match path {
            _ if !broken.is_empty() && path.starts_with(broken) => {
                let status =
                    json!({"status": "Failure", "message": "no", "reason": "InternalError", "code": 500});
                return (StatusCode::INTERNAL_SERVER_ERROR, status);
            }
            "/api" => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            "/api/v1" => kinds(
                "v1",
                &[
                    ("pods", all),
                    ("pods/status", &["get"]),
                    ("bindings", &["create"]),
                ],
            ),
            "/apis" => json!({"kind": "APIGroupList", "groups": [
                {"name": "e.com", "versions": versions(&["v2", "v1"]), "preferredVersion": versions(&["v2"])[0]},
            ]}),
            "/apis/e.com/v2" => kinds("e.com/v2", &[("flakes", all)]),
            _ => kinds("e.com/v1", &[("flakes", all), ("old", all)]),
        };
        (StatusCode::OK, found)
    }

    async fn found(broken: &'static str) -> String {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let (code, body) = answer(request.uri().path(), broken);
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = code;
            Ok::<_, Infallible>(response)
        });
        match served_kinds(&Client::new(service, "default")).await {
            Err(error) => words(&error),
            Ok(served) => {
                let kind =
                    |kind: &ServedKind| format!("{}/{}", kind.resource.api_version, kind.resource.plural);
                let mut out: Vec<String> = served.kinds.iter().map(kind).collect();
                out.extend(
                    served
                        .failed
                        .iter()
                        .map(|(version, why)| format!("{version}: {why}")),
                );
                out.join(", ")
            }
        }
    }

    #[tokio::test]
    async fn which_kinds_there_are() {
        for (broken, expected) in [
            ("", "v1/pods, e.com/v2/flakes, e.com/v1/old"),
            (
                "/apis/e.com/v2",
                "v1/pods, e.com/v1/flakes, e.com/v1/old, e.com/v2: no",
            ),
            ("/apis/e.com/v1", "v1/pods, e.com/v2/flakes, e.com/v1: no"),
            ("/apis/e.com", "v1/pods, e.com/v1: no, e.com/v2: no"),
            ("/api/v1", "e.com/v2/flakes, e.com/v1/old, v1: no"),
            ("/apis", "no"),
            ("/api", "no"),
        ] {
            assert_eq!(found(broken).await, expected, "{broken}");
        }
    }
}
