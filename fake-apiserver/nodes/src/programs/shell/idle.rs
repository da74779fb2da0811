//! How long commands wait, and which loops do nothing but wait.

use std::time::Duration;

use super::super::parse::{Node, Part};

/// `5`, `1.5`, `2m`, `infinity`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if matches!(text, "infinity" | "inf") {
        return Some(Duration::MAX);
    }
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if text.ends_with('m') => (number, 60.0),
        Some(number) if text.ends_with('h') => (number, 3600.0),
        Some(number) if text.ends_with('d') => (number, 86_400.0),
        Some(number) => (number, 1.0),
        None => (text, 1.0),
    };
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds * factor)
        .ok()
        .map(|duration| duration.min(Duration::from_secs(100 * 365 * 86_400)))
}

fn words_of(node: &Node) -> Option<Vec<&str>> {
    let node = match node {
        Node::Sequence(nodes) => match nodes.as_slice() {
            [only] => only,
            _ => return None,
        },
        other => other,
    };
    match node {
        Node::Simple {
            assignments,
            words,
            redirects,
        } if assignments.is_empty() && redirects.is_empty() => words
            .iter()
            .map(|word| match word.0.as_slice() {
                [Part::Text(text, _)] => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

pub(super) fn is_true(node: &Node) -> bool {
    words_of(node).is_some_and(|words| matches!(words.as_slice(), ["true" | ":"]))
}

pub(super) fn pure_sleep(node: &Node) -> Option<Duration> {
    match words_of(node)?.as_slice() {
        ["sleep", time] => duration(time).filter(|pause| !pause.is_zero() && *pause != Duration::MAX),
        _ => None,
    }
}
