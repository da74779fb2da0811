//! The whole of `cargo xtask conformance`: the scenarios and recordings, the cluster, and the report.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use client_kit::Seed;
use shared_json::Value;

use crate::action::Kubectl;
use crate::backend::{
    Backend, FakeCluster, FakeOptions, LocalCluster, ManagerChoice, ManagerTweak, RealCluster,
};
use crate::error::Error;
use crate::glob::matches_glob;
use crate::manifest;
use crate::recording::environment::Environment;
use crate::recording::{Recording, divergences, load};
use crate::report::console::{self, Console, Detail};
use crate::report::stopwatch::Stopwatch;
use crate::report::{Output, Totals, Verbosity, json, junit};
use crate::run::outcome::{ScenarioOutcome, Status, StepOutcome};
use crate::run::play;
use crate::run::scenario::{self as player, Judge};
use crate::scenario::{self, Scenario};
use crate::snapshot::{self, Snapshot};

/// Which kind of cluster to drive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// The in-process one.
    #[default]
    Fake,
    /// One behind a kubeconfig; the default one for `None`.
    Kubeconfig(Option<PathBuf>),
    /// A cluster made with kind for this run, whose node has this image; kind's own for `None`.
    Kind(Option<String>),
    /// A cluster made with k3s in a container for this run, of this image; k3s' own for `None`.
    K3s(Option<String>),
}

/// The options of a run.
#[derive(Clone, Default)]
pub struct SuiteOptions {
    /// Where the scenarios are.
    pub scenarios: PathBuf,
    /// Where the recordings are that judge scenarios; also played if `play_recordings`.
    pub recordings: PathBuf,
    /// The list of known differences from recordings.
    pub divergences: PathBuf,
    /// Whether scenarios are played.
    pub play_scenarios: bool,
    /// Whether recordings are played.
    pub play_recordings: bool,
    /// A glob over names; all for `None`.
    pub only: Option<String>,
    /// The cluster.
    pub backend: BackendChoice,
    /// How a real cluster reaches this machine, where our manager's webhooks are; for `None` it is found out.
    pub host: Option<String>,
    /// The manager that runs OpenKruise's controllers.
    pub manager: ManagerChoice,
    /// The seed.
    pub seed: u64,
    /// Whether to wait for Enter after each step.
    pub pause: bool,
    /// Whether snapshots are written.
    pub bless: bool,
    /// How much is printed.
    pub verbosity: Verbosity,
    /// Whether colours may be used.
    pub colour: bool,
    /// Where to write JUnit's XML.
    pub junit: Option<PathBuf>,
    /// Where to write JSON.
    pub json: Option<PathBuf>,
    /// Whether scenarios without recordings and snapshots are judged by their assertions alone: other people's are.
    pub assertions_suffice: bool,
    /// Chainsaw's configuration of the scenarios, if it is not `.chainsaw.yaml` in their folder.
    pub configuration: Option<PathBuf>,
    /// The values that scenarios know as `$values`: an object, or null for an empty one.
    pub values: Value,
    /// How many nodes the in-process cluster of a scenario has; as many as otherwise for `None`.
    pub nodes: Option<u32>,
    /// A manifest of the objects that a scenario's cluster has from the start.
    pub setup: Option<PathBuf>,
    /// A change of our manager: a test's way to break it.
    pub tweak: Option<ManagerTweak>,
}

