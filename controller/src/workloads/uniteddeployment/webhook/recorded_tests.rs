//! Every recorded admission of a UnitedDeployment (OpenKruise 1.9.0) against the webhooks, and the rules that no recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch, played};

const RECORDED: &str = include_str!("../../../../tests/data/uniteddeployment.jsonl");

/// Refused by the server itself, after the first webhook.
const NOT_THE_WEBHOOKS: [&str; 2] = [
    "uniteddeployment/06-invalid-selector-missing",
    "uniteddeployment-new/11-invalid-schedule-type",
];
/// OpenKruise prints addresses there: of templates, and in place of a number.
const PRINTED_OTHERWISE: [&str; 3] = [
    "uniteddeployment/09-invalid-template-two",
    "uniteddeployment/17-invalid-subset-sum-too-big",
    "uniteddeployment/18-invalid-subset-sum-mismatch",
];

#[tokio::test]
async fn answers_as_recorded() {
    let status =
        json!({ "currentRevision": "u-1", "replicas": 0, "updatedReplicas": 0, "observedGeneration": 1 });
    let skip: Vec<&str> = NOT_THE_WEBHOOKS
        .iter()
        .chain(&PRINTED_OTHERWISE)
        .copied()
        .collect();
    let (wrong, compared) = played(RECORDED, WEBHOOKS, &status, &skip).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 25);
}

/// The text without the numbers that are addresses, and without their stand-ins.
fn without_addresses(text: &str) -> String {
    let text = text.replace("(...)", "(0x0)");
    let is_long = |word: &str| word.len() > 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<String> = text
        .split(' ')
        .map(|word| match word.split_once("(0x") {
            Some((head, rest)) => {
                let tail = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
                format!("{head}(0x{tail}")
            }
            None if is_long(word) => "N".to_owned(),
            None => word.to_owned(),
        })
        .collect();
    words.join(" ")
}

#[tokio::test]
async fn addresses_mean_nothing() {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::default());
    let mut compared = 0;
    for line in RECORDED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if !PRINTED_OTHERWISE.contains(&row["name"].as_str().unwrap()) {
            continue;
        }
        compared += 1;
        let (_, text) = admit(&webhooks, &row["object"], None, &around).await.unwrap_err();
        let replicas = row["object"]["spec"]["replicas"].to_string();
        let mut ours = without_addresses(&text);
        if let Some(head) = ours.strip_suffix(&format!(" {replicas}")) {
            ours = format!("{head} N");
        }
        assert_eq!(ours, without_addresses(row["message"].as_str().unwrap()));
    }
    assert_eq!(compared, PRINTED_OTHERWISE.len());
}

/// A UnitedDeployment of a kind, with changes.
fn set(kind: &str, changes: &Value) -> Value {
    let labels = json!({ "labels": { "app": "x" } });
    let pod = json!({ "metadata": labels, "spec": { "containers": [{ "name": "main", "image": "v1" }] } });
    let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "template": pod });
    let mut set = json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment", "metadata": { "name": "u" }, "spec": {
        "replicas": 4, "selector": { "matchLabels": { "app": "x" } },
        "template": { kind: { "metadata": labels, "spec": spec } },
        "topology": { "subsets": [{ "name": "a" }, { "name": "b" }] },
    } });
    merge_patch(&mut set, changes);
    set
}

async fn refusal(new: &Value, old: Option<&Value>) -> String {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::default());
    match admit(&webhooks, new, old, &around).await {
        Ok(_) => String::new(),
        Err((code, text)) => {
            let text = text
                .split_once("denied the request: ")
                .map_or(&*text, |(_, text)| text);
            format!("{code} {text}")
        }
    }
}

fn subsets(subsets: Value) -> Value {
    json!({ "spec": { "topology": { "subsets": subsets } } })
}

fn template(kind: &str, changes: Value) -> Value {
    json!({ "spec": { "template": { kind: changes } } })
}

fn reserving(changes: Value) -> Value {
    let mut spec = json!({ "topology": { "scheduleStrategy": { "type": "Adaptive", "adaptive": { "reserveUnschedulablePods": true } } } });
    merge_patch(&mut spec, &changes);
    json!({ "spec": spec })
}

