//! Restarts that ContainerRecreateRequests ask for.

use kube::ResourceExt as _;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, equal, event, id_of, pod, status_of};
use crate::cluster::objects;
use crate::{Failure, Proof, until};

/// Runs a request for one container of the pod to its end. Gives its status.
async fn recreate(proof: &Proof, request: &str, container: &str) -> Result<Value, Failure> {
    let requests = objects(&proof.place.client, "v1alpha1", "ContainerRecreateRequest");
    let body: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest", "metadata": { "name": request },
        "spec": {
            "podName": pod(proof).await?.name_any(), "containers": [{ "name": container }],
            "strategy": { "terminationGracePeriodSeconds": 3 },
        },
    }))?;
    requests.create(&PostParams::default(), &body).await?;
    until(&format!("the request {request} to end"), LIMIT, async || {
        let status = requests.get(request).await?.data["status"].clone();
        Ok(Some(status).filter(|status| status["phase"] == "Completed"))
    })
    .await
}

/// Fails unless the request has restarted one of two containers.
async fn restarts(proof: &Proof, request: &str, one: &str, other: &str) -> Result<u32, Failure> {
    let before = pod(proof).await?;
    let count = |pod| status_of(pod, one).map_or(0, |status| status.restart_count);
    let status = recreate(proof, request, one).await?;
    let expected = json!([{ "name": one, "phase": "Succeeded", "isKilled": true }]);
    equal(
        "the states of the request",
        &status["containerRecreateStates"],
        &expected,
    )?;
    let after = pod(proof).await?;
    equal("the restarts of the container", count(&after), count(&before) + 1)?;
    equal(
        "whether it has the id that it had",
        id_of(&after, one)? == id_of(&before, one)?,
        false,
    )?;
    equal(
        "the id of the other container",
        id_of(&after, other)?,
        id_of(&before, other)?,
    )?;
    Ok(u32::try_from(count(&before))?)
}

pub(super) async fn hook(proof: &Proof) -> Result<String, Failure> {
    let attempt = restarts(proof, "main", "main", "side").await?;
    let pod = pod(proof).await?;
    let log = proof.logs.join(format!("default_{}", pod.name_any()));
    let log = std::fs::read_to_string(log.join(format!("main.{attempt}.log")))?;
    equal(
        "whether the hook has written to the log",
        log.contains("bye"),
        true,
    )?;
    event(proof, "Killing", "by ContainerRecreateRequest main").await
}

pub(super) async fn failing_hook(proof: &Proof) -> Result<String, Failure> {
    restarts(proof, "side", "side", "main").await?;
    let pod = pod(proof).await?;
    let message = event(proof, "FailedPreStopHook", "side").await?;
    let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
    let expected = format!(
        "Exec lifecycle hook ([false]) for Container \"side\" in Pod \"{name}_default({uid})\" failed - error: \
         command 'false' exited with 1: , message: \"\""
    );
    equal("the message of the event", &message, &expected)?;
    Ok(message)
}

pub(super) async fn of_the_runtime(proof: &Proof) -> Result<String, Failure> {
    let before = pod(proof).await?;
    proof.containerd.restart().await?;
    equal(
        "the id of main",
        id_of(&pod(proof).await?, "main")?,
        id_of(&before, "main")?,
    )?;
    restarts(proof, "again", "main", "side").await?;
    event(proof, "Killing", "by ContainerRecreateRequest again").await
}
