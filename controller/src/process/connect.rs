//! The way to the cluster.

use hyper::header::{HeaderValue, USER_AGENT};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::limit::ConcurrencyLimitLayer;

use super::ProcessError;

/// How many requests wait for an answer at once. Each has a connection of its own, which takes 90 KB: a set that makes 500 pods at
/// once would open 500. Watches do not count.
const REQUESTS_MAX: usize = 64;

/// A client of the cluster that the kubeconfig at a path names; without a path, of the one that the surroundings name: the usual
/// kubeconfig, or a pod's service account. Requests carry `user_agent`.
///
/// # Errors
/// If there is no cluster to speak to. Nothing is asked of the cluster yet.
pub async fn connect(kubeconfig: &str, user_agent: &'static str) -> Result<Client, ProcessError> {
    let failed = |error: &dyn std::fmt::Display| ProcessError::Config(error.to_string());
    let mut config = match kubeconfig {
        "" => Config::infer().await.map_err(|error| failed(&error))?,
        path => {
            let file = Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(|error| failed(&error))?
        }
    };
    let agent = (USER_AGENT, HeaderValue::from_static(user_agent));
    config.headers.push(agent);
    let builder = ClientBuilder::try_from(config).map_err(|error| failed(&error))?;
    Ok(builder
        .with_layer(&ConcurrencyLimitLayer::new(REQUESTS_MAX))
        .build())
}
