//! LimitRanger: default requests and limits of containers, and their bounds.

use machinery::meta::{ObjectMeta, at};
use machinery::quota::amounts::{self, Amounts};
use machinery::status::ApiError;
use machinery::types::Quantity;
use shared_json::{Array, Map, Value, json};
use store::GroupResource;

use super::{Attributes, Operation};
use crate::server::ServerState;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

fn is_concerned(attributes: &Attributes) -> bool {
    attributes.is("", "pods") && attributes.operation == Operation::Create
        || attributes.is("", "persistentvolumeclaims") && attributes.operation != Operation::Delete
        || attributes.resource.plural == "pods" && attributes.subresource == "resize"
}

/// The limits of the namespace, one list for every object that holds some.
fn ranges(server: &ServerState, attributes: &Attributes) -> Result<Vec<Array>, ApiError> {
    if attributes.resource.group.is_empty() && is_concerned(attributes) {
        let table = GroupResource::new("", "limitranges");
        let all = server.store.list(&table, Some(&attributes.namespace), None, None);
        let all = all.map_err(ApiError::expired)?.items;
        let limits = |range: &Value| at(range, "spec.limits").and_then(Value::as_array).cloned();
        return Ok(all.iter().filter_map(|stored| limits(&stored.value)).collect());
    }
    Ok(Vec::new())
}