const TOPOLOGY: &str = "spec.topology.subsets";
const MISMATCH: &str = "`selector` does not match template `labels`";

/// The kind of the template, changes, and the refusal.
#[rstest]
#[case::fine("cloneSetTemplate", json!({}), "")]
#[case::fine_stateful("statefulSetTemplate", json!({}), "")]
#[case::fine_advanced("advancedStatefulSetTemplate", json!({}), "")]
#[case::fine_deployment("deploymentTemplate", json!({}), "")]
#[case::negative("cloneSetTemplate", json!({ "spec": { "replicas": -1 } }), "422 [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.topology.subsets: Invalid value: 0: if UnitedDeployment \
     replicas is not provided, replicas of all subsets should be provided]")]
#[case::negative_limit(
    "cloneSetTemplate", json!({ "spec": { "revisionHistoryLimit": -1 } }),
    "422 spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"
)]
#[case::labels_of_an_advanced_one(
    "advancedStatefulSetTemplate", template("advancedStatefulSetTemplate", json!({ "metadata": { "labels": null } })),
    &format!("422 spec.template.statefulSetTemplate.metadata.labels: Invalid value: map[string]string(nil): {MISMATCH}")
)]
#[case::labels_of_pods(
    "deploymentTemplate", template("deploymentTemplate", json!({ "spec": { "template": { "metadata": { "labels": { "app": "y" } } } } })),
    &format!("422 spec.template.deploymentTemplate.spec.template.metadata.labels: Invalid value: map[string]string{{\"app\":\"y\"}}: {MISMATCH}")
)]
#[case::replicas_of_a_deployment(
    "deploymentTemplate", template("deploymentTemplate", json!({ "spec": { "replicas": 3 } })),
    "422 spec.template.deploymentTemplate.spec.replicas: Invalid value: 3: replicas in deploymentTemplate will not be used"
)]
#[case::partition(
    "advancedStatefulSetTemplate",
    template("advancedStatefulSetTemplate", json!({ "spec": { "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 1 } } } })),
    "422 spec.template.advancedStatefulSetTemplate.spec.updateStrategy.rollingUpdate.partition: Invalid value: 1: partition in \
     advancedStatefulSetTemplate will not be used"
)]
#[case::partition_without_a_type(
    "advancedStatefulSetTemplate",
    template("advancedStatefulSetTemplate", json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 1 } } } })), ""
)]
#[case::replicas_of_a_clone_set("cloneSetTemplate", template("cloneSetTemplate", json!({ "spec": { "replicas": 3 } })), "")]
#[case::pod_of_a_deployment(
    "deploymentTemplate", template("deploymentTemplate", json!({ "spec": { "template": { "spec": { "restartPolicy": "Never" } } } })),
    "422 spec.template.deploymentTemplate.spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""
)]
#[case::pod_of_a_stateful_set(
    "statefulSetTemplate", template("statefulSetTemplate", json!({ "spec": { "template": { "spec": { "restartPolicy": "Never" } } } })), ""
)]
#[case::reserving_fine("cloneSetTemplate", reserving(json!({})), "")]
#[case::reserving_stateful(
    "statefulSetTemplate", reserving(json!({})),
    "422 spec.topology.scheduleStrategy: Invalid value: v1alpha1.UnitedDeploymentScheduleStrategy{Type:\"Adaptive\", \
     Adaptive:(*v1alpha1.AdaptiveUnitedDeploymentStrategy)(...)}: only stateless workloads (Deployment and CloneSet) are supported by \
     reserved rescheduling"
)]
#[case::replicas_and_adaptive(
    "cloneSetTemplate", reserving(json!({ "topology": { "subsets": [{ "name": "a", "replicas": 1 }, { "name": "b" }] } })),
    &format!("422 {TOPOLOGY}[0].replicas: Forbidden: specify replicas use minReplicas/maxReplicas to enable adaptive strategy")
)]
#[case::mixed(
    "cloneSetTemplate", subsets(json!([{ "name": "a", "replicas": 1 }, { "name": "b", "minReplicas": 1 }])),
    &format!("422 {TOPOLOGY}: Invalid value: []v1alpha1.Subset{{...}}: subset.Replicas and subset.MinReplicas/subset.MaxReplicas are \
              mutually exclusive in a UnitedDeployment")
)]
#[case::two_of_one_name(
    "cloneSetTemplate", subsets(json!([{ "name": "a" }, { "name": "a" }])),
    &format!("422 {TOPOLOGY}[1].name: Invalid value: \"a\": duplicated subset name a")
)]
#[case::minima_of_nothing(
    "cloneSetTemplate", json!({ "spec": { "replicas": null, "topology": { "subsets": [{ "name": "a", "minReplicas": 1 }] } } }),
    &format!("422 {TOPOLOGY}: Invalid value: -1: spec.replicas must be not empty if you set subset.minReplicas/maxReplicas")
)]
#[case::minima_above_maxima(
    "cloneSetTemplate", subsets(json!([{ "name": "a", "minReplicas": 1_000_001 }, { "name": "b" }])),
    &format!("422 {TOPOLOGY}[0].minReplicas: Invalid value: \"null\": subset[0].minReplicas must be more than or equal to maxReplicas")
)]
#[case::toleration(
    "cloneSetTemplate", subsets(json!([{ "name": "a", "tolerations": [{ "key": "k", "operator": "Is" }] }])),
    &format!("422 {TOPOLOGY}[0].tolerations[0].operator: Unsupported value: \"Is\": supported values: \"Equal\", \"Exists\"")
)]
#[case::no_number("cloneSetTemplate", json!({ "spec": { "revisionHistoryLimit": "ten" } }),
    "400 json: cannot unmarshal string into Go struct field UnitedDeploymentSpec.spec.revisionHistoryLimit of type int32")]
