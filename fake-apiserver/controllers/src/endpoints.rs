//! EndpointSlices and Endpoints: the addresses of a service's pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use std::time::Duration;

use async_trait::async_trait;
use go_dump::slice_port_hash;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::types::rfc3339;
use shared_json::{Value, json};

use super::binding::annotation;
use super::packing::{Packed, pack, reuse};
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, is_true, list, text, time};
use super::subsets::{Address, CAPACITY, repack, sorted, truncate};
use super::topology::{self, Shares, Zones};
use super::workloads::pod_control::is_namespace_going;
use super::workloads::pods::owner_reference;
use crate::runtime::is_over;

const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The annotation of Endpoints that lack addresses because there are too many.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// How often a pod whose node is not known is looked at again, and how long that takes at first (the real ones).
const TRIES_MAX: u32 = 15;
const TRY_AFTER: Duration = Duration::from_secs(1);
const TRY_AFTER_MAX: Duration = Duration::from_secs(1000);

/// The controller.
#[derive(Default)]
pub(super) struct EndpointSlices {
    seen: BTreeMap<Key, Triggers>,
    /// How often each service has been looked at in vain.
    tries: BTreeMap<Key, u32>,
    /// The zones that endpoints of services are for which asked for that by annotation.
    zones: BTreeMap<Key, Zones>,
}