fn kind(limit: &Value) -> &str {
    limit.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Gives containers the default amounts.
pub(super) fn mutate(server: &ServerState, attributes: &mut Attributes) -> Result<(), ApiError> {
    if !attributes.is("", "pods") {
        return Ok(());
    }
    for limits in ranges(server, attributes)? {
        if let Some(pod) = attributes.object.as_mut() {
            fill_in(pod, &limits);
        }
    }
    Ok(())
}

fn fill_in(pod: &mut Value, limits: &[Value]) {
    let given = |field: &str| {
        let of_containers = limits.iter().filter(|limit| kind(limit) == "Container");
        let amounts = of_containers.filter_map(|limit| limit.get(field)?.as_object());
        amounts
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map>()
    };
    let (default_requests, default_limits) = (given("defaultRequest"), given("default"));
    let mut said = Vec::new();
    for (list, words) in [("containers", "container"), ("initContainers", "init container")] {
        let place = pod
            .get_mut("spec")
            .and_then(|spec| spec.get_mut(list))
            .and_then(Value::as_array_mut);
        for container in place.into_iter().flatten() {
            let name = container
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            for (field, defaults, word) in [
                ("requests", &default_requests, "request"),
                ("limits", &default_limits, "limit"),
            ] {
                let missing: Vec<String> = defaults
                    .keys()
                    .filter(|key| {
                        at(container, "resources")
                            .and_then(|all| all.get(field)?.get(key.as_str()))
                            .is_none()
                    })
                    .map(ToString::to_string)
                    .collect();
                if missing.is_empty() {
                    continue;
                }
                for key in &missing {
                    let resources = &mut container["resources"];
                    if !resources.is_object() {
                        *resources = json!({});
                    }
                    resources[field][key] = defaults.get(key).cloned().unwrap_or_default();
                }
                said.push(format!("{} {word} for {words} {name}", missing.join(", ")));
            }
        }
    }
    if !said.is_empty() {
        let text = format!("LimitRanger plugin set: {}", said.join("; "));
        let metadata = pod.metadata_mut();
        if !metadata.get("annotations").is_some_and(Value::is_object) {
            metadata.insert("annotations".to_owned(), json!({}));
        }
        if let Some(annotations) = metadata.get_mut("annotations") {
            annotations[ANNOTATION] = Value::from(text);
        }
    }
}

/// Refuses requests and limits outside of the bounds.
pub(super) fn validate(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = &attributes.object else {
        return Ok(());
    };
    for limits in ranges(server, attributes)? {
        let mut wrong = Vec::new();
        for limit in &limits {
            check(limit, attributes, object, &mut wrong);
        }
        let text = match wrong.as_slice() {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let resource = attributes.resource.group_resource();
        return Err(ApiError::forbidden(&resource, attributes.shown_name(), &text));
    }
    Ok(())
}

fn check(limit: &Value, attributes: &Attributes, object: &Value, wrong: &mut Vec<String>) {
    let of = |container: &Value, which: &str| {
        amounts::read(at(container, "resources").and_then(|all| all.get(which)))
    };
    match (attributes.resource.plural.as_str(), kind(limit)) {
        ("pods", "Container") => {
            for list in ["containers", "initContainers"] {
                for container in amounts::containers(object, list) {
                    let (requests, limits) = (of(container, "requests"), of(container, "limits"));
                    all_bounds(limit, "Container", &requests, &limits, wrong);
                }
            }
        }
        ("pods", "Pod") => {
            let (requests, limits) = (
                amounts::of_pod(object, "requests"),
                amounts::of_pod(object, "limits"),
            );
            all_bounds(limit, "Pod", &requests, &limits, wrong);
        }
        ("persistentvolumeclaims", kind @ "PersistentVolumeClaim") => {
            let asked = amounts::read(at(object, "spec.resources.requests"));
            for (name, least) in amounts::read(limit.get("min")) {
                at_least(&name, kind, least, &asked, &Amounts::new(), wrong);
            }
            for (name, most) in amounts::read(limit.get("max")) {
                let words = format!("maximum {name} usage per {kind} is {}", most.canonical());
                match asked.get(&name) {
                    None => wrong.push(format!("{words}.  No request is specified")),
                    Some(asked) if asked.nanos() > most.nanos() => {
                        wrong.push(format!("{words}, but request is {}", asked.canonical()));
                    }
                    Some(_) => {}
                }
            }
        }
        _ => {}
    }
}

fn all_bounds(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, wrong: &mut Vec<String>) {
    for (name, least) in amounts::read(limit.get("min")) {
        at_least(&name, kind, least, requests, limits, wrong);
    }
    for (name, most) in amounts::read(limit.get("max")) {
        let words = format!("maximum {name} usage per {kind} is {}", most.canonical());
        match (limits.get(&name), requests.get(&name)) {
            (None, _) => wrong.push(format!("{words}.  No limit is specified")),
            (Some(given), _) if given.nanos() > most.nanos() => {
                wrong.push(format!("{words}, but limit is {}", given.canonical()));
            }
            (_, Some(given)) if given.nanos() > most.nanos() => {
                wrong.push(format!("{words}, but request is {}", given.canonical()));
            }
            _ => {}
        }
    }
    for (name, most) in amounts::read(limit.get("maxLimitRequestRatio")) {
        ratio(&name, kind, most, requests, limits, wrong);
    }
}

fn at_least(
    name: &str,
    kind: &str,
    least: Quantity,
    requests: &Amounts,
    limits: &Amounts,
    wrong: &mut Vec<String>,
) {
    let words = format!("minimum {name} usage per {kind} is {}", least.canonical());
    match (requests.get(name), limits.get(name)) {
        (None, _) => wrong.push(format!("{words}.  No request is specified")),
        (Some(given), _) if given.nanos() < least.nanos() => {
            wrong.push(format!("{words}, but request is {}", given.canonical()));
        }
        (_, Some(given)) if given.nanos() < least.nanos() => {
            wrong.push(format!("{words}, but limit is {}", given.canonical()));
        }
        _ => {}
    }
}

fn ratio(
    name: &str,
    kind: &str,
    most: Quantity,
    requests: &Amounts,
    limits: &Amounts,
    wrong: &mut Vec<String>,
) {
    let words = format!(
        "{name} max limit to request ratio per {kind} is {}",
        most.canonical()
    );
    let amount = |of: &Amounts| {
        of.get(name)
            .map(|amount| amount.nanos())
            .filter(|nanos| *nanos != 0)
    };
    let Some(request) = amount(requests) else {
        return wrong.push(format!("{words}, but no request is specified or request is 0"));
    };
    let Some(limit) = amount(limits) else {
        return wrong.push(format!("{words}, but no limit is specified or limit is 0"));
    };
    let ratio = limit as f64 / request as f64;
    if ratio > most.nanos() as f64 / 1e9 {
        wrong.push(format!("{words}, but provided ratio is {ratio:.6}"));
    }
}
