//! The runtimes against scripted ones that speak CRI.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use controller::daemon::{ContainerRuntime as _, Credential, ImageService as _, PullRequest, RuntimeError};
use cri::messages::{
    Container, ContainerMetadata, ContainerState, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, Empty, ExecSyncRequest, ExecSyncResponse, Image, ImageFsInfoResponse,
    ImageStatusRequest, ImageStatusResponse, ListContainersRequest, ListContainersResponse,
    ListImagesResponse, PullImageRequest, PullImageResponse, StopContainerRequest, VersionResponse,
};
use cri::{Code, Service, serve};
use rstest::rstest;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use super::*;

/// A folder with the sockets of runtimes, until dropped.
struct Node {
    folder: PathBuf,
    servers: JoinSet<()>,
    /// The calls that change something, a line each.
    calls: Arc<Mutex<Vec<String>>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// A container of pod `u`: its id, its name, when it was made, its state and its annotations.
type Made = (
    &'static str,
    &'static str,
    i64,
    ContainerState,
    &'static [(&'static str, &'static str)],
);

const CONTAINERS: [Made; 5] = [
    (
        "a0",
        "main",
        1,
        ContainerState::Exited,
        &[("io.kubernetes.container.restartCount", "0")],
    ),
    (
        "a1",
        "main",
        2_000_000_000,
        ContainerState::Running,
        &[
            ("io.kubernetes.container.restartCount", "1"),
            ("io.kubernetes.container.hash", "7109e445"),
            (
                "io.kubernetes.container.preStopHandler",
                r#"{"exec":{"command":["bye"]}}"#,
            ),
        ],
    ),
    (
        "b0",
        "side",
        3,
        ContainerState::Exited,
        &[("io.kubernetes.container.hash", "none")],
    ),
    ("c0", "made", 4, ContainerState::Created, &[]),
    ("gone", "removed", 5, ContainerState::Running, &[]),
];

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    pairs.collect()
}

fn labels(name: &str) -> BTreeMap<String, String> {
    map(&[
        ("io.kubernetes.pod.uid", "u"),
        ("io.kubernetes.container.name", name),
    ])
}

fn list(request: ListContainersRequest) -> ListContainersResponse {
    let filter = request.filter.unwrap_or_default();
    let wanted = filter.label_selector == map(&[("io.kubernetes.pod.uid", "u")]);
    let containers = CONTAINERS
        .iter()
        .filter(|_| wanted)
        .map(|(id, name, made, state, _)| Container {
            id: (*id).to_owned(),
            metadata: Some(ContainerMetadata {
                name: (*name).to_owned(),
                attempt: 0,
            }),
            state: i32::from(*state),
            created_at: *made,
            labels: labels(name),
            ..Container::default()
        });
    ListContainersResponse {
        containers: containers.collect(),
    }
}

fn status(request: &ContainerStatusRequest) -> Result<ContainerStatusResponse, Status> {
    let id = &request.container_id;
    let found = CONTAINERS.iter().find(|(known, ..)| known == id && id != "gone");
    let (id, name, made, state, annotations) =
        found.ok_or_else(|| Status::new(Code::NOT_FOUND, format!("{id:?}: not found")))?;
    let status = ContainerStatus {
        id: (*id).to_owned(),
        state: i32::from(*state),
        created_at: *made,
        started_at: *made,
        labels: labels(name),
        annotations: map(annotations),
        ..ContainerStatus::default()
    };
    Ok(ContainerStatusResponse { status: Some(status) })
}

fn exec(request: &ExecSyncRequest) -> Result<ExecSyncResponse, Status> {
    match &*request.cmd.join(" ") {
        "ok" => Ok(ExecSyncResponse {
            stdout: b"fine".to_vec(),
            ..ExecSyncResponse::default()
        }),
        "fails" => Ok(ExecSyncResponse {
            stderr: b"broken".to_vec(),
            exit_code: 3,
            ..ExecSyncResponse::default()
        }),
        "hangs" => Err(Status::new(
            Code::DEADLINE_EXCEEDED,
            "failed to exec in container: timeout exceeded",
        )),
        _ => Err(Status::new(Code::UNKNOWN, "executable file not found in $PATH")),
    }
}

