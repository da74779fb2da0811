//! A running program.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client_kit::SharedClock;
use futures::channel::mpsc;
use jiff::Timestamp;
use network::Variables;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::files::Files;
use super::image_program::ImageProgram;
use super::native::{Container, NativeLaunch};
use super::outside::{AskedToEnd, ContainerLog, OutsideProgram};
use super::pipe::Output;
use super::script::{ExitScript, Program};
use super::shell::{Shell, Streams};
use crate::nic::Nic;

/// A program prints at most so often.
const LOG_PERIOD_MS_MIN: u64 = 10;

/// The exit code of a program that `TERM` ended.
const TERMINATED: i32 = 143;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Exit {
    pub code: i32,
    /// Empty if it follows from the code.
    pub reason: String,
    pub message: String,
    /// When it ended; none if that is now.
    pub at: Option<Timestamp>,
}

impl Exit {
    /// The end of a program now: whoever hears of it may be busy.
    pub(crate) fn now(code: i32, clock: &SharedClock) -> Self {
        Self {
            code,
            at: Some(clock.now_seconds()),
            ..Self::default()
        }
    }
}

/// The program to run.
pub(crate) struct Launch {
    /// How often the container was started before.
    pub run: u32,
    pub program: Option<Program>,
    pub argv: Option<Vec<String>>,
    /// The program of an image that is known by name; it goes before `argv`.
    pub image_program: Option<ImageProgram>,
    /// The program in Rust of an image; it goes before `argv`, too.
    pub native: Option<NativeLaunch>,
    /// The program that runs elsewhere; it goes before all others.
    pub outside: Option<OutsideProgram>,
    pub env: BTreeMap<String, String>,
    pub hostname: String,
    /// The pod's network.
    pub nic: Nic,
    /// The variables of Services.
    pub links: Variables,
    /// The only ports on which it listens, if they are known.
    pub own_ports: Option<&'static [u16]>,
    pub clock: SharedClock,
    pub files: Files,
    /// Whether it reads the input of attached clients, and whether that is a terminal.
    pub stdin: bool,
    pub tty: bool,
    /// Whether its input ends with the first attached client.
    pub stdin_once: bool,
    /// How long a program takes to end when asked.
    pub stop: Duration,
}

/// A program that runs. Dropping it kills it.
pub(crate) struct Process {
    /// None for a program that only serves.
    term: Option<watch::Sender<bool>>,
    task: Option<JoinHandle<()>>,
    pub run: Arc<Run>,
    /// Set if it simply serves: it then ends this long after it is asked, and nothing else ever happens to it.
    pub serves: Option<Duration>,
    /// Whether it runs outside of the simulation.
    pub is_outside: bool,
}

/// The parts of a program that others can reach, also after its end.
pub(crate) struct Run {
    pub files: Files,
    /// Its output; closed when it has ended.
    pub logs: Output,
    /// The input of attached clients.
    pub input: Option<Output>,
    pub stdin_once: bool,
    pub tty: bool,
    pub env: BTreeMap<String, String>,
    pub hostname: String,
    pub clock: SharedClock,
    pub started: Instant,
    pub program: Option<Program>,
    pub nic: Nic,
    pub links: Variables,
    /// Whether it answers on its ports: a program of the shell does only while it runs a server.
    listens: AtomicBool,
    /// The only ports on which it answers, if they are known.
    own_ports: Option<&'static [u16]>,
}

impl Run {
    /// Whether the program has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.logs.is_closed()
    }

    /// Whether it answers on its ports.
    pub(crate) fn listens(&self) -> bool {
        self.listens.load(Ordering::Relaxed)
    }

    /// Whether it answers on a port, as far as its image tells; none if that does not tell its ports.
    pub(crate) fn listens_by_image(&self, port: u16) -> Option<bool> {
        let ports = self.own_ports?;
        Some(self.listens() && ports.contains(&port))
    }

    /// It begins or ends to answer on its ports.
    pub(super) fn set_listens(&self, listens: bool) {
        self.listens.store(listens, Ordering::Relaxed);
    }
}

impl Process {
    /// The sender that asks it to end, for others than the kubelet.
    pub(crate) fn term(&self) -> Option<watch::Sender<bool>> {
        self.term.clone()
    }

