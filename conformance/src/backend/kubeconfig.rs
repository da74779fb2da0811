//! Any running cluster, by its kubeconfig.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{AliasNames, Seed, SeededNames, SharedClock, SharedNames, SystemClock};
use controller::{Manager, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::ManagerChoice;
use super::collector::Collector;
use super::fake::watched_kinds;
use crate::action::{Applied, Kubectl};
use crate::error::Error;
use crate::history::text;

/// How long a new definition may take to be served.
const ESTABLISH_TRIES_MAX: u32 = 50;

/// A running cluster.
pub struct RealCluster {
    client: Client,
    clock: SharedClock,
    names: Arc<AliasNames>,
    collector: Arc<Collector>,
    /// The definitions that the harness created, to be taken away again.
    installed: Vec<serde_json::Value>,
    /// Aborts the manager when dropped.
    manager: JoinSet<()>,
}

impl RealCluster {
    /// Connects to the cluster of a kubeconfig (the default one for `None`), and runs our manager against it from here
    /// unless OpenKruise is installed already.
    ///
    /// # Errors
    /// If the kubeconfig cannot be read, the cluster cannot be reached, or it refuses our definitions.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        manager: ManagerChoice,
        seed: u64,
    ) -> Result<Self, Error> {
        let config = config(kubeconfig).await?;
        let server = config.cluster_url.to_string();
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
        let mut installed = Vec::new();
        let mut tasks = JoinSet::new();
        if manager == ManagerChoice::Own {
            installed = install(&client).await?;
            let options = Options {
                clock: Arc::clone(&clock),
                names: names.clone(),
                ..Options::default()
            };
            let manager = Manager::new(client.clone(), options);
            tasks.spawn(manager.run(std::future::pending::<()>()));
        }
        let collector = Collector::start(&client, &clock, watched_kinds());
        Ok(Self {
            client,
            clock,
            names,
            collector,
            installed,
            manager: tasks,
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

    /// Takes away the definitions that were not there before.
    pub(super) async fn clean_up(mut self) {
        self.manager.shutdown().await;
        let kubectl = Kubectl::new(self.client.clone(), "default");
        for definition in &self.installed {
            let Ok(api) = kubectl.api_of(definition).await else {
                continue;
            };
            let name = text(definition, "/metadata/name");
            if let Err(error) = kubectl.delete(&api, &name, None, None).await {
                tracing::warn!(%error, name, "take away a definition");
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

/// Installs our definitions; returns those that were not there.
async fn install(client: &Client) -> Result<Vec<serde_json::Value>, Error> {
    let kubectl = Kubectl::new(client.clone(), "default");
    let mut installed = Vec::new();
    for definition in controller::crds() {
        let name = text(&definition, "/metadata/name");
        let refused = |why: String| Error::Refused {
            action: "apply".to_owned(),
            origin: Some(format!("the definition {name}")),
            why,
        };
        if kubectl
            .apply(&definition)
            .await
            .map_err(|error| refused(error.to_string()))?
            == Applied::Created
        {
            installed.push(definition.clone());
        }
        let group_version = format!("{}/v1alpha1", text(&definition, "/spec/group"));
        let plural = text(&definition, "/spec/names/plural");
        for _ in 0..ESTABLISH_TRIES_MAX {
            let served = client.list_api_group_resources(&group_version).await;
            if served.is_ok_and(|list| list.resources.iter().any(|resource| resource.name == plural)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(installed)
}
