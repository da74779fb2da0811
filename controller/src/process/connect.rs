//! The way to the cluster.

use hyper::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::ProcessError;

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
    Client::try_from(config).map_err(|error| failed(&error))
}
