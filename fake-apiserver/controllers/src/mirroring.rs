//! EndpointSlices that mirror Endpoints of services without a selector, which clients keep.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use go_dump::slice_port_hash;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};
use super::subsets::sorted;
use super::workloads::pods::owner_reference;

const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP_LABEL: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations of Endpoints that are not their slices'.
const OWN_ANNOTATIONS: [&str; 2] = [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// How many addresses of a subset are mirrored (the real default).
const ADDRESSES_MAX: usize = 1000;

/// The controller.
pub(super) struct EndpointSliceMirroring;

/// A slice that Endpoints are to have: addresses of one family that share ports.
#[derive(Debug, PartialEq)]
struct Wanted {
    family: &'static str,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

fn entry(address: &Value, ready: bool) -> Option<(&'static str, Value)> {
    let ip: IpAddr = text(address, "ip").parse().ok()?;
    let mut out = json!({"addresses": [ip.to_string()], "conditions": {"ready": ready}});
    for field in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(field) {
            out[field] = value.clone();
        }
    }
    Some((if ip.is_ipv4() { "IPv4" } else { "IPv6" }, out))
}

/// The slices of Endpoints, by family and ports.
fn wanted(endpoints: &Value) -> Vec<Wanted> {
    let mut out: BTreeMap<(&'static str, String), Wanted> = BTreeMap::new();
    for subset in list(endpoints, "subsets") {
        let ports: Vec<Value> = list(subset, "ports")
            .iter()
            .map(|port| {
                let mut port = port.clone();
                port["name"] = Value::from(text(&port, "name"));
                port
            })
            .collect();
        let ports = sorted(ports, slice_port_hash);
        let of = |field: &str, ready: bool| {
            list(subset, field)
                .iter()
                .filter_map(move |address| entry(address, ready))
                .collect::<Vec<_>>()
        };
        let entries = of("addresses", true)
            .into_iter()
            .chain(of("notReadyAddresses", false));
        for (family, entry) in entries.take(ADDRESSES_MAX) {
            let key = (family, Value::from(ports.clone()).to_string());
            let slice = out.entry(key).or_insert_with(|| Wanted {
                family,
                ports: ports.clone(),
                endpoints: Vec::new(),
            });
            slice.endpoints.push(entry);
        }
    }
    out.into_values().collect()
}

/// Whether Endpoints are to be mirrored at all.
fn is_mirrored(endpoints: &Value, service: Option<&Arc<Value>>) -> bool {
    let skips = string_map(endpoints, "labels")
        .get(SKIP_LABEL)
        .and_then(Value::as_str)
        == Some("true");
    let leads = string_map(endpoints, "annotations").contains_key(LEADER);
    let by_hand = service.is_some_and(|service| {
        at(service, "spec.selector")
            .and_then(Value::as_object)
            .is_none_or(shared_json::Map::is_empty)
    });
    !skips && !leads && by_hand && !endpoints.is_terminating()
}

#[async_trait]
impl Controller for EndpointSliceMirroring {
    fn name(&self) -> &'static str {
        "endpoint-slice-mirroring-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Endpoints, Res::Services, Res::Slices]
    }

    fn affected(&self, _: &Cache, res: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Slices => {
                let labels = string_map(object, "labels");
                let ours = labels.get(MANAGER_LABEL).and_then(Value::as_str) == Some(MANAGER);
                let name = labels.get(SERVICE_LABEL).and_then(Value::as_str);
                name.filter(|_| ours)
                    .map(|name| Key::new(object.namespace(), name))
                    .into_iter()
                    .collect()
            }
            _ => vec![Key::of(object)],
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let service = cx.cache.get(Res::Services, &key.namespace, &key.name).cloned();
        let endpoints = cx
            .cache
            .get(Res::Endpoints, &key.namespace, &key.name)
            .filter(|endpoints| is_mirrored(endpoints, service.as_ref()))
            .cloned();
        let mut present: Vec<Arc<Value>> = cx
            .cache
            .in_namespace(Res::Slices, &key.namespace)
            .filter(|slice| {
                let labels = string_map(slice, "labels");
                labels.get(SERVICE_LABEL).and_then(Value::as_str) == Some(key.name.as_str())
                    && labels.get(MANAGER_LABEL).and_then(Value::as_str) == Some(MANAGER)
            })
            .cloned()
            .collect();
        if let Some(endpoints) = endpoints {
            for wanted in wanted(&endpoints) {
                let same = |slice: &Arc<Value>| {
                    text(slice, "addressType") == wanted.family
                        && list(slice, "ports") == wanted.ports.as_slice()
                };
                let found = present.iter().position(same).or_else(|| {
                    present
                        .iter()
                        .position(|slice| text(slice, "addressType") == wanted.family)
                });
                let old = found.map(|at| present.remove(at));
                write(cx, &endpoints, &wanted, old.as_deref()).await?;
            }
        }
        for slice in present {
            cx.delete(Res::Slices, &slice, None).await?;
        }
        Ok(Next::Change)
    }
}

async fn write(
    cx: &mut Cx<'_>,
    endpoints: &Value,
    wanted: &Wanted,
    old: Option<&Value>,
) -> Result<(), kube::Error> {
    let mut labels = Value::Object(string_map(endpoints, "labels").clone());
    labels[SERVICE_LABEL] = json!(endpoints.name());
    labels[MANAGER_LABEL] = json!(MANAGER);
    let mut annotations = string_map(endpoints, "annotations").clone();
    annotations.retain(|key, _| !OWN_ANNOTATIONS.contains(&key.as_str()));
    let Some(old) = old else {
        let mut slice = json!({
            "metadata": {
                "generateName": format!("{}-", endpoints.name()), "namespace": endpoints.namespace(), "labels": labels,
                "ownerReferences": [owner_reference("v1", "Endpoints", endpoints)],
            },
            "addressType": wanted.family, "endpoints": wanted.endpoints, "ports": wanted.ports,
        });
        if !annotations.is_empty() {
            slice["metadata"]["annotations"] = Value::Object(annotations);
        }
        return cx
            .create(Res::Slices, endpoints.namespace(), slice)
            .await
            .map(drop);
    };
    if list(old, "endpoints") == wanted.endpoints.as_slice()
        && list(old, "ports") == wanted.ports.as_slice()
        && old.pointer("/metadata/labels") == Some(&labels)
        && *string_map(old, "annotations") == annotations
    {
        return Ok(());
    }
    let mut changed = old.clone();
    changed["endpoints"] = json!(wanted.endpoints);
    changed["ports"] = json!(wanted.ports);
    changed["metadata"]["labels"] = labels;
    changed["metadata"]["annotations"] = Value::Object(annotations);
    changed["apiVersion"] = json!(Res::Slices.api_version());
    changed["kind"] = json!(Res::Slices.kind());
    cx.update(Res::Slices, &changed).await.map(drop)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Endpoints' subsets, and the slices: family, number of ports, addresses.
    #[rstest]
    #[case(json!([]), &[])]
    #[case(json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]), &["IPv4 1 192.0.2.1"])]
    #[case(json!([{"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]}]), &["IPv4 0 192.0.2.1", "IPv6 0 2001:db8::1"])]
    #[case(json!([{"addresses": [{"ip": "192.0.2.1"}], "notReadyAddresses": [{"ip": "192.0.2.2"}]}]), &["IPv4 0 192.0.2.1 !192.0.2.2"])]
    #[case(json!([{"addresses": [{"ip": "192.0.2.1"}]}, {"addresses": [{"ip": "192.0.2.2"}]}]), &["IPv4 0 192.0.2.1 192.0.2.2"])]
    #[case(json!([{"addresses": [{"ip": "not one"}]}]), &[])]
    #[case(
        json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}, {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 81}]}]),
        &["IPv4 1 192.0.2.1", "IPv4 1 192.0.2.1"]
    )]
    #[case(
        json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}, {"name": "b", "port": 81}]}]), &["IPv4 2 192.0.2.1"]
    )]
    #[case(json!([{"notReadyAddresses": [{"ip": "2001:db8::2"}]}]), &["IPv6 0 !2001:db8::2"])]
    #[case(json!([{"addresses": [{"ip": "2001:DB8:0::2"}]}]), &["IPv6 0 2001:db8::2"])]
    #[case(json!([{"addresses": [], "ports": [{"port": 80}]}]), &[])]
    fn slices(#[case] subsets: Value, #[case] expected: &[&str]) {
        let shown: Vec<String> = wanted(&json!({"subsets": subsets}))
            .iter()
            .map(|slice| {
                let mut out = format!("{} {}", slice.family, slice.ports.len());
                for entry in &slice.endpoints {
                    let mark = if entry["conditions"]["ready"] == true {
                        ""
                    } else {
                        "!"
                    };
                    out += &format!(" {mark}{}", entry["addresses"][0].as_str().unwrap_or_default());
                }
                out
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[rstest]
    #[case(json!({}), json!({"spec": {}}), true)]
    #[case(json!({}), json!({"spec": {"selector": {"a": "b"}}}), false)]
    #[case(json!({"labels": {SKIP_LABEL: "true"}}), json!({"spec": {}}), false)]
    #[case(json!({"labels": {SKIP_LABEL: "no"}}), json!({"spec": {}}), true)]
    #[case(json!({"annotations": {LEADER: "{}"}}), json!({"spec": {}}), false)]
    #[case(json!({}), json!({"spec": {"selector": {}}}), true)]
    #[case(json!({"labels": {SKIP_LABEL: ""}}), json!({"spec": {}}), true)]
    #[case(json!({"annotations": {LEADER: ""}}), json!({"spec": {}}), false)]
    #[case(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({"spec": {}}), false)]
    fn who_is_mirrored(#[case] metadata: Value, #[case] service: Value, #[case] expected: bool) {
        let endpoints = json!({"metadata": metadata});
        assert_eq!(is_mirrored(&endpoints, Some(&Arc::new(service))), expected);
        assert!(!is_mirrored(&endpoints, None));
    }
}
