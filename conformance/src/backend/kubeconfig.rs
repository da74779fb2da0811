//! Any running cluster, by its kubeconfig.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{AliasNames, Seed, SeededNames, SharedClock, SharedNames, SystemClock};
use controller::Options;
use controller::process::flags::Flags;
use controller::process::gates::FeatureGates;
use controller::process::install;
use controller::process::run::{Environment, run_with};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::ManagerChoice;
use super::collector::Collector;
use super::fake::watched_kinds;
use crate::action::{Applied, Kubectl};
use crate::error::Error;
use crate::history::text;

/// How often it is asked whether a new definition is served, or the webhooks are ready.
const TRIES_MAX: u32 = 200;
const TRY_PERIOD: Duration = Duration::from_millis(100);
/// How long the harness waits for the existing objects.
const SYNC_LIMIT: Duration = Duration::from_secs(10);
/// The configurations by which an API server knows OpenKruise's webhooks.
const CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// A running cluster.
pub struct RealCluster {
    client: Client,
    clock: SharedClock,
    names: Arc<AliasNames>,
    collector: Arc<Collector>,
    manager: OwnManager,
}

/// Our manager, if it is ours that runs.
#[derive(Default)]
struct OwnManager {
    /// The objects that the harness installed, to be deleted again.
    installed: Vec<shared_json::Value>,
    /// The task that the manager runs in; aborted when dropped.
    task: JoinSet<Result<(), String>>,
}

impl RealCluster {
    /// Connects to the cluster of a kubeconfig (the default one for `None`), and runs our manager against it from here
    /// unless `manager` names another: installs OpenKruise's definitions, roles and webhooks, and serves the webhooks from here. The
    /// cluster finds them at `host`, or for `None` at the address from which this machine reaches it.
    ///
    /// # Errors
    /// If the kubeconfig cannot be read, the cluster cannot be reached, refuses an object of the installation, or has OpenKruise
    /// already.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        host: Option<&str>,
        manager: ManagerChoice,
        seed: u64,
    ) -> Result<Self, Error> {
        let config = config(kubeconfig).await?;
        let server = config.cluster_url.to_string();
        let address = match host {
            Some(host) => host.to_owned(),
            None => own_address(&config.cluster_url).await,
        };
        let client = Client::try_from(config).map_err(|error| unreachable_cluster(&server, &error))?;
        client
            .apiserver_version()
            .await
            .map_err(|error| unreachable_cluster(&server, &error))?;
        let clock: SharedClock = Arc::new(SystemClock);
        // On a real cluster names must not repeat from run to run: what an earlier run left may still be going.
        let run_seed = Seed(seed ^ u64::try_from(clock.now().as_millisecond()).unwrap_or_default());
        let rest: SharedNames = Arc::new(SeededNames::new(run_seed));
        let names = Arc::new(AliasNames::new(BTreeMap::new(), rest));
        let mut own = OwnManager::default();
        if manager == ManagerChoice::Own {
            let options = Options {
                clock: Arc::clone(&clock),
                names: names.clone(),
                ..Options::default()
            };
            if let Err(error) = own.start(&client, &address, options).await {
                own.clean_up(&client).await;
                return Err(error);
            }
        }
        let collector = Collector::start(&client, &clock, watched_kinds(&FeatureGates::default()), None);
        // A kind that an OpenKruise installed there does not have is never seen.
        let _ = tokio::time::timeout(SYNC_LIMIT, collector.synced()).await;
        Ok(Self {
            client,
            clock,
            names,
            collector,
            manager: own,
        })
    }

    /// A client of the cluster.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The system's clock.
    #[must_use]
    pub fn clock(&self) -> SharedClock {
        Arc::clone(&self.clock)
    }

    pub(super) fn names(&self) -> &AliasNames {
        &self.names
    }

    pub(super) fn collector(&self) -> &Arc<Collector> {
        &self.collector
    }

    /// Deletes the objects that were not there before.
    pub(super) async fn clean_up(self) {
        self.manager.clean_up(&self.client).await;
    }
}

impl OwnManager {
    /// Installs OpenKruise and starts the manager, with its webhooks on a free port of this machine.
    async fn start(&mut self, client: &Client, address: &str, options: Options) -> Result<(), Error> {
        install(client, &mut self.installed).await?;
        let port = run_manager(&mut self.task, client.clone(), address, options)?;
        let url = format!("https://{address}:{port}");
        tokio::select! {
            ready = webhooks_ready(client, &url) => ready,
            Some(ended) = self.task.join_next() => {
                let why = match ended {
                    Ok(Ok(())) => "it ended before its webhooks were ready".to_owned(),
                    Ok(Err(why)) => why,
                    Err(panic) => panic.to_string(),
                };
                Err(cannot_run(why))
            }
        }
    }

    /// Ends the manager and deletes the objects that were installed for it, the last first.
    async fn clean_up(mut self, client: &Client) {
        if let Some(Ok(Err(why))) = self.task.try_join_next() {
            tracing::error!(why, "the manager ended before its time");
        }
        self.task.shutdown().await;
        let kubectl = Kubectl::new(client.clone(), "default");
        for object in self.installed.iter().rev() {
            let Ok(api) = kubectl.api_of(object).await else {
                continue;
            };
            let name = text(object, "/metadata/name");
            if let Err(error) = kubectl.delete(&api, &name, None, None).await {
                tracing::warn!(%error, name, "take away what was installed");
            }
        }
    }
}

