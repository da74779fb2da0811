//! The meaning of a spec's numbers, computed here once more: the judge shares no code with the controller.

use shared_json::Value;

/// The numbers of a spec at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) replicas: i64,
    /// How many pods stay at the old revision.
    pub(super) partition: i64,
    pub(super) max_surge: i64,
    pub(super) max_unavailable: i64,
    pub(super) min_ready_ms: i64,
}

impl Numbers {
    /// Those of a set.
    pub(super) fn of(set: &Value) -> Self {
        let at = |pointer: &str| set.pointer(pointer);
        let replicas = at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
        let update = |field: &str| at(&format!("/spec/updateStrategy/{field}"));
        let partition = update("partition").map_or(0, |value| match percent(value) {
            None => value.as_i64().unwrap_or(0),
            Some(share) => {
                let kept = ceil(share, replicas);
                // Less than all means that at least one goes.
                if replicas > 1 && kept == replicas && share != 100 {
                    replicas - 1
                } else {
                    kept
                }
            }
        });
        let paused = update("paused").and_then(Value::as_bool).unwrap_or(false);
        let max_surge = match update("maxSurge") {
            Some(value) if !paused => number(value, replicas, true),
            _ => 0,
        };
        Self {
            replicas,
            partition: partition.clamp(0, replicas),
            max_surge,
            max_unavailable: update("maxUnavailable")
                .map_or(0, |value| number(value, replicas, max_surge == 0)),
            min_ready_ms: at("/spec/minReadySeconds").and_then(Value::as_i64).unwrap_or(0) * 1000,
        }
    }
}

fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

fn ceil(share: i64, of: i64) -> i64 {
    (share * of + 99) / 100
}

fn number(value: &Value, of: i64, up: bool) -> i64 {
    match percent(value) {
        None => value.as_i64().unwrap_or(0),
        Some(share) if up => ceil(share, of),
        Some(share) => share * of / 100,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"partition": 9}), (5, 0, 0))]
    #[case(json!({"partition": "50%", "maxSurge": "30%", "maxUnavailable": "30%"}), (3, 2, 1))]
    #[case(json!({"partition": "99%", "maxUnavailable": "30%"}), (4, 0, 2))]
    #[case(json!({"partition": "100%", "maxSurge": 2, "paused": true, "maxUnavailable": "30%"}), (5, 0, 2))]
    fn of_five(#[case] strategy: Value, #[case] expected: (i64, i64, i64)) {
        let numbers = Numbers::of(&json!({"spec": {"replicas": 5, "updateStrategy": strategy}}));
        assert_eq!(
            (numbers.partition, numbers.max_surge, numbers.max_unavailable),
            expected
        );
    }
}
