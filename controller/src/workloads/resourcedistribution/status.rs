//! The status of a distribution: counts, and a condition for each kind of failure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1alpha1::{ResourceDistributionCondition, ResourceDistributionStatus};

/// The reason of a condition without a failure.
const SUCCEEDED: &str = "Succeeded";

/// A kind of failure; the order is that of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailureKind {
    /// The object in the namespace cannot be read.
    GetResourceFailed,
    /// The copy cannot be created.
    CreateResourceFailed,
    /// The copy cannot be updated.
    UpdateResourceFailed,
    /// The copy cannot be deleted.
    DeleteResourceFailed,
    /// Somebody else's object has the copy's name.
    ConflictOccurred,
    /// There is no such namespace, or it goes.
    NamespaceNotExists,
}

impl FailureKind {
    /// All kinds, in the order of the conditions.
    const ALL: [Self; 6] = [
        Self::GetResourceFailed,
        Self::CreateResourceFailed,
        Self::UpdateResourceFailed,
        Self::DeleteResourceFailed,
        Self::ConflictOccurred,
        Self::NamespaceNotExists,
    ];

    /// The condition's type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GetResourceFailed => "GetResourceFailed",
            Self::CreateResourceFailed => "CreateResourceFailed",
            Self::UpdateResourceFailed => "UpdateResourceFailed",
            Self::DeleteResourceFailed => "DeleteResourceFailed",
            Self::ConflictOccurred => "ConflictOccurred",
            Self::NamespaceNotExists => "NamespaceNotExists",
        }
    }

    /// Whether a pass with such a failure is tried again.
    fn is_retried(self) -> bool {
        !matches!(self, Self::ConflictOccurred | Self::NamespaceNotExists)
    }
}

/// A failure in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) namespace: String,
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(kind: FailureKind, namespace: &str, text: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// How many namespaces are to have a copy, and how many have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) desired: usize,
    pub(super) succeeded: usize,
}

/// The status after a pass; `old` is the one before it.
pub(super) fn status(
    old: &ResourceDistributionStatus,
    generation: i64,
    counts: Counts,
    failures: &[Failure],
    now: Timestamp,
) -> ResourceDistributionStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let conditions = FailureKind::ALL
        .into_iter()
        .map(|kind| {
            let failures: Vec<&Failure> = failures.iter().filter(|failure| failure.kind == kind).collect();
            let last = failures.last();
            let status = if last.is_some() { "True" } else { "False" };
            let before = old
                .conditions
                .iter()
                .find(|condition| condition.kind == kind.name());
            let since = before
                .filter(|condition| condition.status == status)
                .and_then(|condition| condition.last_transition_time.clone());
            ResourceDistributionCondition {
                kind: kind.name().to_owned(),
                status: status.to_owned(),
                last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
                reason: Some(last.map_or(SUCCEEDED, |failure| &failure.text).to_owned()),
                failed_namespaces: failures.iter().map(|failure| failure.namespace.clone()).collect(),
            }
        })
        .collect();
    ResourceDistributionStatus {
        desired: number(counts.desired),
        succeeded: number(counts.succeeded),
        failed: number(counts.desired.saturating_sub(counts.succeeded)),
        observed_generation: generation,
        conditions,
    }
}

