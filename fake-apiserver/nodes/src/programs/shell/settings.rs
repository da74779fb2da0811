//! What a script changes of its shell: options, arguments, local variables, traps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::parse::Node;
use super::{Flow, Shell, Streams};

/// The options of `set`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `-e`: a command that fails ends the script.
    pub exits_on_error: bool,
    /// `-u`: a parameter that is not set ends the script.
    pub needs_values: bool,
    /// `-x`: commands are shown.
    pub shows_commands: bool,
    /// `-o pipefail`: a pipe fails with any of its parts.
    pub pipes_fail: bool,
}

impl Options {
    /// The options as `$-` has them.
    pub(super) fn letters(self) -> String {
        let all = [
            (self.exits_on_error, 'e'),
            (self.needs_values, 'u'),
            (self.shows_commands, 'x'),
        ];
        all.iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, letter)| letter)
            .collect()
    }

    fn set(&mut self, name: &str, value: bool) {
        match name {
            "e" | "errexit" => self.exits_on_error = value,
            "u" | "nounset" => self.needs_values = value,
            "x" | "xtrace" => self.shows_commands = value,
            "pipefail" => self.pipes_fail = value,
            // Others change nothing here.
            _ => {}
        }
    }

    /// Reads `-eu`, `+x`, `-o pipefail`, and gives the other arguments. None if there are none but options.
    pub(super) fn read<'a>(&mut self, arguments: &'a [String]) -> Option<&'a [String]> {
        let mut rest = arguments;
        while let Some((first, tail)) = rest.split_first() {
            if matches!(first.as_str(), "--" | "-") {
                return Some(tail);
            }
            let (value, letters) = match (first.strip_prefix('-'), first.strip_prefix('+')) {
                (Some(letters), _) => (true, letters),
                (_, Some(letters)) => (false, letters),
                (None, None) => return Some(rest),
            };
            rest = tail;
            for letter in letters.chars() {
                if letter != 'o' {
                    self.set(letter.encode_utf8(&mut [0; 4]), value);
                } else if let Some((name, tail)) = rest.split_first() {
                    self.set(name, value);
                    rest = tail;
                }
            }
        }
        None
    }
}

/// The parts of a shell that a subshell has of its own.
pub(super) struct Saved {
    name: String,
    env: BTreeMap<String, String>,
    cwd: String,
    arguments: Vec<String>,
    options: Options,
    functions: BTreeMap<String, Arc<Node>>,
    trap: Option<String>,
    exit_trap: Option<String>,
    locals: Vec<Vec<(String, Option<String>)>>,
    depth: u32,
    checked: u32,
}

impl Shell {
    pub(super) fn save(&self) -> Saved {
        Saved {
            name: self.name.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            arguments: self.arguments.clone(),
            options: self.options,
            functions: self.functions.clone(),
            trap: self.trap.clone(),
            exit_trap: self.exit_trap.clone(),
            locals: self.locals.clone(),
            depth: self.depth,
            checked: self.checked,
        }
    }

    pub(super) fn restore(&mut self, saved: Saved) {
        self.name = saved.name;
        self.env = saved.env;
        self.cwd = saved.cwd;
        self.arguments = saved.arguments;
        self.options = saved.options;
        self.functions = saved.functions;
        self.trap = saved.trap;
        self.exit_trap = saved.exit_trap;
        self.locals = saved.locals;
        self.depth = saved.depth;
        self.checked = saved.checked;
    }

    /// `set`
    pub(super) fn set(&mut self, arguments: &[String], streams: &Streams) {
        self.status = 0;
        if arguments.is_empty() {
            for (name, value) in &self.env {
                let value = value.replace('\'', "'\"'\"'");
                streams.out.write(format!("{name}='{value}'\n").as_bytes());
            }
            return;
        }
        let mut options = self.options;
        if let Some(rest) = options.read(arguments) {
            self.arguments = rest.to_vec();
        }
        self.options = options;
    }

    /// `shift`
    pub(super) fn shift(&mut self, count: &str) {
        let count = if count.is_empty() {
            Some(1)
        } else {
            count.parse().ok()
        };
        self.status = match count {
            Some(count) if count <= self.arguments.len() => {
                self.arguments.drain(..count);
                0
            }
            _ => 1,
        };
    }

    /// `local`
    pub(super) fn local(&mut self, arguments: &[String], streams: &Streams) {
        self.status = 0;
        let Some(locals) = self.locals.last_mut() else {
            let text = format!("{}: local: not in a function\n", self.name);
            streams.err.write(text.as_bytes());
            self.status = 1;
            return;
        };
        for argument in arguments.iter().filter(|text| !text.starts_with('-')) {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            locals.push((name.to_owned(), self.env.get(name).cloned()));
            match value {
                Some(value) => _ = self.env.insert(name.to_owned(), value.to_owned()),
                None => _ = self.env.remove(name),
            }
        }
    }

    /// Calls a function.
    pub(super) async fn function(&mut self, body: &Node, arguments: &[String], streams: &Streams) -> Flow {
        if self.depth >= super::CALLS_MAX {
            streams
                .err
                .write(format!("{}: maximum function recursion depth exceeded\n", self.name).as_bytes());
            self.status = 2;
            return Flow::Exit;
        }
        self.depth += 1;
        self.locals.push(Vec::new());
        let before = std::mem::replace(&mut self.arguments, arguments.to_vec());
        let flow = self.run(body, streams).await;
        self.arguments = before;
        for (name, value) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            match value {
                Some(value) => _ = self.env.insert(name, value),
                None => _ = self.env.remove(&name),
            }
        }
        self.depth -= 1;
        if flow == Flow::Return { Flow::Next } else { flow }
    }

    pub(super) fn set_trap(&mut self, arguments: &[String]) {
        self.status = 0;
        let Some((action, signals)) = arguments.split_first() else {
            return;
        };
        for signal in signals {
            let action = Some(action).filter(|action| *action != "-").cloned();
            match signal.trim_start_matches("SIG") {
                "TERM" | "15" => self.trap = action,
                "EXIT" | "0" => self.exit_trap = action,
                _ => {}
            }
        }
    }
}