#[tokio::test]
async fn errors(#[case] kind: &str, #[case] changes: Value, #[case] expect: &str) {
    assert_eq!(refusal(&set(kind, &changes), None).await, expect);
}

/// The kind of the template, changes, and the refusal of the update.
#[rstest]
#[case::image("statefulSetTemplate", template("statefulSetTemplate", json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "v2" }] } } } })), "")]
#[case::strategy("statefulSetTemplate", template("statefulSetTemplate", json!({ "spec": { "updateStrategy": { "type": "OnDelete" } } })), "")]
#[case::service(
    "statefulSetTemplate", template("statefulSetTemplate", json!({ "spec": { "serviceName": "other" } })),
    "422 spec.template.statefulSetTemplate.spec: Forbidden: updates to statefulsetTemplate spec for fields other than 'template', and \
     'updateStrategy' are forbidden"
)]
#[case::service_of_an_advanced_one(
    "advancedStatefulSetTemplate", template("advancedStatefulSetTemplate", json!({ "spec": { "serviceName": "other" } })),
    "422 spec.template.advancedStatefulSetTemplate.spec: Forbidden: updates to advancedStatefulsetTemplate spec for fields other than \
     'template', and 'updateStrategy' are forbidden"
)]
#[case::anything_of_a_clone_set("cloneSetTemplate", template("cloneSetTemplate", json!({ "spec": { "minReadySeconds": 5 } })), "")]
#[case::another_kind(
    "statefulSetTemplate",
    json!({ "spec": { "template": { "statefulSetTemplate": null, "cloneSetTemplate": { "spec": { "selector": {}, "template": {} } } } } }), ""
)]
#[case::nodes(
    "cloneSetTemplate",
    subsets(json!([{ "name": "b" }, { "name": "a", "nodeSelectorTerm": { "matchExpressions": [{ "key": "k", "operator": "Exists" }] } }])),
    &format!("422 {TOPOLOGY}[1].nodeSelectorTerm: Forbidden: may not be changed in an update")
)]
#[case::tolerations(
    "cloneSetTemplate", subsets(json!([{ "name": "a", "tolerations": [{ "key": "k", "operator": "Exists" }] }, { "name": "b" }])),
    &format!("422 {TOPOLOGY}[0].tolerations: Forbidden: may not be changed in an update")
)]
#[case::other_subsets("cloneSetTemplate", subsets(json!([{ "name": "c" }, { "name": "a" }])), "")]
#[tokio::test]
async fn updates(#[case] kind: &str, #[case] changes: Value, #[case] expect: &str) {
    let old = set(kind, &json!({}));
    assert_eq!(refusal(&set(kind, &changes), Some(&old)).await, expect);
}
