//! Every recorded admission of a marker (OpenKruise 1.9.0), and the rules that no recording has.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::gates::FeatureGates;
use crate::kit::admission::Surroundings;
use crate::test_admission::{admit, played};

/// Refused by the API server's schema: the webhook is not asked.
const NOT_THE_WEBHOOKS: [&str; 3] = [
    "podprobemarker/03-invalid-selector-missing",
    "podprobemarker/11-invalid-probe-missing",
    "podprobemarker-new/06-invalid-http-no-port",
];
/// The refusal has the address of a struct in it.
const PRINTED_OTHERWISE: &str = "podprobemarker/10-invalid-no-condition-no-policy";

#[tokio::test]
async fn answers_as_recorded() {
    let lines = include_str!("../../../tests/data/podprobemarker.jsonl");
    let skip = [&NOT_THE_WEBHOOKS[..], &[PRINTED_OTHERWISE]].concat();
    let (wrong, compared) = played(lines, WEBHOOKS, &json!({}), &skip).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 21);
}

/// A marker with these probes; each is a change of a good one.
fn marker(changes: &[Value]) -> PodProbeMarker {
    let one = |change: &Value| {
        let mut probe =
            json!({ "name": "p", "containerName": "main", "podConditionType": "a.io/x", "probe": {} });
        crate::kit::json::merge(&mut probe, change.clone());
        if probe["probe"].as_object().unwrap().is_empty() {
            probe["probe"] = json!({ "exec": { "command": ["true"] } });
        }
        probe
    };
    let probes: Vec<Value> = changes.iter().map(one).collect();
    let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "probes": probes });
    serde_json::from_value(json!({ "metadata": { "name": "m", "namespace": "n" }, "spec": spec })).unwrap()
}

fn found(marker: &PodProbeMarker) -> String {
    let mut errors = Vec::new();
    self::errors(marker, &mut errors);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

#[rstest]
#[case::good(json!({}), "")]
#[case::http_without_a_scheme(
    json!({ "probe": { "httpGet": { "path": "/", "port": 80 } } }),
    "spec.probe.httpGet.scheme: Unsupported value: \"\": supported values: \"HTTP\", \"HTTPS\""
)]
#[case::two_handlers(
    json!({ "probe": { "exec": { "command": ["true"] }, "tcpSocket": { "port": 80 } } }),
    "spec.probe.tcpSocket: Forbidden: may not specify more than 1 handler type"
)]
#[case::grpc_is_none(json!({ "probe": { "grpc": { "port": 80 } } }), "spec.probe: Required value: must specify a handler type")]
#[case::a_host(
    json!({ "probe": { "tcpSocket": { "port": 80, "host": "h" } } }),
    "spec.probe.tcpSocket.host: Invalid value: \"h\": host field in probes is not allowed"
)]
#[case::a_native_name(json!({ "name": "Ready" }), "spec.probes: Invalid value: \"Ready\": probe name can't be Ready")]
#[case::a_native_condition(json!({ "podConditionType": "Ready" }), "")]
#[case::a_hash(json!({ "name": "a#b" }), "spec.probes: Invalid value: \"a#b\": probe name can't contains '#'.")]
#[case::a_state_twice(
    json!({ "markerPolicy": [{ "state": "Failed", "labels": { "a": "1" } }, { "state": "Failed", "labels": { "a": "1" } }] }),
    "spec.markerPolicy: Invalid value: \"Failed\": marker policy state must be unique."
)]
fn probes(#[case] change: Value, #[case] expect: &str) {
    assert_eq!(found(&marker(&[change])), expect);
}

/// The text of the recording, up to the address in it.
#[test]
fn a_probe_without_any_use() {
    let text = found(&marker(&[json!({ "podConditionType": "" })]));
    assert!(text.starts_with(
        "spec.probes: Invalid value: v1alpha1.PodContainerProbe{Name:\"p\", ContainerName:\"main\", Probe:"
    ));
    assert!(text.ends_with(": podConditionType and markerPolicy cannot be empty at the same time"));
}

#[tokio::test]
async fn probes_may_change() {
    let around = Surroundings::alone(FeatureGates::default());
    let value = |marker: &PodProbeMarker| serde_json::to_value(marker).unwrap();
    let (old, new) = (
        value(&marker(&[json!({})])),
        value(&marker(&[json!({ "name": "q" })])),
    );
    assert!(admit(&[&WEBHOOKS[0]], &new, Some(&old), &around).await.is_ok());
}

#[rstest]
#[case("PodProbeMarkerGate=false", "feature-gate PodProbeMarkerGate is not enabled")]
#[case("KruiseDaemon=false", "feature-gate PodProbeMarkerGate is not enabled")]
#[tokio::test]
async fn without_a_gate(#[case] gates: &str, #[case] expect: &str) {
    let around = Surroundings::alone(FeatureGates::parse(gates).unwrap());
    let marker = serde_json::to_value(marker(&[json!({})])).unwrap();
    let (code, message) = admit(&[&WEBHOOKS[0]], &marker, None, &around).await.unwrap_err();
    assert_eq!(code, 403);
    assert!(message.ends_with(expect), "{message}");
}
