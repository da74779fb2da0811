//! Starts k3s in a container for `cargo xtask conformance --backend k3s`.
//!
//! `k3s NAME IMAGE KUBECONFIG` starts a container of this name, waits until its API server has a kubeconfig, and writes that with the port
//! and host that the engine gives. Then it prints one line, `ready HOST`, with the address of this machine in the container's network. As
//! soon as its input ends it takes container and kubeconfig away: so it does whatever ends the run that started it.
//!
//! With `K3S_UNPRIVILEGED` in the environment the container does not get all capabilities, for images that need none.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use testcontainers::bollard::query_parameters::{InspectContainerOptions, RemoveContainerOptionsBuilder};
use testcontainers::core::client::{ClientError, docker_client_instance};
use testcontainers::core::{ExecCommand, IntoContainerPort as _};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _, TestcontainersError};
use tokio::sync::oneshot;

/// Where k3s writes its kubeconfig, in its container.
const KUBECONFIG: &str = "/etc/rancher/k3s/k3s.yaml";
/// How long k3s may take to write it.
const READY_SECONDS: u32 = 120;
/// When a container is removed whose start was broken off: the engine may still be about to make it.
const REMOVALS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Container(#[from] TestcontainersError),
    #[error("failed to read k3s' kubeconfig: {0}")]
    Kubeconfig(String),
    #[error("no Docker engine answers: {0}")]
    Engine(#[from] ClientError),
    #[error("k3s wrote no kubeconfig within {READY_SECONDS} s: {0}")]
    NotReady(String),
    #[error("failed to write {path}: {source}")]
    Write { path: String, source: std::io::Error },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, image, kubeconfig] = arguments.as_slice() else {
        eprintln!("usage: k3s NAME IMAGE KUBECONFIG");
        return ExitCode::from(2);
    };
    let kubeconfig = Path::new(kubeconfig);
    let mut ended = input_ended();
    let outcome = tokio::select! {
        outcome = start(name, image, kubeconfig) => Some(outcome),
        _ = &mut ended => None,
    };
    let code = match outcome {
        Some(Ok(_container)) => {
            // It is removed by its name below, once nobody needs it.
            let _ended = ended.await;
            remove(name, &REMOVALS[..1]).await;
            ExitCode::SUCCESS
        }
        Some(Err(failure)) => {
            remove(name, &REMOVALS[..1]).await;
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
        None => {
            remove(name, &REMOVALS).await;
            ExitCode::FAILURE
        }
    };
    let _removed = std::fs::remove_file(kubeconfig);
    code
}

/// Resolves when this program's input ends.
fn input_ended() -> oneshot::Receiver<()> {
    let (send, receive) = oneshot::channel();
    // A thread of its own: a runtime would wait for the read at its end.
    std::thread::spawn(move || {
        let _read = std::io::stdin().read_to_end(&mut Vec::new());
        let _sent = send.send(());
    });
    receive
}

async fn start(name: &str, image: &str, kubeconfig: &Path) -> Result<ContainerAsync<GenericImage>, Failure> {
    // A colon before a slash belongs to the port of a registry.
    let (repository, tag) = match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    };
    let container = GenericImage::new(repository, tag)
        .with_exposed_port(6443.tcp())
        .with_container_name(name)
        .with_privileged(std::env::var_os("K3S_UNPRIVILEGED").is_none())
        .with_cmd(["server", "--disable=traefik,metrics-server"])
        .start()
        .await?;
    let text = read_kubeconfig(&container).await?;
    let host = container.get_host().await?;
    let port = container.get_host_port_ipv4(6443).await?;
    let text = reached_at(&text, &format!("{host}:{port}"))?;
    std::fs::write(kubeconfig, text).map_err(|source| Failure::Write {
        path: kubeconfig.display().to_string(),
        source,
    })?;
    println!("ready {}", gateway(name).await.unwrap_or_default());
    Ok(container)
}

/// The kubeconfig, once it is there: the container waits for its own file, so that nothing here has to.
async fn read_kubeconfig(container: &ContainerAsync<GenericImage>) -> Result<String, Failure> {
    let wait = format!("until [ -s {KUBECONFIG} ]; do sleep 1; done; cat {KUBECONFIG}");
    let seconds = READY_SECONDS.to_string();
    let mut told = container
        .exec(ExecCommand::new(["timeout", &seconds, "sh", "-c", &wait]))
        .await?;
    let text = told.stdout_to_vec().await?;
    match told.exit_code().await? {
        Some(0) => Ok(String::from_utf8_lossy(&text).into_owned()),
        _ => {
            let said = container.stderr_to_vec().await?;
            let said = String::from_utf8_lossy(&said);
            Err(Failure::NotReady(
                said.trim().lines().last().unwrap_or_default().to_owned(),
            ))
        }
    }
}

/// The kubeconfig, as JSON, for a server that is reached at this address, whose certificate is for `localhost`.
fn reached_at(kubeconfig: &str, address: &str) -> Result<String, Failure> {
    let mut config: Value =
        serde_saphyr::from_str(kubeconfig).map_err(|error| Failure::Kubeconfig(error.to_string()))?;
    let clusters = config.get_mut("clusters").and_then(Value::as_array_mut);
    for entry in clusters.into_iter().flatten() {
        if let Some(cluster) = entry.get_mut("cluster").and_then(Value::as_object_mut) {
            cluster.insert("server".to_owned(), format!("https://{address}").into());
            cluster.insert("tls-server-name".to_owned(), "localhost".into());
        }
    }
    Ok(config.to_string())
}

/// The address of this machine in the network of the container.
async fn gateway(name: &str) -> Option<String> {
    let docker = docker_client_instance().await.ok()?;
    let container = docker
        .inspect_container(name, None::<InspectContainerOptions>)
        .await
        .ok()?;
    let networks = container.network_settings?.networks?;
    let mut gateways = networks.into_values().filter_map(|network| network.gateway);
    gateways.find(|gateway| !gateway.is_empty())
}

/// Removes the container of this name, if there is one, after each of these times.
async fn remove(name: &str, after: &[Duration]) {
    let Ok(docker) = docker_client_instance().await else {
        return;
    };
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    for pause in after {
        tokio::time::sleep(*pause).await;
        // There is nobody to tell; what is left is a container of this name.
        let _removed = docker.remove_container(name, Some(options.clone())).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kubeconfig_names_the_address_and_the_certificate() {
        let given =
            "apiVersion: v1\nclusters:\n- cluster:\n    server: https://127.0.0.1:6443\n  name: default\n";
        let read = reached_at(given, "docker:32768").expect("a kubeconfig");
        let cluster = json!({"server": "https://docker:32768", "tls-server-name": "localhost"});
        let expected = json!({"apiVersion": "v1", "clusters": [{"cluster": cluster, "name": "default"}]});
        assert_eq!(read.parse::<Value>().expect("JSON"), expected);
        assert!(reached_at("clusters: [", "docker:32768").is_err());
    }
}
