//! The order in which Kubernetes' own controllers give up pods: the least useful first.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;

use crate::pod::{self, Pod};

/// Unassigned before assigned; Pending, Unknown, Running; not ready before ready.
pub fn by_usefulness(one: &Pod, other: &Pod) -> Ordering {
    by_phase(one, other).then_with(|| pod::is_ready(one).cmp(&pod::is_ready(other)))
}

/// Unassigned before assigned; Pending, Unknown, Running.
pub fn by_phase(one: &Pod, other: &Pod) -> Ordering {
    let assigned = |pod: &Pod| !pod::node(pod).is_empty();
    let phase = |pod: &Pod| match pod::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        "Running" => 2,
        // Go's map gives zero for what it does not know.
        _ => 0,
    };
    (assigned(one), phase(one)).cmp(&(assigned(other), phase(other)))
}

/// Ready for a shorter time before longer; more restarts before fewer; newer before older.
///
/// Kubernetes' times are whole seconds: pods of one burst are often equal, and stay in the order in which they come.
pub fn by_age(one: &Pod, other: &Pod) -> Ordering {
    let ready = if pod::is_ready(one) && pod::is_ready(other) {
        later_or_none_first(pod::ready_since(one), pod::ready_since(other))
    } else {
        Ordering::Equal
    };
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    ready
        .then_with(|| Reverse(pod::restarts(one)).cmp(&Reverse(pod::restarts(other))))
        .then_with(|| later_or_none_first(created(one), created(other)))
}

/// The whole order.
pub fn compare(one: &Pod, other: &Pod) -> Ordering {
    by_usefulness(one, other).then_with(|| by_age(one, other))
}

fn later_or_none_first(one: Option<Timestamp>, other: Option<Timestamp>) -> Ordering {
    match (one, other) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(one), Some(other)) => other.cmp(&one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::TestPod;

    #[test]
    fn the_least_useful_first() {
        let order = [
            TestPod::new("z-unassigned").node("").phase("Pending"),
            TestPod::new("z-pending").phase("Pending"),
            TestPod::new("z-unknown").phase("Unknown"),
            TestPod::new("z-not-ready").not_ready(),
            TestPod::new("y-ready-late").ready_at(50),
            TestPod::new("y-ready-early-restarts").ready_at(10).restarts(3),
            TestPod::new("y-ready-early-new").ready_at(10).created_at(9),
            // Equal: they stay as they come.
            TestPod::new("y-ready-early-old-2").ready_at(10).created_at(5),
            TestPod::new("y-ready-early-old-1").ready_at(10).created_at(5),
        ];
        let want: Vec<String> = order.iter().map(|pod| pod.name().to_owned()).collect();
        let mut pods: Vec<Pod> = order.into_iter().map(TestPod::build).collect();
        pods[..7].reverse();
        pods.sort_by(compare);
        let got: Vec<String> = pods.iter().map(|p| pod::name(p).to_owned()).collect();
        assert_eq!(got, want);
    }
}
