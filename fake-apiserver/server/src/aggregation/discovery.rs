//! The groups of other servers in the documents in which this server describes itself.

use std::cmp::Reverse;
use std::sync::Arc;

use shared_json::{Array, Value, json};
use store::Store;

use super::api_service::{self, ApiService};
use super::{Aggregation, lock};
use crate::resources::version_rank;

/// The place of a group of custom resources among the groups, and of its versions among each other (kube-aggregator's
/// `crdregistration`).
const CUSTOM_GROUP_PRIORITY: i64 = 1000;
const CUSTOM_VERSION_PRIORITY: i64 = 100;

/// The APIServices with a Service, by group.
fn by_group(store: &Store, is_own: impl Fn(&str) -> bool) -> Vec<(String, Vec<ApiService>)> {
    let mut all = api_service::all(store);
    all.retain(|service| !is_own(&service.group));
    all.sort_by(|a, b| a.group.cmp(&b.group));
    let groups = all.chunk_by(|a, b| a.group == b.group);
    groups
        .map(|services| (services[0].group.clone(), services.to_vec()))
        .collect()
}

/// Puts a list of groups in order: those of this server first, as they are; then the others by their places and names.
fn in_order(
    items: &mut [Value],
    added: &[(String, Vec<ApiService>)],
    name: impl Fn(&Value) -> String,
    is_own: impl Fn(&str) -> bool,
) {
    items.sort_by_cached_key(|item| {
        let name = name(item);
        if is_own(&name) {
            return (false, Reverse(0), String::new());
        }
        let services = added.iter().find(|(group, _)| *group == name);
        let places = services.into_iter().flat_map(|(_, services)| services);
        let place = places.map(|service| service.group_priority).max();
        (true, Reverse(place.unwrap_or(CUSTOM_GROUP_PRIORITY)), name)
    });
}

/// Puts versions in order: by their places, then as versions are compared.
fn versions_in_order(versions: &mut [Value], services: &[ApiService]) {
    versions.sort_by_cached_key(|entry| {
        let version = text(entry, "version");
        let of = services.iter().find(|service| service.version == version);
        let place = of.map_or(CUSTOM_VERSION_PRIORITY, |service| service.version_priority);
        (Reverse(place), version_rank(&version))
    });
}

