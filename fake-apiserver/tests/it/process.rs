//! The program `fake-apiserver` itself, as a process: its flags, its data directory, its signals, its nodes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that goes with the test.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fake-apiserver-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program, killed at the test's end.
pub(crate) struct Program(pub(crate) Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-apiserver"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts a server and waits until it has printed its line.
pub(crate) fn serve(kubeconfig: &Path, arguments: &[&str]) -> Program {
    let path = kubeconfig.to_str().expect("a path");
    let mut all = vec!["serve", "--kubeconfig", path];
    all.extend(arguments);
    begin(kubeconfig, program(&all))
}

fn begin(kubeconfig: &Path, mut command: Command) -> Program {
    let kubeconfig = kubeconfig.to_str().expect("a path");
    let mut child = command.spawn().expect("to start");
    let out = child.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), format!("export KUBECONFIG={kubeconfig}"));
    Program(child)
}

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

pub(crate) fn real_time(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, body).await.expect("in time") });
}

pub(crate) fn api(client: &Client, group_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

pub(crate) fn object(value: Value) -> DynamicObject {
    shared_json::from_value(value).expect("an object")
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]},
    })
}

fn config_map(name: &str) -> ConfigMap {
    shared_json::from_value(json!({"metadata": {"name": name}, "data": {"k": name}})).expect("a config map")
}

#[test]
fn a_fresh_server_has_a_default_storage_class() {
    for (arguments, expected) in [
        (&["--nodes=0"][..], 1),
        (&["--nodes=0", "--no-default-storage-class"], 0),
    ] {
        let directory = Directory::new("class");
        let kubeconfig = directory.0.join("kubeconfig");
        real_time(async {
            let _server = serve(&kubeconfig, arguments);
            let classes: Api<StorageClass> = Api::all(client(&kubeconfig).await);
            let list = classes.list(&ListParams::default()).await.expect("a list");
            let is_default = |class: &StorageClass| {
                let annotations = class.metadata.annotations.as_ref();
                annotations.is_some_and(|all| all["storageclass.kubernetes.io/is-default-class"] == "true")
            };
            assert_eq!(
                list.items.iter().filter(|class| is_default(class)).count(),
                expected
            );
        });
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let directory = Directory::new("data");
    let (kubeconfig, data) = (directory.0.join("kubeconfig"), directory.0.join("data"));
    let arguments = ["--nodes", "0", "--data-dir", data.to_str().expect("a path")];
    real_time(async {
        let mut server = serve(&kubeconfig, &arguments);
        let connected = client(&kubeconfig).await;
        let crds: ApiResource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        ));
        let crds: Api<DynamicObject> = Api::all_with(connected.clone(), &crds);
        crds.create(&PostParams::default(), &object(definition()))
            .await
            .expect("a definition");
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 3}});
        let things = api(&connected, "example.com/v1", "Thing");
        let made = things
            .create(&PostParams::default(), &object(thing))
            .await
            .expect("a thing");
        let maps: Api<ConfigMap> = Api::default_namespaced(connected.clone());
        let mut acknowledged = Vec::new();
        for index in 0..200 {
            let name = format!("m{index}");
            let map = maps
                .create(&PostParams::default(), &config_map(&name))
                .await
                .expect("a map");
            acknowledged.push(map);
        }
        maps.delete("m7", &Default::default()).await.expect("to delete");
        // In the middle of more.
        let writing = tokio::spawn(async move {
            let mut more = Vec::new();
            for index in 200.. {
                let name = format!("m{index}");
                match maps.create(&PostParams::default(), &config_map(&name)).await {
                    Ok(map) => more.push(map),
                    Err(_) => break,
                }
            }
            more
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.0.kill().expect("to kill");
        acknowledged.extend(writing.await.expect("what was written"));
        drop(server);

        let _server = serve(&kubeconfig, &arguments);
        let again = client(&kubeconfig).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(again.clone());
        for map in &acknowledged {
            let name = map.metadata.name.as_deref().expect("a name");
            let found = maps.get_opt(name).await.expect("an answer");
            let expected = (name != "m7").then_some(map);
            assert_eq!(found.as_ref(), expected, "{name}");
        }
        let found = api(&again, "example.com/v1", "Thing")
            .get("t")
            .await
            .expect("the thing");
        assert_eq!(found, made);
        // What is made now is new.
        let fresh = maps
            .create(&PostParams::default(), &config_map("fresh"))
            .await
            .expect("a map");
        let newest = acknowledged
            .last()
            .and_then(|map| map.metadata.resource_version.clone());
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        assert!(number(fresh.metadata.resource_version) > number(newest));
        assert!(
            acknowledged
                .iter()
                .all(|map| map.metadata.uid != fresh.metadata.uid)
        );
    });
}

