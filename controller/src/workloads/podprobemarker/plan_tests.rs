//! Rows: the probes of nodes and the marks of pods.

use std::fmt::Write as _;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1alpha1::NodePodProbe;
use crate::pods::test_pods::TestPod;

/// A marker `m` with probes by a word each: `p` runs a command, `p:80` and `p:http` are about a port.
fn marker(words: &str) -> PodProbeMarker {
    let one = |word: &str| {
        let (name, port) = word
            .split_once(':')
            .map_or((word, None), |(name, port)| (name, Some(port)));
        let probe = match port {
            None => json!({ "exec": { "command": ["true"] } }),
            Some(port) => {
                let port = port.parse::<i32>().map_or(json!(port), |number| json!(number));
                json!({ "tcpSocket": { "port": port } })
            }
        };
        json!({ "name": name, "containerName": "main", "probe": probe, "podConditionType": format!("c.io/{name}"),
            "markerPolicy": [{ "state": "Succeeded", "labels": { name: "yes" } }, { "state": "Failed", "annotations": { name: "no" } }] })
    };
    let probes: Vec<Value> = words.split_whitespace().map(one).collect();
    let metadata = json!({ "name": "m", "namespace": "default", "generation": 2, "finalizers": [FINALIZER] });
    let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "probes": probes });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec,
        "status": { "observedGeneration": 2, "matchedPods": 1 } }))
    .unwrap()
}

fn pod(name: &str, ip: &str) -> TestPod {
    TestPod::new(name).set("/status/podIP", json!(ip)).set(
        "/spec/containers/0/ports",
        json!([{ "name": "http", "containerPort": 8080 }]),
    )
}

fn cached(pod: TestPod) -> Arc<CachedPod> {
    Arc::new(CachedPod::from(pod.build()))
}

/// The probes of node `n1` by a word each: `a/10.0.0.1=m#p,o#q` is a pod with its address and probes.
fn known(words: &str) -> Arc<NodePodProbe> {
    let one = |word: &str| {
        let (pod, probes) = word.split_once('=').unwrap();
        let (name, ip) = pod.split_once('/').unwrap();
        let probe = |name: &str| json!({ "name": name, "containerName": "main", "probe": { "exec": { "command": ["true"] } } });
        let probes: Vec<Value> = probes.split(',').map(probe).collect();
        json!({ "name": name, "namespace": "default", "uid": format!("uid-{name}"), "IP": ip, "probes": probes })
    };
    let probes: Vec<Value> = words.split_whitespace().map(one).collect();
    let object = json!({ "metadata": { "name": "n1" }, "spec": { "podProbes": probes } });
    Arc::new(serde_json::from_value(object).unwrap())
}

fn observed(marker: PodProbeMarker, pods: Vec<Arc<CachedPod>>, probes: &str) -> Observed {
    Observed {
        marker: Arc::new(marker),
        pods,
        serverless: Vec::new(),
        probes: vec![known(probes)],
        marks_serverless: true,
    }
}

/// The probes of `n1` as [`known`] reads them, with the ports of those that have one; `-` if they do not change.
fn shown(plan: &Plan) -> String {
    let Some((_, spec)) = plan.nodes.first() else {
        return "-".to_owned();
    };
    let port = |probe: &Probe| match probe.tcp_socket.as_ref().map(|action| &action.port) {
        Some(IntOrString::Int(port)) => format!(":{port}"),
        Some(IntOrString::String(port)) => format!(":{port}"),
        None => String::new(),
    };
    let mut out = String::new();
    for pod in &spec.pod_probes {
        let probes = pod.probes.iter();
        let probes: Vec<String> = probes
            .map(|probe| format!("{}{}", probe.name, port(&probe.probe)))
            .collect();
        let _ = write!(out, "{}/{}={} ", pod.name, pod.ip, probes.join(","));
    }
    out.trim_end().to_owned()
}