fn text(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The versions in an entry.
fn versions_of(entry: &Value) -> Array {
    let versions = entry.get("versions").and_then(Value::as_array);
    versions.cloned().unwrap_or_default()
}

/// A group, or its known entry, with the versions of other servers.
fn group(known: Option<Value>, name: &str, services: &[ApiService]) -> Value {
    let mut entry = known.unwrap_or_else(|| json!({"name": name, "versions": []}));
    let mut versions = versions_of(&entry);
    for service in services {
        versions.retain(|known| text(known, "version") != service.version);
        let version = &service.version;
        versions.push(json!({"groupVersion": format!("{name}/{version}"), "version": version}));
    }
    versions_in_order(&mut versions, services);
    entry["preferredVersion"] = versions.first().cloned().unwrap_or_default();
    entry["versions"] = Value::from(versions);
    entry
}

/// Adds the groups of other servers to `/apis`.
pub(crate) fn add_groups(list: &mut Value, store: &Store, is_own: impl Fn(&str) -> bool) {
    let added = by_group(store, &is_own);
    let Some(Value::Array(groups)) = list.get_mut("groups").filter(|_| !added.is_empty()) else {
        return;
    };
    for (name, services) in &added {
        let at = groups.iter().position(|known| text(known, "name") == *name);
        let known = at.map(|at| groups.remove(at));
        groups.push(group(known, name, services));
    }
    in_order(groups, &added, |item| text(item, "name"), is_own);
}

/// `/apis/<group>` with the versions of other servers; nothing for a group that no server has.
pub(crate) fn with_group(
    known: Option<Value>,
    store: &Store,
    name: &str,
    is_own: impl Fn(&str) -> bool,
) -> Option<Value> {
    let added = by_group(store, is_own);
    let Some((_, services)) = added.iter().find(|(group, _)| group == name) else {
        return known;
    };
    let mut entry = group(known, name, services);
    entry["kind"] = Value::from("APIGroup");
    entry["apiVersion"] = Value::from("v1");
    Some(entry)
}

/// Adds the groups of other servers to `/`.
pub(crate) fn add_paths(index: &mut Value, store: &Store, is_own: impl Fn(&str) -> bool) {
    let Some(Value::Array(paths)) = index.get_mut("paths") else {
        return;
    };
    for (name, services) in by_group(store, is_own) {
        let all = services.iter().map(ApiService::path);
        for path in std::iter::once(format!("/apis/{name}")).chain(all) {
            if paths.iter().any(|known| known.as_str() == Some(path.as_str())) {
                continue;
            }
            let above = |known: &Value| {
                known
                    .as_str()
                    .is_some_and(|known| known.starts_with("/apis") && *known < *path)
            };
            let place = paths.iter().rposition(above).map_or(paths.len(), |last| last + 1);
            paths.insert(place, Value::from(path));
        }
    }
}

/// Adds the resources of other servers to aggregated discovery: those that are known, `Stale` if their server has not answered since.
pub(crate) fn add_resources(
    document: &mut Value,
    store: &Store,
    aggregation: &Aggregation,
    is_own: impl Fn(&str) -> bool,
) {
    let added = by_group(store, &is_own);
    let Some(Value::Array(items)) = document.get_mut("items").filter(|_| !added.is_empty()) else {
        return;
    };
    let name_of = |item: &Value| {
        item.get("metadata")
            .map(|meta| text(meta, "name"))
            .unwrap_or_default()
    };
    for (name, services) in &added {
        let at = items.iter().position(|item| name_of(item) == *name);
        let mut entry = match at {
            Some(at) => items.remove(at),
            None => json!({"metadata": {"name": name}, "versions": []}),
        };
        let mut versions = versions_of(&entry);
        for service in services {
            versions.retain(|known| text(known, "version") != service.version);
            versions.extend(version_entry(service, aggregation));
        }
        versions_in_order(&mut versions, services);
        if !versions.is_empty() {
            entry["versions"] = Value::from(versions);
            items.push(entry);
        }
    }
    in_order(items, &added, name_of, is_own);
}

/// A version of another server; none if it has never answered.
fn version_entry(service: &ApiService, aggregation: &Aggregation) -> Option<Value> {
    let described = lock(&aggregation.described);
    let known = described.get(&service.name)?;
    let freshness = if known.is_fresh { "Current" } else { "Stale" };
    let list = known.resources.get("resources").and_then(Value::as_array);
    let all: Vec<&Value> = list.into_iter().flatten().collect();
    let resources: Vec<Value> = all
        .iter()
        .filter(|resource| !text(resource, "name").contains('/'))
        .map(|resource| resource_entry(service, resource, &all))
        .collect();
    Some(json!({"version": service.version, "resources": resources, "freshness": freshness}))
}

/// An entry of aggregated discovery from one of an `APIResourceList` and those of its subresources.
fn resource_entry(service: &ApiService, resource: &Value, all: &[&Value]) -> Value {
    let kind = |of: &Value| {
        let or = |field: &str, default: &str| match text(of, field) {
            text if text.is_empty() => default.to_owned(),
            text => text,
        };
        json!({
            "group": or("group", &service.group), "version": or("version", &service.version), "kind": text(of, "kind"),
        })
    };
    let name = text(resource, "name");
    let is_namespaced = resource.get("namespaced").and_then(Value::as_bool) == Some(true);
    let mut entry = json!({
        "resource": name, "responseKind": kind(resource),
        "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": text(resource, "singularName"),
    });
    for field in ["verbs", "shortNames", "categories"] {
        if let Some(list) = resource.get(field).filter(|list| list.is_array()) {
            entry[field] = list.clone();
        }
    }
    let below = format!("{name}/");
    let subresources: Vec<Value> = all
        .iter()
        .filter_map(|sub| Some((sub, text(sub, "name").strip_prefix(&below)?.to_owned())))
        .map(|(sub, name)| {
            let verbs = sub.get("verbs").cloned().unwrap_or_default();
            json!({"subresource": name, "responseKind": kind(sub), "verbs": verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::from(subresources);
    }
    entry
}

/// Adds the documents of other servers to the index `/openapi/v3`. Whether there are any.
pub(crate) fn add_open_api(index: &mut Value, aggregation: &Aggregation) -> bool {
    let described = lock(&aggregation.described);
    let mut entries = described.values().flat_map(|known| &known.open_api).peekable();
    let is_any = entries.peek().is_some();
    for (path, entry) in entries {
        index["paths"][path.as_str()] = entry.clone();
    }
    is_any
}

/// The documents of other servers about their group versions in `/openapi/v2`, by the names of their APIServices.
pub(crate) fn specs(aggregation: &Aggregation) -> Vec<Arc<Value>> {
    let described = lock(&aggregation.described);
    described
        .values()
        .filter_map(|known| known.spec.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::webhook_client::Service;

    fn service(group: &str, version: &str, (group_priority, version_priority): (i64, i64)) -> ApiService {
        ApiService {
            name: format!("{version}.{group}"),
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority,
            version_priority,
            service: Service {
                namespace: "n".to_owned(),
                name: "s".to_owned(),
                path: String::new(),
                port: 443,
            },
            bundle: Vec::new(),
            skips_tls: false,
        }
    }

    #[rstest]
    #[case::a_new_group(None, &[("v1", 10)], &["v1"])]
    #[case::by_place(None, &[("v1", 10), ("v1beta1", 20)], &["v1beta1", "v1"])]
    #[case::of_one_place(None, &[("v1alpha1", 10), ("v2", 10), ("v1", 10)], &["v2", "v1", "v1alpha1"])]
    #[case::beside_a_definition(Some("v3"), &[("v1", 10), ("v2", 200)], &["v2", "v3", "v1"])]
    #[case::in_place_of_a_definition(Some("v1"), &[("v1", 10)], &["v1"])]
    fn versions_of_a_group(
        #[case] defined: Option<&str>,
        #[case] registered: &[(&str, i64)],
        #[case] expected: &[&str],
    ) {
        let known = defined.map(|version| {
            let entry = json!({"groupVersion": format!("g/{version}"), "version": version});
            json!({"name": "g", "versions": [entry], "preferredVersion": entry})
        });
        let services: Vec<ApiService> = registered
            .iter()
            .map(|(version, place)| service("g", version, (100, *place)))
            .collect();
        let group = group(known, "g", &services);
        let versions = group["versions"].as_array().expect("versions");
        let versions: Vec<String> = versions.iter().map(|entry| text(entry, "version")).collect();
        assert_eq!(versions, expected);
        assert_eq!(text(&group["preferredVersion"], "version"), expected[0]);
    }

    #[test]
    fn groups_come_by_their_places() {
        let mut items = [
            "apps",
            "batch",
            "a.example",
            "b.example",
            "high.example",
            "low.example",
        ]
        .map(Value::from);
        let added = [("high.example", 2000), ("low.example", 100), ("a.example", 500)]
            .map(|(name, place)| (name.to_owned(), vec![service(name, "v1", (place, 10))]));
        let name = |item: &Value| item.as_str().unwrap_or_default().to_owned();
        in_order(&mut items, &added, name, |name| matches!(name, "apps" | "batch"));
        assert_eq!(
            items.map(|item| name(&item)),
            [
                "apps",
                "batch",
                "high.example",
                "b.example",
                "a.example",
                "low.example"
            ]
        );
    }
}