#[test]
fn definitions_of_a_directory_are_served_from_the_start() {
    let directory = Directory::new("crds");
    let crds = directory.0.join("crds");
    std::fs::create_dir_all(&crds).expect("a directory");
    std::fs::write(crds.join("notes.txt"), "not: a: manifest").expect("to write");
    let text = format!(
        "kind: Namespace\napiVersion: v1\nmetadata: {{name: ignored}}\n---\n{}\n",
        definition()
    );
    std::fs::write(crds.join("things.yaml"), text).expect("to write");
    let kubeconfig = directory.0.join("kubeconfig");
    real_time(async {
        let _server = serve(
            &kubeconfig,
            &[
                "--nodes",
                "0",
                "--controllers",
                "none",
                "--crd",
                crds.to_str().expect("a path"),
            ],
        );
        let list = api(&client(&kubeconfig).await, "example.com/v1", "Thing")
            .list(&Default::default())
            .await;
        assert!(list.expect("a list").items.is_empty());
    });
}

#[test]
fn an_unknown_controller_is_refused_with_those_that_are_known() {
    let output = program(&["serve", "--controllers", "job,jobs"])
        .output()
        .expect("to run");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("no controller is called \"jobs\"") && text.contains("job-controller"),
        "{text}"
    );
}

#[cfg(unix)]
#[test]
fn a_server_that_is_asked_to_end_ends() {
    let directory = Directory::new("term");
    let mut server = serve(
        &directory.0.join("kubeconfig"),
        &["--nodes", "0", "--controllers", "none"],
    );
    let killed = Command::new("kill")
        .args(["-TERM", &server.0.id().to_string()])
        .status();
    assert!(killed.expect("to ask").success());
    assert_eq!(server.0.wait().expect("an end").code(), Some(0));
}

/// More connections than the process may have open files wait for those that are there; the server goes on.
#[cfg(unix)]
#[test]
fn a_server_survives_too_many_connections() {
    const FILES_MAX: usize = 40;
    let directory = Directory::new("connections");
    let kubeconfig = directory.0.join("kubeconfig");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit -n {FILES_MAX}; exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_fake-apiserver"))
        .args(["serve", "--nodes", "0", "--controllers", "none", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = begin(&kubeconfig, shell);
    real_time(async {
        let read = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
        let url = read
            .clusters
            .first()
            .and_then(|named| named.cluster.as_ref()?.server.clone());
        let address = url
            .as_deref()
            .and_then(|url| url.strip_prefix("https://"))
            .expect("an address");
        let mut open = Vec::new();
        for _ in 0..2 * FILES_MAX {
            open.push(
                tokio::net::TcpStream::connect(address)
                    .await
                    .expect("a connection"),
            );
        }
        // It has tried to accept them all by now, and has failed.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(server.0.try_wait().expect("a state"), None, "it has ended");
        drop(open);
        let version = client(&kubeconfig).await.apiserver_version().await;
        assert_eq!(version.expect("an answer").minor, "36");
    });
}

#[test]
fn nodes_of_another_process_run_pods() {
    let directory = Directory::new("nodes");
    let kubeconfig = directory.0.join("kubeconfig");
    real_time(async {
        let _server = serve(&kubeconfig, &["--nodes", "0"]);
        let path = kubeconfig.to_str().expect("a path");
        let nodes = program(&["nodes", "--kubeconfig", path, "--count", "2", "--scheduler"]);
        let _nodes = Program({ nodes }.spawn().expect("to start"));
        let client = client(&kubeconfig).await;
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
        let deployments = api(&client, "apps/v1", "Deployment");
        deployments
            .create(&PostParams::default(), &object(deployment))
            .await
            .expect("to create");
        loop {
            let status = deployments.get("web").await.expect("the deployment").data["status"].clone();
            if status["readyReplicas"] == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

/// The version that the program tells is the one that its cluster has.
#[test]
fn the_version_names_that_of_the_cluster() {
    let output = program(&["--version"]).output().expect("the program");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = format!("fake-apiserver {} (commit ", env!("CARGO_PKG_VERSION"));
    let end = format!(", Kubernetes {})\n", fake_apiserver::cli::KUBERNETES_VERSION);
    assert!(told.starts_with(&begin) && told.ends_with(&end), "{told}");
    let directory = Directory::new("version");
    real_time(async {
        let kubeconfig = directory.0.join("kubeconfig");
        let _server = serve(&kubeconfig, &["--nodes", "0"]);
        let version = client(&kubeconfig)
            .await
            .apiserver_version()
            .await
            .expect("a version");
        assert_eq!(
            version.git_version,
            format!("v{}", fake_apiserver::cli::KUBERNETES_VERSION)
        );
    });
}
