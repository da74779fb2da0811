//! Runs parsed commands, in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client_kit::{Random, SharedClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::builtins::{self, Call};
use super::files::Files;
use super::parse::{Node, Redirect, Word, parse};
use super::pipe::Output;
use super::process::Run;
use super::{agnhost, web};
use idle::duration;

mod compound;
mod condition;
mod expansion;
mod idle;
mod input;
mod parameters;
mod scripts;
mod settings;

pub(super) use condition::compare;
use settings::Options;

/// How many commands run before some time must pass, and how much then does: a loop without a sleep must not stop the
/// simulation's clock.
const STEPS_MAX: u32 = 1000;
const STEPS_COST: Duration = Duration::from_millis(10);
/// How deep functions may call each other.
const CALLS_MAX: u32 = 100;
/// The exit code of a process that a signal ended: 128 and the signal's number.
pub(crate) const TERMINATED: i32 = 143;

/// The output and the input of a command.
#[derive(Clone, Default)]
pub(super) struct Streams {
    pub out: Output,
    pub err: Output,
    pub input: Output,
    /// A person types: the shell prompts.
    pub prompts: bool,
}

impl Streams {
    /// Both outputs into one, and nothing to read.
    pub(super) fn into_one(out: &Output) -> Self {
        Self {
            out: out.clone(),
            err: out.clone(),
            input: Output::holding(Vec::new()),
            prompts: false,
        }
    }
}

/// Whether the script goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

/// A shell and its state.
pub(super) struct Shell {
    pub files: Files,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub hostname: String,
    pub clock: SharedClock,
    /// The name by which it was called, which begins its complaints.
    name: String,
    /// The numbers of `$RANDOM`.
    random: Mutex<Option<Random>>,
    /// The program of the container that it is in.
    pub(super) run: Option<Arc<Run>>,
    /// The exit code of the last command.
    pub status: i32,
    /// The action of `TERM`: none, or a command.
    trap: Option<String>,
    exit_trap: Option<String>,
    /// Becomes true when the process is asked to end.
    pub(super) term: watch::Receiver<bool>,
    term_seen: bool,
    /// The first process of a container ignores signals it has not asked for.
    is_init: bool,
    functions: BTreeMap<String, Arc<Node>>,
    /// `$1` and the following ones.
    arguments: Vec<String>,
    options: Options,
    /// The former values of variables that are local to the functions under way.
    locals: Vec<Vec<(String, Option<String>)>>,
    /// How many conditions are under way: a command that fails in one of them ends no script.
    checked: u32,
    /// The exit code of the last command whose output became part of a word.
    substituted: Option<i32>,
    /// Why the words of the next command cannot be expanded.
    failure: Option<String>,
    depth: u32,
    jobs: JoinSet<()>,
    steps: u32,
    since: Instant,
}

/// Runs a command (program and arguments) beside a container's program; gives its exit code and output.
pub(crate) async fn exec(argv: &[String], run: &Arc<Run>) -> (i32, Output) {
    let (_keep, term) = watch::channel(false);
    let mut shell = Shell::of_run(run, term, false);
    let out = Output::default();
    let code = shell.run_argv(argv, &Streams::into_one(&out)).await;
    (code, out)
}

impl Shell {
    /// A shell in a container.
    pub(super) fn of_run(run: &Arc<Run>, term: watch::Receiver<bool>, is_init: bool) -> Self {
        let mut env = BTreeMap::clone(&run.links);
        env.extend(run.env.clone());
        let (files, clock) = (run.files.clone(), Arc::clone(&run.clock));
        let mut shell = Self::new(files, env, &run.hostname, clock, term, is_init);
        shell.run = Some(Arc::clone(run));
        shell
    }

