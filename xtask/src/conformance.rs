//! `cargo xtask conformance`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use conformance::Error;
use conformance::backend::ManagerChoice;
use conformance::report::{Output, Verbosity};
use conformance::run::outcome::ScenarioOutcome;
use conformance::scenario::values;
use conformance::suite::{self, BackendChoice, SuiteOptions};
use indicatif::{ProgressBar, ProgressStyle};

/// Plays scenarios and recordings.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only scenarios and recordings with a matching name (`*` and `?` are wild).
    #[arg(long, value_name = "GLOB")]
    scenario: Option<String>,
    /// The folder of the scenarios.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Chainsaw's configuration for `--dir`, instead of its `.chainsaw.yaml`.
    #[arg(long, value_name = "FILE", requires = "dir")]
    config: Option<PathBuf>,
    /// Values that tests know as `$values`, from YAML files; later ones go before earlier ones.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    values: Vec<PathBuf>,
    /// Sets such values: `image.tag=1,args={a,b}` (Helm's grammar); may be given more than once.
    #[arg(long, value_name = "SETTINGS")]
    set: Vec<String>,
    /// Sets such values, which are all texts.
    #[arg(long, value_name = "SETTINGS")]
    set_string: Vec<String>,
    /// How many nodes the in-process cluster of each test has.
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// A manifest of the objects that the cluster of each test has from the start.
    #[arg(long, value_name = "FILE")]
    setup: Option<PathBuf>,
    /// Play every recording below DIR instead of the scenarios.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// The cluster to play on.
    #[arg(long, value_enum, default_value_t = Backend::Fake)]
    backend: Backend,
    /// The kubeconfig of `--backend kubeconfig` (otherwise the usual one).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How a real cluster reaches this machine, where the manager's webhooks are (otherwise it is found out).
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// The image of the node of `--backend kind` or `k3s`, instead of the tool's own.
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
    /// The manager that runs OpenKruise's controllers on a real cluster.
    #[arg(long, value_enum, default_value_t = ManagerKind::Own)]
    manager: ManagerKind,
    /// The number that a run on the in-process cluster is a function of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Wait for Enter after each step.
    #[arg(long)]
    step: bool,
    /// Write JUnit's XML to FILE.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a JSON report to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// List the scenarios and recordings without playing them.
    #[arg(long)]
    list: bool,
    /// Write the snapshots of steps that no recording judges, or that equal theirs.
    #[arg(long)]
    bless: bool,
    /// Show every step of everything.
    #[arg(short, long)]
    verbose: bool,
    /// Show only failures, and the totals.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// The in-process cluster.
    Fake,
    /// Any running cluster.
    Kubeconfig,
    /// A cluster that kind makes for this run.
    Kind,
    /// A cluster that k3s makes in a container for this run.
    K3s,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManagerKind {
    /// This program.
    Own,
    /// An OpenKruise that is installed in the cluster already.
    External,
}

impl Backend {
    pub(crate) fn choice(self, kubeconfig: Option<PathBuf>, node_image: Option<String>) -> BackendChoice {
        match self {
            Self::Fake => BackendChoice::Fake,
            Self::Kubeconfig => BackendChoice::Kubeconfig(kubeconfig),
            Self::Kind => BackendChoice::Kind(node_image),
            Self::K3s => BackendChoice::K3s(node_image),
        }
    }
}

impl ManagerKind {
    pub(crate) fn choice(self) -> ManagerChoice {
        match self {
            Self::Own => ManagerChoice::Own,
            Self::External => ManagerChoice::External,
        }
    }
}

/// The workspace's own folder, wherever the command was started.
pub(crate) fn workspace() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

fn options(arguments: Arguments) -> Result<SuiteOptions, Error> {
    let values = values::gather(&arguments.values, &arguments.set, &arguments.set_string)?;
    let fixtures = workspace().join("fixtures");
    let backend = arguments
        .backend
        .choice(arguments.kubeconfig, arguments.node_image);
    let own_recordings = arguments.recordings.is_none();
    let assertions_suffice = arguments.dir.is_some();
    Ok(SuiteOptions {
        // Without a choice both are played: the scenarios, and the recordings that came with the project.
        play_scenarios: own_recordings,
        play_recordings: !own_recordings || (arguments.dir.is_none() && backend == BackendChoice::Fake),
        scenarios: arguments.dir.unwrap_or_else(|| fixtures.join("scenarios")),
        recordings: arguments
            .recordings
            .unwrap_or_else(|| fixtures.join("recordings")),
        divergences: fixtures.join("recordings/divergences.yaml"),
        only: arguments.scenario,
        backend,
        host: arguments.host,
        manager: arguments.manager.choice(),
        seed: arguments.seed,
        pause: arguments.step,
        bless: arguments.bless,
        verbosity: verbosity(arguments.verbose, arguments.quiet),
        colour: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        junit: arguments.junit,
        json: arguments.json,
        assertions_suffice,
        configuration: arguments.config,
        values,
        nodes: arguments.nodes,
        setup: arguments.setup,
        tweak: None,
    })
}

/// A terminal shows a progress bar; a file has a line for everything that was played.
fn verbosity(verbose: bool, quiet: bool) -> Verbosity {
    match (verbose, quiet) {
        (true, _) => Verbosity::Verbose,
        (_, true) => Verbosity::Quiet,
        _ if io::stdout().is_terminal() => Verbosity::Progress,
        _ => Verbosity::Lines,
    }
}

/// A terminal, with a progress bar below the output.
struct Terminal {
    bar: ProgressBar,
}

impl Terminal {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        // The template is a constant: were it wrong, the bar would keep its usual looks.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl Write for Terminal {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| io::stdout().write(text))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

impl Output for Terminal {
    fn played(&mut self, outcome: &ScenarioOutcome, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_message(outcome.name.clone());
        self.bar.inc(1);
        if self.bar.position() == of as u64 {
            self.bar.finish_and_clear();
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> miette::Result<ExitCode> {
    let list = arguments.list;
    let options = options(arguments)?;
    if list {
        for name in suite::names(&options)? {
            // A reader that goes away early has seen enough.
            let _written = writeln!(io::stdout(), "{name}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut out: Box<dyn Output + Send> = match options.verbosity {
        Verbosity::Progress => Box::new(Terminal::new()),
        _ => Box::new(io::stdout()),
    };
    let totals = suite::run(&options, &mut *out, &|seed, job| {
        seeded_entropy::simulate(seed, job)
    })?;
    Ok(if totals.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
