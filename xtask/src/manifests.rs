//! `cargo xtask manifests`: the objects of an installation, as YAML.

use std::process::ExitCode;

use clap::Args;
use controller::process::{install, install_daemon};
use miette::IntoDiagnostic as _;

/// Print the objects that install the manager, and the daemon.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The namespace of the manager.
    #[arg(long, default_value = install::NAMESPACE)]
    namespace: String,
    /// The manager's image.
    #[arg(long, default_value = "kruise-manager:latest")]
    image: String,
    /// The manager's feature gates, as its flag takes them. A gate brings the definitions that it needs.
    #[arg(long, default_value = "")]
    feature_gates: String,
    /// The image of `kruise-daemon`. With it the objects that install the daemon are printed, too.
    #[arg(long)]
    daemon_image: Option<String>,
    /// The namespace of the Secrets that the daemon may read.
    #[arg(long, default_value = "kruise-daemon-config")]
    daemon_namespace: String,
}

/// Prints them to standard output.
pub fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let Arguments {
        namespace,
        image,
        feature_gates,
        daemon_image,
        daemon_namespace,
    } = &arguments;
    let mut objects = install::manifests(namespace, image, feature_gates).into_diagnostic()?;
    if let Some(image) = daemon_image {
        let daemon = install_daemon::manifests(namespace, daemon_namespace, image, feature_gates);
        objects.extend(daemon.into_diagnostic()?);
    }
    for object in objects {
        print!("---\n{}", serde_saphyr::to_string(&object).into_diagnostic()?);
    }
    Ok(ExitCode::SUCCESS)
}