    pub(super) fn new(
        files: Files,
        mut env: BTreeMap<String, String>,
        hostname: &str,
        clock: SharedClock,
        term: watch::Receiver<bool>,
        is_init: bool,
    ) -> Self {
        env.entry("PATH".to_owned())
            .or_insert_with(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        env.entry("HOSTNAME".to_owned())
            .or_insert_with(|| hostname.to_owned());
        env.entry("HOME".to_owned()).or_insert_with(|| "/root".to_owned());
        Self {
            files,
            env,
            cwd: "/".to_owned(),
            hostname: hostname.to_owned(),
            clock,
            name: "sh".to_owned(),
            random: Mutex::default(),
            run: None,
            status: 0,
            trap: None,
            exit_trap: None,
            term,
            term_seen: false,
            is_init,
            functions: BTreeMap::new(),
            arguments: Vec::new(),
            options: Options::default(),
            locals: Vec::new(),
            checked: 0,
            substituted: None,
            failure: None,
            depth: 0,
            jobs: JoinSet::new(),
            steps: 0,
            since: Instant::now(),
        }
    }

    /// Runs a program with its arguments to its end; gives its exit code.
    pub(super) async fn run_argv(&mut self, argv: &[String], streams: &Streams) -> i32 {
        if let Some(first) = argv.first().filter(|first| first.ends_with("sh")) {
            self.name.clone_from(first);
        }
        Box::pin(self.command(argv, streams)).await;
        self.status
    }

    /// Carries out the trap of the script's end.
    async fn end(&mut self, streams: &Streams) {
        if let Some(script) = self.exit_trap.take() {
            let status = self.status;
            Box::pin(self.script(&script, streams)).await;
            if self.status == 0 {
                self.status = status;
            }
        }
    }

    async fn script(&mut self, text: &str, streams: &Streams) -> Flow {
        match parse(text) {
            Ok(node) => self.run(&node, streams).await,
            Err(error) => {
                streams.err.write(format!("{}: {error}\n", self.name).as_bytes());
                self.status = 2;
                Flow::Exit
            }
        }
    }

    fn run<'a>(&'a mut self, node: &'a Node, streams: &'a Streams) -> BoxFuture<'a, Flow> {
        async move {
            let flow = self.run_node(node, streams).await;
            let may_fail = matches!(
                node,
                Node::Simple { .. } | Node::Pipe(_) | Node::Subshell(_) | Node::Condition(_)
            );
            let ends = self.options.exits_on_error && self.checked == 0 && self.status != 0;
            if may_fail && ends && flow == Flow::Next {
                return Flow::Exit;
            }
            flow
        }
        .boxed()
    }

    /// Runs what a condition is made of: if it fails, the script goes on.
    async fn run_checked(&mut self, node: &Node, streams: &Streams) -> Flow {
        self.checked += 1;
        let flow = self.run(node, streams).await;
        self.checked = self.checked.saturating_sub(1);
        flow
    }

    async fn run_node(&mut self, node: &Node, streams: &Streams) -> Flow {
        match node {
            Node::Sequence(nodes) => {
                for node in nodes {
                    let flow = self.run(node, streams).await;
                    if flow != Flow::Next {
                        return flow;
                    }
                }
                Flow::Next
            }
            Node::And(left, right) => {
                let flow = self.run_checked(left, streams).await;
                if flow != Flow::Next || self.status != 0 {
                    return flow;
                }
                self.run(right, streams).await
            }
            Node::Or(left, right) => {
                let flow = self.run_checked(left, streams).await;
                if flow != Flow::Next || self.status == 0 {
                    return flow;
                }
                self.run(right, streams).await
            }
            Node::Not(inner) => {
                let flow = self.run_checked(inner, streams).await;
                self.status = i32::from(self.status == 0);
                flow
            }
            Node::Pipe(parts) => self.pipe(parts, streams).await,
            Node::Subshell(body) => {
                let saved = self.save();
                self.run(body, streams).await;
                self.restore(saved);
                Flow::Next
            }
            Node::Condition(condition) => {
                self.status = match self.holds(condition, streams).await {
                    Some(true) => 0,
                    Some(false) => 1,
                    None => 2,
                };
                self.failed(streams)
            }
            Node::Background(body) => self.background(body, streams),
            Node::Function { name, body } => {
                self.functions.insert(name.clone(), Arc::new(Node::clone(body)));
                self.status = 0;
                Flow::Next
            }
            Node::Loop {
                until,
                condition,
                body,
            } => self.a_loop(*until, condition, body, streams).await,
            Node::For { name, words, body } => self.a_for(name, words, body, streams).await,
            Node::If { arms, otherwise } => self.an_if(arms, otherwise.as_deref(), streams).await,
            Node::Case { word, arms } => self.a_case(word, arms, streams).await,
            Node::Redirected(inner, redirects) => {
                let Some(redirected) = self.redirect(redirects, streams).await else {
                    return Flow::Next;
                };
                let flow = self.run(inner, &redirected.streams).await;
                redirected.finish(self, streams);
                flow
            }
            Node::Simple {
                assignments,
                words,
                redirects,
            } => self.simple(assignments, words, redirects, streams).await,
        }
    }

    /// Ends the script if the words of a command could not be expanded.
    fn failed(&mut self, streams: &Streams) -> Flow {
        let Some(why) = self.failure.take() else {
            return Flow::Next;
        };
        streams.err.write(format!("{}: {why}\n", self.name).as_bytes());
        self.status = 2;
        Flow::Exit
    }

    async fn simple(
        &mut self,
        assignments: &[(String, Word)],
        words: &[Word],
        redirects: &[Redirect],
        streams: &Streams,
    ) -> Flow {
        self.steps += 1;
        if self.steps >= STEPS_MAX {
            if self.since.elapsed().is_zero() {
                tokio::time::sleep(STEPS_COST).await;
            }
            (self.steps, self.since) = (0, Instant::now());
        }
        self.substituted = None;
        let argv = self.expand_all(words, streams).await;
        let mut values = BTreeMap::new();
        for (name, word) in assignments {
            values.insert(name.clone(), self.expand_one(word, streams).await);
        }
        let flow = self.failed(streams);
        if flow != Flow::Next {
            return flow;
        }
        if self.options.shows_commands {
            self.show(&argv, &values, streams);
        }
        if argv.is_empty() {
            self.env.append(&mut values);
            self.status = self.substituted.unwrap_or(0);
        }
        let Some(redirected) = self.redirect(redirects, streams).await else {
            return self.signals(streams).await;
        };
        let mut flow = Flow::Next;
        if !argv.is_empty() {
            let names = values.keys();
            let before: Vec<(String, Option<String>)> = names
                .map(|name| (name.clone(), self.env.get(name).cloned()))
                .collect();
            let exports = matches!(argv.first().map(String::as_str), Some("export" | "exec"));
            self.env.extend(values);
            flow = self.command(&argv, &redirected.streams).await;
            // A command's own variables go with it.
            for (name, value) in before.into_iter().filter(|_| !exports) {
                match value {
                    Some(value) => _ = self.env.insert(name, value),
                    None => _ = self.env.remove(&name),
                }
            }
        }
        redirected.finish(self, streams);
        if flow == Flow::Next {
            flow = self.signals(streams).await;
        }
        flow
    }

    /// Runs a command by its name.
    async fn command(&mut self, argv: &[String], streams: &Streams) -> Flow {
        let Some((name, arguments)) = argv.split_first() else {
            return Flow::Next;
        };
        let first = arguments.first().map(String::as_str).unwrap_or_default();
        if let Some(body) = self.functions.get(name).cloned() {
            return Box::pin(self.function(&body, arguments, streams)).await;
        }
        match builtins::base_name(name) {
            "set" => self.set(arguments, streams),
            "shift" => self.shift(first),
            "local" => self.local(arguments, streams),
            "." | "source" => return Box::pin(self.source(arguments, streams)).await,
            "command" if !first.is_empty() && !first.starts_with('-') => {
                return Box::pin(self.command(arguments, streams)).await;
            }
            "return" => {
                self.status = first.parse().unwrap_or(self.status) & 0xff;
                return Flow::Return;
            }
            "exit" => {
                self.status = first.parse().unwrap_or(self.status) & 0xff;
                return Flow::Exit;
            }
            "break" => return Flow::Break,
            "continue" => return Flow::Continue,
            "exec" if arguments.is_empty() => {}
            "exec" => {
                // The new program takes the shell's place, and its traps with it.
                self.trap = None;
                Box::pin(self.command(arguments, streams)).await;
                return Flow::Exit;
            }
            "trap" => self.set_trap(arguments),
            "eval" => return Box::pin(self.script(&arguments.join(" "), streams)).await,
            "sh" | "bash" | "ash" | "dash" => return self.nested_shell(arguments, streams).await,
            "sleep" => self.sleep(arguments, streams).await,
            "tail" if arguments.iter().any(|text| text == "-f" || text == "-F") => self.forever().await,
            "pause" => {
                self.serve().await;
            }
            "wait" => self.wait().await,
            "timeout" => return self.timeout(arguments, streams).await,
            "time" | "nohup" | "tini" | "env" | "nice"
                if !first.is_empty() && !first.starts_with('-') && !first.contains('=') =>
            {
                return Box::pin(self.command(arguments, streams)).await;
            }
            "read" => self.read_line(arguments, streams).await,
            name if agnhost::is_own_name(name) => {
                self.status = Box::pin(self.agnhost(&argv[0], arguments, streams)).await;
            }
            name if web::is_command(name) => self.network_command(name, arguments, streams).await,
            _ => match builtins::call(name) {
                Some(builtin) => {
                    self.await_input(name, arguments, streams).await;
                    let mut call = Call {
                        shell: self,
                        arguments,
                        streams,
                    };
                    let status = builtin(&mut call);
                    self.status = status;
                }
                None if builtins::is_server(name) => self.serve().await,
                None => {
                    streams
                        .err
                        .write(format!("{}: {name}: not found\n", self.name).as_bytes());
                    self.status = 127;
                }
            },
        }
        Flow::Next
    }

    /// A program that works until it is asked to end. As a child of a shell that is the first process it is not asked.
    async fn serve(&mut self) {
        if let Some(run) = &self.run {
            run.set_listens(true);
        }
        self.wait_term().await;
        if let Some(run) = &self.run {
            run.set_listens(false);
        }
        self.term_seen = true;
        self.status = 0;
    }

    async fn forever(&mut self) {
        if self.is_init {
            std::future::pending::<()>().await;
        }
        self.wait_term().await;
        self.status = TERMINATED;
    }

    /// Shows a command, as `set -x` does.
    fn show(&self, argv: &[String], values: &BTreeMap<String, String>, streams: &Streams) {
        let values = values.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = values.chain(argv.iter().cloned()).collect();
        streams.err.write(format!("+ {}\n", words.join(" ")).as_bytes());
    }

    async fn sleep(&mut self, arguments: &[String], streams: &Streams) {
        let total: Option<Duration> = arguments.iter().map(|text| duration(text)).sum();
        match total {
            Some(total) if !arguments.is_empty() => {
                if total == Duration::MAX {
                    self.forever().await;
                }
                tokio::time::sleep(total).await;
                self.status = 0;
            }
            _ => {
                let text = arguments.first().map(String::as_str).unwrap_or_default();
                streams
                    .err
                    .write(format!("sleep: invalid number '{text}'\n").as_bytes());
                self.status = 1;
            }
        }
    }

    async fn wait(&mut self) {
        let term = self.term_seen;
        tokio::select! {
            biased;
            () = wait_for(&mut self.term), if !term => self.status = TERMINATED,
            () = async { while self.jobs.join_next().await.is_some() {} } => self.status = 0,
        }
    }

    /// Runs something beside the shell, for as long as the shell runs.
    pub(super) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.jobs.spawn(work);
    }

    /// Waits until the process is asked to end, for the first time.
    pub(super) async fn wait_term(&mut self) {
        if self.term_seen {
            std::future::pending::<()>().await;
        }
        wait_for(&mut self.term).await;
    }

    /// Carries out the trap of a signal that has come.
    async fn signals(&mut self, streams: &Streams) -> Flow {
        if self.term_seen || !*self.term.borrow() {
            return Flow::Next;
        }
        self.term_seen = true;
        match self.trap.clone() {
            Some(command) => {
                let status = self.status;
                let flow = Box::pin(self.script(&command, streams)).await;
                if flow == Flow::Next {
                    self.status = status;
                }
                flow
            }
            None if self.is_init => Flow::Next,
            None => {
                self.status = TERMINATED;
                Flow::Exit
            }
        }
    }
}

async fn wait_for(term: &mut watch::Receiver<bool>) {
    if term.wait_for(|asked| *asked).await.is_err() {
        // Nobody is left who could ask.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
