//! `cargo xtask chart`: the data files of the Helm chart. They are the objects that `kruise-manager --install` applies, so that a
//! release by Helm has the same definitions, rights and webhooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use controller::process::gates::FeatureGates;
use controller::process::{install, install_daemon};
use miette::{IntoDiagnostic as _, WrapErr as _};
use serde_json::Value;

/// The chart's folder in the repository.
pub(crate) const CHART: &str = "charts/kruise";
/// The namespace of the Secrets that the daemon may read; the chart has no value for it, as OpenKruise's has none.
const SECRETS_NAMESPACE: &str = "kruise-daemon-config";
/// The files, and the part of an object that each has.
const FILES: [(&str, &str, &str, &str); 6] = [
    ("manager-rules", "ClusterRole", "kruise-manager-role", "rules"),
    ("election-rules", "Role", "kruise-leader-election-role", "rules"),
    ("daemon-rules", "ClusterRole", "kruise-daemon-role", "rules"),
    ("daemon-secret-rules", "Role", "kruise-daemon-role", "rules"),
    (
        "mutating-webhooks",
        "MutatingWebhookConfiguration",
        "kruise-mutating-webhook-configuration",
        "webhooks",
    ),
    (
        "validating-webhooks",
        "ValidatingWebhookConfiguration",
        "kruise-validating-webhook-configuration",
        "webhooks",
    ),
];

/// Write the data files of the Helm chart.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// The objects of an installation with every gate on.
pub(crate) fn objects() -> Vec<Value> {
    let gates = FeatureGates::parse("AllAlpha=true,AllBeta=true").unwrap_or_default();
    let mut objects = install::objects(install::NAMESPACE, &gates);
    objects.extend(install_daemon::objects(install::NAMESPACE, SECRETS_NAMESPACE));
    objects
}

/// The files by their path in the chart.
pub(crate) fn files(objects: &[Value]) -> BTreeMap<PathBuf, String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut files = BTreeMap::new();
    for object in objects {
        if object["kind"] == "CustomResourceDefinition" {
            let path = PathBuf::from(format!("files/crds/{}.json", name(object)));
            files.insert(path, format!("{object:#}\n"));
        }
        for (file, kind, of, part) in FILES {
            if object["kind"] == kind && name(object) == of {
                let path = PathBuf::from(format!("files/{file}.json"));
                files.insert(path, format!("{:#}\n", object[part]));
            }
        }
    }
    files
}

/// Writes them.
pub(crate) fn run(_: &Arguments) -> miette::Result<ExitCode> {
    let chart = crate::conformance::workspace().join(CHART);
    for (path, text) in files(&objects()) {
        write(&chart.join(path), &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> miette::Result<()> {
    let wrong = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .into_diagnostic()
            .wrap_err_with(wrong)?;
    }
    std::fs::write(path, text).into_diagnostic().wrap_err_with(wrong)
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
