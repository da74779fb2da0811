//! The built-in resources of Kubernetes 1.36.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use foldhash::fast::FixedState;
use rules::strategy;
use serde::Deserialize;
use store::GroupResource;

use super::columns;
use super::resource::{Resource, Subresource};

/// The answers of a running server to `GET /apis/<group>/<version>`, per group version.
const DISCOVERY: &str = include_str!("data/discovery.json");
/// Which field selectors each resource accepts.
const FIELD_SELECTORS: &str = include_str!("data/field-selectors.json");

#[derive(Deserialize)]
struct GroupVersionList {
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    #[serde(default)]
    singular_name: String,
    namespaced: bool,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    storage_version_hash: Option<String>,
}

/// All built-in resources, read once per process. The data is part of the program, so that reading it cannot fail;
/// a test holds that nothing is lost on the way.
pub(super) fn all() -> &'static [Arc<Resource>] {
    static ALL: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(read);
    &ALL
}

/// The resources of each plural name.
type OfPlural = HashMap<&'static str, Vec<&'static Arc<Resource>>, FixedState>;

/// The one at a path.
pub(super) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Arc<Resource>> {
    static OF_PLURAL: LazyLock<OfPlural> = LazyLock::new(|| {
        let mut found = OfPlural::default();
        for resource in all() {
            found.entry(&resource.plural).or_default().push(resource);
        }
        found
    });
    let of_plural = OF_PLURAL.get(plural)?;
    of_plural
        .iter()
        .find(|resource| resource.group == group && resource.version == version)
        .copied()
}

fn read() -> Vec<Arc<Resource>> {
    let lists: BTreeMap<String, GroupVersionList> = shared_json::from_str(DISCOVERY).unwrap_or_default();
    let mut columns = columns::all();
    let mut selectors: BTreeMap<String, Vec<String>> =
        shared_json::from_str(FIELD_SELECTORS).unwrap_or_default();
    let mut out = Vec::new();
    for (group_version, list) in lists {
        let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
        let (subs, mains): (Vec<Entry>, Vec<Entry>) = list
            .resources
            .into_iter()
            .partition(|entry| entry.name.contains('/'));
        for entry in mains {
            let id = format!("{group_version}/{}", entry.name);
            let prefix = format!("{}/", entry.name);
            let subresources = subs
                .iter()
                .filter_map(|sub| {
                    Some((
                        sub.name.strip_prefix(&prefix)?.to_owned(),
                        subresource(sub, group, version),
                    ))
                })
                .collect();
            let table = storage_table(group, &entry.name);
            out.push(Arc::new(Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                list_kind: format!("{}List", entry.kind),
                singular: entry.singular_name,
                short_names: entry.short_names,
                categories: entry.categories,
                namespaced: entry.namespaced,
                verbs: entry.verbs,
                storage_version_hash: entry.storage_version_hash,
                subresources,
                columns: columns
                    .remove(id.as_str())
                    .unwrap_or_else(|| vec![columns::standard("Name"), columns::standard("Age")]),
                selectable: selectors.remove(&id).unwrap_or_default(),
                storage_api_version: storage_api_version(&group_version, &entry.name),
                strategy: strategy::of_builtin(&table),
                table,
                deprecation: deprecation(&group_version, &entry.name),
                kind: entry.kind,
                plural: entry.name,
                custom: None,
                builtin_schema: OnceLock::new(),
                column_definitions: OnceLock::new(),
            }));
        }
    }
    out
}

/// The deprecated versions that are still served.
fn deprecation(group_version: &str, resource: &str) -> Option<String> {
    let text = match (group_version, resource) {
        ("v1", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        ("v1", "endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        _ => return None,
    };
    Some(text.to_owned())
}

fn subresource(entry: &Entry, group: &str, version: &str) -> Subresource {
    // Discovery names the group only where it is not the list's own.
    let (group, version) = if entry.version.is_empty() {
        (group, version)
    } else {
        (entry.group.as_str(), entry.version.as_str())
    };
    Subresource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: entry.kind.clone(),
        verbs: entry.verbs.clone(),
    }
}

/// The group, version and kind of a built-in resource (`apps/v1/deployments`).
pub(super) fn kind_of(id: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let (group_version, plural) = id.rsplit_once('/')?;
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    all()
        .iter()
        .find(|r| (r.group.as_str(), r.version.as_str(), r.plural.as_str()) == (group, version, plural))
        .map(|r| (r.group.as_str(), r.version.as_str(), r.kind.as_str()))
}

/// Events are one resource under two groups.
fn storage_table(group: &str, resource: &str) -> GroupResource {
    match (group, resource) {
        ("events.k8s.io", "events") => GroupResource::new("", "events"),
        _ => GroupResource::new(group, resource),
    }
}

fn storage_api_version(group_version: &str, resource: &str) -> String {
    match (group_version, resource) {
        ("events.k8s.io/v1", "events") => "v1".to_owned(),
        ("autoscaling/v1", "horizontalpodautoscalers") => "autoscaling/v2".to_owned(),
        _ => group_version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described() {
        for resource in all() {
            let definitions = resource.column_definitions().as_array().expect("a list");
            let silent = definitions
                .iter()
                .filter(|column| column["description"] == "")
                .count();
            // That of a runtime class's handler is empty in the real server, too.
            assert_eq!(
                silent,
                usize::from(resource.plural == "runtimeclasses"),
                "{resource:?} {definitions:#?}"
            );
        }
    }

    #[test]
    fn the_data_is_read_whole() {
        let lists: BTreeMap<String, GroupVersionList> =
            shared_json::from_str(DISCOVERY).expect("discovery data");
        let mains = lists
            .values()
            .flat_map(|list| &list.resources)
            .filter(|entry| !entry.name.contains('/'));
        assert_eq!(all().len(), mains.count());
        let pods = all()
            .iter()
            .find(|r| r.group.is_empty() && r.plural == "pods")
            .expect("pods");
        assert_eq!(pods.columns.len(), 9);
        assert!(pods.selectable.iter().any(|field| field == "spec.nodeName"));
        assert_eq!(pods.subresources["eviction"].group, "policy");
        assert_eq!(pods.subresources["status"].kind, "Pod");
    }
}
