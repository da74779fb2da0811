//! Containers: lists, statuses, commands, stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cri::messages::{
    Container, ContainerFilter, ContainerMetadata, ContainerState, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, Empty, ExecSyncRequest, ExecSyncResponse, ImageSpec, ListContainersRequest,
    ListContainersResponse, StopContainerRequest, VersionRequest, VersionResponse,
};
use cri::{Code, Service, Status};
use go_dump::container_hash;
use jiff::Timestamp;
use nodes::{ExecError, NodeContainer, canonical};

use super::Node;

/// The name of the runtime, before the ids of containers in statuses of pods.
const NAME: &str = "containerd";
/// Its version, as the nodes say it.
const VERSION: &str = "2.1.0";
/// The labels and annotations that the kubelet gives containers begin so.
const KUBERNETES: &str = "io.kubernetes.";
/// How long a command without a limit may take.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The same service, which answers calls about the containers of a node.
pub(super) fn on(service: Service, node: &Arc<Node>) -> Service {
    let [listed, shown, ran, stopped] = [(); 4].map(|()| Arc::clone(node));
    service
        .on(|_: VersionRequest| async { Ok(version()) })
        .on(move |request: ListContainersRequest| {
            let containers = list(&listed, &request.filter.unwrap_or_default());
            async { Ok(ListContainersResponse { containers }) }
        })
        .on(move |request: ContainerStatusRequest| {
            let found = find(&shown, &request.container_id).map(|container| status(&shown, &container));
            async { found.map(|status| ContainerStatusResponse { status: Some(status) }) }
        })
        .on(move |request| exec(Arc::clone(&ran), request))
        .on(move |request| stop(Arc::clone(&stopped), request))
}

fn version() -> VersionResponse {
    VersionResponse {
        version: "0.1.0".to_owned(),
        runtime_name: NAME.to_owned(),
        runtime_version: VERSION.to_owned(),
        runtime_api_version: "v1".to_owned(),
    }
}

/// A container's id at the socket: without the runtime's name.
fn id(container: &NodeContainer) -> &str {
    let id = container.info.id.as_str();
    id.split_once("://").map_or(id, |(_, id)| id)
}

/// The container with this id, of those on the node.
fn find(node: &Node, wanted: &str) -> Result<NodeContainer, Status> {
    let here = node.containers.on_node(&node.name);
    let missing = || {
        let why = format!("an error occurred when try to find container \"{wanted}\": not found");
        Status::new(Code::NOT_FOUND, why)
    };
    here.into_iter()
        .find(|container| id(container) == wanted)
        .ok_or_else(missing)
}

/// The sandbox of a pod has the pod's uid for its id.
fn list(node: &Node, filter: &ContainerFilter) -> Vec<Container> {
    let is_wanted = |wanted: &str, has: &str| wanted.is_empty() || wanted == has;
    let shown = |container: &NodeContainer| Container {
        id: id(container).to_owned(),
        pod_sandbox_id: container.pod_uid.clone(),
        metadata: Some(metadata(container)),
        image: Some(image(container)),
        image_ref: node.images.image_id(&container.info.image),
        state: state(container),
        created_at: nanoseconds(container.info.started),
        labels: labels(container),
        annotations: annotations(container),
    };
    let here = node.containers.on_node(&node.name);
    here.iter()
        .map(shown)
        .filter(|container| {
            is_wanted(&filter.id, &container.id)
                && is_wanted(&filter.pod_sandbox_id, &container.pod_sandbox_id)
                && filter
                    .label_selector
                    .iter()
                    .all(|(key, value)| container.labels.get(key) == Some(value))
        })
        .collect()
}

fn status(node: &Node, container: &NodeContainer) -> ContainerStatus {
    let started = nanoseconds(container.info.started);
    ContainerStatus {
        id: id(container).to_owned(),
        metadata: Some(metadata(container)),
        state: state(container),
        created_at: started,
        started_at: started,
        image: Some(image(container)),
        image_ref: node.images.image_id(&container.info.image),
        labels: labels(container),
        annotations: annotations(container),
        ..ContainerStatus::default()
    }
}

fn image(container: &NodeContainer) -> ImageSpec {
    ImageSpec {
        image: canonical(&container.info.image),
    }
}

fn metadata(container: &NodeContainer) -> ContainerMetadata {
    ContainerMetadata {
        name: container.info.name.clone(),
        attempt: container.info.restarts,
    }
}

fn state(container: &NodeContainer) -> i32 {
    i32::from(match container.info.running {
        true => ContainerState::Running,
        false => ContainerState::Exited,
    })
}

fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or_default()
}

fn labels(container: &NodeContainer) -> BTreeMap<String, String> {
    [
        ("container.name", &container.info.name),
        ("pod.name", &container.pod),
        ("pod.namespace", &container.namespace),
        ("pod.uid", &container.pod_uid),
    ]
    .into_iter()
    .map(|(name, value)| (format!("{KUBERNETES}{name}"), value.clone()))
    .collect()
}

fn annotations(container: &NodeContainer) -> BTreeMap<String, String> {
    let info = &container.info;
    let hash = container_hash(&info.name, Some(&info.image));
    let hook = (!info.pre_stop.is_null()).then(|| info.pre_stop.to_string());
    [
        ("hash", Some(format!("{hash:x}"))),
        ("restartCount", Some(info.restarts.to_string())),
        ("preStopHandler", hook),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((format!("{KUBERNETES}container.{name}"), value?)))
    .collect()
}

async fn exec(node: Arc<Node>, request: ExecSyncRequest) -> Result<ExecSyncResponse, Status> {
    let container = find(&node, &request.container_id)?;
    let limit = match u64::try_from(request.timeout) {
        Ok(seconds @ 1..) => Duration::from_secs(seconds),
        _ => FOR_EVER,
    };
    let ran = node.containers.exec(&container.info.id, request.cmd, limit).await;
    match ran {
        Ok(ran) => Ok(ExecSyncResponse {
            stdout: ran.out,
            stderr: ran.err,
            exit_code: ran.code,
        }),
        Err(ExecError::TimedOut { .. }) => Err(Status::new(
            Code::DEADLINE_EXCEEDED,
            format!(
                "failed to exec in container: timeout {}s exceeded: context deadline exceeded",
                limit.as_secs()
            ),
        )),
        Err(error) => Err(Status::new(
            Code::UNKNOWN,
            format!("failed to exec in container: {error}"),
        )),
    }
}

/// Ready once the container has ended, as of a real runtime.
async fn stop(node: Arc<Node>, request: StopContainerRequest) -> Result<Empty, Status> {
    let container = find(&node, &request.container_id)?;
    let grace = Duration::from_secs(u64::try_from(request.timeout).unwrap_or_default());
    node.containers.stop(&container.info.id, grace).await;
    Ok(Empty {})
}
