//! The container runtimes of simulated nodes, asked at their sockets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cri::messages::{
    AuthConfig, ContainerFilter, ContainerState, ContainerStatusRequest, ExecSyncRequest, ImageFsInfoRequest,
    ImageSpec, ImageStatusRequest, ListContainersRequest, ListImagesRequest, PullImageRequest,
    StopContainerRequest, VersionRequest,
};
use cri::{Call, Status};
use fake_apiserver::Cluster;
use fake_apiserver::nodes::{Containers, ImageRegistry, NodeFile};
use fake_apiserver::serve::NodeSockets;
use rstest::rstest;
use shared_json::{Value, json};

use crate::process::{Directory, real_time};
use crate::support::request;

const PODS: &str = "/api/v1/namespaces/default/pods";
const UID: &str = "io.kubernetes.pod.uid";

/// Two nodes with sockets in a folder.
struct Bed {
    cluster: Cluster,
    folder: PathBuf,
    _sockets: NodeSockets,
}

impl Bed {
    async fn start(folder: &Path, images_file: &str) -> Self {
        let (containers, images) = (Containers::default(), ImageRegistry::default());
        NodeFile::from_yaml(images_file)
            .expect("images")
            .register(&images);
        let nodes = ["node1", "node2"].map(str::to_owned);
        let sockets = NodeSockets::listen(folder, &nodes, &containers, &images).expect("sockets");
        let builder = Cluster::builder().nodes(2).quick(true).images(images);
        Self {
            cluster: builder.containers(containers).start().await.expect("a cluster"),
            folder: folder.to_owned(),
            _sockets: sockets,
        }
    }

    async fn call<C: Call>(&self, node: &str, request: C) -> Result<C::Answer, Status> {
        let socket = self.folder.join(format!("{node}.sock"));
        cri::Client::new(&socket, "test").call(&request, None).await
    }