async fn config(path: Option<&Path>) -> Result<Config, Error> {
    let shown = path.map_or_else(
        || "the default kubeconfig".to_owned(),
        |path| path.display().to_string(),
    );
    let failed = |why: String| Error::Backend {
        what: format!("read {shown}"),
        why,
        help: "give a kubeconfig with --kubeconfig FILE, or set KUBECONFIG".to_owned(),
    };
    let options = KubeConfigOptions::default();
    match path {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| failed(error.to_string()))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| failed(error.to_string()))
        }
        None => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| failed(error.to_string())),
    }
}

fn unreachable_cluster(server: &str, error: &kube::Error) -> Error {
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        why = format!("{why}: {inner}");
        source = inner.source();
    }
    Error::Backend {
        what: format!("reach the cluster at {server}"),
        why,
        help: "check that the cluster runs and that the kubeconfig's current context names it".to_owned(),
    }
}

/// The address of this machine as the API server sees it: the one that reaches the API server.
async fn own_address(server: &http::Uri) -> String {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(443);
    let stream = tokio::net::TcpStream::connect((host, port)).await;
    stream
        .and_then(|stream| stream.local_addr())
        .map_or_else(|_| "127.0.0.1".to_owned(), |address| address.ip().to_string())
}

fn cannot_run(why: impl ToString) -> Error {
    Error::Backend {
        what: "run the manager".to_owned(),
        why: why.to_string(),
        help: "with OpenKruise installed in the cluster, --manager external needs none from here".to_owned(),
    }
}

/// Starts our manager, with its webhooks on a free port of this machine; gives the port.
fn run_manager(
    task: &mut JoinSet<Result<(), String>>,
    client: Client,
    address: &str,
    options: Options,
) -> Result<u16, Error> {
    let port = std::net::TcpListener::bind("0.0.0.0:0")
        .and_then(|listener| listener.local_addr())
        .map_err(cannot_run)?
        .port();
    let flags = Flags::parse([
        format!("--webhook-url=https://{address}:{port}"),
        "--health-probe-addr=0".to_owned(),
        "--metrics-addr=0".to_owned(),
    ])
    .map_err(cannot_run)?;
    let environment =
        Environment::read(|name| (name == "WEBHOOK_PORT").then(|| port.to_string())).map_err(cannot_run)?;
    task.spawn(async move {
        let never = std::future::pending::<()>();
        let ended = run_with(client, &flags, &environment, options, never).await;
        ended.map_err(|error| error.to_string())
    });
    Ok(port)
}

/// Waits until the API server has the webhooks' address and authority.
async fn webhooks_ready(client: &Client, url: &str) -> Result<(), Error> {
    let kubectl = Kubectl::new(client.clone(), "default");
    for _ in 0..TRIES_MAX {
        let mut ready = true;
        for kind in CONFIGURATIONS {
            let found = configurations(&kubectl, kind).await?;
            let mut webhooks = found
                .iter()
                .filter_map(|object| object.get("webhooks")?.as_array())
                .flatten()
                .peekable();
            ready &= webhooks.peek().is_some()
                && webhooks.all(|webhook| {
                    text(webhook, "/clientConfig/url").starts_with(url)
                        && !text(webhook, "/clientConfig/caBundle").is_empty()
                });
        }
        if ready {
            return Ok(());
        }
        tokio::time::sleep(TRY_PERIOD).await;
    }
    Err(cannot_run("its webhooks did not become ready"))
}

/// OpenKruise's configuration of a kind, if there is one.
async fn configurations(kubectl: &Kubectl, kind: &str) -> Result<Option<shared_json::Value>, Error> {
    let wanted = install::objects(install::NAMESPACE, &FeatureGates::default())
        .into_iter()
        .map(shared_json::Value::from)
        .find(|object| text(object, "/kind") == kind);
    let Some(wanted) = wanted else { return Ok(None) };
    let api = kubectl.api_of(&wanted).await.map_err(cannot_run)?;
    let found = api
        .get_opt(&text(&wanted, "/metadata/name"))
        .await
        .map_err(cannot_run)?;
    Ok(found.and_then(|found| shared_json::to_value(found).ok()))
}

/// Installs the objects that a manager needs; new ones are added to `installed`, also if one is refused.
async fn install(client: &Client, installed: &mut Vec<shared_json::Value>) -> Result<(), Error> {
    let kubectl = Kubectl::new(client.clone(), "default");
    for kind in CONFIGURATIONS {
        if configurations(&kubectl, kind).await?.is_some() {
            return Err(cannot_run("OpenKruise is installed in the cluster already"));
        }
    }
    for object in install::objects(install::NAMESPACE, &FeatureGates::default())
        .into_iter()
        .map(shared_json::Value::from)
    {
        let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
        let refused = |why: String| Error::Refused {
            action: "apply".to_owned(),
            origin: Some(format!("{kind} {name}")),
            why,
        };
        let applied = kubectl
            .apply(&object)
            .await
            .map_err(|error| refused(error.to_string()))?;
        if applied == Applied::Created {
            installed.push(object.clone());
        }
        if kind == "CustomResourceDefinition" {
            served(client, &object).await;
        }
    }
    Ok(())
}

/// Waits until a definition's kind is served.
async fn served(client: &Client, definition: &shared_json::Value) {
    let group_version = format!("{}/v1alpha1", text(definition, "/spec/group"));
    let plural = text(definition, "/spec/names/plural");
    for _ in 0..TRIES_MAX {
        let served = client.list_api_group_resources(&group_version).await;
        if served.is_ok_and(|list| list.resources.iter().any(|resource| resource.name == plural)) {
            return;
        }
        tokio::time::sleep(TRY_PERIOD).await;
    }
}
