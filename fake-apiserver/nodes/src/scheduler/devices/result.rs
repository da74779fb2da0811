//! An allocation as it is written.

use machinery::meta::{ObjectMeta as _, at};
use shared_json::{Value, json};

use super::super::cluster::{NodeInfo, list, text};
use super::request::Request;
use super::search::{Chosen, Found};

/// The allocations of the claims for which devices were found, in their order.
pub(super) fn allocations(found: &Found<'_>, claims: &[&Value], node: &NodeInfo) -> Vec<Value> {
    let each = claims.iter().enumerate();
    each.map(|(place, claim)| {
        let chosen = found.chosen.get(place).map(Vec::as_slice).unwrap_or_default();
        let results: Vec<Value> = chosen.iter().map(|chosen| result(found, chosen)).collect();
        let mut devices = json!({"results": results});
        let configs = configs(found, place, claim);
        if !configs.is_empty() {
            devices["config"] = Value::from(configs);
        }
        let mut allocation = json!({"devices": devices});
        if let Some(selector) = selector(chosen, node) {
            allocation["nodeSelector"] = selector;
        }
        allocation
    })
    .collect()
}

fn result(found: &Found<'_>, chosen: &Chosen<'_>) -> Value {
    let request = &found.requests[chosen.claim][chosen.request][chosen.way];
    let (driver, pool, device) = chosen.device.id;
    let mut out = json!({"request": request.full_name(), "driver": driver, "pool": pool, "device": device});
    if request.is_admin() {
        out["adminAccess"] = json!(true);
    }
    let of = [
        ("tolerations", request.spec),
        ("bindingConditions", chosen.device.object),
        ("bindingFailureConditions", chosen.device.object),
    ];
    for (field, object) in of {
        if !list(object, field).is_empty() {
            out[field] = json!(list(object, field));
        }
    }
    if let Some(share) = &chosen.share {
        out["shareID"] = json!(share);
    }
    for (name, amount) in &chosen.consumed {
        out["consumedCapacity"][*name] = json!(amount.canonical());
    }
    out
}

/// The configurations for drivers: by the classes of the requests, each once, then by the claim.
fn configs(found: &Found<'_>, place: usize, claim: &Value) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut classes: Vec<(&str, std::ops::Range<usize>)> = Vec::new();
    let taken: Vec<&Request<'_>> = found.requests[place]
        .iter()
        .enumerate()
        .filter_map(|(request, ways)| ways.get(found.ways.get(&(place, request)).copied().unwrap_or(0)))
        .collect();
    for request in &taken {
        let name = json!(request.full_name());
        if let Some((_, range)) = classes.iter().find(|(class, _)| *class == request.class.name()) {
            for config in &mut out[range.clone()] {
                if let Some(requests) = config["requests"].as_array_mut() {
                    requests.push(name.clone());
                }
            }
            continue;
        }
        let start = out.len();
        for config in list(request.class, "spec.config") {
            let mut config = config.clone();
            config["source"] = json!("FromClass");
            config["requests"] = json!([name]);
            out.push(config);
        }
        classes.push((request.class.name(), start..out.len()));
    }
    for config in list(claim, "spec.devices.config") {
        let wanted = list(config, "requests");
        let is_about = |request: &&Request<'_>| {
            wanted
                .iter()
                .any(|name| *name == request.parent.unwrap_or(request.name) || *name == request.full_name())
        };
        let times = if wanted.is_empty() {
            1
        } else {
            taken.iter().copied().filter(is_about).count()
        };
        for _ in 0..times {
            let mut config = config.clone();
            config["source"] = json!("FromClaim");
            out.push(config);
        }
    }
    out
}

/// Where the devices can be used: on one node if one of them is there only, otherwise where all can be reached.
fn selector(chosen: &[Chosen<'_>], node: &NodeInfo) -> Option<Value> {
    let mut term = json!({});
    for chosen in chosen {
        let slice = chosen.device.slice;
        let by_device = at(slice, "spec.perDeviceNodeSelection").and_then(Value::as_bool) == Some(true);
        let of = if by_device {
            chosen.device.object
        } else {
            slice.get("spec")?
        };
        let binds = at(chosen.device.object, "bindsToNode").and_then(Value::as_bool) == Some(true);
        if !text(of, "nodeName").is_empty() || binds {
            return Some(json!({"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [node.name()]},
            ]}]}));
        }
        for wanted in list(of, "nodeSelector.nodeSelectorTerms") {
            for field in ["matchFields", "matchExpressions"] {
                for requirement in list(wanted, field) {
                    if !list(&term, field).contains(requirement) {
                        let mut known = list(&term, field).to_vec();
                        known.push(requirement.clone());
                        term[field] = Value::from(known);
                    }
                }
            }
        }
    }
    let is_empty = term.as_object().is_none_or(shared_json::Map::is_empty);
    (!is_empty).then(|| json!({"nodeSelectorTerms": [term]}))
}