impl Node {
    /// A node with runtimes of these names, each at a socket of its name. `none` does not serve images.
    fn new(test: &str, runtimes: &[&'static str]) -> Self {
        let folder = std::env::temp_dir().join(format!("runtimes-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut node = Self {
            folder,
            servers: JoinSet::new(),
            calls: Arc::default(),
        };
        for name in runtimes {
            let listener = UnixListener::bind(node.socket(name)).unwrap();
            let service = node.service(name);
            node.servers.spawn(serve(listener, service));
        }
        node
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn service(&self, name: &'static str) -> Service {
        let version = VersionResponse {
            runtime_name: name.to_owned(),
            ..VersionResponse::default()
        };
        let service = Service::default().on(move |_: VersionRequest| std::future::ready(Ok(version.clone())));
        if name == "none" {
            return service;
        }
        let (stopped, pulled) = (Arc::clone(&self.calls), Arc::clone(&self.calls));
        service
            .on(|_: ImageFsInfoRequest| async { Ok(ImageFsInfoResponse::default()) })
            .on(|_: ListImagesRequest| async { Ok(ListImagesResponse::default()) })
            .on(move |request: ListContainersRequest| async move {
                Ok(if name == "containerd" {
                    list(request)
                } else {
                    ListContainersResponse::default()
                })
            })
            .on(|request: ContainerStatusRequest| async move { status(&request) })
            .on(|request: ExecSyncRequest| async move { exec(&request) })
            .on(move |request: StopContainerRequest| {
                stopped.lock().unwrap().push(format!(
                    "{name}: stop {} in {} s",
                    request.container_id, request.timeout
                ));
                async move {
                    match &*request.container_id {
                        "gone" => Err(Status::new(Code::NOT_FOUND, "\"gone\": not found")),
                        "stuck" => Err(Status::new(Code::DEADLINE_EXCEEDED, "an exit event is missing")),
                        _ => Ok(Empty {}),
                    }
                }
            })
            .on(|request: ImageStatusRequest| async move {
                let known = request.image.is_some_and(|image| image.image == "nginx:1");
                let image = known.then(|| Image {
                    id: "sha256:1".to_owned(),
                    ..Image::default()
                });
                Ok(ImageStatusResponse { image })
            })
            .on(move |request: PullImageRequest| {
                let image = request.image.unwrap_or_default().image;
                let auth = request
                    .auth
                    .map(|auth| format!("{}/{}", auth.username, auth.password));
                let sandbox = request.sandbox_config.unwrap_or_default();
                pulled.lock().unwrap().push(format!(
                    "{name}: pull {image} {auth:?} {:?} {:?}",
                    sandbox.labels, sandbox.annotations
                ));
                async move {
                    match &*image {
                        "nginx:2" => Err(Status::new(Code::NOT_FOUND, "nginx:2: not found")),
                        _ => Ok(PullImageResponse::default()),
                    }
                }
            })
    }

    async fn runtimes(&self, names: &[&str]) -> Result<Runtimes, String> {
        let sockets: Vec<PathBuf> = names.iter().map(|name| self.socket(name)).collect();
        let connected = Runtimes::connect(&sockets, "test").await;
        connected.map_err(|error| error.to_string().replace(&shown(&self.folder), "."))
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The sockets that are tried, and the names of the runtimes that are used or the error.
#[rstest]
#[case::both("containerd cri-o", Ok("containerd cri-o"))]
#[case::without_images("none cri-o", Ok("cri-o"))]
#[case::nobody_listens("missing containerd", Ok("containerd"))]
#[case::none_left(
    "none missing",
    Err(
        "speak to a container runtime:\n\
        ./none: rpc error: code = Unimplemented desc = unknown method /runtime.v1.ImageService/ImageFsInfo\n\
        ./missing: rpc error: code = Unavailable desc = connect to ./missing: No such file or directory (os error 2)"
    )
)]
#[tokio::test]
async fn usable_runtimes(#[case] tried: &str, #[case] expect: Result<&str, &str>) {
    let node = Node::new(&tried.replace(' ', "-"), &["containerd", "cri-o", "none"]);
    let tried: Vec<&str> = tried.split(' ').collect();
    let used = node.runtimes(&tried).await;
    let names = used.map(|used| {
        used.0
            .iter()
            .map(|runtime| runtime.name.clone())
            .collect::<Vec<_>>()
            .join(" ")
    });
    assert_eq!(names.as_deref().map_err(String::as_str), expect);
}

#[tokio::test]
async fn the_newest_container_of_each_name_is_shown() {
    let node = Node::new("newest", &["cri-o", "containerd"]);
    let runtimes = node.runtimes(&["cri-o", "containerd"]).await.unwrap();
    let found = runtimes.containers("u").await.unwrap();
    let lines: Vec<String> = found
        .iter()
        .map(|found| {
            let hook = found
                .pre_stop
                .as_ref()
                .and_then(|hook| hook.exec.clone()?.command);
            let second = found.started_at.as_second();
            format!(
                "{} {} {} {} {second} {} {hook:?}",
                found.name, found.id, found.restart_count, found.hash, found.running
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "made containerd://c0 0 0 0 false None",
            "main containerd://a1 1 1896473669 2 true Some([\"bye\"])",
            "side containerd://b0 0 0 0 false None",
        ]
    );
    assert_eq!(runtimes.containers("another").await.unwrap(), []);
}

#[rstest]
#[case::ends("containerd://a1", "ok", 1, Ok((0, "fine", "")))]
#[case::fails("containerd://a1", "fails", 1, Ok((3, "", "broken")))]
#[case::hangs("containerd://a1", "hangs", 90, Err(RuntimeError::TimedOut("command timed out: \"hangs\" timed out after 1m30s".to_owned())))]
#[case::missing(
    "containerd://a1", "nonesuch", 1,
    Err(RuntimeError::Failed("rpc error: code = Unknown desc = executable file not found in $PATH".to_owned()))
)]
#[case::another_runtime("docker://a1", "ok", 1, Err(RuntimeError::Failed("not found runtime service for docker://a1".to_owned())))]
#[case::no_runtime("a1", "ok", 1, Err(RuntimeError::Failed("not found runtime service for a1".to_owned())))]
#[tokio::test]
async fn commands(
    #[case] id: &str,
    #[case] command: &str,
    #[case] seconds: u64,
    #[case] expect: Result<(i32, &str, &str), RuntimeError>,
) {
    let node = Node::new(&format!("exec-{command}-{}", id.len()), &["containerd"]);
    let runtimes = node.runtimes(&["containerd"]).await.unwrap();
    let ended = runtimes
        .exec(id, &[command.to_owned()], Duration::from_secs(seconds))
        .await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ended = ended.map(|output| (output.code, text(&output.out), text(&output.err)));
    let ended = ended.as_ref().map(|(code, out, err)| (*code, &**out, &**err));
    assert_eq!(ended.map_err(Clone::clone), expect);
}

/// A container and its milliseconds; the call, and the error.
#[rstest]
#[case::stops("containerd://a1", 2000, Some("containerd: stop a1 in 2 s"), None)]
#[case::parts_of_seconds("cri-o://a1", 1001, Some("cri-o: stop a1 in 2 s"), None)]
#[case::removed_already("containerd://gone", 1000, Some("containerd: stop gone in 1 s"), None)]
#[case::does_not_stop(
    "containerd://stuck",
    1000,
    Some("containerd: stop stuck in 1 s"),
    Some("rpc error: code = DeadlineExceeded desc = an exit event is missing")
)]
#[case::another_runtime("docker://a1", 1000, None, Some("not found runtime service for docker://a1"))]
#[tokio::test]
async fn stops(#[case] id: &str, #[case] ms: u64, #[case] call: Option<&str>, #[case] error: Option<&str>) {
    let node = Node::new(
        &format!("stop-{}-{ms}", id.replace("://", "-")),
        &["containerd", "cri-o"],
    );
    let runtimes = node.runtimes(&["containerd", "cri-o"]).await.unwrap();
    let stopped = runtimes.stop(id, Duration::from_millis(ms)).await;
    assert_eq!(stopped.err().map(|error| error.to_string()).as_deref(), error);
    assert_eq!(node.calls(), Vec::from_iter(call));
}

