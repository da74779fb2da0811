//! A cluster that is reached by its kubeconfig, in real time: OpenKruise is installed, its manager and webhooks run from
//! here, and nothing of it is left afterwards.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use client_kit::{Clock as _, SystemClock};
use conformance::suite::{BackendChoice, SuiteOptions};
use fake_apiserver::Cluster;
use fake_apiserver::serve::{self, Identity, Transport};
use shared_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::support::{fixtures, run};

const SCENARIO: &str = "
apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: served
  annotations:
    seatrial.dev/pod-names: 'cs-demo-: 4wz2z'
spec:
  namespace: default
  steps:
  - name: create
    try:
    - apply:
        file: cloneset.yaml
    - assert:
        resource: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: cs-demo}, status: {readyReplicas: 1}}
  - name: try to change what may not change in place
    try:
    - patch:
        resource:
          apiVersion: apps.kruise.io/v1alpha1
          kind: CloneSet
          metadata: {name: cs-demo}
          spec: {template: {spec: {containers: [{name: nginx, image: 'nginx:alpine', env: [{name: test, value: foo}]}]}}}
        expect:
        - check:
            (contains($error, 'only allowed to update images in spec for InPlaceOnly')): true
";

const CLONE_SET: &str = "
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: cs-demo, namespace: default}
spec:
  replicas: 1
  updateStrategy: {type: InPlaceOnly}
  selector: {matchLabels: {app: cs}}
  template:
    metadata: {labels: {app: cs}}
    spec:
      containers: [{name: nginx, image: 'nginx:alpine', imagePullPolicy: IfNotPresent, ports: [{containerPort: 80}]}]
";

/// A served cluster on a thread of its own, until it is dropped.
struct Served {
    kubeconfig: Value,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

impl Served {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener for tokio");
        let address = listener.local_addr().expect("an address");
        let transport = Transport {
            identity: Some(Arc::new(Identity::generate(&[]).expect("certificates"))),
            tokens: Vec::new(),
        };
        let kubeconfig = serve::kubeconfig(address, &transport);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = async move {
            let cluster = Cluster::builder()
                .start_time(SystemClock.now())
                .system_objects(true)
                .start()
                .await
                .expect("a cluster");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let ended = async move {
                let _stopped = stopped.await;
            };
            serve::serve(cluster.server().clone(), listener, transport, ended)
                .await
                .expect("served");
        };
        Self {
            kubeconfig,
            stop: Some(stop),
            thread: Some(std::thread::spawn(move || runtime().block_on(serving))),
        }
    }

    fn ask(&self, request: http::Request<Vec<u8>>) -> Value {
        runtime().block_on(async {
            let kubeconfig = shared_json::from_value(self.kubeconfig.clone()).expect("a kubeconfig");
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .expect("a configuration");
            let client = kube::Client::try_from(config).expect("a client");
            client.request(request).await.expect("an answer")
        })
    }

    fn create(&self, path: &str, object: &Value) {
        let request = http::Request::post(path).header("content-type", "application/json");
        self.ask(request.body(object.to_string().into_bytes()).expect("a request"));
    }

    /// The names of the objects at `path` that are there to stay.
    fn names(&self, path: &str) -> Vec<String> {
        let list = self.ask(http::Request::get(path).body(Vec::new()).expect("a request"));
        let items = list["items"].as_array().expect("items");
        items
            .iter()
            .filter(|item| item["metadata"]["deletionTimestamp"].is_null())
            .map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// The installed objects of OpenKruise, and the pods, that are left once the garbage collector had time to delete the pods.
    fn left(&self) -> Vec<String> {
        const TRIES: usize = 300;
        for _ in 1..TRIES {
            if self.installed().is_empty() {
                return Vec::new();
            }
            runtime().block_on(tokio::time::sleep(std::time::Duration::from_millis(100)));
        }
        self.installed()
    }

    /// The installed objects of OpenKruise, and the pods.
    fn installed(&self) -> Vec<String> {
        const PLACES: [&str; 6] = [
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "/api/v1/pods",
        ];
        PLACES
            .iter()
            .flat_map(|place| self.names(place))
            .filter(|name| name.contains("kruise") || name.starts_with("cs-demo"))
            .collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("seatrial-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("served")).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn options(folder: &Path, backend: BackendChoice, bless: bool) -> SuiteOptions {
    SuiteOptions {
        scenarios: folder.to_owned(),
        recordings: fixtures().join("recordings"),
        divergences: fixtures().join("recordings/divergences.yaml"),
        play_scenarios: true,
        seed: 1,
        backend,
        bless,
        ..SuiteOptions::default()
    }
}

#[test]
fn a_served_cluster_gets_openkruise_behaves_as_in_process_and_is_left_clean() {
    let folder = Folder::new("served-cluster");
    folder.write("served/chainsaw-test.yaml", SCENARIO);
    folder.write("served/cloneset.yaml", CLONE_SET);
    let served = Served::start();
    // What an earlier run left.
    served.create(
        "/api/v1/namespaces/default/events",
        &json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "cs-demo-4wz2z.1", "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "cs-demo-4wz2z", "namespace": "default"},
            "reason": "Killing", "message": "Stopping container nginx", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
            "source": {"component": "kubelet"},
        }),
    );
    let kubeconfig = folder.write("kubeconfig", &served.kubeconfig.to_string());
    let backend = BackendChoice::Kubeconfig(Some(kubeconfig));

    let (totals, told) = run(&options(&folder.0, backend, true));
    assert_eq!(totals.expect(&told).passed, 1, "{told}");
    assert_eq!(served.left(), Vec::<String>::new());

    // What was written there is what happens in process, in virtual time.
    let (totals, told) = run(&options(&folder.0, BackendChoice::Fake, false));
    assert_eq!(totals.expect(&told).passed, 1, "{told}");
}

#[test]
fn what_a_refused_installation_leaves_is_taken_away() {
    let folder = Folder::new("refused-installation");
    folder.write("served/chainsaw-test.yaml", SCENARIO);
    folder.write("served/cloneset.yaml", CLONE_SET);
    let served = Served::start();
    // What comes late in the installation is forbidden.
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-services"},
        "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]},
                 "validations": [{"expression": "!object.metadata.name.startsWith('kruise')", "message": "no services here"}]}
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-services"},
        "spec": {"policyName": "no-services", "validationActions": ["Deny"]}
    });
    served.create(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        &policy,
    );
    served.create(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        &binding,
    );
    let kubeconfig = folder.write("kubeconfig", &served.kubeconfig.to_string());

    let (totals, told) = run(&options(
        &folder.0,
        BackendChoice::Kubeconfig(Some(kubeconfig)),
        false,
    ));
    let error = totals.expect_err(&told).to_string();
    assert!(error.contains("no services here"), "{error}");
    assert_eq!(served.left(), Vec::<String>::new());
}
