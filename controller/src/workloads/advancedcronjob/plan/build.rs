//! Jobs from templates.

use jiff::Timestamp;
use kube::Resource as _;
use serde_json::{Map, Value, json};

use crate::api::v1beta1::AdvancedCronJob;
use crate::kit::Owner;
use crate::workloads::advancedcronjob::SCHEDULED_AT;
use crate::workloads::advancedcronjob::jobs::JobKind;

/// The job of `cron` for a time.
pub(super) fn job(cron: &AdvancedCronJob, due: Timestamp) -> Value {
    let kind = JobKind::of(cron);
    let template = template(cron, kind);
    let marks = |field: &str| {
        let marks = template
            .pointer(&format!("/metadata/{field}"))
            .and_then(Value::as_object);
        marks.cloned().unwrap_or_default()
    };
    let owner = Owner::of(cron);
    let mut annotations = marks("annotations");
    let at = due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    annotations.insert(SCHEDULED_AT.to_owned(), json!(at));
    let mut metadata = Map::from_iter([
        (
            "name".to_owned(),
            json!(format!("{}-{}", owner.key.name, due.as_second())),
        ),
        ("namespace".to_owned(), json!(cron.meta().namespace)),
        ("annotations".to_owned(), Value::Object(annotations)),
        ("ownerReferences".to_owned(), json!([owner.reference()])),
    ]);
    let labels = marks("labels");
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

fn template(cron: &AdvancedCronJob, kind: JobKind) -> Value {
    let template = &cron.spec.template;
    let value = match kind {
        JobKind::Job => template.job_template.clone(),
        JobKind::Broadcast => serde_json::to_value(&template.broadcast_job_template).ok(),
        JobKind::ImageList => serde_json::to_value(&template.image_list_pull_job_template).ok(),
    };
    value.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cron(template: Value) -> AdvancedCronJob {
        let object = json!({ "metadata": { "name": "a", "namespace": "default", "uid": "u" },
            "spec": { "schedule": "* * * * *", "timeZone": "Asia/Shanghai", "template": template } });
        serde_json::from_value(object).unwrap()
    }

    /// The template, and the kind, the labels and the annotations of the job.
    #[rstest]
    #[case::job(
        json!({ "jobTemplate": { "metadata": { "labels": { "l": "1" }, "annotations": { "a": "1" } }, "spec": { "x": 1 } } }),
        "batch/v1 Job", json!({ "l": "1" }), json!({ "a": "1", SCHEDULED_AT: "2026-11-25T18:14:00Z" }), json!({ "x": 1 })
    )]
    #[case::broadcast(
        json!({ "broadcastJobTemplate": { "metadata": {}, "spec": { "template": {}, "failurePolicy": {} } } }),
        "apps.kruise.io/v1beta1 BroadcastJob", json!(null), json!({ SCHEDULED_AT: "2026-11-25T18:14:00Z" }),
        json!({ "template": {}, "failurePolicy": {} })
    )]
    #[case::images(
        json!({ "imageListPullJobTemplate": { "spec": { "images": ["a"], "completionPolicy": { "type": "Always" } } } }),
        "apps.kruise.io/v1beta1 ImageListPullJob", json!(null), json!({ SCHEDULED_AT: "2026-11-25T18:14:00Z" }),
        json!({ "images": ["a"], "completionPolicy": { "type": "Always" } })
    )]
    #[case::nothing(
        json!({}), "apps.kruise.io/v1beta1 BroadcastJob", json!(null), json!({ SCHEDULED_AT: "2026-11-25T18:14:00Z" }), json!({})
    )]
    fn jobs(
        #[case] template: Value,
        #[case] kind: &str,
        #[case] labels: Value,
        #[case] annotations: Value,
        #[case] spec: Value,
    ) {
        let made = job(&cron(template), "2026-11-25T18:14:00Z".parse().unwrap());
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        assert_eq!(format!("{} {}", text("apiVersion"), text("kind")), kind);
        assert_eq!(
            (&made["metadata"]["labels"], &made["metadata"]["annotations"]),
            (&labels, &annotations)
        );
        assert_eq!(made["metadata"]["name"], "a-1795630440");
        assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "AdvancedCronJob");
        assert_eq!(made["spec"], spec);
    }
}
