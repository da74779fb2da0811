//! A client's `exec` or `attach`: input, outputs and the end.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use node_access::{Reader, Session, Wants, failure};
use shared_json::{Value, json};
use tokio::sync::watch;

use super::pipe::Output;
use super::process::Run;
use super::script::is_command;
use super::shell::{Shell, Streams};

/// The exit code of a command that a signal ended at once.
const KILLED: i32 = 137;
/// The exit code of a command that its terminal interrupted.
const INTERRUPTED: i32 = 130;

/// A command that runs, or a program that was joined.
struct Joined {
    /// None if nothing is read.
    input: Option<Output>,
    out: Output,
    err: Output,
    terminal: Option<Terminal>,
    /// The `Status` of its end.
    end: BoxFuture<'static, Value>,
    /// Closed when the session is over.
    closes: Option<Output>,
}

/// The line that is being typed.
#[derive(Debug, Default)]
struct Terminal {
    line: Vec<u8>,
}

impl Session for Joined {
    fn feed(&mut self, bytes: &[u8]) {
        let Some(input) = &self.input else { return };
        match &mut self.terminal {
            None => input.write(bytes),
            Some(terminal) => terminal.feed(bytes, input, &self.out),
        }
    }

    fn end_input(&mut self) {
        if let Some(input) = &self.input {
            input.close();
        }
    }

    fn take_end(&mut self) -> BoxFuture<'static, Value> {
        std::mem::replace(&mut self.end, std::future::pending().boxed())
    }

    fn outputs(&self) -> [Box<dyn Reader>; 2] {
        let terminal = self.terminal.is_some();
        [&self.out, &self.err].map(|output| {
            let output = output.clone();
            Box::new(Printed { output, terminal }) as Box<dyn Reader>
        })
    }

    fn close(&self) {
        self.out.close();
        self.err.close();
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(input) = &self.closes {
            input.close();
        }
    }
}

/// One of a session's outputs.
struct Printed {
    output: Output,
    terminal: bool,
}

impl Reader for Printed {
    fn next(&self) -> BoxFuture<'_, Option<Vec<u8>>> {
        async {
            let piece = self.output.next().await?;
            Some(if self.terminal {
                with_returns(&piece)
            } else {
                piece
            })
        }
        .boxed()
    }
}

