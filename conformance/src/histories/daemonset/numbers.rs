//! The meaning of a spec's numbers, computed here once more: the judge shares no code with the controller.

use shared_json::Value;

/// The label of a node that has its name.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// The numbers of a spec at some moment, on so many nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The only node that fits; all fit without one.
    pub(super) only: Option<String>,
    /// How many nodes fit.
    pub(super) desired: i64,
    /// How many nodes keep the old revision.
    pub(super) partition: i64,
    pub(super) max_unavailable: i64,
    pub(super) max_surge: i64,
    pub(super) min_ready_ms: i64,
}

impl Numbers {
    /// Those of a set.
    pub(super) fn of(set: &Value, nodes: i64) -> Self {
        let at = |pointer: &str| set.pointer(pointer);
        let only =
            at("/spec/template/spec/nodeSelector").and_then(|selector| selector.get(HOSTNAME)?.as_str());
        let desired = if only.is_some() { 1 } else { nodes };
        let number = |field: &str, up: bool| {
            let value = at(&format!("/spec/updateStrategy/rollingUpdate/{field}"));
            match value {
                Some(Value::String(share)) => {
                    let share: i64 = share.trim_end_matches('%').parse().unwrap_or(0);
                    (share * desired + if up { 99 } else { 0 }) / 100
                }
                value => value.and_then(Value::as_i64).unwrap_or(0),
            }
        };
        let (max_unavailable, max_surge) = (number("maxUnavailable", true), number("maxSurge", true));
        let least = i64::from(max_surge == 0 && desired > 0);
        Self {
            only: only.map(str::to_owned),
            desired,
            partition: number("partition", false),
            max_unavailable: max_unavailable.max(least),
            max_surge,
            min_ready_ms: at("/spec/minReadySeconds").and_then(Value::as_i64).unwrap_or(0) * 1000,
        }
    }

    /// Whether a node is to have a pod.
    pub(super) fn fits(&self, node: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == node)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"maxUnavailable": "30%", "partition": "50%"}), (1, 1, 0))]
    #[case(json!({"maxSurge": "50%"}), (0, 0, 2))]
    #[case(json!({"maxUnavailable": 0, "maxSurge": 0}), (0, 1, 0))]
    fn on_three_nodes(#[case] rolling: Value, #[case] expected: (i64, i64, i64)) {
        let set = json!({"spec": {"updateStrategy": {"rollingUpdate": rolling}}});
        let numbers = Numbers::of(&set, 3);
        let got = (numbers.partition, numbers.max_unavailable, numbers.max_surge);
        assert_eq!(got, expected);
    }
}
