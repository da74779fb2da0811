//! Parameters: variables, arguments, and what `${…}` makes of their values.

use super::super::arith::{self, Variables};
use super::super::parse::{Change, ChangeKind};
use super::super::pattern::Pattern;
use super::{Shell, Streams};

impl Variables for Shell {
    fn value(&self, name: &str) -> String {
        Self::value(self, name).unwrap_or_default()
    }

    fn assign(&mut self, name: &str, value: i64) {
        self.env.insert(name.to_owned(), value.to_string());
    }
}

impl Shell {
    /// A parameter's value, if it is set.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        match name {
            "?" => Some(self.status.to_string()),
            "$" => Some("1".to_owned()),
            "#" => Some(self.arguments.len().to_string()),
            "@" | "*" => (!self.arguments.is_empty()).then(|| self.arguments.join(" ")),
            "-" => Some(self.options.letters()),
            "0" => Some(self.name.clone()),
            "RANDOM" if !self.env.contains_key(name) => Some(self.next_random().to_string()),
            name => match name.parse::<usize>() {
                Ok(number) => self.arguments.get(number.checked_sub(1)?).cloned(),
                Err(_) => self.env.get(name).cloned(),
            },
        }
    }

    /// A parameter's value. With `set -u` the command fails that needs one which is not set.
    pub(super) fn required(&mut self, name: &str) -> String {
        let value = self.value(name);
        if value.is_none() && self.options.needs_values && !matches!(name, "@" | "*" | "!") {
            self.failure
                .get_or_insert_with(|| format!("{name}: parameter not set"));
        }
        value.unwrap_or_default()
    }

    /// What `${…}` makes of a parameter's value.
    pub(super) async fn changed(&mut self, name: &str, change: &Change, streams: &Streams) -> String {
        let found = self.value(name);
        let is_there = |or_empty: bool| {
            found
                .as_ref()
                .is_some_and(|value| !(or_empty && value.is_empty()))
        };
        match change.kind {
            ChangeKind::Default { or_empty } if !is_there(or_empty) => {
                return self.expand_one(&change.word, streams).await;
            }
            ChangeKind::Assign { or_empty } if !is_there(or_empty) => {
                let value = self.expand_one(&change.word, streams).await;
                self.env.insert(name.to_owned(), value.clone());
                return value;
            }
            ChangeKind::Complain { or_empty } if !is_there(or_empty) => {
                let text = match self.expand_one(&change.word, streams).await {
                    text if text.is_empty() => "parameter not set".to_owned(),
                    text => text,
                };
                self.failure.get_or_insert_with(|| format!("{name}: {text}"));
                return String::new();
            }
            ChangeKind::Alternative { or_empty } => {
                return match is_there(or_empty) {
                    true => self.expand_one(&change.word, streams).await,
                    false => String::new(),
                };
            }
            ChangeKind::Default { .. } | ChangeKind::Assign { .. } | ChangeKind::Complain { .. } => {
                return found.unwrap_or_default();
            }
            _ => {}
        }
        let value = self.required(name);
        match change.kind {
            ChangeKind::Length if matches!(name, "@" | "*") => self.arguments.len().to_string(),
            ChangeKind::Length => value.chars().count().to_string(),
            ChangeKind::WithoutBeginning { longest } => {
                let pattern = self.expand_pattern(&change.word, streams).await;
                let cut = Pattern::new(&pattern).beginning(&value, longest);
                value.get(cut.unwrap_or(0)..).unwrap_or_default().to_owned()
            }
            ChangeKind::WithoutEnd { longest } => {
                let pattern = self.expand_pattern(&change.word, streams).await;
                let cut = Pattern::new(&pattern).end(&value, longest);
                value
                    .get(..cut.unwrap_or(value.len()))
                    .unwrap_or_default()
                    .to_owned()
            }
            ChangeKind::Replace { all } => {
                let pattern = self.expand_pattern(&change.word, streams).await;
                let with = match &change.more {
                    Some(word) => self.expand_one(word, streams).await,
                    None => String::new(),
                };
                Pattern::new(&pattern).replace(&value, &with, all)
            }
            _ => self.slice(&value, change, streams).await,
        }
    }

    /// `${x:offset:length}`; negative numbers count from the end.
    async fn slice(&mut self, value: &str, change: &Change, streams: &Streams) -> String {
        let text = self.expand_one(&change.word, streams).await;
        let offset = arith::evaluate(&text, self);
        let length = match &change.more {
            Some(word) => {
                let text = self.expand_one(word, streams).await;
                arith::evaluate(&text, self)
            }
            None => Some(i64::MAX),
        };
        let (Some(offset), Some(length)) = (offset, length) else {
            self.failure
                .get_or_insert_with(|| "arithmetic syntax error".to_owned());
            return String::new();
        };
        let chars: Vec<char> = value.chars().collect();
        let count = i64::try_from(chars.len()).unwrap_or(i64::MAX);
        let begin = if offset < 0 {
            count.saturating_add(offset)
        } else {
            offset
        };
        let end = if length < 0 {
            count.saturating_add(length)
        } else {
            begin.saturating_add(length)
        };
        let at = |place: i64| usize::try_from(place.clamp(0, count)).unwrap_or_default();
        // What begins before the text is nothing.
        if begin < 0 {
            return String::new();
        }
        chars
            .get(at(begin)..at(end).max(at(begin)))
            .unwrap_or_default()
            .iter()
            .collect()
    }
}
