//! The meaning of a spec's numbers, computed here once more: the judge shares no code with the controller.

use shared_json::Value;

/// The numbers of a spec at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The ordinals of the set, lowest first.
    pub(super) ordinals: Vec<i64>,
    /// How many pods stay at the old revision.
    pub(super) partition: i64,
    pub(super) max_unavailable: i64,
    pub(super) min_ready_ms: i64,
    /// Whether pods come and go one by one.
    pub(super) ordered: bool,
    /// Whether pods are updated by their labels, and not by their ordinals.
    pub(super) unordered_update: bool,
}

impl Numbers {
    /// Those of a set.
    pub(super) fn of(set: &Value) -> Self {
        let at = |pointer: &str| set.pointer(pointer);
        let rolling = |field: &str| at(&format!("/spec/updateStrategy/rollingUpdate/{field}"));
        let number = |value: Option<&Value>| value.and_then(Value::as_i64);
        let replicas = number(at("/spec/replicas")).unwrap_or(1);
        let max_unavailable = match rolling("maxUnavailable") {
            Some(Value::String(share)) => {
                let share: i64 = share.trim_end_matches('%').parse().unwrap_or(0);
                share * replicas / 100
            }
            value => number(value).unwrap_or(1),
        };
        Self {
            ordinals: ordinals(set, replicas),
            partition: number(rolling("partition")).unwrap_or(0),
            max_unavailable: max_unavailable.max(1),
            min_ready_ms: number(rolling("minReadySeconds")).unwrap_or(0) * 1000,
            ordered: at("/spec/podManagementPolicy") != Some(&Value::from("Parallel")),
            unordered_update: rolling("unorderedUpdate").is_some_and(Value::is_object),
        }
    }

    /// The place of an ordinal among those of the set.
    pub(super) fn place(&self, ordinal: i64) -> Option<i64> {
        let place = self.ordinals.iter().position(|own| *own == ordinal)?;
        i64::try_from(place).ok()
    }
}

/// The lowest ordinals that are not reserved, as many as there are replicas.
fn ordinals(set: &Value, replicas: i64) -> Vec<i64> {
    let reserved = set.pointer("/spec/reserveOrdinals").and_then(Value::as_array);
    let reserved: Vec<(i64, i64)> = reserved
        .into_iter()
        .flatten()
        .filter_map(|item| match item.as_i64() {
            Some(number) => Some((number, number)),
            None => {
                let (from, to) = item.as_str()?.split_once('-')?;
                Some((from.parse().ok()?, to.parse().ok()?))
            }
        })
        .collect();
    let free = |ordinal: &i64| !reserved.iter().any(|(from, to)| (from..=to).contains(&ordinal));
    let count = usize::try_from(replicas).unwrap_or(0);
    (0..).filter(free).take(count).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"replicas": 3}), &[0, 1, 2], 1)]
    #[case(json!({"replicas": 3, "reserveOrdinals": [1]}), &[0, 2, 3], 1)]
    #[case(json!({"replicas": 4, "reserveOrdinals": [0, "3-5"]}), &[1, 2, 6, 7], 1)]
    #[case(json!({"replicas": 4, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "60%"}}}), &[0, 1, 2, 3], 2)]
    #[case(json!({"replicas": 0, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 3}}}), &[], 3)]
    fn of_a_spec(#[case] spec: Value, #[case] ordinals: &[i64], #[case] max_unavailable: i64) {
        let numbers = Numbers::of(&json!({"spec": spec}));
        assert_eq!(
            (numbers.ordinals.as_slice(), numbers.max_unavailable),
            (ordinals, max_unavailable)
        );
    }
}
