//! OpenAPI v3: a document per group version, and their index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use machinery::types::published::{self, COMPONENTS};
use shared_json::{Map, Value, json};

use super::{Document, custom, hash, operations};
use crate::resources::{Registry, Resource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/// The edition from which the hashes of the built-in documents follow.
const EDITION: &str = concat!("kubernetes 1.36 ", env!("CARGO_PKG_VERSION"));

/// The paths of the index, and the texts that change when their documents do.
fn paths(registry: &Registry) -> BTreeMap<String, String> {
    let mut groups: BTreeMap<String, Vec<Arc<Resource>>> = BTreeMap::new();
    for resource in registry.all() {
        groups.entry(path_of(&resource)).or_default().push(resource);
    }
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    for (path, resources) in groups {
        let custom: Vec<String> = resources
            .iter()
            .filter_map(|resource| fingerprint(resource))
            .collect();
        let parts = [EDITION, &path]
            .into_iter()
            .chain(custom.iter().map(String::as_str));
        let group = path
            .rsplit_once('/')
            .map(|(group, _)| group.to_owned())
            .unwrap_or_default();
        out.insert(path.clone(), hash(parts));
        // A group of custom resources has no document of its own.
        if group != "api" && resources.iter().any(|resource| !resource.is_custom()) {
            out.insert(group.clone(), hash([EDITION, &group]));
        }
    }
    for path in [
        ".well-known/openid-configuration",
        "api",
        "apis",
        "openid/v1/jwks",
        "version",
    ] {
        out.insert(path.to_owned(), hash([EDITION, path]));
    }
    out
}

/// The operations of discovery, by their paths.
pub(super) fn discovery(registry: &Registry) -> Map {
    let resources = registry.all();
    let of_path = |path: &str| {
        let found = resources.iter().find(|resource| path_of(resource) == path);
        operations::of_document(path, found.map(|resource| &**resource))
    };
    paths(registry).keys().flat_map(|path| of_path(path)).collect()
}

fn path_of(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

/// The source of the hash of a custom resource's part of a document.
fn fingerprint(resource: &Resource) -> Option<String> {
    let custom = resource.custom.as_ref()?;
    let subresources: Vec<&str> = resource.subresources.keys().map(String::as_str).collect();
    let names = [
        &*resource.kind,
        &*resource.list_kind,
        &*resource.plural,
        &subresources.join(","),
    ]
    .join(" ");
    Some(format!("{names} {} {}", resource.namespaced, custom.published))
}

pub(super) fn index(registry: &Registry) -> Document {
    let paths = paths(registry);
    let entries: Map = paths
        .iter()
        .map(|(path, hash)| {
            (
                path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
            )
        })
        .collect();
    Document {
        bytes: Bytes::from(json!({"paths": entries}).to_string()),
        // That is what the real server says of it.
        content_type: "text/plain; charset=utf-8",
        hash: hash(paths.values().map(String::as_str)),
    }
}

pub(super) fn document(registry: &Registry, path: &str) -> Option<Document> {
    static MADE: Mutex<BTreeMap<String, Bytes>> = Mutex::new(BTreeMap::new());
    let hash = paths(registry).remove(path)?;
    let resources: Vec<Arc<Resource>> = registry
        .all()
        .into_iter()
        .filter(|resource| path_of(resource) == path)
        .collect();
    let is_custom = resources.iter().any(|resource| resource.is_custom());
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made().get(path).cloned();
    let bytes = match known {
        Some(bytes) if !is_custom => bytes,
        _ => {
            let bytes = Bytes::from(make(path, &resources).to_string());
            if !is_custom {
                made().insert(path.to_owned(), bytes.clone());
            }
            bytes
        }
    };
    Some(Document {
        bytes,
        content_type: "application/json",
        hash,
    })
}

fn make(path: &str, resources: &[Arc<Resource>]) -> Value {
    let mut paths = Map::new();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    for resource in resources {
        paths.extend(operations::of_resource(resource));
        for (name, schema) in custom::definitions(resource) {
            schemas.insert(name, schema);
        }
    }
    paths.extend(operations::of_document(
        path,
        resources.first().map(|resource| &**resource),
    ));
    collect(&Value::Object(paths.clone()), &mut wanted);
    for schema in schemas.values() {
        collect(schema, &mut wanted);
    }
    let all = published::definitions();
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = open.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(schema) = all.get(&name) else { continue };
        let mut inner = BTreeSet::new();
        collect(schema, &mut inner);
        open.extend(inner);
        let schema = with_group_kinds(&name, schema.clone(), resources);
        schemas.insert(name, schema);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
                },
            },
        },
    })
}

/// Options and watch events are kinds of every group.
pub(super) fn with_group_kinds(name: &str, mut schema: Value, resources: &[Arc<Resource>]) -> Value {
    let Some(kind @ ("DeleteOptions" | "WatchEvent")) = name.strip_prefix(META) else {
        return schema;
    };
    let mut group_versions: BTreeSet<(&str, &str)> = BTreeSet::from([("", "v1")]);
    group_versions.extend(
        resources
            .iter()
            .map(|resource| (&*resource.group, &*resource.version)),
    );
    let kinds = group_versions
        .into_iter()
        .map(|(group, version)| json!({"group": group, "version": version, "kind": kind}));
    schema["x-kubernetes-group-version-kind"] = kinds.collect();
    schema
}

/// The names of the definitions that a part of a document refers to.
fn collect(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|path| path.strip_prefix(COMPONENTS))
            {
                into.insert(name.to_owned());
            }
            map.values().for_each(|value| collect(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}
