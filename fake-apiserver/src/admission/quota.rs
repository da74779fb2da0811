//! ResourceQuota: what a namespace may hold, counted where it is added.
//!
//! A quota counts once its status says what is used; this adds to that count, whoever keeps the status takes away.

use std::collections::BTreeMap;

use shared_json::{Value, json};

use super::amounts::{self, Amounts};
use super::{Attributes, Operation};
use crate::meta::{ObjectMeta, at};
use crate::server::ServerState;
use crate::status::ApiError;
use crate::store::{Change, GroupResource};
use crate::strategy::qos_class;
use crate::types::Quantity;

/// What pods must say if a quota limits it.
const SAID: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];
const RETRIES_MAX: usize = 5;
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Counts the object against every quota that it falls under, and refuses it if one has no room.
pub(super) fn charge(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = attributes.object.as_ref().filter(|_| is_counted(attributes)) else {
        return Ok(());
    };
    let table = GroupResource::new("", "resourcequotas");
    for _ in 0..RETRIES_MAX {
        let quotas = server.store.list(&table, Some(&attributes.namespace), None, None);
        let quotas = quotas.map_err(ApiError::expired)?.items;
        if quotas.is_empty() {
            return Ok(());
        }
        let mut changed = Vec::new();
        for quota in quotas {
            if let Some(used) = room(attributes, object, &quota.value)? {
                changed.push((quota, used));
            }
        }
        if attributes.dry_run {
            return Ok(());
        }
        // Nothing else runs between the look and the change, so that only the first commit can be outrun.
        let outrun = changed.into_iter().any(|(quota, used)| {
            let mut value = quota.value.clone();
            let used = used
                .iter()
                .map(|(name, amount)| (name.clone(), Value::from(amount.canonical())));
            value["status"]["used"] = Value::Object(used.collect());
            server
                .store
                .commit(&table, &quota.key, Some(quota.revision), Change::Put(value))
                .is_err()
        });
        if !outrun {
            return Ok(());
        }
    }
    Err(ApiError::modified(&table, ""))
}

fn is_counted(attributes: &Attributes) -> bool {
    let changes = matches!(
        attributes.resource.plural.as_str(),
        "services" | "persistentvolumeclaims"
    ) && attributes.resource.group.is_empty();
    attributes.resource.namespaced
        && attributes.subresource.is_empty()
        && !attributes.is("", "resourcequotas")
        && !attributes.is("", "events")
        && match attributes.operation {
            Operation::Create => true,
            Operation::Update => changes && attributes.old.is_some(),
            Operation::Delete => false,
        }
}

/// The use of a quota with the object, if that changes it.
fn room(attributes: &Attributes, object: &Value, quota: &Value) -> Result<Option<Amounts>, ApiError> {
    let hard = amounts::read(at(quota, "status.hard"));
    let mut used = amounts::read(at(quota, "status.used"));
    let refuse = |why: String| {
        let resource = attributes.resource.group_resource();
        Err(ApiError::forbidden(&resource, &attributes.name, &why))
    };
    let resource = &attributes.resource;
    if !in_scope(quota, &resource.group, &resource.plural, object) {
        return Ok(None);
    }
    let is_pod = attributes.is("", "pods");
    let usage = usage(&resource.group, &resource.plural, object);
    let concerned: Vec<&String> = hard
        .keys()
        .filter(|name| usage.contains_key(*name) || is_pod && is_of_pods(name))
        .collect();
    if concerned.is_empty() {
        return Ok(None);
    }
    if is_pod && let Some(missing) = unsaid(object, &concerned) {
        return refuse(format!("failed quota: {}: must specify {missing}", quota.name()));
    }
    let uncounted: Vec<&str> = concerned
        .iter()
        .filter(|name| !used.contains_key(**name))
        .map(|name| name.as_str())
        .collect();
    if !uncounted.is_empty() {
        let why = format!(
            "status unknown for quota: {}, resources: {}",
            quota.name(),
            uncounted.join(",")
        );
        return refuse(why);
    }
    let mut more = usage;
    if let Some(old) = &attributes.old {
        let before = self::usage(&resource.group, &resource.plural, old);
        more.retain(|name, amount| {
            before
                .get(name)
                .is_none_or(|before| amount.nanos() > before.nanos())
        });
        for (name, amount) in &mut more {
            if let Some(before) = before.get(name) {
                *amount = amount.minus(*before);
            }
        }
    }
    more.retain(|name, amount| hard.contains_key(name) && amount.nanos() != 0);
    if more.is_empty() {
        return Ok(None);
    }
    let before = used.clone();
    amounts::add(&mut used, &more);
    let over: Vec<&String> = more
        .keys()
        .filter(|name| match (used.get(*name), hard.get(*name)) {
            (Some(used), Some(hard)) => used.nanos() > hard.nanos(),
            _ => false,
        })
        .collect();
    if !over.is_empty() {
        let shown = |of: &Amounts| {
            let parts = over.iter().map(|name| {
                let amount = of
                    .get(*name)
                    .map_or_else(|| "0".to_owned(), |amount| amount.canonical());
                format!("{name}={amount}")
            });
            parts.collect::<Vec<_>>().join(",")
        };
        return refuse(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.name(),
            shown(&more),
            shown(&before),
            shown(&hard)
        ));
    }
    Ok(Some(used))
}

/// Whether it is pods that use it.
pub(crate) fn is_of_pods(name: &str) -> bool {
    SAID.contains(&name)
        || matches!(name, "pods" | "count/pods" | "ephemeral-storage")
        || name.ends_with(".ephemeral-storage")
        || name.starts_with("requests.") && name.contains('/')
        || name.trim_start_matches("requests.").starts_with("hugepages-")
}