/// Why the pass has to be tried again, if it has to.
pub(super) fn retried(failures: &[Failure]) -> Option<String> {
    let texts: Vec<String> = FailureKind::ALL
        .into_iter()
        .filter(|kind| kind.is_retried())
        .filter_map(|kind| {
            let last = failures.iter().rev().find(|failure| failure.kind == kind)?;
            Some(format!("{}: Internal error: {}", kind.name(), last.text))
        })
        .collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Each word: a kind of failure, a namespace, and the text.
    fn failures(words: &str) -> Vec<Failure> {
        words
            .split_whitespace()
            .map(|word| {
                let parts: Vec<&str> = word.split(':').collect();
                let kind = FailureKind::ALL
                    .into_iter()
                    .find(|kind| kind.name().starts_with(parts[0]));
                Failure::new(kind.unwrap(), parts[1], parts[2])
            })
            .collect()
    }

    fn shown(status: &ResourceDistributionStatus) -> String {
        let conditions: Vec<String> = status
            .conditions
            .iter()
            .filter(|condition| condition.status == "True")
            .map(|condition| {
                let reason = condition.reason.as_deref().unwrap();
                format!(
                    "{} {reason} [{}]",
                    condition.kind,
                    condition.failed_namespaces.join(" ")
                )
            })
            .collect();
        format!(
            "{}/{}/{} {}",
            status.desired,
            status.succeeded,
            status.failed,
            conditions.join(", ")
        )
    }

    #[rstest]
    #[case::fine(2, 2, "", "2/2/0 ", None)]
    #[case::nothing(0, 0, "", "0/0/0 ", None)]
    #[case::conflict(2, 1, "Conflict:a:taken", "2/1/1 ConflictOccurred taken [a]", None)]
    #[case::namespace(2, 1, "Namespace:z:gone", "2/1/1 NamespaceNotExists gone [z]", None)]
    #[case::the_last_text_counts(
        3,
        1,
        "Create:b:x Create:a:y",
        "3/1/2 CreateResourceFailed y [b a]",
        Some("CreateResourceFailed: Internal error: y")
    )]
    #[case::cleaning_does_not_count(
        1,
        1,
        "Delete:c:x",
        "1/1/0 DeleteResourceFailed x [c]",
        Some("DeleteResourceFailed: Internal error: x")
    )]
    #[case::several(
        4,
        1,
        "Conflict:a:c Update:b:u Get:d:g",
        "4/1/3 GetResourceFailed g [d], UpdateResourceFailed u [b], ConflictOccurred c [a]",
        Some("[GetResourceFailed: Internal error: g, UpdateResourceFailed: Internal error: u]")
    )]
    fn numbers_and_conditions(
        #[case] desired: usize,
        #[case] succeeded: usize,
        #[case] words: &str,
        #[case] expected: &str,
        #[case] error: Option<&str>,
    ) {
        let failures = failures(words);
        let counts = Counts { desired, succeeded };
        let status = status(
            &ResourceDistributionStatus::default(),
            3,
            counts,
            &failures,
            at(7),
        );
        assert_eq!(shown(&status), expected);
        assert_eq!(status.observed_generation, 3);
        let kinds: Vec<&str> = status
            .conditions
            .iter()
            .map(|condition| &*condition.kind)
            .collect();
        assert_eq!(kinds, FailureKind::ALL.map(FailureKind::name));
        for condition in status
            .conditions
            .iter()
            .filter(|condition| condition.status == "False")
        {
            assert_eq!(condition.reason.as_deref(), Some("Succeeded"));
            assert!(condition.failed_namespaces.is_empty());
        }
        assert_eq!(retried(&failures).as_deref(), error);
    }

    /// The time changes with the status alone, not with the reason or the list.
    #[rstest]
    #[case::first("", "Conflict:a:x", 1, 1)]
    #[case::the_same("Conflict:a:x", "Conflict:a:x", 1, 1)]
    #[case::another_list("Conflict:a:x", "Conflict:b:y", 1, 1)]
    #[case::over("Conflict:a:x", "", 9, 1)]
    #[case::new("", "Namespace:z:x", 1, 9)]
    fn transition_times(
        #[case] before: &str,
        #[case] after: &str,
        #[case] conflict: i64,
        #[case] namespace: i64,
    ) {
        let counts = Counts {
            desired: 2,
            succeeded: 2,
        };
        let first = at(1);
        let old = if before.is_empty() && after.starts_with("Conflict") {
            ResourceDistributionStatus::default()
        } else {
            status(
                &ResourceDistributionStatus::default(),
                1,
                counts,
                &failures(before),
                first,
            )
        };
        let now = if old.conditions.is_empty() { first } else { at(9) };
        let new = status(&old, 1, counts, &failures(after), now);
        let time = |kind: FailureKind| {
            let condition = new
                .conditions
                .iter()
                .find(|condition| condition.kind == kind.name());
            condition
                .unwrap()
                .last_transition_time
                .clone()
                .unwrap()
                .0
                .as_second()
        };
        assert_eq!(time(FailureKind::ConflictOccurred), conflict);
        assert_eq!(time(FailureKind::NamespaceNotExists), namespace);
    }
}
