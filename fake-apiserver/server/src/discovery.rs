//! Discovery: the served groups, versions and resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared_json::{Value, json};

use crate::health::check_paths;
use crate::resources::{Registry, Resource, version_rank};

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    })
}

/// Groups in the real server's order of preference; custom ones follow by name.
const GROUP_ORDER: [&str; 20] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

type Versions = BTreeMap<(u8, std::cmp::Reverse<u32>, std::cmp::Reverse<u32>, String), Vec<Arc<Resource>>>;

fn groups(registry: &Registry) -> Vec<(String, Versions)> {
    let mut by_name: BTreeMap<String, Versions> = BTreeMap::new();
    for resource in registry.all() {
        let versions = by_name.entry(resource.group.clone()).or_default();
        versions
            .entry(version_rank(&resource.version))
            .or_default()
            .push(resource);
    }
    let rank = |group: &str| {
        GROUP_ORDER
            .iter()
            .position(|known| *known == group)
            .unwrap_or(GROUP_ORDER.len())
    };
    let mut out: Vec<_> = by_name.into_iter().collect();
    out.sort_by_key(|(group, _)| (rank(group), group.clone()));
    out
}

fn group_entry(group: &str, versions: &Versions) -> Value {
    let entry = |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let list: Vec<Value> = versions.keys().map(|(_, _, _, version)| entry(version)).collect();
    json!({"name": group, "versions": list, "preferredVersion": list.first()})
}

/// `/apis`
pub(crate) fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> = groups(registry)
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_entry(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/`: the paths that lead somewhere.
pub(crate) fn root_paths(registry: &Registry) -> Value {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut groups = groups(registry);
    groups.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (group, versions) in groups.iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(
            versions
                .keys()
                .map(|(_, _, _, version)| format!("/apis/{group}/{version}")),
        );
    }
    for health in ["healthz", "livez", "readyz"] {
        paths.push(format!("/{health}"));
        paths.extend(check_paths(health));
        if health == "livez" {
            let others = [
                "/metrics",
                "/openapi/v2",
                "/openapi/v3",
                "/openapi/v3/",
                "/openid/v1/jwks",
            ];
            paths.extend(others.map(str::to_owned));
        }
    }
    paths.push("/version".to_owned());
    json!({"paths": paths})
}

/// `/apis/<group>`
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let all = groups(registry);
    let (group, versions) = all.iter().find(|(group, _)| group == name && !name.is_empty())?;
    let mut entry = group_entry(group, versions);
    entry["kind"] = Value::from("APIGroup");
    entry["apiVersion"] = Value::from("v1");
    Some(entry)
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(crate) fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let served: Vec<Arc<Resource>> = registry
        .all()
        .into_iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .collect();
    if served.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for resource in &served {
        resources.push(main_entry(resource));
        for (name, sub) in subresources(resource) {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group.as_str(), sub.version.as_str()) != (group, version) {
                entry["group"] = Value::from(sub.group.clone());
                entry["version"] = Value::from(sub.version.clone());
            }
            resources.push(entry);
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    if !group.is_empty() {
        list["apiVersion"] = Value::from("v1");
    }
    Some(list)
}

/// The subresources in the order in which they are listed: by name, a custom resource's status first.
fn subresources(resource: &Resource) -> Vec<(&String, &crate::resources::Subresource)> {
    let mut list: Vec<_> = resource.subresources.iter().collect();
    if resource.is_custom() {
        list.reverse();
    }
    list
}

fn main_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    for (field, list) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !list.is_empty() {
            entry[field] = Value::from(list.clone());
        }
    }
    if let Some(hash) = &resource.storage_version_hash {
        entry["storageVersionHash"] = Value::from(hash.clone());
    }
    entry
}

/// Aggregated discovery of the core group (`core`) or of all others.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = groups(registry)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|((_, _, _, version), resources)| {
                    let resources: Vec<Value> = resources.iter().map(|r| aggregated_entry(r)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_entry(resource: &Resource) -> Value {
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    // What a built-in resource has in common with its list is left out.
    let kind = |group: &str, version: &str, kind: &str| {
        let same =
            !resource.is_custom() && (group, version) == (resource.group.as_str(), resource.version.as_str());
        let (group, version) = if same { ("", "") } else { (group, version) };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": scope, "singularResource": resource.singular, "verbs": resource.verbs,
    });
    for (field, list) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !list.is_empty() {
            entry[field] = Value::from(list.clone());
        }
    }
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, sub)| {
            json!({
                "subresource": name, "responseKind": kind(&sub.group, &sub.version, &sub.kind), "verbs": sub.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::from(subresources);
    }
    entry
}

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.26.0", "compiler": "gc", "platform": "linux/amd64",
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}