/// What containers do not say and must.
fn unsaid(pod: &Value, concerned: &[&String]) -> Option<String> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    if at(pod, "spec.resources").is_some() {
        return None;
    }
    for list in ["containers", "initContainers"] {
        for container in amounts::containers(pod, list) {
            let says = |which: &str, name: &str| {
                at(container, "resources")
                    .and_then(|all| all.get(which)?.get(name))
                    .is_some()
            };
            for name in SAID
                .iter()
                .filter(|name| concerned.iter().any(|known| known == *name))
            {
                let said = match name.split_once('.') {
                    Some((which, name)) => says(which, name),
                    None => says("requests", name),
                };
                if !said {
                    let names = missing.entry(name).or_default();
                    names.push(container.get("name").and_then(Value::as_str).unwrap_or_default());
                    names.sort_unstable();
                }
            }
        }
    }
    let parts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| format!("{name} for: {}", containers.join(",")))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What an object uses, by the names that quotas give it.
pub(crate) fn usage(group: &str, plural: &str, object: &Value) -> Amounts {
    let one = Quantity::count(1);
    let counted = match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    };
    let mut out = Amounts::from([(counted, one)]);
    if !group.is_empty() {
        return out;
    }
    match plural {
        "pods" => of_pod(object, &mut out),
        "services" => of_service(object, &mut out),
        "persistentvolumeclaims" => {
            out.insert("persistentvolumeclaims".to_owned(), one);
            let storage = at(object, "spec.resources.requests.storage").map(Quantity::of);
            out.extend(storage.map(|storage| ("requests.storage".to_owned(), storage)));
            if let Some(class) = at(object, "spec.storageClassName").and_then(Value::as_str) {
                out.insert(format!("{class}{BY_CLASS}persistentvolumeclaims"), one);
                out.extend(storage.map(|storage| (format!("{class}{BY_CLASS}requests.storage"), storage)));
            }
        }
        "configmaps" | "secrets" | "replicationcontrollers" => {
            out.insert(plural.to_owned(), one);
        }
        _ => {}
    }
    out
}

fn of_pod(pod: &Value, out: &mut Amounts) {
    if matches!(
        at(pod, "status.phase").and_then(Value::as_str),
        Some("Failed" | "Succeeded")
    ) {
        return;
    }
    out.insert("pods".to_owned(), Quantity::count(1));
    for (name, amount) in amounts::of_pod(pod, "requests") {
        out.insert(format!("requests.{name}"), amount);
        if !name.contains('/') {
            out.insert(name, amount);
        }
    }
    for (name, amount) in amounts::of_pod(pod, "limits") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            out.insert(format!("limits.{name}"), amount);
        }
    }
}

fn of_service(service: &Value, out: &mut Amounts) {
    let ports = at(service, "spec.ports")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let count = |number: usize| Quantity::count(i64::try_from(number).unwrap_or(i64::MAX));
    let kind = at(service, "spec.type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_balanced = kind == "LoadBalancer";
    let unallocated = at(service, "spec.allocateLoadBalancerNodePorts") == Some(&Value::Bool(false));
    let node_ports = match kind {
        "LoadBalancer" if unallocated => ports.iter().filter(|port| port.get("nodePort").is_some()).count(),
        "LoadBalancer" | "NodePort" => ports.len(),
        _ => 0,
    };
    out.insert("services".to_owned(), count(1));
    out.insert(
        "services.loadbalancers".to_owned(),
        count(usize::from(is_balanced)),
    );
    out.insert("services.nodeports".to_owned(), count(node_ports));
}

/// Whether the quota is about objects like this one.
pub(crate) fn in_scope(quota: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let listed = |path: &str| {
        at(quota, path)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut selectors = listed("spec.scopeSelector.matchExpressions");
    selectors.extend(
        listed("spec.scopes")
            .into_iter()
            .map(|scope| json!({"scopeName": scope, "operator": "Exists"})),
    );
    if selectors.is_empty() {
        return true;
    }
    let is_pod = group.is_empty() && plural == "pods";
    is_pod && selectors.iter().all(|selector| pod_is_in(selector, object))
}

fn pod_is_in(selector: &Value, pod: &Value) -> bool {
    let text = |field: &str| selector.get(field).and_then(Value::as_str).unwrap_or_default();
    let ends = at(pod, "spec.activeDeadlineSeconds").is_some_and(Value::is_number);
    match text("scopeName") {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => qos_class(pod) == "BestEffort",
        "NotBestEffort" => qos_class(pod) != "BestEffort",
        "PriorityClass" => {
            let class = at(pod, "spec.priorityClassName");
            let listed = selector.get("values").and_then(Value::as_array);
            let is_listed = class.is_some_and(|class| listed.is_some_and(|list| list.contains(class)));
            match text("operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "DoesNotExist" => class.is_none(),
                _ => class.is_some(),
            }
        }
        "CrossNamespacePodAffinity" => crosses(at(pod, "spec.affinity")),
        _ => false,
    }
}

/// Whether any term of an affinity looks into other namespaces.
fn crosses(affinity: Option<&Value>) -> bool {
    match affinity {
        Some(Value::Object(map)) => {
            let named = map
                .get("namespaces")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty());
            named || map.contains_key("namespaceSelector") || map.values().any(|part| crosses(Some(part)))
        }
        Some(Value::Array(list)) => list.iter().any(|part| crosses(Some(part))),
        _ => false,
    }
}