    /// Asks it to end, as `TERM` does.
    pub(crate) fn terminate(&self) {
        if let Some(term) = &self.term {
            term.send_replace(true);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        self.run.logs.close();
    }
}

/// Starts a program; how it ends is sent as `(key, exit)`. Must be called within a tokio runtime.
pub(crate) fn launch<K: Send + 'static>(
    launch: Launch,
    key: K,
    exits: mpsc::UnboundedSender<(K, Exit)>,
) -> Process {
    let run = Arc::new(Run {
        files: launch.files,
        logs: Output::log(Arc::clone(&launch.clock)),
        input: launch.stdin.then(Output::pipe),
        stdin_once: launch.stdin_once,
        tty: launch.tty,
        env: launch.env,
        hostname: launch.hostname,
        clock: launch.clock,
        started: Instant::now(),
        nic: launch.nic,
        links: launch.links,
        listens: AtomicBool::new(
            launch.program.is_some()
                || launch.outside.is_some()
                || (launch.argv.is_none() && launch.native.is_none()),
        ),
        own_ports: launch.own_ports,
        program: launch.program,
    });
    let mut process = Process {
        term: None,
        task: None,
        run: Arc::clone(&run),
        serves: None,
        is_outside: false,
    };
    if let Some(program) = launch.outside {
        let (term, asked) = watch::channel(false);
        process.term = Some(term);
        process.is_outside = true;
        let (logs, clock) = (run.logs.clone(), Arc::clone(&run.clock));
        let task = async move {
            let code = program(ContainerLog(logs.clone()), AskedToEnd(asked)).await;
            logs.close();
            let _ = exits.unbounded_send((key, Exit::now(code, &clock)));
        };
        process.task = Some(tokio::spawn(task));
        return process;
    }
    let number = usize::try_from(launch.run).unwrap_or(usize::MAX);
    if run.program.is_none()
        && let Some(native) = launch.native
    {
        run_native(&mut process, native, key, exits);
        return process;
    }
    match (&run.program, launch.image_program, launch.argv) {
        (Some(program), _, _) => {
            run.logs.write(program.logs.as_bytes());
            let stop = launch.stop;
            let run = Arc::clone(&run);
            let (term, asked) = watch::channel(false);
            process.term = Some(term);
            let task = async move {
                let program = run.program.as_ref();
                let exit = match program {
                    Some(program) => scripted(program, number, stop, asked, &run.logs).await,
                    None => Exit::default(),
                };
                run.logs.close();
                // The worker may be gone; then nobody wants to know.
                let exit = Exit {
                    at: Some(run.clock.now_seconds()),
                    ..exit
                };
                let _ = exits.unbounded_send((key, exit));
            };
            process.task = Some(tokio::spawn(task));
        }
        (None, Some(program), _) => {
            let (term, mut asked) = watch::channel(false);
            process.term = Some(term);
            let (logs, clock) = (run.logs.clone(), Arc::clone(&run.clock));
            let task = async move {
                let code = tokio::select! {
                    biased;
                    code = program.run(logs.clone()) => code,
                    // Whoever would ask is gone together with this task.
                    Ok(_) = asked.wait_for(|asked| *asked) => TERMINATED,
                };
                logs.close();
                let _ = exits.unbounded_send((key, Exit::now(code, &clock)));
            };
            process.task = Some(tokio::spawn(task));
        }
        (None, None, Some(argv)) => {
            let (term, asked) = watch::channel(false);
            process.term = Some(term);
            let mut shell = Shell::of_run(&run, asked, true);
            let mut streams = Streams::into_one(&run.logs);
            if let Some(input) = &run.input {
                streams.input = input.clone();
                streams.prompts = run.tty;
            }
            let run = Arc::clone(&run);
            let task = async move {
                let code = shell.run_argv(&argv, &streams).await;
                run.logs.close();
                let _ = exits.unbounded_send((key, Exit::now(code, &run.clock)));
            };
            process.task = Some(tokio::spawn(task));
        }
        (None, None, None) => process.serves = Some(launch.stop),
    }
    process
}

/// Starts a program in Rust.
fn run_native<K: Send + 'static>(
    process: &mut Process,
    native: NativeLaunch,
    key: K,
    exits: mpsc::UnboundedSender<(K, Exit)>,
) {
    let run = Arc::clone(&process.run);
    let (term, mut asked) = watch::channel(false);
    process.term = Some(term);
    let mut streams = Streams::into_one(&run.logs);
    if let Some(input) = &run.input {
        streams.input = input.clone();
    }
    let catches_term: Arc<AtomicBool> = Arc::default();
    let mut env = BTreeMap::clone(&run.links);
    env.extend(run.env.clone());
    let container = Container {
        command: native.command,
        args: native.args,
        env,
        files: run.files.clone(),
        nic: run.nic.clone(),
        hostname: run.hostname.clone(),
        clock: Arc::clone(&run.clock),
        streams,
        run: Some(Arc::clone(&run)),
        term: asked.clone(),
        catches_term: Arc::clone(&catches_term),
        random: native.random,
    };
    let task = async move {
        let ended_by_signal = async {
            // Whoever would ask is gone together with this task.
            if asked.wait_for(|asked| *asked).await.is_err() || catches_term.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let code = tokio::select! {
            biased;
            code = native.program.run(container) => code,
            () = ended_by_signal => TERMINATED,
        };
        run.logs.close();
        let _ = exits.unbounded_send((key, Exit::now(code, &run.clock)));
    };
    process.task = Some(tokio::spawn(task));
}

async fn scripted(
    program: &Program,
    run: usize,
    stop: Duration,
    mut asked: watch::Receiver<bool>,
    logs: &Output,
) -> Exit {
    let ending: Option<&ExitScript> = program.exits.get(run).or(program.exits.last());
    let stop = program.stop_ms.map_or(stop, Duration::from_millis);
    let by_itself = async {
        match ending {
            Some(ending) => tokio::time::sleep(Duration::from_millis(ending.after_ms)).await,
            None => std::future::pending().await,
        }
    };
    let asked = async {
        if program.ignores_term || asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(stop).await;
    };
    let prints = async {
        let (Some(period), false) = (program.log_every_ms, program.log_line.is_empty()) else {
            return std::future::pending().await;
        };
        let period = Duration::from_millis(period.max(LOG_PERIOD_MS_MIN));
        loop {
            tokio::time::sleep(period).await;
            logs.write(format!("{}\n", program.log_line).as_bytes());
        }
    };
    tokio::select! {
        biased;
        () = prints => Exit::default(),
        () = by_itself => ending.map(|ending| Exit {
            code: ending.code,
            reason: ending.reason.clone(),
            message: ending.message.clone(),
            at: None,
        }).unwrap_or_default(),
        () = asked => Exit { code: program.term_code, ..Exit::default() },
    }
}