    /// Makes a pod with one container on a node, and waits until it runs. Gives its uid.
    async fn pod(&self, name: &str, node: &str, container: Value) -> String {
        let running = json!({"name": "c", "image": "busybox:1", "command": ["sleep", "3600"]});
        let container = crate::support::with(running, container);
        let spec = json!({"nodeName": node, "containers": [container]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let (code, answer) = request(&self.cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201, "{answer}");
        let pod = self.until(name, |pod| pod["status"]["phase"] == "Running").await;
        pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
    }

    async fn until(&self, pod: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, pod) = request(&self.cluster, "GET", &format!("{PODS}/{pod}"), &Value::Null).await;
            if is_so(&pod) {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The ids of a pod's containers on a node.
    async fn ids(&self, node: &str, uid: &str) -> Vec<String> {
        let filter = ContainerFilter {
            label_selector: BTreeMap::from([(UID.to_owned(), uid.to_owned())]),
            ..ContainerFilter::default()
        };
        let listed = self
            .call(node, ListContainersRequest { filter: Some(filter) })
            .await;
        let containers = listed.expect("containers").containers;
        containers.into_iter().map(|container| container.id).collect()
    }

    async fn pull(&self, image: &str, auth: Option<(&str, &str)>) -> Result<String, String> {
        let auth = auth.map(|(username, password)| AuthConfig {
            username: username.to_owned(),
            password: password.to_owned(),
        });
        let pull = PullImageRequest {
            image: Some(spec(image)),
            auth,
            sandbox_config: None,
        };
        let pulled = self.call("node1", pull).await;
        pulled
            .map(|answer| answer.image_ref)
            .map_err(|status| status.to_string())
    }
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
    }
}

#[test]
fn a_container_is_known_by_what_the_kubelet_has_given_it() {
    let directory = Directory::new("cri-labels");
    real_time(async {
        let bed = Bed::start(&directory.0, "images: []").await;
        let hook = json!({"exec": {"command": ["true"]}});
        let uid = bed
            .pod("p", "node1", json!({"lifecycle": {"preStop": hook}}))
            .await;
        let version = bed
            .call("node1", VersionRequest::default())
            .await
            .expect("a version");
        assert_eq!(
            (version.runtime_name, version.runtime_api_version),
            ("containerd".to_owned(), "v1".to_owned())
        );
        assert_eq!(
            bed.ids("node2", &uid).await,
            Vec::<String>::new(),
            "it is on another node"
        );
        let [id] = &bed.ids("node1", &uid).await[..] else {
            panic!("one container");
        };
        let pod = bed.until("p", |_| true).await;
        let shown = &pod["status"]["containerStatuses"][0]["containerID"];
        assert_eq!(shown, &format!("containerd://{id}"));
        let container_id = id.clone();
        let status = bed
            .call("node1", ContainerStatusRequest { container_id })
            .await
            .expect("a status");
        let status = status.status.expect("a status");
        assert_eq!(status.state(), ContainerState::Running);
        // Go's clients refuse a status without an image.
        let image = status.image.clone().unwrap_or_default().image;
        assert_eq!(image, "docker.io/library/busybox:1");
        assert_eq!(pod["status"]["containerStatuses"][0]["imageID"], status.image_ref);
        let label = |name: &str| status.labels[&format!("io.kubernetes.{name}")].as_str();
        assert_eq!(
            [
                label("container.name"),
                label("pod.name"),
                label("pod.namespace"),
                label("pod.uid")
            ],
            ["c", "p", "default", &uid]
        );
        let annotation = |name: &str| status.annotations[&format!("io.kubernetes.container.{name}")].as_str();
        // The kubelet's hash of the name and the image.
        assert_eq!(
            annotation("hash"),
            format!("{:x}", go_dump::container_hash("c", Some("busybox:1")))
        );
        assert_eq!(
            [annotation("restartCount"), annotation("preStopHandler")],
            ["0", &hook.to_string()]
        );
    });
}

#[test]
fn a_stopped_container_ends_and_its_kubelet_starts_another() {
    let directory = Directory::new("cri-stop");
    real_time(async {
        let bed = Bed::start(&directory.0, "images: []").await;
        let uid = bed.pod("p", "node1", json!({})).await;
        let before = bed.ids("node1", &uid).await;
        let stop = |id: &str| StopContainerRequest {
            container_id: id.to_owned(),
            timeout: 1,
        };
        let missing = bed.call("node2", stop(&before[0])).await;
        assert!(
            missing
                .expect_err("of another node")
                .to_string()
                .starts_with("rpc error: code = NotFound")
        );
        bed.call("node1", stop(&before[0])).await.expect("stopped");
        bed.until("p", |pod| {
            pod["status"]["containerStatuses"][0]["restartCount"] == 1
        })
        .await;
        let after = bed.ids("node1", &uid).await;
        assert_eq!(after.len(), 1);
        assert_ne!(after, before);
    });
}

#[rstest]
#[case::output(&["sh", "-c", "echo out; echo err >&2; exit 3"], 0, Ok((3, "out\n", "err\n")))]
#[case::too_slow(&["sleep", "60"], 1, Err("rpc error: code = DeadlineExceeded desc = "))]
fn a_command_runs_in_a_container(
    #[case] cmd: &[&str],
    #[case] timeout: i64,
    #[case] expected: Result<(i32, &str, &str), &str>,
) {
    let directory = Directory::new(&format!("cri-exec-{timeout}"));
    let cmd: Vec<String> = cmd.iter().map(|word| (*word).to_owned()).collect();
    real_time(async {
        let bed = Bed::start(&directory.0, "images: []").await;
        let uid = bed.pod("p", "node1", json!({"command": ["sleep", "600"]})).await;
        let container_id = bed.ids("node1", &uid).await.remove(0);
        let exec = ExecSyncRequest {
            container_id,
            cmd,
            timeout,
        };
        match (bed.call("node1", exec).await, expected) {
            (Ok(ran), Ok((code, out, err))) => {
                assert_eq!(
                    (ran.exit_code, &*ran.stdout, &*ran.stderr),
                    (code, out.as_bytes(), err.as_bytes())
                );
            }
            (Err(status), Err(begin)) => assert!(status.to_string().starts_with(begin), "{status}"),
            (ran, _) => panic!("{ran:?}"),
        }
    });
}

#[test]
fn images_come_by_the_file_of_images() {
    let directory = Directory::new("cri-images");
    let images = "images:\n- {name: 'r.example.com/a:1', pullMs: 10, digest: 'sha256:aa'}\n\
                  - {name: 'r.example.com/gone:*', missing: true}\n\
                  - {name: 'r.example.com/private:*', pullMs: 10, credential: {username: u, password: p}}\n";
    real_time(async {
        let bed = Bed::start(&directory.0, images).await;
        let info = bed
            .call("node1", ImageFsInfoRequest {})
            .await
            .expect("a file system");
        assert_eq!(info.image_filesystems.len(), 1);
        let id = async |node: &str, image: &str| {
            let request = ImageStatusRequest {
                image: Some(spec(image)),
            };
            let status = bed.call(node, request).await.expect("a status");
            status.image.map(|image| image.id)
        };
        assert_eq!(id("node1", "r.example.com/a:1").await, None);
        assert_eq!(
            bed.pull("r.example.com/a:1", None).await.as_deref(),
            Ok("sha256:aa")
        );
        assert_eq!(
            id("node1", "r.example.com/a:1").await.as_deref(),
            Some("sha256:aa")
        );
        assert_eq!(id("node2", "r.example.com/a:1").await, None, "it is on one node");
        let listed = bed
            .call("node1", ListImagesRequest {})
            .await
            .expect("images")
            .images;
        let tags: Vec<&str> = listed
            .iter()
            .flat_map(|image| &image.repo_tags)
            .map(String::as_str)
            .collect();
        assert_eq!(tags, ["r.example.com/a:1"]);
        let gone = bed.pull("r.example.com/gone:1", None).await.expect_err("missing");
        assert!(
            gone.starts_with("rpc error: code = NotFound desc = failed to pull"),
            "{gone}"
        );
        let refused = bed
            .pull("r.example.com/private:1", None)
            .await
            .expect_err("private");
        assert!(refused.ends_with("no basic auth credentials"), "{refused}");
        assert!(
            bed.pull("r.example.com/private:1", Some(("u", "p")))
                .await
                .is_ok()
        );
    });
}
