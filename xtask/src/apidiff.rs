//! `cargo xtask apidiff`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conformance::apidiff::{self, ApidiffOptions, Target};
use miette::IntoDiagnostic as _;

/// Plays exchanges that were recorded from a real kube-apiserver.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Plays on the server behind this kubeconfig, instead of in-process ones.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The features of the server behind the kubeconfig: kcm (kube-controller-manager runs), authn.
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "kubeconfig")]
    feature: Vec<String>,
    /// Only cases whose group, name or `group/name` matches (`*` and `?` are wild; may be repeated).
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// Writes the answers below DIR instead of comparing them.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// The folder with `cases/` and `failing.txt`; answers are in the cases' files, or in `golden/` if that is there.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Shows every case and every difference.
    #[arg(short, long)]
    verbose: bool,
    /// Shows the table only.
    #[arg(short, long)]
    quiet: bool,
    /// Takes cases that pass now off the list of known failures.
    #[arg(long)]
    prune: bool,
}

/// Exit code 0 if all answers are as recorded, except for the list of known failures, which applies in process only.
pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let root = arguments
        .dir
        .unwrap_or_else(|| crate::conformance::workspace().join("fixtures/apidiff"));
    let in_process = arguments.kubeconfig.is_none();
    let options = ApidiffOptions {
        cases: root.join("cases"),
        golden: Some(root.join("golden")).filter(|folder| folder.is_dir()),
        only: arguments.only,
        target: match arguments.kubeconfig {
            None => Target::InProcess,
            path => Target::Kubeconfig {
                path,
                features: arguments.feature,
            },
        },
        record: arguments.record,
        verbose: arguments.verbose,
        quiet: arguments.quiet,
    };
    let mut out = io::stdout();
    let outcomes = apidiff::run(&options, &mut out)?;
    let failed = apidiff::totals(&outcomes).failed;
    let list = root.join("failing.txt");
    if !in_process || options.record.is_some() || !list.exists() {
        return Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let known = apidiff::known_failures(&list)?;
    let (new, fixed) = apidiff::surprises(&outcomes, &known);
    for id in &new {
        writeln!(out, "not a known failure: {id}").into_diagnostic()?;
    }
    if arguments.prune && !fixed.is_empty() {
        apidiff::prune(&list, &fixed)?;
    }
    for id in fixed.iter().filter(|_| !arguments.prune) {
        writeln!(out, "passes now, take it off {}: {id}", list.display()).into_diagnostic()?;
    }
    let known_left = failed - new.len();
    writeln!(out, "{known_left} of the failures are known ({})", list.display()).into_diagnostic()?;
    Ok(if new.is_empty() && (fixed.is_empty() || arguments.prune) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
