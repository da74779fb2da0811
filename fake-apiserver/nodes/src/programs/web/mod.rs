//! The commands that use the network: clients of HTTP and of plain connections, servers, and questions about names.
//!
//! A host outside of the cluster is there for these commands, and has nothing to say: they succeed without an answer.

mod curl;
mod http;
mod httpd;
mod names;
mod nc;
mod wget;

use super::shell::{Shell, Streams};
use crate::nic::Nic;

pub(crate) use http::{AskError, HttpReply, exchange};
pub(super) use http::{Url, ask, open, send};
pub(super) use httpd::page;

/// Their names.
const COMMANDS: [&str; 9] = [
    "wget", "curl", "nc", "netcat", "nslookup", "dig", "getent", "ping", "httpd",
];

/// Whether a command is one of these.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.contains(&name)
}

/// The arguments of such a command: options with their values, and the rest.
struct Arguments<'a> {
    options: Vec<(&'a str, &'a str)>,
    operands: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    /// Reads arguments. `with_value` are the options that have a value: single letters, and long ones as words.
    fn read(arguments: &'a [String], letters: &str, words: &[&str]) -> Self {
        let mut read = Self {
            options: Vec::new(),
            operands: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if let Some(word) = argument.strip_prefix("--").filter(|word| !word.is_empty()) {
                match word.split_once('=') {
                    Some((name, value)) => read.options.push((name, value)),
                    None if words.contains(&word) => {
                        read.options.push((word, rest.next().map_or("", String::as_str)));
                    }
                    None => read.options.push((word, "")),
                }
                continue;
            }
            let Some(cluster) = argument.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
                read.operands.push(argument);
                continue;
            };
            for (at, letter) in cluster.char_indices() {
                let after = at + letter.len_utf8();
                let name = cluster.get(at..after).unwrap_or_default();
                if !letters.contains(letter) {
                    read.options.push((name, ""));
                    continue;
                }
                let value = match cluster.get(after..).unwrap_or_default() {
                    "" => rest.next().map_or("", String::as_str),
                    value => value,
                };
                read.options.push((name, value));
                break;
            }
        }
        read
    }

    fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }

    /// The last value of an option.
    fn value(&self, names: &[&str]) -> Option<&'a str> {
        let found = self.options.iter().rev().find(|(name, _)| names.contains(name));
        found.map(|(_, value)| *value)
    }

    /// All values of an option.
    fn values(&self, names: &[&str]) -> Vec<&'a str> {
        let found = self.options.iter().filter(|(name, _)| names.contains(name));
        found.map(|(_, value)| *value).collect()
    }

    /// A number of seconds.
    fn seconds(&self, names: &[&str]) -> Option<std::time::Duration> {
        let text = self.value(names)?;
        let seconds: f64 = text.trim_end_matches('s').parse().ok()?;
        std::time::Duration::try_from_secs_f64(seconds).ok()
    }
}

impl Shell {
    /// The network of the shell's pod.
    pub(super) fn nic(&self) -> Nic {
        self.run.as_ref().map(|run| run.nic.clone()).unwrap_or_default()
    }

    /// Runs one of these commands.
    pub(super) async fn network_command(&mut self, name: &str, arguments: &[String], streams: &Streams) {
        self.status = match name {
            "wget" => Box::pin(self.wget(arguments, streams)).await,
            "curl" => Box::pin(self.curl(arguments, streams)).await,
            "nc" | "netcat" => Box::pin(self.nc(arguments, streams)).await,
            "nslookup" => self.nslookup(arguments, streams),
            "dig" => self.dig(arguments, streams),
            "getent" => self.getent(arguments, streams),
            "httpd" => Box::pin(self.httpd(arguments, streams)).await,
            _ => self.ping(arguments, streams),
        };
    }
}

/// Writes a line of complaint, and gives the exit code.
fn complain(streams: &Streams, text: &str, code: i32) -> i32 {
    streams.err.write(format!("{text}\n").as_bytes());
    code
}