/// Work for a simulation's own thread.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs work on a thread whose entropy follows the seed; how, is up to the program.
pub type Simulate<'a> = &'a (dyn Fn(Seed, Job<'_>) + Sync);

/// The names of the selected scenarios and recordings.
///
/// # Errors
/// If a scenario or recording is wrong.
pub fn names(options: &SuiteOptions) -> Result<Vec<String>, Error> {
    let (scenarios, recordings) = read(options)?;
    let scenarios = scenarios.into_iter().map(|scenario| scenario.name);
    Ok(scenarios
        .chain(recordings.into_iter().map(|recording| recording.name))
        .collect())
}

fn selected(options: &SuiteOptions, name: &str) -> bool {
    options
        .only
        .as_deref()
        .is_none_or(|glob| matches_glob(glob, name))
}

fn read(options: &SuiteOptions) -> Result<(Vec<Scenario>, Vec<Recording>), Error> {
    // Everything is read before anything is played, so that bad input leaves nothing half done.
    let mut scenarios = Vec::new();
    if options.play_scenarios {
        scenarios = scenario::load::find(&options.scenarios, options.configuration.as_deref())?;
        for scenario in scenarios.iter_mut().filter(|_| !options.values.is_null()) {
            scenario.values = options.values.clone();
        }
        scenarios.retain(|scenario| selected(options, &scenario.name));
    }
    let mut recordings = Vec::new();
    if options.play_recordings {
        for folder in load::find(&options.recordings)? {
            let name = folder
                .strip_prefix(&options.recordings)
                .unwrap_or(&folder)
                .to_string_lossy()
                .replace('\\', "/");
            if selected(options, &name) || name.is_empty() {
                recordings.push(Recording::read(&options.recordings, &folder)?);
            }
        }
    }
    if scenarios.is_empty() && recordings.is_empty() {
        let place = if options.play_scenarios {
            &options.scenarios
        } else {
            &options.recordings
        };
        return Err(Error::Nothing {
            what: match &options.only {
                Some(glob) => format!("anything named \"{glob}\""),
                None => "scenarios or recordings".to_owned(),
            },
            path: place.clone(),
            help: "`cargo xtask conformance --list` shows what there is".to_owned(),
        });
    }
    Ok((scenarios, recordings))
}

/// Plays everything, reports it on `out`, and returns the totals.
///
/// # Errors
/// Bad input, or a cluster that cannot be had. Failures of the cluster are in the totals.
pub fn run(
    options: &SuiteOptions,
    out: &mut (dyn Output + Send),
    simulate: Simulate<'_>,
) -> Result<Totals, Error> {
    let (scenarios, recordings) = read(options)?;
    // It goes at the end of the run, however that ends.
    let made = match &options.backend {
        BackendChoice::Kind(image) => Some(LocalCluster::kind(image.as_deref())?),
        BackendChoice::K3s(image) => Some(LocalCluster::k3s(image.as_deref())?),
        BackendChoice::Fake | BackendChoice::Kubeconfig(_) => None,
    };
    let on_made = made.as_ref().map(|made| SuiteOptions {
        backend: BackendChoice::Kubeconfig(Some(made.kubeconfig().to_owned())),
        host: options.host.clone().or_else(|| made.host()),
        ..options.clone()
    });
    let options = on_made.as_ref().unwrap_or(options);
    let known = divergences::read(&options.divergences)?;
    let mut plays: Vec<Play<'_>> = scenarios
        .iter()
        .map(Play::Scenario)
        .chain(recordings.iter().map(Play::Recording))
        .collect();
    plays.sort_by_key(|play| !play.shown_first());
    let outcomes = play_all(options, &plays, &known, out, simulate)?;
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", json::report(&outcomes));
        std::fs::write(path, text).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
    }
    if let Some(path) = &options.junit {
        let text = junit::report(&outcomes).map_err(|error| Error::Write {
            path: path.clone(),
            source: std::io::Error::other(error.to_string()),
        })?;
        std::fs::write(path, text).map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
    }
    console::summary(out, &outcomes).map_err(output_error)?;
    Ok(Totals::of(&outcomes))
}

/// A scenario or recording that is played on a cluster of its own.
#[derive(Clone, Copy)]
enum Play<'a> {
    Scenario(&'a Scenario),
    Recording(&'a Recording),
}

impl Play<'_> {
    fn shown_first(self) -> bool {
        matches!(self, Self::Scenario(scenario) if scenario.extras.shown_first)
    }

    /// How much is shown of it, as one of `of`.
    fn detail(self, options: &SuiteOptions, of: usize) -> Detail {
        match options.verbosity {
            Verbosity::Verbose => Detail::Everything,
            Verbosity::Quiet => Detail::Failure,
            _ if of == 1 || options.pause => Detail::Everything,
            _ if self.shown_first() => Detail::Steps,
            Verbosity::Lines => Detail::Line,
            Verbosity::Progress => Detail::Failure,
        }
    }

    fn run(
        self,
        options: &SuiteOptions,
        known: &[divergences::Divergence],
        console: Console<&mut (dyn Write + Send)>,
        simulate: Simulate<'_>,
    ) -> Result<ScenarioOutcome, Error> {
        match self {
            Self::Scenario(scenario) => play_scenario(options, scenario, console, simulate),
            Self::Recording(recording) => play_recording(options, recording, known, console, simulate),
        }
    }
}

/// Plays everything, reports it in order, and gives the outcomes in order.
///
/// In-process clusters share nothing, so as many are played at once as there are cores. The report of each is kept until all
/// before it have been printed.
fn play_all(
    options: &SuiteOptions,
    plays: &[Play<'_>],
    known: &[divergences::Divergence],
    out: &mut (dyn Output + Send),
    simulate: Simulate<'_>,
) -> Result<Vec<ScenarioOutcome>, Error> {
    let alone = options.backend != BackendChoice::Fake || options.pause;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = if alone { 1 } else { cores.min(plays.len()) };
    let of = plays.len();
    if workers == 1 {
        let mut outcomes = Vec::new();
        for play in plays {
            let console = Console::new(&mut *out as _, options.colour, play.detail(options, of));
            let outcome = play.run(options, known, console, simulate)?;
            out.played(&outcome, of);
            outcomes.push(outcome);
        }
        return Ok(outcomes);
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(play) = plays.get(index) else { return };
                    let mut told = Vec::new();
                    let console = Console::new(&mut told as _, options.colour, play.detail(options, of));
                    let outcome = play.run(options, known, console, simulate);
                    // Nobody listens any more after a failure: then this was the last.
                    if sender.send((index, told, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut outcomes = Vec::new();
        for (index, told, outcome) in receiver {
            early.insert(index, (told, outcome));
            while let Some((told, outcome)) = early.remove(&outcomes.len()) {
                out.write_all(&told).map_err(output_error)?;
                let outcome = outcome?;
                out.played(&outcome, of);
                outcomes.push(outcome);
            }
        }
        Ok(outcomes)
    })
}

fn output_error(source: std::io::Error) -> Error {
    Error::Write {
        path: PathBuf::from("standard output"),
        source,
    }
}

/// Runs an async body: on virtual time for the in-process cluster, in real time otherwise.
pub(crate) fn block_on<T: Send>(
    options: &SuiteOptions,
    seed: u64,
    simulate: Simulate<'_>,
    body: impl AsyncFnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let fake = options.backend == BackendChoice::Fake;
    let mut result = None;
    let job: Job<'_> = Box::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(fake)
            .build();
        result = Some(match runtime {
            Ok(runtime) => runtime.block_on(body()),
            Err(source) => Err(Error::Read {
                path: PathBuf::from("a tokio runtime"),
                source,
            }),
        });
    });
    if fake {
        simulate(Seed(seed), job);
    } else {
        job();
    }
    result.unwrap_or_else(|| {
        Err(Error::Backend {
            what: "run a scenario".to_owned(),
            why: "its thread ended early".to_owned(),
            help: "this is a defect of Seatrial, not of your input".to_owned(),
        })
    })
}

pub(crate) async fn start(
    options: &SuiteOptions,
    seed: u64,
    environment: Environment,
) -> Result<Backend, Error> {
    match &options.backend {
        BackendChoice::Kubeconfig(path) => {
            let (path, host) = (path.as_deref(), options.host.as_deref());
            let cluster = RealCluster::connect(path, host, options.manager, seed).await;
            cluster.map(Backend::Real)
        }
        _ => {
            // Which pods share a node decides which one a set gives up first.
            let nodes = environment.nodes().or(options.nodes);
            let fake = FakeOptions {
                seed,
                environment,
                nodes,
                tweak: options.tweak.clone(),
                ..FakeOptions::default()
            };
            FakeCluster::start(fake).await.map(Backend::Fake)
        }
    }
}

/// Applies a scenario's initial objects, and waits until their first consequences are there.
async fn set_up(options: &SuiteOptions, backend: &Backend) -> Result<(), Error> {
    let Some(path) = &options.setup else {
        return Ok(());
    };
    let kubectl = Kubectl::new(backend.client(), "default");
    for document in manifest::read(path)? {
        kubectl
            .apply(&document.object)
            .await
            .map_err(|error| Error::Refused {
                action: "apply".to_owned(),
                origin: Some(format!("{}:{}", path.display(), document.line)),
                why: error.to_string(),
            })?;
    }
    backend.settle().await;
    Ok(())
}

fn play_scenario(
    options: &SuiteOptions,
    scenario: &Scenario,
    mut console: Console<&mut (dyn Write + Send)>,
    simulate: Simulate<'_>,
) -> Result<ScenarioOutcome, Error> {
    console
        .scenario(&scenario.name, &scenario.test.spec.description)
        .map_err(output_error)?;
    if let Some(why) = why_not(options, scenario) {
        let outcome = ScenarioOutcome::skipped(&scenario.name, why);
        console.end(&outcome).map_err(output_error)?;
        return Ok(outcome);
    }
    let snapshots = !options.assertions_suffice || snapshot::any(scenario.folder());
    let judges = judges(options, scenario)?;
    let environment = environment(options, scenario)?;
    let seed = scenario.extras.seed.unwrap_or(options.seed);
    let stopwatch = Stopwatch::start();
    let mut told = Ok(());
    let mut outcome = {
        let (console, told) = (&mut console, &mut told);
        block_on(options, seed, simulate, async move || {
            let backend = start(options, seed, environment).await?;
            set_up(options, &backend).await?;
            let mut on_step = |step: &StepOutcome| {
                if told.is_ok() {
                    *told = console.step(step);
                }
                if options.pause {
                    wait_for_enter();
                }
            };
            let outcome = player::run(scenario, &backend, &judges, snapshots, &mut on_step).await;
            backend.clean_up().await;
            match outcome {
                // What is wrong with one test of other people's does not concern the next.
                Err(error @ (Error::Refused { .. } | Error::Parse { .. })) if options.assertions_suffice => {
                    Ok(ScenarioOutcome::wrong(&scenario.name, error.to_string()))
                }
                other => other,
            }
        })?
    };
    told.map_err(output_error)?;
    note_time(options, &mut outcome, stopwatch.elapsed());
    if options.bless {
        bless(scenario, &mut outcome)?;
    }
    console.end(&outcome).map_err(output_error)?;
    Ok(outcome)
}

/// Why a scenario is not played, if it is not.
fn why_not(options: &SuiteOptions, scenario: &Scenario) -> Option<String> {
    if scenario.test.spec.skip {
        return Some("the scenario says skip".to_owned());
    }
    if !scenario.beyond.is_empty() {
        return Some(format!("not played here: {}", scenario.beyond.join(", ")));
    }
    if options.backend != BackendChoice::Fake && !scenario.extras.faults.is_empty() {
        return Some("its faults can be had from the in-process cluster only".to_owned());
    }
    None
}

/// A real cluster has no clock but the one on the wall.
fn note_time(options: &SuiteOptions, outcome: &mut ScenarioOutcome, wall: Duration) {
    outcome.wall = wall;
    if options.backend != BackendChoice::Fake {
        outcome.virtual_time = None;
    }
}

fn wait_for_enter() {
    let mut line = String::new();
    // At the end of the input there is nobody to wait for.
    let _read = std::io::stdin().read_line(&mut line);
}

fn judges(options: &SuiteOptions, scenario: &Scenario) -> Result<Vec<Judge>, Error> {
    let mut judges = Vec::new();
    for (name, names) in &scenario.extras.recordings {
        let recording = Recording::read(&options.recordings, &options.recordings.join(name))?;
        judges.push(Judge::new(scenario, &recording, names));
    }
    Ok(judges)
}

/// The images of the recordings that judge the scenario.
fn environment(options: &SuiteOptions, scenario: &Scenario) -> Result<Environment, Error> {
    let mut environment = Environment::default();
    for (name, _) in &scenario.extras.recordings {
        let recording = Recording::read(&options.recordings, &options.recordings.join(name))?;
        let of_recording = Environment::of(&recording);
        environment.images.extend(of_recording.images);
        environment.missing.extend(of_recording.missing);
    }
    environment.images.extend(scenario.extras.images.clone());
    environment.names = BTreeMap::new();
    environment.missing.extend(scenario.extras.missing.clone());
    environment.pulls.clone_from(&scenario.extras.pulls);
    environment.gates.clone_from(&scenario.extras.gates);
    environment.daemon = scenario.extras.daemon;
    Ok(environment)
}

/// Writes the snapshots of a scenario. A recording is never overruled: a step that differs from its recording
/// keeps its snapshot, and stays failed.
fn bless(scenario: &Scenario, outcome: &mut ScenarioOutcome) -> Result<(), Error> {
    let mut failed = false;
    for (index, step) in outcome.steps.iter_mut().enumerate() {
        let recorded = step.judged_by.iter().any(|judge| judge.starts_with("recording"));
        let only_snapshot = step.diff.is_empty()
            || step.diff.starts_with("--- its snapshot")
            || step.diff.starts_with("the step has neither");
        if step.status == Status::Failed && !only_snapshot {
            failed = true;
            continue;
        }
        let description = if recorded {
            let judges: Vec<&str> = step
                .judged_by
                .iter()
                .map(String::as_str)
                .filter(|j| j.starts_with("recording"))
                .collect();
            format!("equal to {}", judges.join(", "))
        } else {
            "no recording of the real system is behind this".to_owned()
        };
        let snapshot = Snapshot {
            description,
            text: step.text.clone(),
        };
        snapshot::write(scenario.folder(), index, &step.name, &snapshot)?;
        step.status = Status::Passed;
        step.diff.clear();
    }
    outcome.status = if failed { Status::Failed } else { Status::Passed };
    Ok(())
}

fn play_recording(
    options: &SuiteOptions,
    recording: &Recording,
    known: &[divergences::Divergence],
    mut console: Console<&mut (dyn Write + Send)>,
    simulate: Simulate<'_>,
) -> Result<ScenarioOutcome, Error> {
    let stopwatch = Stopwatch::start();
    let environment = Environment::of(recording);
    let mut outcome = block_on(options, options.seed, simulate, async move || {
        let backend = start(options, options.seed, environment).await?;
        let outcome = play::play(recording, &backend, known).await;
        backend.clean_up().await;
        outcome
    })?;
    note_time(options, &mut outcome, stopwatch.elapsed());
    let told = console.scenario(&recording.name, "").and_then(|()| {
        outcome
            .steps
            .iter()
            .try_for_each(|step| console.step(step))
            .and_then(|()| console.end(&outcome))
    });
    told.map_err(output_error)?;
    Ok(outcome)
}
