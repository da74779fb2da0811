//! Conditions: `[[ … ]]` here, and the tests that it shares with `test`.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use regex::Regex;

use super::super::arith;
use super::super::files::resolve;
use super::super::parse::Condition;
use super::super::pattern::Pattern;
use super::{Shell, Streams};

impl Shell {
    /// Whether a condition holds. None for one that cannot be read.
    pub(super) fn holds<'a>(
        &'a mut self,
        condition: &'a Condition,
        streams: &'a Streams,
    ) -> BoxFuture<'a, Option<bool>> {
        async move {
            Some(match condition {
                Condition::Not(inner) => !self.holds(inner, streams).await?,
                Condition::And(left, right) => {
                    self.holds(left, streams).await? && self.holds(right, streams).await?
                }
                Condition::Or(left, right) => {
                    self.holds(left, streams).await? || self.holds(right, streams).await?
                }
                Condition::Text(word) => !self.expand_one(word, streams).await.is_empty(),
                Condition::Unary(operator, word) => {
                    let text = self.expand_one(word, streams).await;
                    self.unary(operator, &text)?
                }
                Condition::Binary(left, operator, right) => {
                    let left = self.expand_one(left, streams).await;
                    match operator.as_str() {
                        "=" | "==" | "!=" => {
                            let pattern = self.expand_pattern(right, streams).await;
                            Pattern::new(&pattern).matches(&left) == (operator != "!=")
                        }
                        "=~" => {
                            let expression = self.expand_one(right, streams).await;
                            Regex::new(&expression).ok()?.is_match(&left)
                        }
                        operator => {
                            let right = self.expand_one(right, streams).await;
                            match operator {
                                "<" => left < right,
                                ">" => left > right,
                                // Within the brackets numbers may be expressions.
                                operator => {
                                    let left = arith::evaluate(&left, self)?;
                                    let right = arith::evaluate(&right, self)?;
                                    compare(left, operator, right)?
                                }
                            }
                        }
                    }
                }
            })
        }
        .boxed()
    }

    /// `-f file`, `-z text` and their like. None for an unknown one.
    pub(in super::super) fn unary(&self, operator: &str, text: &str) -> Option<bool> {
        let path = || resolve(&self.cwd, text);
        Some(match operator {
            "-z" => text.is_empty(),
            "-n" => !text.is_empty(),
            "-v" => self.value(text).is_some(),
            "-t" => false,
            "-e" | "-r" | "-w" | "-x" | "-a" => self.files.exists(&path()),
            "-f" => self.files.is_file(&path()),
            "-d" => self.files.is_dir(&path()),
            "-s" => self.files.read(&path()).is_ok_and(|content| !content.is_empty()),
            // There are no links, devices, pipes and sockets.
            "-L" | "-h" | "-b" | "-c" | "-p" | "-S" => false,
            _ => return None,
        })
    }
}

/// `-eq` and its like. None for an unknown one.
pub(in super::super) fn compare(left: i64, operator: &str, right: i64) -> Option<bool> {
    Some(match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        "-ge" => left >= right,
        _ => return None,
    })
}
