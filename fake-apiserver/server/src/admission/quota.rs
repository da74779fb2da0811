//! ResourceQuota: refuses writes over a namespace's quota, and adds accepted ones to its usage.
//!
//! A quota counts once its status has a usage. Admission adds to that usage, and the quota controller subtracts.

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta, at};
use machinery::quota::amounts::{self, Amounts};
use machinery::quota::{SAID, ends, in_scope, is_of_kind};
use machinery::status::ApiError;
use shared_json::Value;
use store::{Change, GroupResource};

use super::{Attributes, Operation};
use crate::commit_errors;
use crate::server::ServerState;

const RETRIES_MAX: usize = 5;
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
        let mut outrun = false;
        for (quota, used) in quotas.iter().zip(changed) {
            let Some(used) = used else { continue };
            let mut value = (*quota.value).clone();
            let used = used
                .iter()
                .map(|(name, amount)| (name.clone(), Value::from(amount.canonical())));
            value["status"]["used"] = Value::Object(used.collect());
            let change = Change::Put(value);
            if let Err(error) = server
                .store
                .commit(&table, &quota.key, Some(quota.revision), change)
            {
                if let Some(refusal) = commit_errors::refusal(error) {
                    return Err(refusal);
                }
                outrun = true;
                break;
            }
        }
        if !outrun {
            return Ok(());
        }
    }
    Err(ApiError::modified(&table, ""))
}

/// Whether the write may change the usage of a quota.
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
    let usage = machinery::quota::usage(group, plural, object);
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
        .map(|old| (old, machinery::quota::usage(group, plural, old)));
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

/// The names of required requests and limits that containers lack.
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
