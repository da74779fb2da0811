//! The program on a simulated node, which it knows by the socket of its container runtime alone.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client_kit::{Clock as _, SystemClock};
use controller::Options;
use controller::process::flags::Flags;
use controller::process::run::{Environment, run_with};
use fake_apiserver::Cluster;
use fake_apiserver::nodes::{Containers, Image, ImageRegistry};
use fake_apiserver::serve::{NodeSockets, Transport, kubeconfig, serve};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const NODE: &str = "node1";
/// An image that the node has to pull first.
const REMOTE: &str = "example.com/remote:1";
/// How long something may take, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// The program, which ends when this is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// A folder, which goes when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Asks until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let found = tokio::time::timeout(LIMIT, found).await;
    found.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// The objects of a kind in the namespace `default`, or of the cluster.
fn objects(
    client: &Client,
    (group, version, kind): (&str, &str, &str),
    namespaced: bool,
) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespaced {
        true => Api::default_namespaced_with(client.clone(), &kind),
        false => Api::all_with(client.clone(), &kind),
    }
}

fn of_kruise(client: &Client, kind: &str) -> Api<DynamicObject> {
    objects(client, ("apps.kruise.io", "v1alpha1", kind), true)
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}

/// Starts the manager as `kruise-manager --install` does, and waits until it knows the node.
async fn manager(tasks: &mut JoinSet<()>, client: &Client) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.expect("a port").port();
    let environment = Environment::read(|name| (name == "WEBHOOK_PORT").then(|| port.to_string()));
    let flags = [
        "--install",
        "--metrics-addr=0",
        "--health-probe-addr=0",
        "--nodeimage-creation-delay=0s",
        "--feature-gates=ImagePullJobGate=true",
        &format!("--webhook-url=https://127.0.0.1:{port}"),
    ];
    let flags = Flags::parse(flags.map(str::to_owned)).expect("flags");
    let (of_manager, environment) = (client.clone(), environment.expect("an environment"));
    tasks.spawn(async move {
        let never = std::future::pending::<()>();
        let ended = run_with(of_manager, &flags, &environment, Options::default(), never).await;
        ended.expect("a manager");
    });
    let images = objects(client, ("apps.kruise.io", "v1beta1", "NodeImage"), false);
    until("the NodeImage", async || images.get(NODE).await.ok()).await;
}

/// A pod of a CloneSet, once it is ready. Gives its name.
async fn pod(client: &Client) -> String {
    let sets = of_kruise(client, "CloneSet");
    let set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "main", "image": "example.com/web:1"}, {"name": "side", "image": "example.com/side:1"},
                ]},
            },
        },
    });
    // Until the webhooks answer it is refused.
    let set: DynamicObject = serde_json::from_value(set).expect("a CloneSet");
    until("the webhooks", async || {
        sets.create(&PostParams::default(), &set).await.ok()
    })
    .await;
    until("a ready pod", async || {
        let status = sets.get("web").await.ok()?.data["status"].clone();
        (status["readyReplicas"] == 1).then_some(())
    })
    .await;
    let pods = objects(client, ("", "v1", "Pod"), true);
    let list = pods
        .list(&ListParams::default().labels("app=web"))
        .await
        .expect("pods");
    list.items[0].metadata.name.clone().expect("a name")
}

/// How often each container of the pod has been restarted.
async fn restarts(client: &Client, pod: &str) -> Vec<(String, i64)> {
    let pod = objects(client, ("", "v1", "Pod"), true)
        .get(pod)
        .await
        .expect("the pod");
    let statuses = pod.data["status"]["containerStatuses"]
        .as_array()
        .expect("statuses")
        .clone();
    let count = |status: &Value| {
        (
            status["name"].as_str().unwrap_or_default().to_owned(),
            status["restartCount"].as_i64().unwrap_or_default(),
        )
    };
    statuses.iter().map(count).collect()
}

#[tokio::test]
async fn pulls_an_image_and_restarts_a_container_by_the_socket_of_a_simulated_node() {
    let folder = Folder(std::env::temp_dir().join(format!("kruise-daemon-node-{}", std::process::id())));
    let (containers, images) = (Containers::default(), ImageRegistry::default());
    images.set(REMOTE, Image::remote(REMOTE, Duration::from_millis(50)));
    let nodes = [NODE.to_owned()];
    let sockets = NodeSockets::listen(&folder.0, &nodes, &containers, &images).expect("sockets");
    let cluster = Cluster::builder()
        .nodes(1)
        .quick(true)
        .start_time(SystemClock.now())
        .images(images.clone())
        .containers(containers)
        .start()
        .await
        .expect("a cluster");
    let client = cluster.client();
    let mut tasks = JoinSet::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let config = kubeconfig(listener.local_addr().expect("an address"), &Transport::default());
    let path = folder.0.join("kubeconfig");
    std::fs::write(&path, config.to_string()).expect("a kubeconfig");
    let server = cluster.server().clone();
    tasks.spawn(async move {
        let never = std::future::pending();
        serve(server, listener, Transport::default(), never)
            .await
            .expect("served");
    });
    manager(&mut tasks, &client).await;
    let program = Command::new(env!("CARGO_BIN_EXE_kruise-daemon"))
        .arg(format!("--socket-file={}", folder.0.join("node1.sock").display()))
        .arg(format!("--kubeconfig={}", path.display()))
        .args(["--addr=0", "--feature-gates=ImagePullJobGate=true"])
        .env("NODE_NAME", NODE)
        .stderr(Stdio::null())
        .spawn();
    let mut program = Program(program.expect("the program"));

    let pod = pod(&client).await;
    let jobs = of_kruise(&client, "ImagePullJob");
    let job = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ImagePullJob", "metadata": {"name": "early"},
        "spec": {"image": REMOTE, "completionPolicy": {"type": "Always"}},
    });
    assert_eq!(images.digest_on(NODE, REMOTE), None);
    create(&jobs, job).await;
    until("the image", async || {
        let status = jobs.get("early").await.ok()?.data["status"].clone();
        (status["succeeded"] == 1).then_some(())
    })
    .await;
    assert!(images.digest_on(NODE, REMOTE).is_some());

    let requests = of_kruise(&client, "ContainerRecreateRequest");
    let request = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest", "metadata": {"name": "again"},
        "spec": {"podName": pod, "containers": [{"name": "main"}]},
    });
    create(&requests, request).await;
    let states = until("the request to end", async || {
        let status = requests.get("again").await.ok()?.data["status"].clone();
        (status["phase"] == "Completed").then(|| status["containerRecreateStates"].clone())
    })
    .await;
    assert_eq!(
        states,
        json!([{"name": "main", "phase": "Succeeded", "isKilled": true}])
    );
    let expected = [("main".to_owned(), 1), ("side".to_owned(), 0)];
    assert_eq!(restarts(&client, &pod).await, expected);
    assert!(
        program.0.try_wait().expect("to look").is_none(),
        "the program goes on"
    );
    drop(sockets);
    assert!(!folder.0.join("node1.sock").exists());
}
