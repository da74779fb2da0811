//! All cases, on one kind of server.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use client_kit::SystemClock;
use fake_apiserver::Cluster;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use shared_json::Value;

use super::case::{Case, read_all};
use super::compare::compare;
use super::play::{Server, play};
use super::report::{CaseResult, Counts, Outcome, tell};
use crate::error::Error;
use crate::glob::matches_glob;

/// A feature that a case may need and that not every server has: kube-controller-manager runs.
const CONTROLLERS: &str = "kcm";

/// The server to play on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// An in-process one for each case, without nodes, with controllers where the case needs them; on virtual time.
    #[default]
    InProcess,
    /// The one behind a kubeconfig, in real time, one case after the other; its features are named.
    Kubeconfig {
        /// The file; the usual one for `None`.
        path: Option<PathBuf>,
        /// Its features: `kcm`, `authn`.
        features: Vec<String>,
    },
}

/// The cases to play, the server, and the verbosity of the report.
#[derive(Debug, Clone, Default)]
pub struct ApidiffOptions {
    /// The folder of the cases.
    pub cases: PathBuf,
    /// A folder of answers, as `apidiff.py` writes them; those of the cases' own files without it.
    pub golden: Option<PathBuf>,
    /// Globs over `group/name`, groups and names; everything without one.
    pub only: Vec<String>,
    /// The server.
    pub target: Target,
    /// Writes the cases with the answers there instead of comparing them.
    pub record: Option<PathBuf>,
    /// Tells of every case, and every difference.
    pub verbose: bool,
    /// Tells nothing but the table.
    pub quiet: bool,
}

/// A recorded server's answers to a case.
#[derive(Deserialize)]
struct Golden {
    results: Vec<Value>,
}

impl Case {
    fn is_selected(&self, globs: &[String]) -> bool {
        let names = [self.id(), self.group.clone(), self.name.clone()];
        globs.is_empty()
            || globs
                .iter()
                .any(|glob| names.iter().any(|name| matches_glob(glob, name)))
    }

    /// Why the case cannot be played on such a server.
    fn unmet(&self, features: &BTreeSet<&str>) -> Option<String> {
        self.needs.iter().find_map(|need| match need.strip_prefix('!') {
            Some(absent) => features
                .contains(absent)
                .then(|| format!("the server has {absent}")),
            None => (!features.contains(need.as_str())).then(|| format!("it needs {need}")),
        })
    }
}

/// Plays the selected cases and reports their outcomes.
///
/// # Errors
/// Cases that cannot be read, a server that cannot be reached, or output that cannot be written. Answers that differ
/// are in the outcomes.
pub fn run(options: &ApidiffOptions, out: &mut (dyn Write + Send)) -> Result<Vec<Outcome>, Error> {
    let mut cases = read_all(&options.cases)?;
    cases.retain(|case| case.is_selected(&options.only));
    if cases.is_empty() {
        return Err(Error::Nothing {
            what: "a case that was asked for".to_owned(),
            path: options.cases.clone(),
            help: "cases are files `<group>/<name>.json`; --only takes globs over groups, names and `group/name`".to_owned(),
        });
    }
    let outcomes = match &options.target {
        Target::InProcess => in_process(options, &cases),
        Target::Kubeconfig { path, features } => {
            behind_kubeconfig(options, &cases, path.as_deref(), features)?
        }
    };
    tell(&outcomes, options.verbose, options.quiet, out).map_err(|source| Error::Write {
        path: "standard output".into(),
        source,
    })?;
    Ok(outcomes)
}

/// Plays every case on a cluster of its own, as many at once as there are cores.
fn in_process(options: &ApidiffOptions, cases: &[Case]) -> Vec<Outcome> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, case)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(index).map(|case| (index, case))
                } {
                    let outcome = judged(options, case, || on_new_cluster(case));
                    outcomes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The answers to the case's requests, or why it is not played.
type Played = Result<Result<Vec<Value>, String>, String>;

fn on_new_cluster(case: &Case) -> Played {
    let controllers = case.needs.iter().any(|need| need == CONTROLLERS);
    let features = if controllers {
        BTreeSet::from([CONTROLLERS])
    } else {
        BTreeSet::new()
    };
    if let Some(why) = case.unmet(&features) {
        return Err(why);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Ok(Err(format!("start a runtime: {error}"))),
    };
    Ok(runtime.block_on(async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(controllers)
            .system_objects(true)
            .start()
            .await
            .map_err(|error| format!("start a cluster: {error}"))?;
        let server = Server {
            client: cluster.client(),
            anonymous: None,
            clock: cluster.clock(),
            address: String::new(),
            disposable: true,
        };
        play(case, &server).await
    }))
}

