//! The input of a shell and its commands: a script on the standard input, a line, a user's typing.

use super::super::builtins;
use super::super::parse::parse;
use super::{Flow, Shell, Streams};

impl Shell {
    /// Lets a command that reads its input to the end wait for that.
    pub(super) async fn await_input(&mut self, name: &str, arguments: &[String], streams: &Streams) {
        if !builtins::reads_input(name, arguments) || streams.input.is_closed() {
            return;
        }
        if builtins::base_name(name) == "cat" && arguments.is_empty() {
            // What is typed comes back at once.
            while let Some(piece) = streams.input.next().await {
                streams.out.write(&piece);
            }
        }
        streams.input.closed().await;
    }

    /// `read NAME…`: a line, split at blanks; the last name takes the rest.
    pub(super) async fn read_line(&mut self, arguments: &[String], streams: &Streams) {
        let names: Vec<&String> = arguments.iter().filter(|text| !text.starts_with('-')).collect();
        let Some(line) = streams.input.line().await else {
            for name in names {
                self.env.insert(name.clone(), String::new());
            }
            self.status = 1;
            return;
        };
        let separators = self.separators();
        let is_blank = |c: char| c.is_whitespace() && separators.contains(c);
        let mut rest = line.trim_matches(is_blank);
        for (index, name) in names.iter().enumerate() {
            let (value, after) = match rest.split_once(|c| separators.contains(c)) {
                Some((value, after)) if index + 1 < names.len() => {
                    (value, after.trim_start_matches(is_blank))
                }
                _ => (rest, ""),
            };
            self.env.insert((*name).clone(), value.to_owned());
            rest = after;
        }
        self.status = 0;
    }

    /// Runs the input, each command as soon as it is whole.
    pub(super) async fn read_commands(&mut self, streams: &Streams) {
        let mut text = String::new();
        loop {
            if streams.prompts {
                let prompt = if text.is_empty() {
                    format!("{} # ", self.cwd)
                } else {
                    "> ".to_owned()
                };
                streams.err.write(prompt.as_bytes());
            }
            let line = tokio::select! {
                biased;
                () = streams.input.interrupted() => {
                    text.clear();
                    continue;
                }
                line = streams.input.line() => line,
            };
            let over = line.is_none();
            if let Some(line) = line {
                text.push_str(&line);
                text.push('\n');
            }
            let unfinished = parse(&text).is_err_and(|error| error.is_unfinished());
            if unfinished && !over {
                continue;
            }
            let script = std::mem::take(&mut text);
            if !script.trim().is_empty() {
                let flow = tokio::select! {
                    biased;
                    () = streams.input.interrupted() => {
                        self.status = 130;
                        Flow::Next
                    }
                    flow = self.script(&script, streams) => flow,
                };
                // A terminal's shell goes on after what it cannot read.
                let slip = streams.prompts && parse(&script).is_err();
                if flow == Flow::Exit && !slip {
                    return;
                }
            }
            if over {
                return;
            }
        }
    }
}
