//! ResourceQuota: what a namespace may hold, counted where it is added.
//!
//! A quota counts once its status says what is used; this adds to that count, whoever keeps the status takes away.

use std::collections::BTreeMap;

use shared_json::{Array, Value, json};

use super::amounts::{self, Amounts};
use super::{Attributes, Operation};
use crate::meta::{ObjectMeta, at, string_map};
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
const DEVICES_BY_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The same devices, by the resource that a class stands for without saying so.
const DEVICES_OF_CLASS: &str = "requests.deviceclass.resource.kubernetes.io/";
/// As many devices as a claim may get: what one counts for that wants all.
const DEVICES_MAX: i64 = 32;
/// Kinds that quotas also know by their plural alone.
const COUNTED_BY_PLURAL: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];
const VOLUME_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Kinds whose objects are not kept, or have never been counted.
const UNCOUNTED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// Whether a change of such an object may be counted, in a namespace that has quotas.
pub(super) fn is_concerned(server: &ServerState, attributes: &Attributes) -> bool {
    let changes = match (
        attributes.resource.group.as_str(),
        attributes.resource.plural.as_str(),
    ) {
        ("", "pods") => matches!(attributes.subresource.as_str(), "" | "resize"),
        ("resource.k8s.io", "resourceclaims") => attributes.subresource.is_empty(),
        _ => false,
    };
    let of_namespace = || {
        let table = GroupResource::new("", "resourcequotas");
        server.store.list(&table, Some(&attributes.namespace), None, None)
    };
    changes && of_namespace().is_ok_and(|quotas| !quotas.items.is_empty())
}