/// A terminal's line ends.
fn with_returns(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    for byte in bytes {
        if *byte == b'\n' && out.last() != Some(&b'\r') {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

impl Terminal {
    /// The terminal's treatment of keys: echoes them, and hands lines on.
    fn feed(&mut self, bytes: &[u8], input: &Output, out: &Output) {
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => {
                    out.write(b"\n");
                    self.line.push(b'\n');
                    input.write(&std::mem::take(&mut self.line));
                }
                0x7f | 0x08 => {
                    if self.line.pop().is_some() {
                        out.write(b"\x08 \x08");
                    }
                }
                // Ctrl-C and Ctrl-D.
                0x03 => {
                    self.line.clear();
                    out.write(b"^C\n");
                    input.interrupt();
                }
                0x04 if self.line.is_empty() => input.close(),
                0x04 => input.write(&std::mem::take(&mut self.line)),
                byte => {
                    self.line.push(*byte);
                    out.write(&[*byte]);
                }
            }
        }
    }
}

/// Runs a command in the container of a program, once what it needs is there.
pub(crate) fn exec_session(
    run: &Arc<Run>,
    id: String,
    (argv, needs): (Vec<String>, BoxFuture<'static, ()>),
    wants: Wants,
) -> Box<dyn Session> {
    let (out, err) = (Output::pipe(), Output::pipe());
    let input = wants.stdin.then(Output::pipe);
    let err_of_command = if wants.tty { out.clone() } else { err.clone() };
    let streams = Streams {
        out: out.clone(),
        err: err_of_command,
        input: input.clone().unwrap_or_else(|| Output::holding(Vec::new())),
        prompts: wants.tty && wants.stdin,
    };
    let run = Arc::clone(run);
    let end = async move {
        needs.await;
        tokio::select! {
            biased;
            // The command goes with its container.
            () = run.logs.closed() => exit_status(KILLED, &argv),
            done = command(&run, &id, &argv, &streams) => match done {
                Ok(code) => exit_status(code, &argv),
                Err(message) => failure(&message),
            },
        }
    };
    Box::new(Joined {
        input,
        out,
        err,
        terminal: wants.tty.then(Terminal::default),
        end: end.boxed(),
        closes: None,
    })
}

/// Runs a command in the container of a program, and gives its exit code. The error is the node's text about a container `id` that does
/// not have the command.
async fn command(run: &Arc<Run>, id: &str, argv: &[String], streams: &Streams) -> Result<i32, String> {
    let reply = run
        .program
        .as_ref()
        .and_then(|program| program.commands.get(&argv.join(" ")));
    if let Some(reply) = reply {
        let (out, err, code) = reply.after(run.started.elapsed());
        streams.out.write(out.as_bytes());
        streams.err.write(err.as_bytes());
        return Ok(code);
    }
    let first = argv.first().map(String::as_str).unwrap_or_default();
    if !is_command(first) {
        return Err(not_found(id, first));
    }
    let (_keep, term) = watch::channel(false);
    let mut shell = Shell::of_run(run, term, false);
    if super::builtins::base_name(first).ends_with("sh") {
        return Ok(shell.run_argv(argv, streams).await);
    }
    tokio::select! {
        biased;
        () = streams.input.interrupted() => Ok(INTERRUPTED),
        code = shell.run_argv(argv, streams) => Ok(code),
    }
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// Runs a command in the container `id` of a program to its end, which comes with the program's. The error is the node's text about a
/// container that does not have the command.
pub(crate) async fn run_to_end(run: Arc<Run>, id: String, argv: Vec<String>) -> Result<Ran, String> {
    let streams = Streams {
        out: Output::default(),
        err: Output::default(),
        input: Output::holding(Vec::new()),
        prompts: false,
    };
    let code = tokio::select! {
        biased;
        () = run.logs.closed() => KILLED,
        done = command(&run, &id, &argv, &streams) => done?,
    };
    Ok(Ran {
        code,
        out: streams.out.bytes(),
        err: streams.err.bytes(),
    })
}

/// Attaches to a program: its input, and its output from now on.
pub(crate) fn attach(run: &Arc<Run>, wants: Wants) -> Box<dyn Session> {
    let (out, err) = (Output::pipe(), Output::pipe());
    let input = run.input.clone().filter(|_| wants.stdin);
    let closes = input.clone().filter(|_| run.stdin_once);
    let (logs, copy) = (run.logs.clone(), out.clone());
    let end = async move {
        let mut at = logs.end();
        loop {
            let kept = logs.kept_after(at).await;
            at = kept.from + kept.bytes.len() as u64;
            copy.write(&kept.bytes);
            if kept.closed {
                return success();
            }
        }
    };
    Box::new(Joined {
        input,
        out,
        err,
        terminal: (run.tty && wants.tty).then(Terminal::default),
        end: end.boxed(),
        closes,
    })
}

fn success() -> Value {
    json!({"metadata": {}, "status": "Success"})
}

/// The end of a command, as the node reports it to the client.
fn exit_status(code: i32, argv: &[String]) -> Value {
    if code == 0 {
        return success();
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!(
            "command terminated with non-zero exit code: error executing command [{}], exit code {code}", argv.join(" ")
        ),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

/// The error of containerd and runc for a command that the container does not have.
fn not_found(id: &str, name: &str) -> String {
    let why = if name.contains('/') {
        format!("stat {name}: no such file or directory")
    } else {
        "executable file not found in $PATH".to_owned()
    };
    format!(
        "error executing command in container: failed to exec in container: failed to start exec \"{id}\": OCI runtime \
         exec failed: exec failed: unable to start container process: exec: \"{name}\": {why}: unknown"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_hands_lines_on() {
        let (input, out) = (Output::pipe(), Output::pipe());
        let mut terminal = Terminal::default();
        terminal.feed(b"ls x\x7f-l\rabc", &input, &out);
        assert_eq!(input.take(), b"ls -l\n");
        assert_eq!(out.text(), "ls x\x08 \x08-l\nabc");
        terminal.feed(b"\x03\x04", &input, &out);
        assert!(input.is_closed());
        assert_eq!(with_returns(b"a\nb\r\n"), b"a\r\nb\r\n");
    }
}