/// The marker's probes, the probes of the node before, the pods on it, and its probes then.
#[rstest]
#[case::a_new_pod("p", "", "a/10.0.0.1", "a/10.0.0.1=m#p")]
#[case::two_pods("p", "", "a/1 b/2", "a/1=m#p b/2=m#p")]
#[case::as_it_is("p", "a/1=m#p", "a/1", "-")]
#[case::another_marker_stays("p", "a/1=o#q", "a/1", "a/1=o#q,m#p")]
#[case::a_marker_whose_name_ends_alike("p", "a/1=om#p", "", "-")]
#[case::a_number("p:80", "", "a/1", "a/1=m#p:80")]
#[case::a_named_port("p:http", "", "a/1", "a/1=m#p:8080")]
#[case::an_unknown_port("p:grpc q", "", "a/1", "a/1=m#q")]
#[case::no_port_at_all("p:grpc", "", "a/1", "-")]
#[case::a_probe_that_was_taken_away("p", "a/1=m#p,m#q", "a/1", "a/1=m#p")]
#[case::a_pod_that_is_not_selected_any_more("p", "a/1=m#p b/2=m#p,o#q", "", "b/2=o#q")]
#[case::no_address_yet("p", "", "a/", "a/=m#p")]
#[case::an_address("p", "a/=m#p", "a/1", "a/1=m#p")]
#[case::another_address("p", "a/1=m#p", "a/2", "a/2=m#p")]
#[case::the_address_is_gone("p", "a/1=m#p", "a/", "-")]
fn probes(#[case] words: &str, #[case] before: &str, #[case] pods: &str, #[case] expect: &str) {
    let one = |word: &str| {
        let (name, ip) = word.split_once('/').unwrap();
        cached(pod(name, ip))
    };
    let pods = pods.split_whitespace().map(one).collect();
    assert_eq!(shown(&plan(&observed(marker(words), pods, before))), expect);
}

#[test]
fn a_pod_of_another_uid_is_another_pod() {
    let other = pod("a", "1").set("/metadata/uid", json!("other"));
    let plan = plan(&observed(marker("p"), vec![cached(other)], "a/1=m#p"));
    let uids: Vec<&str> = plan.nodes[0].1.pod_probes.iter().map(|pod| &*pod.uid).collect();
    assert_eq!(uids, ["other"]);
}

#[test]
fn a_node_without_an_object_is_left_out() {
    let elsewhere = pod("a", "1").node("n2");
    assert_eq!(
        plan(&observed(marker("p"), vec![cached(elsewhere)], "")).nodes,
        []
    );
}

/// Whether it is being deleted, whether it has the finalizer, and: the finalizer, the probes of the node, the matched pods.
#[rstest]
#[case::first(false, false, (Some(true), "a/1=m#p b/2=o#q", Some(1)))]
#[case::later(false, true, (None, "a/1=m#p b/2=o#q", None))]
#[case::goes(true, true, (Some(false), "b/2=o#q", None))]
#[case::is_held_by_another(true, false, (None, "-", None))]
fn lives(#[case] goes: bool, #[case] holds: bool, #[case] expect: (Option<bool>, &str, Option<i64>)) {
    let mut marker = marker("p");
    if !holds {
        marker.metadata.finalizers = None;
        marker.status = None;
    }
    if goes {
        marker.metadata.deletion_timestamp = serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
    }
    let before = if goes {
        "a/1=m#p b/2=m#p,o#q"
    } else {
        "a/1=m#q b/2=o#q"
    };
    let plan = plan(&observed(marker, vec![cached(pod("a", "1"))], before));
    let matched = plan.status.as_ref().map(|status| status.matched_pods);
    assert_eq!((plan.finalizer, &*shown(&plan), matched), expect);
}

/// The conditions of a pod on a virtual node, its labels, and the labels and annotations that it gets.
#[rstest]
#[case::succeeds("p=True", json!({}), Some((json!({ "p": "yes" }), json!({}))))]
#[case::fails("p=False", json!({}), Some((json!({}), json!({ "p": "no" }))))]
#[case::unknown("p=Unknown", json!({}), None)]
#[case::not_there("", json!({}), None)]
#[case::two("p=True q=False", json!({}), Some((json!({ "p": "yes" }), json!({ "q": "no" }))))]
#[case::has_it("p=True", json!({ "p": "yes" }), None)]
#[case::nothing_is_taken_away("p=False", json!({ "p": "yes" }), Some((json!({}), json!({ "p": "no" }))))]
fn marks(#[case] conditions: &str, #[case] labels: Value, #[case] expect: Option<(Value, Value)>) {
    let mut pod = pod("a", "1").set("/metadata/labels", labels);
    for word in conditions.split_whitespace() {
        let (name, status) = word.split_once('=').unwrap();
        pod = pod.condition(&format!("c.io/{name}"), status);
    }
    let mut observed = observed(marker("p q"), Vec::new(), "");
    observed.serverless = vec![cached(pod)];
    let found = plan(&observed).marks;
    let found = found
        .first()
        .map(|mark| (json!(mark.labels), json!(mark.annotations)));
    assert_eq!(found, expect);
    observed.marks_serverless = false;
    assert_eq!(plan(&observed).marks, []);
}
