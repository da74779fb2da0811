//! The scenes of the proof.

mod idle;
mod images;
mod probes;
mod reports;
mod restarts;

use std::future::Future;
use std::time::Duration;

use cri::messages::{
    ExecSyncRequest, ImageSpec, ImageStatusRequest, ListPodSandboxRequest, RemovePodSandboxRequest,
    StopPodSandboxRequest,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::api::{Api, ListParams};
use tokio::time::Instant;

use crate::{Failure, Proof, until};

/// How long something may take that a scene waits for.
const LIMIT: Duration = Duration::from_secs(30);

/// How the scenes went.
#[derive(Default)]
struct Counts {
    passed: u32,
    failed: u32,
}

impl Counts {
    async fn scene(&mut self, name: &str, scene: impl Future<Output = Result<String, Failure>>) {
        let began = Instant::now();
        let result = scene.await;
        let seconds = began.elapsed().as_secs_f32();
        match result {
            Ok(shown) => {
                self.passed += 1;
                println!("ok: containerd: {name} ({seconds:.1} s)");
                for line in shown.lines() {
                    println!("    {line}");
                }
            }
            Err(error) => {
                self.failed += 1;
                println!("failed: containerd: {name} ({seconds:.1} s): {error}");
            }
        }
    }
}

/// Plays all scenes. Gives whether they passed.
pub(crate) async fn play(proof: &Proof) -> bool {
    let mut counts = Counts::default();
    counts.scene("an image is pulled", images::public(proof)).await;
    counts
        .scene(
            "a private image is refused without a Secret",
            images::refused(proof),
        )
        .await;
    counts
        .scene("a private image is pulled with a Secret", images::private(proof))
        .await;
    counts
        .scene(
            "containers of a CloneSet are reported",
            reports::containers(proof),
        )
        .await;
    counts
        .scene(
            "a new environment restarts a container",
            reports::environment(proof),
        )
        .await;
    counts
        .scene(
            "a request restarts one container after its hook",
            restarts::hook(proof),
        )
        .await;
    counts
        .scene("a hook that fails is told", restarts::failing_hook(proof))
        .await;
    counts
        .scene(
            "a runtime that was restarted is used again",
            restarts::of_the_runtime(proof),
        )
        .await;
    counts.scene("probes have results", probes::results(proof)).await;
    counts
        .scene("health and metrics are served", idle::endpoints(proof))
        .await;
    counts.scene("an idle daemon sleeps", idle::sleeps(proof)).await;
    println!("containerd: {} passed, {} failed", counts.passed, counts.failed);
    counts.failed == 0
}

/// Ends all sandboxes, so that nothing outlives containerd.
pub(crate) async fn clean_up(proof: &Proof) -> Result<(), Failure> {
    let runtime = proof.containerd.client();
    let listed = runtime.call(&ListPodSandboxRequest {}, Some(LIMIT)).await?;
    for sandbox in listed.items {
        let pod_sandbox_id = sandbox.id;
        let stop = StopPodSandboxRequest {
            pod_sandbox_id: pod_sandbox_id.clone(),
        };
        runtime.call(&stop, Some(LIMIT)).await?;
        runtime
            .call(&RemovePodSandboxRequest { pod_sandbox_id }, Some(LIMIT))
            .await?;
    }
    Ok(())
}

/// The id of an image on the node.
async fn image_id(proof: &Proof, image: &str) -> Result<Option<String>, Failure> {
    let request = ImageStatusRequest {
        image: Some(ImageSpec {
            image: image.to_owned(),
        }),
    };
    let status = proof.containerd.client().call(&request, Some(LIMIT)).await?;
    Ok(status.image.map(|image| image.id))
}

/// The output of a command in a container.
async fn exec(proof: &Proof, id: &str, command: &[&str]) -> Result<String, Failure> {
    let request = ExecSyncRequest {
        container_id: id.trim_start_matches("containerd://").to_owned(),
        cmd: command.iter().map(|part| (*part).to_owned()).collect(),
        timeout: 5,
    };
    let ended = proof.containerd.client().call(&request, Some(LIMIT)).await?;
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// The pod of the CloneSet `web`, once there is one.
async fn pod(proof: &Proof) -> Result<Pod, Failure> {
    let pods: Api<Pod> = Api::default_namespaced(proof.place.client.clone());
    let of_web = ListParams::default().labels("app=web");
    until("a pod of web", LIMIT, async || {
        Ok(pods.list(&of_web).await?.items.pop())
    })
    .await
}

/// The status of a container of a pod.
fn status_of<'p>(pod: &'p Pod, name: &str) -> Option<&'p ContainerStatus> {
    let status = pod.status.as_ref()?;
    let mut statuses = status.container_statuses.iter().flatten();
    statuses.find(|status| status.name == name)
}

/// The id of a container of a pod.
fn id_of(pod: &Pod, name: &str) -> Result<String, Failure> {
    let id = status_of(pod, name).and_then(|status| status.container_id.clone());
    Ok(id.ok_or_else(|| format!("{name} has no id"))?)
}

/// The message of the newest event of a reason, once there is one.
async fn event(proof: &Proof, reason: &str, about: &str) -> Result<String, Failure> {
    let events: Api<Event> = Api::default_namespaced(proof.place.client.clone());
    until(&format!("an event {reason} about {about}"), LIMIT, async || {
        let events = events.list(&ListParams::default()).await?;
        let mut found = events
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason));
        Ok(found.find_map(|event| event.message.filter(|message| message.contains(about))))
    })
    .await
}

/// Fails unless two values are equal.
fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, and should be {expected:?}").into())
}
