//! Probes that a PodProbeMarker asks for.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, equal, pod};
use crate::cluster::{NODE, cluster_objects, objects};
use crate::{Failure, Proof, until};

/// A port without a listener.
pub(super) fn port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The port of the server in `side`.
async fn served(proof: &Proof) -> Result<i32, Failure> {
    let pod = pod(proof).await?;
    let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
    let mut ports = containers
        .iter()
        .flat_map(|container| container.ports.iter().flatten());
    Ok(ports.next().ok_or("there is no port")?.container_port)
}

/// The results of the node by the names of probes: state and message.
async fn states(proof: &Proof) -> Result<BTreeMap<String, (String, String)>, Failure> {
    let lists = cluster_objects(&proof.place.client, "v1alpha1", "NodePodProbe");
    let list = lists.get(NODE).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = list.data["status"]["podProbeStatuses"]
        .as_array()
        .into_iter()
        .flatten();
    let states = pods.flat_map(|pod| pod["probeStates"].as_array().into_iter().flatten());
    let states = states.map(|state| {
        (
            text(&state["name"]),
            (text(&state["state"]), text(&state["message"])),
        )
    });
    Ok(states.collect())
}

pub(super) async fn results(proof: &Proof) -> Result<String, Failure> {
    let (open, closed) = (served(proof).await?, port()?);
    let refused = format!("dial tcp 127.0.0.1:{closed}: connect: connection refused");
    let expected = [
        (
            "exec",
            json!({ "exec": { "command": ["echo", "it is up"] } }),
            "Succeeded",
            "it is up\n",
        ),
        (
            "exec-fails",
            json!({ "exec": { "command": ["sh", "-c", "echo no >&2; exit 3"] } }),
            "Failed",
            "no\n",
        ),
        (
            "exec-hangs",
            json!({ "exec": { "command": ["sleep", "9"] } }),
            "Failed",
            "command timed out: \"sleep 9\" timed out after 1s",
        ),
        (
            "http",
            json!({ "httpGet": { "path": "/index.html", "port": "http", "scheme": "HTTP" } }),
            "Succeeded",
            "welcome\n",
        ),
        (
            "http-missing",
            json!({ "httpGet": { "path": "/nope", "port": open, "scheme": "HTTP" } }),
            "Failed",
            "HTTP probe failed with statuscode: 404",
        ),
        ("tcp", json!({ "tcpSocket": { "port": "http" } }), "Succeeded", ""),
        (
            "tcp-refused",
            json!({ "tcpSocket": { "port": closed } }),
            "Failed",
            &refused,
        ),
    ];
    let probes: Vec<Value> = expected
        .iter()
        .map(|(name, handler, ..)| {
            let container = if name.starts_with("exec") { "main" } else { "side" };
            let mut probe = handler.clone();
            probe["periodSeconds"] = json!(2);
            json!({ "name": name, "containerName": container, "podConditionType": format!("proof/{name}"), "probe": probe })
        })
        .collect();
    let marker: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": { "name": "up" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "probes": probes },
    }))?;
    let markers = objects(&proof.place.client, "v1alpha1", "PodProbeMarker");
    markers.create(&PostParams::default(), &marker).await?;
    let found = until("results of all probes", LIMIT, async || {
        let states = states(proof).await?;
        let known = states.values().filter(|(state, _)| state != "Unknown").count();
        Ok((known == expected.len()).then_some(states))
    })
    .await?;
    let expected = expected.iter().map(|(name, _, state, message)| {
        (format!("up#{name}"), ((*state).to_owned(), (*message).to_owned()))
    });
    equal("the results", &found, &expected.collect())?;
    until("the conditions of the pod", LIMIT, async || {
        let status = pod(proof).await?.status.unwrap_or_default();
        let is = |kind: &str, value: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|condition| condition.type_ == kind && condition.status == value)
        };
        Ok((is("proof/tcp", "True") && is("proof/tcp-refused", "False")).then_some(()))
    })
    .await?;
    markers.delete("up", &Default::default()).await?;
    Ok(found
        .iter()
        .map(|(name, (state, message))| format!("{name}: {state} {message:?}\n"))
        .collect())
}
