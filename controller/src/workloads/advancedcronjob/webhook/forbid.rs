//! Changes of fields that must stay.

use pod_rules::FieldError;
use serde_json::{Map, Value};

use super::mutate::canonical_spec;

/// Fields of the spec that may change.
const MUTABLE: [&str; 7] = [
    "schedule",
    "concurrencyPolicy",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
    "startingDeadlineSeconds",
    "timeZone",
    "paused",
];

/// The error of an update that changes another field. The template of jobs that pull images may change if there was one.
pub(super) fn update(new: &Value, old: &Value) -> Option<FieldError> {
    let [mut new, mut old] = [rest(new)?, rest(old)?];
    let images = |spec: &Map<String, Value>| spec.get("template")?.get("imageListPullJobTemplate").cloned();
    if images(&old).is_some() && images(&new).is_some() {
        for spec in [&mut new, &mut old] {
            if let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) {
                template.remove("imageListPullJobTemplate");
            }
        }
    }
    (new != old).then(|| {
        FieldError::forbidden(
            "spec",
            "updates to advancedcronjob spec for fields other than 'imageListPullJobTemplate', 'schedule', 'concurrencyPolicy', \
             'successfulJobsHistoryLimit', 'failedJobsHistoryLimit', 'startingDeadlineSeconds', 'timeZone' and 'paused' are \
             forbidden",
        )
    })
}

fn rest(cron: &Value) -> Option<Map<String, Value>> {
    let mut spec = canonical_spec(cron.get("spec")?).ok()?;
    spec.retain(|field, _| !MUTABLE.contains(&field.as_str()));
    Some(spec)
}
