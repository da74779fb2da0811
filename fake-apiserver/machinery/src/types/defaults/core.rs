//! Services, namespaces, nodes, limit ranges, replication controllers.

use super::builtin::{object, set, text, unset};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shared_json::{Map, Value, json};

pub(super) fn fill(kind: &str, map: &mut Map) {
    match kind {
        "v1.Service" => {
            if let Some(spec) = object(map, "spec") {
                service(spec);
            }
            load_balancer_modes(map);
        }
        "v1.ServicePort" => {
            // 0 and "" are "unset" in Go.
            let target = map.get("targetPort").unwrap_or(&Value::Null);
            if target.is_null() || *target == 0 || *target == "" {
                let port = map.get("port").cloned().unwrap_or_else(|| json!(0));
                map.insert("targetPort".to_owned(), port);
            }
        }
        "v1.Secret" => string_data(map),
        "v1.NodeSpec" => pod_networks(map),
        "v1.Namespace" => {
            let name = map
                .get("metadata")
                .and_then(|metadata| metadata.get("name"))
                .cloned();
            if let Some(Value::String(name)) =
                name.filter(|name| name.as_str().is_some_and(|name| !name.is_empty()))
            {
                // Whatever the client says, the label is the name.
                set(map, &["metadata", "labels"], &json!({}));
                if let Some(labels) = object(map, "metadata").and_then(|metadata| object(metadata, "labels"))
                {
                    labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
                }
            }
        }
        "v1.NodeStatus" => {
            if unset(map, "allocatable")
                && let Some(capacity) = map.get("capacity").cloned()
            {
                map.insert("allocatable".to_owned(), capacity);
            }
        }
        "v1.LimitRangeItem" if text(map, "type") == "Container" => limit_range_item(map),
        "v1.ReplicationController" => replication_controller(map),
        _ => {}
    }
}

/// `podCIDR` is the first of `podCIDRs`, and counts where the two differ.
fn pod_networks(spec: &mut Map) {
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    let one = text(spec, "podCIDR").to_owned();
    if !one.is_empty() && first.as_ref().and_then(Value::as_str) != Some(&one) {
        spec.insert("podCIDRs".to_owned(), json!([one]));
    } else if let Some(first) = first {
        spec.insert("podCIDR".to_owned(), first);
    }
}

/// `stringData` is written into `data` and not kept; bytes that are null are none.
fn string_data(secret: &mut Map) {
    let data = secret.get_mut("data").and_then(Value::as_object_mut);
    for bytes in data.into_iter().flat_map(Map::values_mut) {
        if bytes.is_null() {
            *bytes = Value::from("");
        }
    }
    let Some(Value::Object(texts)) = secret.remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    for (name, text) in texts {
        if let (Some(data), Value::String(text)) = (data.as_object_mut(), text) {
            data.insert(name, STANDARD.encode(text).into());
        }
    }
}

fn service(spec: &mut Map) {
    match text(spec, "sessionAffinity") {
        "ClientIP" => {
            let hours = &json!(10800);
            set(
                spec,
                &["sessionAffinityConfig", "clientIP", "timeoutSeconds"],
                hours,
            );
        }
        _ => {
            spec.remove("sessionAffinityConfig");
        }
    }
    let kind = text(spec, "type").to_owned();
    let external_ips = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|ips| !ips.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external_ips) {
        set(spec, &["externalTrafficPolicy"], &json!("Cluster"));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        set(spec, &["internalTrafficPolicy"], &json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, &["allocateLoadBalancerNodePorts"], &json!(true));
    }
}

/// An address of a load balancer is one that traffic is sent to, unless it says otherwise.
fn load_balancer_modes(service: &mut Map) {
    let kind = service.get("spec").and_then(|spec| spec.get("type")?.as_str());
    if kind != Some("LoadBalancer") {
        return;
    }
    let ingress = service
        .get_mut("status")
        .and_then(|status| status.pointer_mut("/loadBalancer/ingress")?.as_array_mut());
    for point in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !text(point, "ip").is_empty() {
            set(point, &["ipMode"], &json!("VIP"));
        }
    }
}

/// A container's default limit is the maximum; its default request is the default limit, or the minimum.
fn limit_range_item(item: &mut Map) {
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let amounts = item
            .get(from)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        for (name, amount) in amounts {
            set(item, &[to, &name], &amount);
        }
    }
}

/// Labels and selector come from the template's labels.
fn replication_controller(map: &mut Map) {
    let Some(labels) = map
        .get("spec")
        .and_then(|spec| spec.pointer("/template/metadata/labels"))
        .cloned()
    else {
        return;
    };
    if let Some(spec) = object(map, "spec") {
        set(spec, &["selector"], &labels);
    }
    set(map, &["metadata", "labels"], &labels);
}
