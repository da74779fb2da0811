//! `cargo xtask manifests`: the objects of an installation, as YAML.

use std::process::ExitCode;

use clap::Args;
use controller::process::install;
use miette::IntoDiagnostic as _;

/// Print the objects that install the manager.
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
}

/// Prints them to standard output.
pub fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let Arguments {
        namespace,
        image,
        feature_gates,
    } = &arguments;
    for object in install::manifests(namespace, image, feature_gates).into_diagnostic()? {
        print!("---\n{}", serde_saphyr::to_string(&object).into_diagnostic()?);
    }
    Ok(ExitCode::SUCCESS)
}
