//! What the built-in controllers share: watching a kind as JSON, and finding out which kinds there are.

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;

/// A change of an object.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Present(Value),
    Gone(Value),
}

/// Watches all objects of a kind; errors are retried with growing delays and never end the stream.
pub(super) fn watch(client: &Client, kind: &ApiResource) -> BoxStream<'static, Change> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    watcher(api, watcher::Config::default().streaming_lists())
        .default_backoff()
        .map_err(|error| tracing::debug!(%error, "watch as a built-in controller"))
        .filter_map(|event| async {
            match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    serde_json::to_value(object).ok().map(Change::Present)
                }
                Ok(watcher::Event::Delete(object)) => serde_json::to_value(object).ok().map(Change::Gone),
                _ => None,
            }
        })
        .boxed()
}

/// A kind that can be listed, and whether its objects live in namespaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServedKind {
    pub resource: ApiResource,
    pub namespaced: bool,
}

/// Every kind whose objects can be listed, watched and deleted, in the server's preferred version of each.
pub(super) async fn served_kinds(client: &Client) -> Result<Vec<ServedKind>, kube::Error> {
    let mut out: Vec<ServedKind> = Vec::new();
    let mut lists = Vec::new();
    for version in client.list_core_api_versions().await?.versions {
        lists.push(client.list_core_api_resources(&version).await?);
    }
    for group in client.list_api_groups().await?.groups {
        // Events are served twice; the core group has them.
        if group.name == "events.k8s.io" {
            continue;
        }
        for version in group.versions {
            lists.push(client.list_api_group_resources(&version.group_version).await?);
        }
    }
    for list in lists {
        let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
        for entry in list.resources {
            let all = ["list", "watch", "delete"].iter().all(|verb| entry.verbs.iter().any(|v| v == verb));
            let known = out.iter().any(|kind| kind.resource.group == group && kind.resource.plural == entry.name);
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
            out.push(ServedKind { resource, namespaced: entry.namespaced });
        }
    }
    Ok(out)
}
