//! Starts the image of `fake-apiserver` with testcontainers for Rust, and talks to the cluster with kubectl.

use std::path::PathBuf;
use std::process::Command;

use testcontainers::core::{IntoContainerPort as _, WaitFor};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage};

type Failure = Box<dyn std::error::Error>;

/// A served cluster in a container; it is ready once it prints where its kubeconfig is.
async fn cluster() -> Result<ContainerAsync<GenericImage>, Failure> {
    let image = std::env::var("FAKE_APISERVER_IMAGE").unwrap_or_else(|_| "fake-apiserver".to_owned());
    let image = GenericImage::new(image.as_str(), "latest")
        .with_exposed_port(6443.tcp())
        .with_wait_for(WaitFor::message_on_stdout("export KUBECONFIG="));
    Ok(image.start().await?)
}

/// The container's kubeconfig, with the port of this machine.
async fn kubeconfig(cluster: &ContainerAsync<GenericImage>) -> Result<String, Failure> {
    let text = cluster
        .copy_file_from("/kubeconfig/admin.conf", Vec::new())
        .await?;
    let port = cluster.get_host_port_ipv4(6443).await?;
    Ok(String::from_utf8(text)?.replace("127.0.0.1:6443", &format!("127.0.0.1:{port}")))
}

fn kubectl(kubeconfig: &PathBuf, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("kubectl")
        .env("KUBECONFIG", kubeconfig)
        .args(arguments)
        .output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

#[tokio::test]
async fn a_deployment_becomes_ready() -> Result<(), Failure> {
    let cluster = cluster().await?;
    let path = std::env::temp_dir().join(format!("testcontainers-{}.kubeconfig", std::process::id()));
    std::fs::write(&path, kubeconfig(&cluster).await?)?;
    kubectl(
        &path,
        &["create", "deployment", "web", "--image=nginx", "--replicas=2"],
    )?;
    let told = kubectl(&path, &["rollout", "status", "deployment/web", "--timeout=60s"])?;
    std::fs::remove_file(&path)?;
    assert!(told.ends_with("successfully rolled out\n"), "{told}");
    Ok(())
}
