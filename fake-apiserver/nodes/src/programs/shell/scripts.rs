//! Scripts of their own: files that are read into a shell, shells within a shell, and commands that have so much time.

use super::super::files::resolve;
use super::idle::duration;
use super::settings::Options;
use super::{Flow, Shell, Streams, TERMINATED};

impl Shell {
    /// The text of a script in a file; the error is told.
    pub(super) fn script_in(&mut self, file: &str, streams: &Streams) -> Option<String> {
        match self.files.read(&resolve(&self.cwd, file)) {
            Ok(content) => Some(String::from_utf8_lossy(&content).into_owned()),
            Err(_) => {
                let text = format!("{}: can't open '{file}': No such file or directory\n", self.name);
                streams.err.write(text.as_bytes());
                self.status = 2;
                None
            }
        }
    }

    /// Runs a file's commands in this shell.
    pub(super) async fn source(&mut self, arguments: &[String], streams: &Streams) -> Flow {
        let Some((file, rest)) = arguments.split_first() else {
            self.status = 2;
            return Flow::Next;
        };
        let Some(script) = self.script_in(file, streams) else {
            return Flow::Exit;
        };
        let before = (!rest.is_empty()).then(|| std::mem::replace(&mut self.arguments, rest.to_vec()));
        self.status = 0;
        let flow = self.script(&script, streams).await;
        if let Some(before) = before {
            self.arguments = before;
        }
        if flow == Flow::Return { Flow::Next } else { flow }
    }

    pub(super) async fn nested_shell(&mut self, arguments: &[String], streams: &Streams) -> Flow {
        let saved = self.save();
        // A shell of its own has neither the functions nor the traps and options of this one.
        self.functions.clear();
        self.locals.clear();
        (self.trap, self.exit_trap, self.checked) = (None, None, 0);
        let mut options = Options::default();
        // Whether the first word that is no option is the script.
        let is_command = arguments
            .iter()
            .take_while(|text| text.starts_with(['-', '+']))
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('c'));
        let mut rest = options.read(arguments).unwrap_or_default().iter();
        let first = rest.next();
        let script = match first {
            Some(script) if is_command => {
                self.name = rest.next().cloned().unwrap_or_else(|| self.name.clone());
                Some(script.clone())
            }
            Some(file) => match self.script_in(file, streams) {
                Some(script) => Some(script),
                None => {
                    self.restore(saved);
                    return Flow::Next;
                }
            },
            None => None,
        };
        (self.options, self.arguments, self.status) = (options, rest.cloned().collect(), 0);
        match script {
            Some(script) => _ = Box::pin(self.script(&script, streams)).await,
            // Without a script a shell reads its input.
            None => Box::pin(self.read_commands(streams)).await,
        }
        self.end(streams).await;
        self.restore(saved);
        Flow::Next
    }

    pub(super) async fn timeout(&mut self, arguments: &[String], streams: &Streams) -> Flow {
        let mut rest = arguments;
        while rest.first().is_some_and(|text| text.starts_with('-')) {
            rest = rest.get(1..).unwrap_or_default();
        }
        let Some((limit, command)) = rest.split_first() else {
            self.status = 1;
            return Flow::Next;
        };
        let Some(limit) = duration(limit) else {
            self.status = 1;
            return Flow::Next;
        };
        let saved = self.save();
        let done = tokio::time::timeout(limit, Box::pin(self.command(command, streams))).await;
        if done.is_err() {
            self.restore(saved);
            self.status = TERMINATED;
        }
        Flow::Next
    }
}
