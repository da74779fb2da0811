//! The status of a NodePodProbe.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::key::ProbeKey;
use super::results::ProbeResult;
use crate::api::v1alpha1::{ContainerProbeState, NodePodProbe, NodePodProbeStatus, PodProbe, PodProbeStatus};

/// The status with these results. Results of probes that the spec does not have go; probes without a result yet keep that of before.
pub(super) fn status(object: &NodePodProbe, results: &BTreeMap<ProbeKey, ProbeResult>) -> NodePodProbeStatus {
    let known = object.status.iter().flat_map(|status| &status.pod_probe_statuses);
    let known: Vec<&PodProbeStatus> = known.collect();
    let of_pod = |pod: &PodProbe| {
        let before = known.iter().find(|known| {
            (&known.namespace, &known.name, &known.uid) == (&pod.namespace, &pod.name, &pod.uid)
        });
        let states = pod.probes.iter().filter_map(|probe| {
            let mut before = before.iter().flat_map(|before| &before.probe_states);
            let before = before.find(|state| state.name == probe.name);
            match results.get(&ProbeKey::of(pod, probe)) {
                Some(result) => Some(state(&probe.name, result, before)),
                None => before.cloned(),
            }
        });
        let states: Vec<ContainerProbeState> = states.collect();
        (!states.is_empty()).then(|| PodProbeStatus {
            name: pod.name.clone(),
            namespace: pod.namespace.clone(),
            uid: pod.uid.clone(),
            probe_states: states,
        })
    };
    NodePodProbeStatus {
        pod_probe_statuses: object.spec.pod_probes.iter().filter_map(of_pod).collect(),
    }
}

fn state(name: &str, result: &ProbeResult, before: Option<&ContainerProbeState>) -> ContainerProbeState {
    let word = result.state.word();
    // Times in objects are whole seconds.
    let at = Timestamp::from_second(result.at.as_second()).map(Time).ok();
    let same = before.filter(|before| before.state == word);
    ContainerProbeState {
        name: name.to_owned(),
        state: word.to_owned(),
        last_probe_time: at.clone(),
        last_transition_time: same.and_then(|same| same.last_transition_time.clone()).or(at),
        message: result.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::super::count::State;
    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A NodePodProbe with probes `m#p` and `m#q` of the pod `a`, and the states that it has: name, state, message, second of the transition.
    fn object(names: &[&str], states: &[(&str, &str, &str, i64)]) -> NodePodProbe {
        let probes: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "containerName": "main", "probe": {} }))
            .collect();
        let states: Vec<Value> = states.iter().map(|(name, state, message, second)| json!({
            "name": name, "state": state, "message": message,
            "lastProbeTime": time(*second).to_string(), "lastTransitionTime": time(*second).to_string(),
        })).collect();
        let pod = |list: &str, value: Vec<Value>| json!({ "name": "a", "namespace": "n", "uid": "u", "IP": "10.0.0.1", list: value });
        let statuses: Vec<Value> = if states.is_empty() {
            Vec::new()
        } else {
            vec![pod("probeStates", states)]
        };
        let pods: Vec<Value> = if probes.is_empty() {
            Vec::new()
        } else {
            vec![pod("probes", probes)]
        };
        serde_json::from_value(
            json!({ "metadata": { "name": "node1" }, "spec": { "podProbes": pods },
            "status": { "podProbeStatuses": statuses } }),
        )
        .unwrap()
    }

    /// The results at second 9, and the states then.
    fn check(object: &NodePodProbe, results: &[(&str, State, &str)], expect: &[&str]) {
        let spec = object.spec.clone();
        let results = results.iter().filter_map(|(name, state, message)| {
            let (pod, probe) = super::super::key::all(&spec).find(|(_, probe)| probe.name == *name)?;
            let result = ProbeResult {
                state: *state,
                message: (*message).to_owned(),
                at: time(9),
            };
            Some((ProbeKey::of(pod, probe), result))
        });
        let status = status(object, &results.collect());
        let states = status.pod_probe_statuses.iter().flat_map(|pod| &pod.probe_states);
        let second = |time: &Option<Time>| time.as_ref().map_or(-1, |time| time.0.as_second());
        let shown: Vec<String> = states
            .map(|state| {
                format!(
                    "{} {} {} {}/{}",
                    state.name,
                    state.state,
                    state.message,
                    second(&state.last_probe_time),
                    second(&state.last_transition_time)
                )
            })
            .collect();
        assert_eq!(shown, expect);
    }

    const P: &[&str] = &["m#p"];

    #[rstest]
    #[case::nothing_yet(object(P, &[]), &[], &[])]
    #[case::first(object(P, &[]), &[("m#p", State::Succeeded, "ok")], &["m#p Succeeded ok 9/9"])]
    #[case::same_state(
        object(P, &[("m#p", "Succeeded", "ok", 3)]), &[("m#p", State::Succeeded, "fine")], &["m#p Succeeded fine 9/3"])]
    #[case::another_state(
        object(P, &[("m#p", "Succeeded", "ok", 3)]), &[("m#p", State::Failed, "404")], &["m#p Failed 404 9/9"])]
    #[case::unknown(object(P, &[("m#p", "Succeeded", "ok", 3)]), &[("m#p", State::Unknown, "")], &["m#p Unknown  9/9"])]
    #[case::of_before_the_daemon(object(P, &[("m#p", "Succeeded", "ok", 3)]), &[], &["m#p Succeeded ok 3/3"])]
    #[case::two_of_one_container(
        object(&["m#p", "m#q"], &[]), &[("m#q", State::Failed, ""), ("m#p", State::Failed, "")],
        &["m#p Failed  9/9", "m#q Failed  9/9"])]
    #[case::gone(object(&[], &[("m#p", "Succeeded", "ok", 3)]), &[], &[])]
    #[case::one_gone(
        object(&["m#q"], &[("m#p", "Succeeded", "ok", 3), ("m#q", "Failed", "no", 4)]), &[], &["m#q Failed no 4/4"])]
    fn rows(#[case] object: NodePodProbe, #[case] results: &[(&str, State, &str)], #[case] expect: &[&str]) {
        check(&object, results, expect);
    }
}
