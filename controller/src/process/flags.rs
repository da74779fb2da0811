//! A command line in Go's way of writing it. [`Flags::parse`] takes the flags of OpenKruise's manager, with its names and its
//! defaults, [`Flags::parse_of`] those of a table.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ProcessError;
use super::flag_table::flags;
pub use super::flag_table::{logging, unused};
use crate::go_values::{duration, integer, truth, unsigned};
use crate::workloads::{Flag, Takes};

/// The highest log level: the level is a number of 31 bits.
const LEVEL_MAX: u32 = i32::MAX.unsigned_abs();

/// The values of the command line, over the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags(BTreeMap<&'static str, String>);

impl Default for Flags {
    fn default() -> Self {
        Self::defaults(&manager())
    }
}

/// The flags of the manager.
fn manager() -> Vec<Flag> {
    flags().collect()
}

impl Flags {
    fn defaults(table: &[Flag]) -> Self {
        let defaults = table
            .iter()
            .map(|(name, _, default, _)| (*name, (*default).to_owned()));
        Self(defaults.collect())
    }

    /// Reads the manager's arguments.
    ///
    /// # Errors
    /// As [`parse_of`](Self::parse_of).
    pub fn parse<I: IntoIterator<Item = String>>(arguments: I) -> Result<Self, ProcessError> {
        Self::parse_of(&manager(), arguments)
    }

    /// Reads the arguments after the program's name: `--flag=value`, `--flag value`, `-flag=value`, `--flag` alone for truth
    /// values, and `-v4` and `-h` for `--v=4` and `--help`.
    ///
    /// # Errors
    /// If a flag is not in the table (the error lists those that are), lacks its value or has a wrong one.
    pub fn parse_of<I: IntoIterator<Item = String>>(
        table: &[Flag],
        arguments: I,
    ) -> Result<Self, ProcessError> {
        let mut parsed = Self::defaults(table);
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(body) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return Err(ProcessError::Flag(format!("unexpected argument {argument:?}")));
            };
            let (name, given) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (body, None),
            };
            let (name, given) = match shorthand(&argument) {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, given),
            };
            let (name, takes, _, _) = *table
                .iter()
                .find(|(known, _, _, _)| *known == name)
                .ok_or_else(|| unknown(table, name))?;
            let value = match (given, takes) {
                (Some(value), _) => value,
                (None, Takes::Truth) => "true".to_owned(),
                (None, _) => arguments
                    .next()
                    .ok_or_else(|| ProcessError::Flag(format!("flag needs an argument: --{name}")))?,
            };
            if !fits(takes, &value) {
                return Err(ProcessError::Flag(format!(
                    "invalid value {value:?} for flag --{name}"
                )));
            }
            parsed.set(name, takes, value);
        }
        Ok(parsed)
    }

    fn set(&mut self, name: &'static str, takes: Takes, value: String) {
        let before = self.0.entry(name).or_default();
        if takes == Takes::Gates && !before.is_empty() {
            before.push(',');
            before.push_str(&value);
        } else {
            *before = value;
        }
    }

    /// The purpose of each flag of the manager, a line each.
    #[must_use]
    pub fn usage() -> String {
        Self::usage_of(&manager())
    }

    /// The purpose of each flag of a table, a line each.
    #[must_use]
    pub fn usage_of(table: &[Flag]) -> String {
        let line = |(name, _, default, about): &Flag| match *default {
            "" => format!("  --{name}\n        {about}\n"),
            default => format!("  --{name} (default {default})\n        {about}\n"),
        };
        table.iter().map(line).collect()
    }

    /// A flag's text; empty for a flag that there is not.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Whether a flag is set to true.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        truth(self.text(name)).unwrap_or(false)
    }

    /// A flag's number; zero for one below zero.
    #[must_use]
    pub fn number(&self, name: &str) -> usize {
        let number = integer(self.text(name)).unwrap_or_default();
        usize::try_from(number).unwrap_or_default()
    }

    /// A flag's time; zero for one below zero.
    #[must_use]
    pub fn time(&self, name: &str) -> Duration {
        let ns = duration(self.text(name)).unwrap_or_default();
        Duration::from_nanos(u64::try_from(ns).unwrap_or_default())
    }
}

/// The flags that have a letter: `-v4` is `--v=4`, `-h` is `--help`. `-v`, `-v=4` and `-v 4` need no rule.
fn shorthand(argument: &str) -> Option<(&'static str, &str)> {
    if argument == "-h" {
        return Some(("help", "true"));
    }
    let level = argument.strip_prefix("-v")?;
    level
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(("v", level))
}

fn fits(takes: Takes, value: &str) -> bool {
    match takes {
        Takes::Truth => truth(value).is_some(),
        Takes::Number => integer(value).is_some(),
        Takes::Unsigned => unsigned(value).is_some(),
        Takes::Level => value.parse::<u32>().is_ok_and(|level| level <= LEVEL_MAX),
        Takes::Duration => duration(value).is_some(),
        Takes::Format => matches!(value, "text" | "json"),
        Takes::Text | Takes::Gates | Takes::Unread => true,
    }
}

fn unknown(table: &[Flag], name: &str) -> ProcessError {
    let known: Vec<String> = table
        .iter()
        .map(|(known, _, _, _)| format!("--{known}"))
        .collect();
    ProcessError::Flag(format!("unknown flag: --{name}; there are {}", known.join(", ")))
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
