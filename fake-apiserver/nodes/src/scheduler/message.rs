//! The scheduler's message about a pod that fits nowhere.

use std::collections::BTreeMap;

use super::filters::Refusal;

/// `2 Insufficient cpu, 1 node(s) were unschedulable`, sorted as text.
fn count<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut lines: Vec<String> = counts
        .into_iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    lines.sort();
    lines.join(", ")
}

/// Said of a pod without claims of devices that could be given back.
pub(super) const NO_CLAIMS: &str = "no new claims to deallocate";

/// Of a pod whose claims of devices no node can help: why.
pub(super) fn no_devices(nodes: usize, why: &str) -> String {
    format!(
        "0/{nodes} nodes are available: {why}. {NO_CLAIMS}, preemption: 0/{nodes} nodes are available: {nodes} Preemption is not \
         helpful for scheduling."
    )
}

/// Of a pod that no node can help: why.
pub(super) fn hopeless(nodes: usize, why: &str) -> String {
    format!("0/{nodes} nodes are available: {why}. not found")
}

/// The result of the search for pods to preempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Preemption {
    /// Some have to go: nothing is said.
    Found,
    /// The pod preempts no others.
    Never,
    /// The victims of an earlier preemption are still leaving.
    Waiting,
    /// On no node does it help, and why.
    Vain(Vec<Refusal>),
}

/// Of a pod that every node has refused.
/// `claims` is the message about claims of devices.
pub(super) fn refused(refusals: &[Refusal], claims: &str, preemption: &Preemption) -> String {
    let nodes = refusals.len();
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let why = count(
        refusals
            .iter()
            .flat_map(|refusal| refusal.reasons.iter().map(String::as_str)),
    );
    let head = format!("0/{nodes} nodes are available: {why}.");
    match preemption {
        Preemption::Found => head,
        Preemption::Never => {
            format!("{head} {claims}, preemption: not eligible due to preemptionPolicy=Never.")
        }
        Preemption::Waiting => {
            format!(
                "{head} {claims}, preemption: not eligible due to a terminating pod on the nominated node."
            )
        }
        Preemption::Vain(refusals) => {
            let why = count(
                refusals
                    .iter()
                    .flat_map(|refusal| refusal.reasons.iter().map(String::as_str)),
            );
            format!("{head} {claims}, preemption: 0/{nodes} nodes are available: {why}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted() {
        let refusal = |reason: &str, resolvable| Refusal {
            reasons: vec![reason.to_owned()],
            resolvable,
            by: None,
            is_error: false,
        };
        let refusals = [
            refusal("Insufficient cpu", true),
            refusal("node(s) had untolerated taint(s)", false),
            refusal("Insufficient cpu", true),
        ];
        assert_eq!(
            refused(
                &refusals,
                NO_CLAIMS,
                &Preemption::Vain(vec![
                    refusal("No preemption victims found for incoming pod", false),
                    refusal("Preemption is not helpful for scheduling", false),
                    refusal("No preemption victims found for incoming pod", false),
                ])
            ),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to deallocate, \
             preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found \
             for incoming pod."
        );
        assert_eq!(
            refused(&[], NO_CLAIMS, &Preemption::Vain(Vec::new())),
            "no nodes available to schedule pods"
        );
        assert_eq!(
            hopeless(2, "pod has unbound immediate PersistentVolumeClaims"),
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
        );
    }
}
