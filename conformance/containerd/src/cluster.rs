//! The cluster: an API server with the node `node1` and OpenKruise's manager, served on loopback. The daemon speaks with it as its
//! service account, with the rights of its installation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Clock as _, SystemClock};
use controller::Options;
use controller::process::flags::Flags;
use controller::process::install::NAMESPACE;
use controller::process::install_daemon;
use controller::process::run::{Environment, run_with};
use fake_apiserver::Cluster;
use fake_apiserver::serve::{Transport, kubeconfig, serve};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{Failure, until};

/// The name of the node.
pub(crate) const NODE: &str = "node1";

/// A cluster, until dropped.
pub(crate) struct Place {
    /// A client of it.
    pub(crate) client: Client,
    /// The daemon's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    _cluster: Cluster,
}

/// Starts the cluster and the manager. Files go below `folder`.
pub(crate) async fn start(tasks: &mut JoinSet<()>, folder: &Path) -> Result<Place, Failure> {
    let cluster = Cluster::builder()
        .nodes(0)
        .built_in(&[])
        .start_time(SystemClock.now());
    let cluster = cluster.start().await?;
    let client = cluster.client();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = cluster.server().clone();
    tasks.spawn(async move {
        // The proof notices a server that has ended.
        let _ended = serve(server, listener, Transport::default(), std::future::pending()).await;
    });
    node(&client).await?;
    manager(tasks, &client, cluster.clock()).await?;
    for (version, kind) in [("v1beta1", "NodeImage"), ("v1alpha1", "NodePodProbe")] {
        let lists = cluster_objects(&client, version, kind);
        let what = format!("the {kind} of the node");
        until(&what, Duration::from_secs(30), async || {
            Ok(lists.get_opt(NODE).await?)
        })
        .await?;
    }
    let mut config: Value = serde_json::from_str(&kubeconfig(address, &Transport::default()).to_string())?;
    config["users"][0]["user"] = json!({ "token": daemon_token(&client).await? });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, config.to_string())?;
    Ok(Place {
        client,
        kubeconfig: path,
        _cluster: cluster,
    })
}

/// Makes the Node, which is ready.
async fn node(client: &Client) -> Result<(), Failure> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": NODE } }))?;
    nodes.create(&PostParams::default(), &node).await?;
    let now = Timestamp::from_second(SystemClock.now().as_second())?;
    let status = json!({ "status": {
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now, "lastHeartbeatTime": now }],
    } });
    let params = PatchParams::default();
    nodes
        .patch_status(NODE, &params, &Patch::Strategic(&status))
        .await?;
    Ok(())
}

/// Installs the account and the rights of the daemon. Gives a token of the account.
async fn daemon_token(client: &Client) -> Result<String, Failure> {
    for object in install_daemon::objects(NAMESPACE, "kruise-daemon-config") {
        let object: DynamicObject = serde_json::from_value(object)?;
        let types = object.types.clone().unwrap_or_default();
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
            None => Api::all_with(client.clone(), &kind),
        };
        // The manager's installation has the namespace of Secrets, too.
        let params = PatchParams::apply("containerd-proof").force();
        api.patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await?;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let params = PostParams::default();
    let granted = accounts
        .create_token_request("kruise-daemon", &params, &request)
        .await?;
    let token = granted.status.and_then(|status| status.token);
    Ok(token.ok_or("the token was not granted")?)
}

/// Starts the manager as `kruise-manager --install` does, and waits for its webhooks.
async fn manager(
    tasks: &mut JoinSet<()>,
    client: &Client,
    clock: client_kit::SharedClock,
) -> Result<(), Failure> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let environment = Environment::read(|name| (name == "WEBHOOK_PORT").then(|| port.to_string()))?;
    let flags = [
        "--install".to_owned(),
        "--metrics-addr=0".to_owned(),
        "--health-probe-addr=0".to_owned(),
        "--nodeimage-creation-delay=0s".to_owned(),
        "--feature-gates=ImagePullJobGate=true".to_owned(),
        format!("--webhook-url=https://127.0.0.1:{port}"),
    ];
    let flags = Flags::parse(flags)?;
    let options = Options {
        clock: Arc::clone(&clock),
        ..Options::default()
    };
    let of_manager = client.clone();
    tasks.spawn(async move {
        let never = std::future::pending::<()>();
        if let Err(error) = run_with(of_manager, &flags, &environment, options, never).await {
            eprintln!("the manager ended: {error}");
        }
    });
    let sets = objects(client, "v1alpha1", "CloneSet");
    let set = serde_json::from_value(clone_set(
        "ready",
        0,
        &json!({ "containers": [{ "name": "c", "image": "i" }] }),
    ))?;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    until("the manager's webhooks", Duration::from_secs(60), async || {
        let created = sets.create(&params, &set).await.ok();
        // The webhook fills in the strategy.
        Ok(created.filter(|created| !created.data["spec"]["updateStrategy"]["type"].is_null()))
    })
    .await?;
    Ok(())
}

/// OpenKruise's objects of a kind, in the namespace `default`.
pub(crate) fn objects(client: &Client, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", version, kind));
    Api::namespaced_with(client.clone(), "default", &kind)
}

/// OpenKruise's objects of a kind of the cluster.
pub(crate) fn cluster_objects(client: &Client, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", version, kind));
    Api::all_with(client.clone(), &kind)
}

/// A CloneSet whose pods run on the node.
pub(crate) fn clone_set(name: &str, replicas: u32, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["nodeName"] = json!(NODE);
    spec["hostNetwork"] = json!(true);
    spec["terminationGracePeriodSeconds"] = json!(5);
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name }, "annotations": { "cfg": "one" } }, "spec": spec },
        },
    })
}
