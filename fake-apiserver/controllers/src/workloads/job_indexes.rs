//! Indexes of jobs, as annotations and statuses write them.

use std::collections::BTreeSet;

use machinery::meta::string_map;
use shared_json::Value;

/// The annotation with a pod's index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The index of a pod.
pub(super) fn index_of(pod: &Value) -> Option<i64> {
    string_map(pod, "annotations").get(INDEX)?.as_str()?.parse().ok()
}

/// `1-3,5` as numbers.
pub(super) fn indexes(text: &str) -> BTreeSet<i64> {
    text.split(',')
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse::<i64>().ok()?..=to.parse::<i64>().ok()?)
        })
        .flatten()
        .collect()
}

/// Numbers as `1-3,5`; two neighbours are a list.
pub(super) fn ranges(numbers: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .map(|(from, to)| match to - from {
            0 => from.to_string(),
            1 => format!("{from},{to}"),
            _ => format!("{from}-{to}"),
        })
        .collect();
    parts.join(",")
}