fn behind_kubeconfig(
    options: &ApidiffOptions,
    cases: &[Case],
    path: Option<&Path>,
    features: &[String],
) -> Result<Vec<Outcome>, Error> {
    let unreachable = |why: String| Error::Backend {
        what: "reach the cluster".to_owned(),
        why,
        help: "check the kubeconfig; `kubectl --kubeconfig FILE version` tries the same".to_owned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unreachable(error.to_string()))?;
    let server = runtime.block_on(connect(path)).map_err(unreachable)?;
    let features: BTreeSet<&str> = features.iter().map(String::as_str).collect();
    Ok(cases
        .iter()
        .map(|case| {
            judged(options, case, || match case.unmet(&features) {
                Some(why) => Err(why),
                None => Ok(runtime.block_on(play(case, &server))),
            })
        })
        .collect())
}

async fn connect(path: Option<&Path>) -> Result<Server, String> {
    let options = KubeConfigOptions::default();
    let config = match path {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
            kube::Config::from_custom_kubeconfig(file, &options).await
        }
        None => kube::Config::from_kubeconfig(&options).await,
    }
    .map_err(|error| error.to_string())?;
    let address = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut nobody = config.clone();
    nobody.auth_info = AuthInfo::default();
    let client = |config| kube::Client::try_from(config).map_err(|error: kube::Error| error.to_string());
    let server = Server {
        client: client(config)?,
        anonymous: Some(client(nobody)?),
        clock: std::sync::Arc::new(SystemClock),
        address,
        disposable: false,
    };
    server
        .client
        .apiserver_version()
        .await
        .map_err(|error| error.to_string())?;
    Ok(server)
}

/// Plays a case and compares, or writes down, the answers.
fn judged(options: &ApidiffOptions, case: &Case, play: impl FnOnce() -> Played) -> Outcome {
    let result = match play() {
        Err(why) => CaseResult::Skipped(why),
        Ok(Err(why)) => CaseResult::Broken(why),
        Ok(Ok(results)) => match &options.record {
            Some(folder) => match write(case, folder, &results) {
                Ok(()) => CaseResult::Passed,
                Err(error) => CaseResult::Broken(format!("write the answers: {error}")),
            },
            None => judge(case, options.golden.as_deref(), &results),
        },
    };
    Outcome {
        id: case.id(),
        group: case.group.clone(),
        result,
    }
}

/// The answers in a file as `apidiff.py` writes it; none if there is no such file.
fn answers_of(path: &Path) -> Result<Option<Vec<Value>>, String> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    let golden: Golden =
        shared_json::from_str(&text).map_err(|error| format!("read {}: {error}", path.display()))?;
    Ok(Some(golden.results))
}

fn judge(case: &Case, golden: Option<&Path>, results: &[Value]) -> CaseResult {
    let recorded = match golden {
        Some(folder) => answers_of(&case.path(folder)),
        None => Ok(case.answers.clone()),
    };
    let recorded = match recorded {
        Ok(Some(recorded)) => recorded,
        Ok(None) => return CaseResult::Skipped("no answers of a real server are recorded".to_owned()),
        Err(why) => return CaseResult::Broken(why),
    };
    if recorded.len() != results.len() {
        return CaseResult::Broken(format!(
            "compare: {} results were recorded and {} came",
            recorded.len(),
            results.len()
        ));
    }
    let differing: Vec<_> = std::iter::zip(&recorded, results)
        .zip(case.titles())
        .map(|((wanted, got), title)| (title, compare(wanted, got)))
        .filter(|(_, differences)| !differences.is_empty())
        .collect();
    if differing.is_empty() {
        CaseResult::Passed
    } else {
        CaseResult::Failed(differing)
    }
}

fn write(case: &Case, folder: &Path, results: &[Value]) -> std::io::Result<()> {
    let path = case.path(folder);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, case.with_answers(results))
}

/// The cases that are known not to be answered as recorded: a line each in a file, beside comments after `#`.
///
/// # Errors
/// If the file cannot be read.
pub fn known_failures(path: &Path) -> Result<BTreeSet<String>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Takes cases off the list of known failures.
///
/// # Errors
/// If the file cannot be read or written.
pub fn prune(path: &Path, fixed: &[String]) -> Result<(), Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let is_fixed = |line: &str| {
        let id = line.split('#').next().unwrap_or_default().trim();
        fixed.iter().any(|fixed| fixed == id)
    };
    let left: String = text
        .lines()
        .filter(|line| !is_fixed(line))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(path, left).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

/// The difference of outcomes from the list of known failures: cases that failed and should not, and cases that are listed and
/// did not fail.
#[must_use]
pub fn surprises(outcomes: &[Outcome], known: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let ids = |wanted: &dyn Fn(&Outcome) -> bool| {
        let chosen = outcomes.iter().filter(|outcome| wanted(outcome));
        chosen.map(|outcome| outcome.id.clone()).collect::<Vec<_>>()
    };
    (
        ids(&|outcome| outcome.is_failed() && !known.contains(&outcome.id)),
        ids(&|outcome| matches!(outcome.result, CaseResult::Passed) && known.contains(&outcome.id)),
    )
}

/// The totals of outcomes.
#[must_use]
pub fn totals(outcomes: &[Outcome]) -> Counts {
    Counts::of(outcomes)
}
