//! The initial objects: the namespaces and priority classes of a fresh server.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use machinery::meta::ObjectMeta as _;
use serde::Deserialize;
use server::Server;
use shared_json::{Value, json};
use store::{Change, GroupResource, ObjectKey};

use super::error::ClusterError;

/// The objects that a fresh server has.
fn objects() -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    vec![
        namespace("default"),
        namespace("kube-node-lease"),
        namespace("kube-public"),
        namespace("kube-system"),
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

/// The StorageClass of a cluster that kind makes.
pub(super) fn default_storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "rancher.io/local-path", "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// Creates the objects of a fresh server, and then `more`. A server that continues with stored objects (`again`) has the former,
/// and gets the latter as they are now.
pub(super) async fn bootstrap(client: &Client, more: &[Value], again: bool) -> Result<(), ClusterError> {
    for object in objects().iter().filter(|_| !again) {
        create(client, object, Some("kube-apiserver"), false).await?;
    }
    for object in more {
        create(client, object, None, again).await?;
    }
    Ok(())
}

/// Serves the custom resources that are defined in the store.
pub(super) fn define_custom_resources(server: &Server) -> Result<(), ClusterError> {
    let table = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let Ok(list) = server.store().list(&table, None, None, None) else {
        return Ok(());
    };
    for definition in list.items {
        server.define(&definition.value).map_err(|errors| {
            let why: Vec<String> = errors.iter().map(ToString::to_string).collect();
            ClusterError::Definition {
                name: definition.key.name.to_string(),
                why: why.join(", "),
            }
        })?;
    }
    Ok(())
}

pub(super) async fn create(
    client: &Client,
    object: &Value,
    manager: Option<&str>,
    replace: bool,
) -> Result<(), ClusterError> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    };
    let dynamic =
        shared_json::from_value(object.clone()).map_err(|error| ClusterError::Object(error.to_string()))?;
    let parameters = PostParams {
        field_manager: manager.map(str::to_owned),
        ..PostParams::default()
    };
    let made = match api.create(&parameters, &dynamic).await {
        Err(kube::Error::Api(status)) if replace && status.is_already_exists() => {
            let parameters = PatchParams::apply("fake-apiserver").force();
            api.patch(text("/metadata/name"), &parameters, &Patch::Apply(object))
                .await
        }
        other => other,
    };
    made.map(|_| ()).map_err(|source| ClusterError::Create {
        kind: text("/kind").to_owned(),
        name: text("/metadata/name").to_owned(),
        source: Box::new(source),
    })
}

/// The further objects that a real server makes: roles and their bindings, flow control, the `kubernetes` service.
const SYSTEM_OBJECTS: &str = include_str!("system-objects.json");

#[derive(Deserialize)]
struct SystemObjects {
    kind: String,
    objects: Vec<Value>,
}

/// A fresh server's own objects, with the tables to which they belong. They are read once for all clusters of a process.
pub(super) static ALL_SYSTEM_OBJECTS: LazyLock<Vec<(GroupResource, Value)>> =
    LazyLock::new(all_system_objects);

fn all_system_objects() -> Vec<(GroupResource, Value)> {
    // The data is part of the program, and a test reads it.
    let all: BTreeMap<String, SystemObjects> = shared_json::from_str(SYSTEM_OBJECTS).unwrap_or_default();
    let mut out = Vec::new();
    for (id, SystemObjects { kind, objects }) in all {
        let (group_version, resource) = id.rsplit_once('/').unwrap_or(("", &id));
        let group = group_version.split_once('/').map_or("", |(group, _)| group);
        let table = GroupResource::new(group, resource);
        for mut object in objects {
            object["apiVersion"] = Value::from(group_version);
            object["kind"] = Value::from(kind.clone());
            out.push((table.clone(), object));
        }
    }
    out
}

/// The roles that every user of a real server has, and their bindings: whoever is known may see which kinds are served.
const ROLES_OF_EVERYBODY: [&str; 3] = [
    "system:basic-user",
    "system:discovery",
    "system:public-info-viewer",
];

fn is_of_everybody(table: &GroupResource, object: &Value) -> bool {
    table.group == "rbac.authorization.k8s.io" && ROLES_OF_EVERYBODY.contains(&object.name())
}

/// Puts a fresh server's own objects into its store, as they are: they come from a real one and need no checks. Without `all`
/// they are the [roles of everybody](ROLES_OF_EVERYBODY).
pub(super) fn system_objects(server: &Server, all: bool) {
    let now = server.now();
    for (table, object) in ALL_SYSTEM_OBJECTS.iter() {
        if !all && !is_of_everybody(table, object) {
            continue;
        }
        let mut object = object.clone();
        object.set_meta("uid", server.new_uid());
        object.set_meta("creationTimestamp", now.clone());
        let conditions = object
            .pointer_mut("/status/conditions")
            .and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = Value::from(now.clone());
        }
        let key = ObjectKey::new(object.namespace(), object.name());
        // Where the store is fresh nothing of this name is there; elsewhere what is there stays.
        let _made = server.store().commit(table, &key, None, Change::Put(object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_objects_are_read_whole() {
        let all: BTreeMap<String, SystemObjects> = shared_json::from_str(SYSTEM_OBJECTS).expect("the data");
        let count = |id: &str| all[id].objects.len();
        assert_eq!(count("rbac.authorization.k8s.io/v1/clusterroles"), 70);
        assert_eq!(count("v1/services"), 1);
        let of_everybody = ALL_SYSTEM_OBJECTS
            .iter()
            .filter(|(table, object)| is_of_everybody(table, object));
        assert_eq!(of_everybody.count(), 2 * ROLES_OF_EVERYBODY.len());
    }
}
