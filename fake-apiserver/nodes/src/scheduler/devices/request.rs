//! A request, or one of its alternatives, and the devices that match it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube_cel::cel as cel_value;
use machinery::cel::{Expression, Scope, values};
use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;

use super::super::cluster::{Cluster, NodeInfo, list, text};
use super::capacity::has_room;
use super::pools::{Device, reaches};

static SCOPE: LazyLock<Scope> = LazyLock::new(Scope::new);

/// A request for devices.
pub(super) struct Request<'a> {
    pub name: &'a str,
    /// The request that this is a way to meet.
    pub parent: Option<&'a str>,
    pub spec: &'a Value,
    pub class: &'a Value,
    selectors: Vec<Selector<'a>>,
}

struct Selector<'a> {
    text: &'a str,
    read: Result<Expression, String>,
    /// Its path, as the real scheduler prints it.
    place: String,
}

fn selectors<'a>(of: &'a [Value], whose: &str) -> Vec<Selector<'a>> {
    of.iter()
        .enumerate()
        .map(|(number, selector)| {
            let text = text(selector, "cel.expression");
            Selector {
                text,
                read: Expression::read(text),
                place: format!("{whose}: selector #{number}: CEL"),
            }
        })
        .collect()
}

impl<'a> Request<'a> {
    /// The ways in which each request of a claim can be met, in order. The error is that of an invalid request.
    pub(super) fn of(claim: &'a Value, cluster: &'a Cluster) -> Result<Vec<Vec<Self>>, String> {
        let whose = format!("claim {}/{}", claim.namespace(), claim.name());
        let all = list(claim, "spec.devices.requests").iter();
        all.map(|request| {
            let name = text(request, "name");
            let ways = match request.get("exactly") {
                Some(exactly) => vec![(None, name, exactly)],
                None => list(request, "firstAvailable")
                    .iter()
                    .map(|way| (Some(name), text(way, "name"), way))
                    .collect(),
            };
            let ways = ways.into_iter().map(|(parent, name, spec)| {
                let class = text(spec, "deviceClassName");
                let full = parent.map_or_else(|| name.to_owned(), |parent| format!("{parent}/{name}"));
                let class = cluster
                    .device_classes
                    .get(class)
                    .ok_or_else(|| format!("request {full}: device class {class} does not exist"))?;
                let mut read = selectors(list(class, "spec.selectors"), &format!("class {}", class.name()));
                read.extend(selectors(list(spec, "selectors"), &whose));
                Ok(Self {
                    name,
                    parent,
                    spec,
                    class,
                    selectors: read,
                })
            });
            ways.collect()
        })
        .collect()
    }

    /// Its name in results.
    pub(super) fn full_name(&self) -> String {
        match self.parent {
            Some(parent) => format!("{parent}/{}", self.name),
            None => self.name.to_owned(),
        }
    }

    pub(super) fn wants_all(&self) -> bool {
        text(self.spec, "allocationMode") == "All"
    }

    pub(super) fn count(&self) -> usize {
        let count = at(self.spec, "count").and_then(Value::as_u64).unwrap_or(1);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    pub(super) fn is_admin(&self) -> bool {
        at(self.spec, "adminAccess").and_then(Value::as_bool) == Some(true)
    }

    /// Whether the request takes a device, were it free: the selectors of the class and its own say so, and the node reaches it.
    pub(super) fn takes(&self, device: &Device<'_>, node: &NodeInfo) -> Result<bool, String> {
        for selector in &self.selectors {
            let read = selector
                .read
                .as_ref()
                .map_err(|error| format!("{} compile error: {error}", selector.place))?;
            let value = read
                .value(&SCOPE, &[("device", variable(device, selector.text))])
                .map_err(|failure| format!("{} runtime error: {}", selector.place, failure.text))?;
            if values::to_json(&value) != Value::Bool(true) {
                return Ok(false);
            }
        }
        let by_device =
            at(device.slice, "spec.perDeviceNodeSelection").and_then(Value::as_bool) == Some(true);
        Ok(!by_device || reaches(device.object, node))
    }

    /// Whether a device has the capacities that the request asks for, regardless of its other users.
    pub(super) fn fits(&self, device: &Value) -> bool {
        has_room(device, self.spec, None, None)
    }

    /// Whether a device has a taint that the request does not tolerate.
    pub(super) fn shuns(&self, device: &Value) -> bool {
        list(device, "taints")
            .iter()
            .filter(|taint| matches!(text(taint, "effect"), "NoSchedule" | "NoExecute"))
            .any(|taint| {
                !list(self.spec, "tolerations")
                    .iter()
                    .any(|toleration| machinery::placement::tolerates(toleration, taint))
            })
    }
}

/// `quantity(…)` or `semver(…)` of a text.
fn made(function: &str, text: &str) -> cel_value::Value {
    let read = Expression::read(&format!("{function}(self)"));
    let value = read
        .ok()
        .and_then(|read| read.value(&SCOPE, &[("self", values::text(text))]).ok());
    value.unwrap_or_else(|| values::text(text))
}

/// The domains that an expression looks up: those that a device says nothing of are empty, not missing.
fn domains(expression: &str) -> impl Iterator<Item = &str> {
    ["attributes[", "capacity["].into_iter().flat_map(move |start| {
        expression.match_indices(start).filter_map(move |(at, _)| {
            let rest = expression.get(at + start.len()..)?.trim_start();
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            rest.get(1..)?.split(quote).next()
        })
    })
}

/// The variable `device` of a selector.
fn variable(device: &Device<'_>, expression: &str) -> cel_value::Value {
    let (driver, object) = (device.id.0, device.object);
    let by_domain = |field: &str, value: &dyn Fn(&Value) -> cel_value::Value| {
        let mut out: BTreeMap<String, Vec<(String, cel_value::Value)>> = domains(expression)
            .map(|domain| (domain.to_owned(), Vec::new()))
            .collect();
        let all = object.get(field).and_then(Value::as_object);
        for (name, entry) in all.into_iter().flatten() {
            let (domain, id) = name.split_once('/').unwrap_or((driver, name));
            let of_domain = out.entry(domain.to_owned()).or_default();
            of_domain.push((id.to_owned(), value(entry)));
        }
        values::map(
            out.into_iter()
                .map(|(domain, entries)| (domain, values::map(entries))),
        )
    };
    let attribute = |entry: &Value| match entry.get("version").and_then(Value::as_str) {
        Some(version) => made("semver", version),
        None => {
            let plain = ["string", "int", "bool"].iter().find_map(|kind| entry.get(kind));
            plain.map_or_else(|| values::text(""), values::plain)
        }
    };
    let capacity = |entry: &Value| made("quantity", text(entry, "value"));
    let shared = super::capacity::is_shared(object);
    values::map([
        ("driver".to_owned(), values::text(driver)),
        (
            "allowMultipleAllocations".to_owned(),
            cel_value::Value::Bool(shared),
        ),
        ("attributes".to_owned(), by_domain("attributes", &attribute)),
        ("capacity".to_owned(), by_domain("capacity", &capacity)),
    ])
}
