//! The daemon's reports of containers.

use controller::daemon::container_hash;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, equal, exec, id_of, pod};
use crate::cluster::{clone_set, objects};
use crate::{Failure, Proof, until};

/// The annotation with the report.
const REPORT: &str = "apps.kruise.io/runtime-containers-meta";
/// OpenKruise's hash of the environment `CFG=one`.
const ONE: u64 = 3_624_006_759;
/// That of `CFG=two`.
const TWO: u64 = 2_021_199_766;
/// That of an environment without references.
const NONE: u64 = 86_995_377;

/// A program that ends when it is asked to.
const OBEDIENT: &str = "trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done";
/// A hook that writes into the log of its container.
const HOOK: &str = "echo bye > /proc/1/fd/1";

/// The containers in the report of a pod, once there are two with this hash of the environment of `main`.
async fn reported(proof: &Proof, hash: u64) -> Result<(Pod, Vec<Value>), Failure> {
    until(&format!("a report with the hash {hash}"), LIMIT, async || {
        let pod = pod(proof).await?;
        let text = pod.annotations().get(REPORT);
        let report: Value = text
            .map(|text| serde_json::from_str(text))
            .transpose()?
            .unwrap_or_default();
        let containers = report["containers"].as_array().cloned().unwrap_or_default();
        let of_main = containers
            .first()
            .map(|main| main["hashes"]["extractedEnvFromMetadataHash"] == hash);
        Ok((containers.len() == 2 && of_main == Some(true)).then_some((pod, containers)))
    })
    .await
}

pub(super) async fn containers(proof: &Proof) -> Result<String, Failure> {
    let image = format!("{}/app:1", proof.registry);
    let port = super::probes::port()?;
    let spec = json!({ "containers": [
        {
            "name": "main", "image": image, "command": ["sh", "-c", OBEDIENT],
            "env": [{ "name": "CFG", "valueFrom": { "fieldRef": { "fieldPath": "metadata.annotations['cfg']" } } }],
            "lifecycle": { "preStop": { "exec": { "command": ["sh", "-c", HOOK] } } },
        },
        {
            "name": "side", "image": image, "command": ["httpd", "-f", "-p", format!("127.0.0.1:{port}"), "-h", "/www"],
            "ports": [{ "name": "http", "containerPort": port, "hostPort": port }],
            "lifecycle": { "preStop": { "exec": { "command": ["false"] } } },
        },
    ] });
    let mut set = clone_set("web", 1, &spec);
    set["spec"]["updateStrategy"] = json!({ "type": "InPlaceIfPossible" });
    let set: DynamicObject = serde_json::from_value(set)?;
    let sets = objects(&proof.place.client, "v1alpha1", "CloneSet");
    sets.create(&PostParams::default(), &set).await?;
    let (pod, containers) = reported(proof, ONE).await?;
    let mut expected = Vec::new();
    for (name, environment) in [("main", ONE), ("side", NONE)] {
        expected.push(json!({
            "name": name, "containerID": id_of(&pod, name)?, "restartCount": 0,
            "hashes": { "plainHash": container_hash(name, &image), "extractedEnvFromMetadataHash": environment },
        }));
    }
    equal("the report", &containers, &expected)?;
    Ok(containers
        .iter()
        .map(|container| format!("{container}\n"))
        .collect())
}

pub(super) async fn environment(proof: &Proof) -> Result<String, Failure> {
    let before = pod(proof).await?;
    let side = id_of(&before, "side")?;
    let sets = objects(&proof.place.client, "v1alpha1", "CloneSet");
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "cfg": "two" } } } } });
    sets.patch("web", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    let (pod, containers) = reported(proof, TWO).await?;
    equal("the pod", pod.uid(), before.uid())?;
    equal("restartCount of main", &containers[0]["restartCount"], &json!(1))?;
    equal("the id of side", id_of(&pod, "side")?, side)?;
    let environment = exec(proof, &id_of(&pod, "main")?, &["env"]).await?;
    equal(
        "whether CFG is two",
        environment.lines().any(|line| line == "CFG=two"),
        true,
    )?;
    super::event(proof, "Killing", "by container meta restarter").await
}
