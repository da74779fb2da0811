//! The order of changes of different kinds, and the numbers that held lately.

use shared_json::Value;

use crate::history::{Change, text};

/// So much later than a change that it did not make the manager may still act on the state before it, when its watch was broken off
/// or its requests were refused.
pub(super) const LATE_MS: i64 = 4000;

/// The changes in the order of their commits: each kind has a watch of its own, and these do not wait for each other.
pub(super) fn in_order(history: &[Change]) -> Vec<&Change> {
    let version = |change: &&Change| -> u64 {
        let version = text(&change.object, "/metadata/resourceVersion");
        version.parse().unwrap_or_default()
    };
    let mut changes: Vec<&Change> = history.iter().collect();
    changes.sort_by_key(version);
    changes
}

/// The values of a number, and since when each has held.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers(Vec<(i64, i64)>);

impl Numbers {
    pub(super) fn set(&mut self, at_ms: i64, number: i64) {
        self.0.push((at_ms, number));
    }

    /// The values that the manager may still act on.
    fn lately(&self, at_ms: i64) -> impl Iterator<Item = i64> {
        let since = self
            .0
            .partition_point(|(since_ms, _)| *since_ms <= at_ms - LATE_MS);
        self.0
            .iter()
            .skip(since.saturating_sub(1))
            .map(|(_, number)| *number)
    }

    pub(super) fn most(&self, at_ms: i64) -> i64 {
        self.lately(at_ms).max().unwrap_or(i64::MAX)
    }

    pub(super) fn least(&self, at_ms: i64) -> i64 {
        self.lately(at_ms).min().unwrap_or_default()
    }
}

/// A number, or a share of a whole, rounded up.
pub(super) fn of_whole(value: &Value, whole: i64) -> i64 {
    match value {
        Value::String(share) => {
            let share: i64 = share.trim_end_matches('%').parse().unwrap_or(0);
            (share * whole + 99) / 100
        }
        number => number.as_i64().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use shared_json::json;

    use super::*;
    use crate::history::ChangeKind;

    #[test]
    fn changes_come_in_the_order_of_their_versions() {
        let change = |resource: &str, version: &str| Change {
            at_ms: 0,
            resource: resource.to_owned(),
            kind: ChangeKind::Modified,
            object: Arc::new(json!({"metadata": {"resourceVersion": version}})),
        };
        let history = [change("pods", "9"), change("pods", "11"), change("events", "10")];
        let ordered = in_order(&history).into_iter();
        let resources: Vec<&str> = ordered.map(|change| change.resource.as_str()).collect();
        assert_eq!(resources, ["pods", "events", "pods"]);
    }

    /// The number was 3, 5 since 1 s, and 4 since 2 s.
    #[rstest]
    #[case(2000, 3, 5)]
    #[case(5500, 4, 5)]
    #[case(6100, 4, 4)]
    fn numbers_hold_for_a_while_longer(#[case] at_ms: i64, #[case] least: i64, #[case] most: i64) {
        let mut numbers = Numbers::default();
        for (since_ms, number) in [(0, 3), (1000, 5), (2000, 4)] {
            numbers.set(since_ms, number);
        }
        assert_eq!((numbers.least(at_ms), numbers.most(at_ms)), (least, most));
    }
}