/// Counts the object against every quota that it falls under, and refuses it if one has no room.
pub(super) fn charge(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = attributes.object.as_ref().filter(|_| is_counted(attributes)) else {
        return Ok(());
    };
    let table = GroupResource::new("", "resourcequotas");
    for _ in 0..RETRIES_MAX {
        let quotas = server.store.list(&table, Some(&attributes.namespace), None, None);
        let quotas = quotas.map_err(ApiError::expired)?.items;
        let values: Vec<&Value> = quotas.iter().map(|quota| &*quota.value).collect();
        let changed = room(attributes, object, &values)?;
        if attributes.dry_run {
            return Ok(());
        }
        // Nothing else runs between the look and the change, so that only the first commit can be outrun.
        let outrun = quotas.iter().zip(changed).any(|(quota, used)| {
            let Some(used) = used else {
                return false;
            };
            let mut value = (*quota.value).clone();
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

/// Whether the write may change what quotas count.
fn is_counted(attributes: &Attributes) -> bool {
    let resource = &attributes.resource;
    let kind = (resource.group.as_str(), resource.plural.as_str());
    let changes = match (kind, attributes.subresource.as_str()) {
        (("", "pods"), "") => match (&attributes.object, &attributes.old) {
            (Some(object), Some(old)) => ends(object) != ends(old),
            _ => false,
        },
        (("", "pods"), "resize")
        | (("", "services"), "")
        | (("", "persistentvolumeclaims"), "" | "status")
        | (("resource.k8s.io", "resourceclaims"), "") => attributes.old.is_some(),
        _ => false,
    };
    resource.namespaced
        && !UNCOUNTED.contains(&kind)
        && match attributes.operation {
            Operation::Create => attributes.subresource.is_empty(),
            Operation::Update => changes,
            Operation::Delete | Operation::Connect => false,
        }
}

/// The use of each quota with the object, where that changes it.
fn room(
    attributes: &Attributes,
    object: &Value,
    quotas: &[&Value],
) -> Result<Vec<Option<Amounts>>, ApiError> {
    let (group, plural) = (&attributes.resource.group, &attributes.resource.plural);
    let refuse = |why: String| {
        let resource = attributes.resource.group_resource();
        ApiError::forbidden(&resource, attributes.shown_name(), &why)
    };
    let mut concerned = vec![false; quotas.len()];
    for (quota, concerned) in quotas.iter().zip(&mut concerned) {
        let hard = amounts::read(at(quota, "status.hard"));
        let limited: Vec<&String> = hard
            .keys()
            .filter(|name| is_of_kind(name, group, plural))
            .collect();
        if limited.is_empty() || !in_scope(quota, group, plural, object) {
            continue;
        }
        *concerned = true;
        if attributes.resource.plural == "pods"
            && let Some(missing) = unsaid(object, &limited)
        {
            return Err(refuse(format!(
                "failed quota: {}: must specify {missing}",
                quota.name()
            )));
        }
        let used = amounts::read(at(quota, "status.used"));
        if limited.iter().any(|name| !used.contains_key(*name)) {
            let names: Vec<&str> = limited.iter().map(|name| name.as_str()).collect();
            return Err(refuse(format!(
                "status unknown for quota: {}, resources: {}",
                quota.name(),
                names.join(",")
            )));
        }
    }
    let usage = self::usage(group, plural, object);
    let negative: Vec<&str> = usage
        .iter()
        .filter(|(_, amount)| amount.nanos() < 0)
        .map(|(name, _)| name.as_str())
        .collect();
    if !negative.is_empty() {
        return Err(refuse(format!(
            "quota usage is negative for resource(s): {}",
            negative.join(",")
        )));
    }
    let before = attributes
        .old
        .as_ref()
        .map(|old| (old, self::usage(group, plural, old)));
    let mut out = Vec::new();
    for (quota, concerned) in quotas.iter().zip(concerned) {
        let mut more = usage.clone();
        // What the quota has not counted so far counts as a whole.
        if let Some((old, before)) = &before
            && in_scope(quota, group, plural, old)
        {
            for (name, amount) in &mut more {
                if let Some(before) = before.get(name) {
                    *amount = amount.minus(*before);
                }
            }
        }
        let hard = amounts::read(at(quota, "status.hard"));
        more.retain(|name, amount| hard.contains_key(name) && amount.nanos() > 0);
        if !concerned || more.is_empty() {
            out.push(None);
            continue;
        }
        let used = amounts::read(at(quota, "status.used"));
        let mut after = used.clone();
        amounts::add(&mut after, &more);
        let exceeds = |name: &str| match (after.get(name), hard.get(name)) {
            (Some(after), Some(hard)) => after.nanos() > hard.nanos(),
            _ => false,
        };
        let over: Vec<&str> = more
            .keys()
            .map(String::as_str)
            .filter(|name| exceeds(name))
            .collect();
        // What a controller writes into a status has already happened.
        if !over.is_empty() && attributes.subresource != "status" {
            return Err(refuse(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name(),
                shown(&more, &over),
                shown(&used, &over),
                shown(&hard, &over)
            )));
        }
        out.push(Some(after));
    }
    Ok(out)
}

/// Some of the amounts, as refusals say them.
fn shown(amounts: &Amounts, names: &[&str]) -> String {
    let parts = names.iter().filter_map(|name| {
        let amount = amounts.get(*name)?;
        Some(format!("{name}={}", amount.canonical()))
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Whether objects of a kind count towards what a quota limits by this name.
pub(crate) fn is_of_kind(name: &str, group: &str, plural: &str) -> bool {
    let counted = match group {
        "" => name.strip_prefix("count/") == Some(plural),
        group => name
            .strip_prefix("count/")
            .and_then(|name| name.strip_suffix(group)?.strip_suffix('.'))
            .is_some_and(|name| name == plural),
    };
    counted
        || match (group, plural) {
            ("", "pods") => is_of_pods(name),
            ("", "services") => matches!(name, "services" | "services.loadbalancers" | "services.nodeports"),
            ("", "persistentvolumeclaims") => {
                let of_class = name.split_once(BY_CLASS).map(|(_, name)| name);
                matches!(
                    of_class.unwrap_or(name),
                    "persistentvolumeclaims" | "requests.storage"
                )
            }
            ("resource.k8s.io", "resourceclaims") => name.ends_with(DEVICES_BY_CLASS),
            ("", plural) => COUNTED_BY_PLURAL.contains(&plural) && name == plural,
            _ => false,
        }
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
    if group == "resource.k8s.io" && plural == "resourceclaims" {
        of_resource_claim(object, &mut out);
    }
    if !group.is_empty() {
        return out;
    }
    match plural {
        "pods" => of_pod(object, &mut out),
        "services" => of_service(object, &mut out),
        "persistentvolumeclaims" => of_claim(object, &mut out),
        plural if COUNTED_BY_PLURAL.contains(&plural) => {
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

fn of_claim(claim: &Value, out: &mut Amounts) {
    let one = Quantity::count(1);
    let asked = |path: &str| at(claim, path).map(Quantity::of);
    let storage = asked("spec.resources.requests.storage").map(|asked_for| {
        // What it has already been given counts, if that is more.
        match asked("status.allocatedResources.storage") {
            Some(given) if given.nanos() > asked_for.nanos() => given.rounded_up(),
            _ => asked_for.rounded_up(),
        }
    });
    let class = string_map(claim, "annotations")
        .get(VOLUME_CLASS)
        .or_else(|| at(claim, "spec.storageClassName"))
        .and_then(Value::as_str)
        .filter(|class| !class.is_empty());
    let by_class = class.map(|class| format!("{class}{BY_CLASS}"));
    for prefix in std::iter::once(String::new()).chain(by_class) {
        out.insert(format!("{prefix}persistentvolumeclaims"), one);
        out.extend(storage.map(|storage| (format!("{prefix}requests.storage"), storage)));
    }
}

/// How many devices of each class it may get; of alternatives the one that gets most.
fn of_resource_claim(claim: &Value, out: &mut Amounts) {
    let text = |of: &Value, field: &str| {
        let text = of.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let devices = |request: &Value| match text(request, "allocationMode").as_str() {
        "ExactCount" => request.get("count").and_then(Value::as_i64).unwrap_or(0),
        "All" => DEVICES_MAX,
        _ => 0,
    };
    let mut by_class: BTreeMap<String, i64> = BTreeMap::new();
    let requests = at(claim, "spec.devices.requests").and_then(Value::as_array);
    for request in requests.into_iter().flatten() {
        let mut most: BTreeMap<String, i64> = BTreeMap::new();
        let alternatives = request.get("firstAvailable").and_then(Value::as_array);
        let exact = request.get("exactly").filter(|_| alternatives.is_none());
        for wanted in alternatives.into_iter().flatten().chain(exact) {
            let number = most.entry(text(wanted, "deviceClassName")).or_default();
            *number = devices(wanted).max(*number);
        }
        for (class, number) in most {
            *by_class.entry(class).or_default() += number;
        }
    }
    for (class, number) in by_class {
        out.insert(format!("{class}{DEVICES_BY_CLASS}"), Quantity::count(number));
        out.insert(format!("{DEVICES_OF_CLASS}{class}"), Quantity::count(number));
    }
}

fn of_service(service: &Value, out: &mut Amounts) {
    let ports = at(service, "spec.ports")
        .and_then(Value::as_array)
        .map_or(&[][..], Array::as_slice);
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
    selectors.iter().all(|selector| match (group, plural) {
        ("", "pods") => pod_is_in(selector, object),
        ("", "persistentvolumeclaims") => claim_is_in(selector, object),
        _ => false,
    })
}

/// Whether a pod ends by itself after some time.
fn ends(pod: &Value) -> bool {
    let deadline = at(pod, "spec.activeDeadlineSeconds").and_then(Value::as_i64);
    deadline.is_some_and(|seconds| seconds >= 0)
}

fn scope_name(selector: &Value) -> &str {
    selector
        .get("scopeName")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether one of the classes is among those that a scope asks for.
fn class_is_in(selector: &Value, classes: &[&str]) -> bool {
    let listed = selector.get("values").and_then(Value::as_array);
    let is_listed = |class: &&str| listed.is_some_and(|list| list.iter().any(|listed| listed == *class));
    match selector
        .get("operator")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "In" => classes.iter().any(is_listed),
        "NotIn" => classes.is_empty() || !classes.iter().all(is_listed),
        "DoesNotExist" => classes.is_empty(),
        _ => !classes.is_empty(),
    }
}

fn claim_is_in(selector: &Value, claim: &Value) -> bool {
    let classes: Vec<&str> = [
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    ]
    .into_iter()
    .filter_map(|path| at(claim, path)?.as_str())
    .filter(|class| !class.is_empty())
    .collect();
    scope_name(selector) == "VolumeAttributesClass" && class_is_in(selector, &classes)
}

fn pod_is_in(selector: &Value, pod: &Value) -> bool {
    match scope_name(selector) {
        "Terminating" => ends(pod),
        "NotTerminating" => !ends(pod),
        "BestEffort" => qos_class(pod) == "BestEffort",
        "NotBestEffort" => qos_class(pod) != "BestEffort",
        "PriorityClass" => {
            let class = at(pod, "spec.priorityClassName").and_then(Value::as_str);
            let class = class.filter(|class| !class.is_empty());
            class_is_in(selector, class.as_slice())
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
