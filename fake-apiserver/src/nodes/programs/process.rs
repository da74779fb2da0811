//! A running program.

use std::collections::BTreeMap;
use std::time::Duration;

use client_kit::SharedClock;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::files::Files;
use super::script::{ExitScript, Program};
use super::shell::{Output, Shell};

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::nodes) struct Exit {
    pub code: i32,
    /// Empty for what follows from the code.
    pub reason: String,
    pub message: String,
}

/// What to run.
pub(in crate::nodes) struct Launch {
    /// How often the container was started before.
    pub run: u32,
    pub program: Option<Program>,
    pub argv: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub hostname: String,
    pub clock: SharedClock,
    pub files: Files,
    pub logs: Output,
    /// How long a program takes to end when asked.
    pub stop: Duration,
}

/// A program that runs. Dropping it kills it.
pub(in crate::nodes) struct Process {
    term: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
    pub files: Files,
    pub logs: Output,
    pub env: BTreeMap<String, String>,
    pub program: Option<Program>,
    pub started: Instant,
    /// Whether it answers on its ports: what a shell runs does not.
    pub listens: bool,
    /// Set if it simply serves: it then ends this long after it is asked, and nothing else ever happens to it.
    pub serves: Option<Duration>,
}

impl Process {
    /// What asks it to end, for others than the kubelet.
    pub(in crate::nodes) fn term(&self) -> watch::Sender<bool> {
        self.term.clone()
    }

    /// Asks it to end, as `TERM` does.
    pub(in crate::nodes) fn terminate(&self) {
        self.term.send_replace(true);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Starts a program; how it ends is sent as `(key, exit)`. Must be called within a tokio runtime.
pub(in crate::nodes) fn launch<K: Send + 'static>(
    launch: Launch,
    key: K,
    exits: mpsc::UnboundedSender<(K, Exit)>,
) -> Process {
    let (term, asked) = watch::channel(false);
    let mut process = Process {
        term,
        task: None,
        files: launch.files.clone(),
        logs: launch.logs.clone(),
        env: launch.env.clone(),
        program: launch.program.clone(),
        started: Instant::now(),
        listens: launch.argv.is_none() || launch.program.is_some(),
        serves: None,
    };
    let run = usize::try_from(launch.run).unwrap_or(usize::MAX);
    match (launch.program, launch.argv) {
        (Some(program), _) => {
            launch.logs.write(program.logs.as_bytes());
            let task = async move {
                let exit = scripted(&program, run, launch.stop, asked).await;
                // The worker may be gone; then nobody wants to know.
                let _ = exits.send((key, exit));
            };
            process.task = Some(tokio::spawn(task));
        }
        (None, Some(argv)) => {
            let mut shell = Shell::new(
                launch.files.clone(),
                launch.env,
                &launch.hostname,
                launch.clock,
                asked,
                true,
            );
            let task = async move {
                let code = shell.run_argv(&argv, &launch.logs).await;
                let _ = exits.send((
                    key,
                    Exit {
                        code,
                        ..Exit::default()
                    },
                ));
            };
            process.task = Some(tokio::spawn(task));
        }
        (None, None) => process.serves = Some(launch.stop),
    }
    process
}

async fn scripted(program: &Program, run: usize, stop: Duration, mut asked: watch::Receiver<bool>) -> Exit {
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
    tokio::select! {
        biased;
        () = by_itself => ending.map(|ending| Exit {
            code: ending.code,
            reason: ending.reason.clone(),
            message: ending.message.clone(),
        }).unwrap_or_default(),
        () = asked => Exit { code: program.term_code, ..Exit::default() },
    }
}