/// The moments that a service's endpoints were last written for.
#[derive(Debug, Default)]
struct Triggers {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

impl Triggers {
    /// The earliest time among the changes since the last call, for the endpoints' annotation; none if
    /// nothing tells when it changed. A service that is `new` counts from its creation.
    fn next(&mut self, service: &Value, pods: &[Arc<Value>], new: bool) -> Option<Timestamp> {
        let ready = |pod: &Value| condition(pod, "Ready").and_then(|ready| time(ready, "lastTransitionTime"));
        let times: BTreeMap<String, Timestamp> = pods
            .iter()
            .filter_map(|pod| Some((pod.name().to_owned(), ready(pod)?)))
            .collect();
        let created = time(service, "metadata.creationTimestamp");
        let changed = times
            .iter()
            .filter(|(name, at)| self.pods.get(*name).is_none_or(|before| before < *at))
            .map(|(_, at)| *at)
            .chain(created.filter(|at| self.service.is_none_or(|before| before < *at)))
            .min();
        self.pods = times;
        self.service = created;
        if new { created } else { changed }
    }
}

/// Whether slices say the same of two versions of a pod.
fn is_alike(old: &Value, new: &Value) -> bool {
    text(old, "status.podIP") == text(new, "status.podIP")
        && is_true(old, "Ready") == is_true(new, "Ready")
        && old.is_terminating() == new.is_terminating()
        && is_over(old) == is_over(new)
        && text(old, "spec.nodeName") == text(new, "spec.nodeName")
        && string_map(old, "labels") == string_map(new, "labels")
}

fn selects(service: &Value, pod: &Value) -> bool {
    let selector = at(service, "spec.selector").and_then(Value::as_object);
    let labels = string_map(pod, "labels");
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

fn protocol(port: &Value) -> &str {
    port.get("protocol").and_then(Value::as_str).unwrap_or("TCP")
}

/// A service's port on a pod: by number, or by the name of one of its containers' ports of that protocol.
fn port_on(port: &Value, pod: &Value) -> Option<i64> {
    match port.get("targetPort") {
        None => port.get("port").and_then(Value::as_i64),
        Some(Value::String(name)) => list(pod, "spec.containers")
            .iter()
            .chain(list(pod, "spec.initContainers"))
            .flat_map(|container| list(container, "ports"))
            .find(|found| text(found, "name") == name && protocol(found) == protocol(port))
            .and_then(|found| found.get("containerPort").and_then(Value::as_i64)),
        Some(number) => number.as_i64(),
    }
}

/// The ports of a slice for a pod.
fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let ports = list(service, "spec.ports")
        .iter()
        .filter_map(|port| {
            let number = port_on(port, pod)?;
            let protocol = port.get("protocol").cloned().unwrap_or_else(|| json!("TCP"));
            let mut out = json!({"name": text(port, "name"), "port": number, "protocol": protocol});
            if let Some(app) = port.get("appProtocol") {
                out["appProtocol"] = app.clone();
            }
            Some(out)
        })
        .collect();
    sorted(ports, slice_port_hash)
}

fn endpoint(service: &Value, pod: &Value, node: Option<&Value>) -> Value {
    let publish = publishes_all(service);
    let serving = is_true(pod, "Ready");
    let terminating = pod.is_terminating();
    let mut out = json!({
        "addresses": [text(pod, "status.podIP")],
        "conditions": {"ready": publish || (serving && !terminating), "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": pod.namespace(), "name": pod.name(), "uid": pod.uid()},
    });
    if !text(pod, "spec.nodeName").is_empty() {
        out["nodeName"] = Value::from(text(pod, "spec.nodeName"));
    }
    let zone = node.and_then(|node| string_map(node, "labels").get("topology.kubernetes.io/zone"));
    if let Some(zone) = zone {
        out["zone"] = zone.clone();
    }
    let near = text(service, "spec.trafficDistribution");
    if !topology::is_asked(service)
        && matches!(near, "PreferClose" | "PreferSameZone" | "PreferSameNode")
        && (publish || (serving && !terminating))
    {
        let mut hints = json!({});
        if let Some(zone) = zone {
            hints["forZones"] = json!([{"name": zone}]);
        }
        if near == "PreferSameNode" && out.get("nodeName").is_some() {
            hints["forNodes"] = json!([{"name": out["nodeName"]}]);
        }
        if hints.as_object().is_some_and(|hints| !hints.is_empty()) {
            out["hints"] = hints;
        }
    }
    let hostname = text(pod, "spec.hostname");
    if !hostname.is_empty() && text(pod, "spec.subdomain") == service.name() {
        out["hostname"] = Value::from(hostname);
    }
    out
}

/// Whether addresses are published of pods that are not ready, and of those whose nodes are not known.
fn publishes_all(service: &Value) -> bool {
    at(service, "spec.publishNotReadyAddresses").and_then(Value::as_bool) == Some(true)
}

fn has_address(pod: &Value) -> bool {
    !text(pod, "status.podIP").is_empty() && !is_over(pod)
}

/// The endpoints that a service is to have, by their ports.
fn wanted(service: &Value, pods: &[Arc<Value>], cache: &Cache) -> Vec<(Vec<Value>, Vec<Value>)> {
    let mut groups: BTreeMap<String, (Vec<Value>, Vec<Value>)> = BTreeMap::new();
    for pod in pods {
        if !has_address(pod) {
            continue;
        }
        let ports = ports(service, pod);
        let node = cache.get(Res::Nodes, "", text(pod, "spec.nodeName"));
        let entry = endpoint(service, pod, node.map(AsRef::as_ref));
        groups
            .entry(Value::from(ports.clone()).to_string())
            .or_insert_with(|| (ports, Vec::new()))
            .1
            .push(entry);
    }
    groups.into_values().collect()
}

/// The slices of a service that this controller looks after.
fn present_slices(service: &Value, cache: &Cache) -> Vec<Arc<Value>> {
    cache
        .in_namespace(Res::Slices, service.namespace())
        .filter(|slice| {
            let labels = string_map(slice, "labels");
            labels.get(SERVICE_LABEL).and_then(Value::as_str) == Some(service.name())
                && labels.get(MANAGER_LABEL).and_then(Value::as_str) == Some(MANAGER)
        })
        .cloned()
        .collect()
}

fn is_owned(service: &Value, slice: &Value) -> bool {
    list(slice, "metadata.ownerReferences")
        .iter()
        .any(|owner| text(owner, "uid") == service.uid() && text(owner, "kind") == "Service")
}

/// The slices that a service is to have, and those that go.
fn packed(
    service: &Value,
    wanted: Vec<(Vec<Value>, Vec<Value>)>,
    present: &[Arc<Value>],
    labels: &Value,
) -> (Vec<Packed>, Vec<Arc<Value>>) {
    let (mut own, mut gone): (Vec<Arc<Value>>, Vec<Arc<Value>>) = present
        .iter()
        .cloned()
        .partition(|slice| is_owned(service, slice));
    let mut out = Vec::new();
    for (ports, endpoints) in wanted {
        let (same, others) = own
            .into_iter()
            .partition(|slice| sorted(list(slice, "ports").to_vec(), slice_port_hash) == ports);
        own = others;
        let relabelled = |slice: &Value| slice.pointer("/metadata/labels") != Some(labels);
        let (packed, emptied) = pack(&ports, endpoints, &same, relabelled);
        out.extend(packed);
        gone.extend(emptied);
    }
    gone.extend(own);
    // There is always one.
    if out.is_empty() {
        out.push(Packed::default());
    }
    reuse(&mut out, &mut gone, |slice| is_owned(service, slice));
    (out, gone)
}

#[async_trait]
impl Controller for EndpointSlices {
    fn name(&self) -> &'static str {
        "endpoint-slice-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Services, Res::Pods, Res::Slices, Res::Endpoints, Res::Nodes]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Services => vec![Key::of(object)],
            Res::Pods => {
                if old.is_some_and(|old| is_alike(old, object)) {
                    return Vec::new();
                }
                cache
                    .in_namespace(Res::Services, object.namespace())
                    .filter(|service| {
                        selects(service, object) || old.is_some_and(|old| selects(service, old))
                    })
                    .map(|service| Key::of(service))
                    .collect()
            }
            Res::Slices => string_map(object, "labels")
                .get(SERVICE_LABEL)
                .and_then(Value::as_str)
                .map(|name| Key::new(object.namespace(), name))
                .into_iter()
                .collect(),
            Res::Nodes if old.is_none_or(|old| topology::place(old) != topology::place(object)) => {
                let shares = shares(cache);
                self.zones
                    .iter()
                    .filter(|(_, zones)| topology::is_overloaded(zones, shares.as_ref()))
                    .map(|(key, _)| key.clone())
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(service) = cx.cache.get(Res::Services, &key.namespace, &key.name).cloned() else {
            self.seen.remove(key);
            self.tries.remove(key);
            self.zones.remove(key);
            // The collector takes the slices; Endpoints have no owner.
            if let Some(endpoints) = cx.cache.get(Res::Endpoints, &key.namespace, &key.name).cloned() {
                cx.delete(Res::Endpoints, &endpoints, None).await?;
            }
            return Ok(Next::Change);
        };
        let selector = at(&service, "spec.selector").and_then(Value::as_object);
        if selector.is_none_or(shared_json::Map::is_empty)
            || text(&service, "spec.type") == "ExternalName"
            || service.is_terminating()
        {
            return Ok(Next::Change);
        }
        let pods: Vec<Arc<Value>> = cx
            .cache
            .in_namespace(Res::Pods, &key.namespace)
            .filter(|pod| selects(&service, pod))
            .cloned()
            .collect();
        let new = !self.seen.contains_key(key);
        let trigger = self
            .seen
            .entry(key.clone())
            .or_default()
            .next(&service, &pods, new);
        // A pod whose node is not known yet has no place in a slice.
        let placed: Vec<Arc<Value>> = pods
            .iter()
            .filter(|pod| {
                publishes_all(&service)
                    || !has_address(pod)
                    || cx.cache.get(Res::Nodes, "", text(pod, "spec.nodeName")).is_some()
            })
            .cloned()
            .collect();
        let labels = labels_of(
            &service,
            json!({SERVICE_LABEL: service.name(), MANAGER_LABEL: MANAGER}),
        );
        let (mut of_slices, gone) = packed(
            &service,
            wanted(&service, &placed, cx.cache),
            &present_slices(&service, cx.cache),
            &labels,
        );
        let told = self.give_hints(&service, key, &mut of_slices, cx.cache);
        slices(cx, &service, of_slices, labels, trigger).await?;
        for slice in gone {
            cx.delete(Res::Slices, &slice, None).await?;
        }
        match told {
            Some((reason @ "TopologyAwareHintsEnabled", text)) => {
                cx.normal(Res::Services, &service, reason, text);
            }
            Some((reason, text)) => cx.warning(Res::Services, &service, reason, text),
            None => {}
        }
        // And the older form cannot tell of one that is on none.
        if !pods
            .iter()
            .any(|pod| has_address(pod) && text(pod, "spec.nodeName").is_empty())
        {
            let of_all = wanted(&service, &pods, cx.cache);
            endpoints(cx, &service, &of_all, trigger).await?;
        }
        if placed.len() == pods.len() {
            self.tries.remove(key);
            return Ok(Next::Change);
        }
        let tries = self.tries.entry(key.clone()).or_default();
        *tries += 1;
        Ok(if *tries > TRIES_MAX {
            Next::Change
        } else {
            Next::After(
                TRY_AFTER
                    .saturating_mul(2_u32.saturating_pow(*tries - 1))
                    .min(TRY_AFTER_MAX),
            )
        })
    }
}

fn shares(cache: &Cache) -> Option<Shares> {
    topology::shares(cache.all(Res::Nodes).map(AsRef::as_ref))
}

impl EndpointSlices {
    /// Adds the hints that the annotation asks for; returns the reason and message of the event about them.
    fn give_hints(
        &mut self,
        service: &Value,
        key: &Key,
        slices: &mut [Packed],
        cache: &Cache,
    ) -> Option<(&'static str, String)> {
        let told = |text: &str| format!("{text}, addressType: IPv4");
        if !topology::is_asked(service) {
            self.zones.remove(key)?;
            return Some((
                "TopologyAwareHintsDisabled",
                told("Topology Aware Hints has been disabled"),
            ));
        }
        let mut endpoints: Vec<&mut Value> = slices
            .iter_mut()
            .flat_map(|packed| packed.endpoints.iter_mut())
            .collect();
        match topology::give_hints(&mut endpoints, shares(cache).as_ref()) {
            Ok(zones) => self.zones.insert(key.clone(), zones).is_none().then(|| {
                (
                    "TopologyAwareHintsEnabled",
                    told("Topology Aware Hints has been enabled"),
                )
            }),
            Err(why) => {
                for endpoint in endpoints {
                    if let Some(map) = endpoint.as_object_mut() {
                        map.remove("hints");
                    }
                }
                self.zones.remove(key);
                Some(("TopologyAwareHintsDisabled", told(&why)))
            }
        }
    }
}

/// The labels of a service's slices and Endpoints, with those of `own`.
fn labels_of(service: &Value, own: Value) -> Value {
    let mut labels = own;
    for (key, value) in string_map(service, "labels") {
        // What these labels say is not the service's to say.
        if key != HEADLESS_LABEL && labels.get(key).is_none() {
            labels[key] = value.clone();
        }
    }
    if text(service, "spec.clusterIP") == "None" {
        labels[HEADLESS_LABEL] = json!("");
    }
    labels
}

/// Writes the trigger time of the endpoints, or removes it if there is none.
fn set_trigger(object: &mut Value, trigger: Option<Timestamp>) {
    annotate(object, TRIGGER, trigger.map(rfc3339));
}

/// Sets an annotation, or takes it away.
fn annotate(object: &mut Value, key: &str, value: Option<String>) {
    match value {
        Some(value) => object["metadata"]["annotations"][key] = Value::from(value),
        None => {
            if let Some(map) = object
                .pointer_mut("/metadata/annotations")
                .and_then(Value::as_object_mut)
            {
                map.remove(key);
            }
        }
    }
}

async fn slices(
    cx: &mut Cx<'_>,
    service: &Value,
    wanted: Vec<Packed>,
    labels: Value,
    trigger: Option<Timestamp>,
) -> Result<(), kube::Error> {
    for Packed {
        slice,
        ports,
        endpoints,
    } in wanted
    {
        if let Some(slice) = slice {
            if list(&slice, "endpoints") == endpoints.as_slice()
                && list(&slice, "ports") == ports.as_slice()
                && slice.pointer("/metadata/labels") == Some(&labels)
            {
                continue;
            }
            let mut changed = Value::clone(&slice);
            set_trigger(&mut changed, trigger);
            changed["metadata"]["labels"] = labels.clone();
            changed["endpoints"] = Value::from(endpoints);
            changed["ports"] = Value::from(ports);
            changed["apiVersion"] = json!(Res::Slices.api_version());
            changed["kind"] = json!(Res::Slices.kind());
            cx.update(Res::Slices, &changed).await?;
            continue;
        }
        let mut slice = json!({
            "metadata": {
                "generateName": format!("{}-", service.name()), "namespace": service.namespace(), "labels": labels,
                "ownerReferences": [owner_reference("v1", "Service", service)],
            },
            "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
        });
        set_trigger(&mut slice, trigger);
        match cx.create(Res::Slices, service.namespace(), slice).await {
            // No more are to be had there.
            Err(error) if is_namespace_going(&error) => return Ok(()),
            other => other?,
        };
    }
    Ok(())
}

/// An endpoint as an address of Endpoints, and whether it is ready; none of a pod that is on its way out, unless all are published.
fn address(entry: &Value, publishes_all: bool) -> Option<Address> {
    if !publishes_all && at(entry, "conditions.terminating") == Some(&json!(true)) {
        return None;
    }
    let mut address = json!({"ip": entry["addresses"][0], "targetRef": entry["targetRef"]});
    for field in ["nodeName", "hostname"] {
        if let Some(value) = entry.get(field) {
            address[field] = value.clone();
        }
    }
    Some((address, at(entry, "conditions.ready") == Some(&json!(true))))
}

/// A port of Endpoints, where a name is a text: none is the same as an empty one.
fn without_empty_name(mut port: Value) -> Value {
    if text(&port, "name").is_empty()
        && let Some(map) = port.as_object_mut()
    {
        map.remove("name");
    }
    port
}

/// The older form: subsets of addresses that share ports.
async fn endpoints(
    cx: &mut Cx<'_>,
    service: &Value,
    wanted: &[(Vec<Value>, Vec<Value>)],
    trigger: Option<Timestamp>,
) -> Result<(), kube::Error> {
    // Where a service has ports and a pod none of them, it has no endpoint there.
    let has_ports = !list(service, "spec.ports").is_empty();
    let all = publishes_all(service);
    let served: Vec<(Vec<Value>, Vec<Address>)> = wanted
        .iter()
        .filter(|(ports, _)| !(ports.is_empty() && has_ports))
        .map(|(ports, entries)| {
            let ports = ports.iter().cloned().map(without_empty_name).collect();
            (
                ports,
                entries.iter().filter_map(|entry| address(entry, all)).collect(),
            )
        })
        .collect();
    let mut subsets = repack(&served);
    let over_capacity = truncate(&mut subsets, CAPACITY).then(|| "truncated".to_owned());
    let mut labels = labels_of(service, json!({}));
    labels["endpoints.kubernetes.io/managed-by"] = json!("endpoint-controller");
    match cx
        .cache
        .get(Res::Endpoints, service.namespace(), service.name())
        .cloned()
    {
        Some(present) => {
            if list(&present, "subsets") == subsets.as_slice()
                && Value::Object(string_map(&present, "labels").clone()) == labels
                && annotation(&present, OVER_CAPACITY) == over_capacity.as_deref().unwrap_or_default()
            {
                return Ok(());
            }
            let mut changed = Value::clone(&present);
            changed["subsets"] = Value::from(subsets);
            changed["metadata"]["labels"] = labels;
            set_trigger(&mut changed, trigger);
            annotate(&mut changed, OVER_CAPACITY, over_capacity);
            changed["apiVersion"] = json!("v1");
            changed["kind"] = json!("Endpoints");
            cx.update(Res::Endpoints, &changed).await?;
        }
        None => {
            let mut object = json!({
                "metadata": {"name": service.name(), "namespace": service.namespace(), "labels": labels},
                "subsets": subsets,
            });
            set_trigger(&mut object, trigger);
            annotate(&mut object, OVER_CAPACITY, over_capacity);
            match cx.create(Res::Endpoints, service.namespace(), object).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                other => {
                    other?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"port": 80}), Some(80))]
    #[case(json!({"port": 80, "targetPort": 8080}), Some(8080))]
    #[case(json!({"port": 80, "targetPort": "web"}), Some(9090))]
    #[case(json!({"port": 80, "targetPort": "web", "protocol": "UDP"}), None)]
    #[case(json!({"port": 80, "targetPort": "none"}), None)]
    #[case(json!({"port": 80, "targetPort": "side"}), Some(7070))]
    #[case(json!({"port": 80, "targetPort": "twice"}), Some(1))]
    #[case(json!({"port": 80, "targetPort": 9090}), Some(9090))]
    #[case(json!({"port": 80, "targetPort": "8080"}), None)]
    fn ports_of_pods(#[case] port: Value, #[case] expected: Option<i64>) {
        let pod = json!({"spec": {
            "containers": [
                {"ports": [{"name": "web", "containerPort": 9090}, {"name": "twice", "containerPort": 1}]},
                {"ports": [{"name": "twice", "containerPort": 2}]},
            ],
            "initContainers": [{"restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 7070}]}],
        }});
        assert_eq!(port_on(&port, &pod), expected);
    }

    #[rstest]
    #[case(json!({}), true, false, (true, true, false))]
    #[case(json!({}), false, false, (false, false, false))]
    #[case(json!({}), true, true, (false, true, true))]
    #[case(json!({"publishNotReadyAddresses": true}), false, true, (true, false, true))]
    #[case(json!({"publishNotReadyAddresses": true}), true, false, (true, true, false))]
    #[case(json!({"publishNotReadyAddresses": true}), true, true, (true, true, true))]
    #[case(json!({"publishNotReadyAddresses": true}), false, false, (true, false, false))]
    #[case(json!({"publishNotReadyAddresses": false}), false, true, (false, false, true))]
    fn conditions_of_endpoints(
        #[case] spec: Value,
        #[case] ready: bool,
        #[case] terminating: bool,
        #[case] expected: (bool, bool, bool),
    ) {
        let mut pod = json!({"metadata": {"name": "p"}, "status": {"podIP": "1.1.1.1", "conditions": [
            {"type": "Ready", "status": if ready { "True" } else { "False" }},
        ]}});
        if terminating {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let entry = endpoint(&json!({"metadata": {"name": "s"}, "spec": spec}), &pod, None);
        let of = |field: &str| entry["conditions"][field] == true;
        assert_eq!((of("ready"), of("serving"), of("terminating")), expected);
    }

    #[rstest]
    #[case(json!({"a": "b"}), json!({"a": "b"}), true)]
    #[case(json!({"a": "b"}), json!({"a": "b", "c": "d"}), true)]
    #[case(json!({"a": "b", "c": "d"}), json!({"a": "b"}), false)]
    #[case(json!({"a": "b"}), json!({"a": "c"}), false)]
    #[case(json!({"a": ""}), json!({}), false)]
    #[case(json!({}), json!({"a": "b"}), false)]
    #[case(Value::Null, json!({"a": "b"}), false)]
    fn which_pods_a_service_has(#[case] selector: Value, #[case] labels: Value, #[case] expected: bool) {
        let service = json!({"spec": {"selector": selector}});
        assert_eq!(
            selects(&service, &json!({"metadata": {"labels": labels}})),
            expected
        );
    }
}