#[tokio::test]
async fn images_are_those_of_the_first_runtime() {
    let node = Node::new("images", &["containerd", "cri-o"]);
    let runtimes = node.runtimes(&["cri-o", "containerd"]).await.unwrap();
    assert_eq!(runtimes.status("nginx:1").await, Ok(Some("sha256:1".to_owned())));
    assert_eq!(runtimes.status("nginx:2").await, Ok(None));
    let credential = Credential {
        username: "a".to_owned(),
        password: "b".to_owned(),
    };
    let mut request = PullRequest {
        image: "nginx:1".to_owned(),
        credential: Some(credential),
        labels: map(&[("l", "1")]),
        annotations: map(&[("n", "2")]),
    };
    assert_eq!(runtimes.pull(&request).await, Ok(()));
    request = PullRequest {
        image: "nginx:2".to_owned(),
        credential: None,
        ..request
    };
    let refused = "rpc error: code = NotFound desc = nginx:2: not found";
    assert_eq!(runtimes.pull(&request).await, Err(refused.to_owned()));
    assert_eq!(
        node.calls(),
        [
            r#"cri-o: pull nginx:1 Some("a/b") {"l": "1"} {"n": "2"}"#,
            r#"cri-o: pull nginx:2 None {"l": "1"} {"n": "2"}"#,
        ]
    );
}
