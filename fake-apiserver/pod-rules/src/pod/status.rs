//! The rules for a pod's status from a node.

use shared_json::Value;

use super::security;
use crate::addresses;
use crate::errors::{Errors, IMMUTABLE};
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;

/// A changed status.
pub fn update(pod: &Value, old: &Value, errors: &mut Errors) {
    super::update::annotations(pod, old, errors);
    let path = Path::new("status");
    let status = pod.part("status").unwrap_or(&NOTHING);
    let before = old.part("status").unwrap_or(&NOTHING);
    let spec = old.part("spec").unwrap_or(&NOTHING);
    let conditions = path.field("conditions");
    for (index, condition) in status.list("conditions").iter().enumerate() {
        let at = conditions.index(index);
        if let Some(generation) = condition.int("observedGeneration").filter(|n| *n < 0) {
            let detail = "must be a non-negative integer";
            errors.invalid(&at.field("observedGeneration"), generation, detail);
        }
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            errors.problems(&at.field("Type"), kind, names::qualified_problems(kind));
        }
    }
    let node = status.text("nominatedNodeName");
    if node != before.text("nominatedNodeName") && !node.is_empty() {
        let at = path.field("nominatedNodeName");
        errors.problems(&at, node, names::subdomain_problems(node));
        if !spec.text("nodeName").is_empty() {
            errors.forbidden(&at, "may not be set on pods that are already bound to a node");
        }
    }
    if let Some(generation) = status.int("observedGeneration").filter(|n| *n < 0) {
        let detail = "must be a non-negative integer";
        errors.invalid(&path.field("observedGeneration"), generation, detail);
    }
    if status.text("qosClass") != before.text("qosClass") {
        errors.invalid(&path.field("qosClass"), status.text("qosClass"), IMMUTABLE);
    }
    for field in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        restarts(status, before, spec, field, &path.field(field), errors);
    }
    claims(status, spec, &path.field("resourceClaimStatuses"), errors);
    if let Some(told) = status.part("extendedResourceClaimStatus") {
        extended(told, spec, &path.field("extendedResourceClaimStatus"), errors);
    }
    addresses_of(status, before, "podIPs", &path, errors);
    let hosts = status.list("hostIPs");
    if let Some(first) = hosts.first()
        && first.text("ip") != status.text("hostIP")
    {
        let at = path.field("hostIPs");
        errors.invalid(
            &at.index(0).field("ip"),
            first.text("ip"),
            "must be equal to `hostIP`",
        );
    }
    addresses_of(status, before, "hostIPs", &path, errors);
    for field in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        let at = path.field(field);
        for (index, status) in status.list(field).iter().enumerate() {
            let user = status.part("user").and_then(|user| user.part("linux"));
            security::linux_user(user, &at.index(index).field("user.linux"), errors);
        }
    }
}

/// Each claim of the pod has one status at most.
fn claims(status: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let told = status.list("resourceClaimStatuses");
    for (index, claim) in told.iter().enumerate() {
        let (at, name) = (path.index(index), claim.text("name"));
        let is_named = |other: &Value| other.text("name") == name;
        if !spec.list("resourceClaims").iter().any(is_named) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid(&at.field("name"), name, detail);
        }
        if told.iter().take(index).any(is_named) {
            errors.duplicate(&at.field("name"), name);
        }
        if let Some(made) = claim.text_if_set("resourceClaimName") {
            errors.problems(
                &at.field("resourceClaimName"),
                made,
                names::subdomain_problems(made),
            );
        }
    }
}

/// The claim for extended resources, and which of its requests each container's are.
fn extended(told: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("requestMappings");
    let mappings = told.list("requestMappings");
    if mappings.is_empty() {
        errors.required(&at, "at least one request mapping is required");
    }
    let containers = || spec.list("containers").iter().chain(spec.list("initContainers"));
    for (index, mapping) in mappings.iter().enumerate() {
        let at = at.index(index);
        let (container, resource) = (mapping.text("containerName"), mapping.text("resourceName"));
        match containers().find(|one| one.text("name") == container) {
            None => {
                let detail =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.invalid(&at.field("containerName"), container, detail);
            }
            Some(one)
                if one
                    .part("resources")
                    .and_then(|all| all.part("requests"))
                    .is_none_or(|all| !all.has(resource)) =>
            {
                let detail = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.invalid(&at.field("resourceName"), resource, detail);
            }
            Some(_) => {}
        }
        let request = mapping.text("requestName");
        errors.problems(
            &path.field("requestName"),
            request,
            names::label_problems(request),
        );
        if mappings.iter().take(index).any(|other| other == mapping) {
            errors.duplicate(&at.field("containerName"), container);
            errors.duplicate(&at.field("resourceName"), resource);
            errors.duplicate(&at.field("requestName"), request);
        }
    }
    let (name, at) = (told.text("resourceClaimName"), path.field("resourceClaimName"));
    if name.is_empty() {
        errors.required(&at, "");
    } else {
        errors.problems(&at, name, names::subdomain_problems(name));
    }
}

/// A container that has ended for good does not come back.
fn restarts(status: &Value, before: &Value, spec: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    for (index, old) in before.list(field).iter().enumerate() {
        let Some(ended) = old.part("state").and_then(|state| state.part("terminated")) else {
            continue;
        };
        let name = old.text("name");
        let back = status.list(field).iter().any(|new| {
            new.text("name") == name && !new.part("state").is_some_and(|state| state.has("terminated"))
        });
        if back && !may_restart(spec, field, name, ended.int("exitCode").unwrap_or_default()) {
            let detail = "may not be transitioned to non-terminated state";
            errors.forbidden(&path.index(index).field("state"), detail);
        }
    }
}

fn may_restart(spec: &Value, field: &str, name: &str, code: i64) -> bool {
    let list = match field {
        "containerStatuses" => "containers",
        "initContainerStatuses" => "initContainers",
        _ => return false,
    };
    let container = spec
        .list(list)
        .iter()
        .find(|container| container.text("name") == name)
        .unwrap_or(&NOTHING);
    for rule in container.list("restartPolicyRules") {
        let codes = rule.part("exitCodes").unwrap_or(&NOTHING);
        let listed = codes
            .list("values")
            .iter()
            .any(|value| value.as_i64() == Some(code));
        if listed == (codes.text("operator") == "In") {
            return true;
        }
    }
    let policy = container
        .text_if_set("restartPolicy")
        .unwrap_or_else(|| spec.text("restartPolicy"));
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn addresses_of(status: &Value, before: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field(field);
    let known: Vec<&str> = before.list(field).iter().map(|entry| entry.text("ip")).collect();
    let list = status.list(field);
    for (index, entry) in list.iter().enumerate() {
        addresses::address(&at.index(index), entry.text("ip"), &known, errors);
    }
    if list.len() > 1 {
        let kinds: Vec<bool> = list
            .iter()
            .filter_map(|entry| addresses::parse(entry.text("ip")))
            .map(|address| address.is_ipv4())
            .collect();
        if list.len() > 2 || kinds.first() == kinds.get(1) {
            let detail = "may specify no more than one IP for each IP family";
            let shown: Vec<Value> = list
                .iter()
                .map(|entry| shared_json::json!({"IP": entry.text("ip")}))
                .collect();
            errors.invalid(&at, shown, detail);
        }
    }
}
