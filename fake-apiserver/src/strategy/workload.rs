//! Workloads and other resources whose generation counts changes of the spec.

use serde_json::Value;

use super::{Strategy, immutable, pod_spec};
use crate::field_error::FieldError;
use crate::meta::{ObjectMeta, at};
use crate::selector::matches_selector;

pub(super) struct WorkloadStrategy;

const TEMPLATE_SPEC: &str = "spec.template.spec";

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

impl Strategy for WorkloadStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        if object.get("status").is_some() {
            object["status"] = Value::Object(serde_json::Map::new());
        }
        if kind(object) == "DaemonSet" {
            object["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = Value::from("1");
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !matches!(
            kind(object),
            "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet"
        ) {
            return errors;
        }
        for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
            let path = format!("spec.{field}");
            if let Some(value) = at(object, &path)
                .and_then(Value::as_i64)
                .filter(|value| *value < 0)
            {
                errors.push(FieldError::invalid(
                    path,
                    value,
                    "must be greater than or equal to 0",
                ));
            }
        }
        let selector = at(object, "spec.selector").filter(|selector| !selector.is_null());
        let labels = at(object, "spec.template.metadata.labels");
        match selector {
            None => errors.push(FieldError::required("spec.selector", "")),
            Some(selector) if selector.as_object().is_some_and(serde_json::Map::is_empty) => {
                let what = kind(object).to_lowercase();
                let detail = format!("empty selector is invalid for {what}");
                errors.push(FieldError::invalid("spec.selector", selector.clone(), detail));
            }
            Some(_) => {}
        }
        let none = serde_json::Map::new();
        let matched = matches_selector(selector, labels.and_then(Value::as_object).unwrap_or(&none));
        if !matched {
            let value = labels.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(
                "spec.template.metadata.labels",
                value,
                "`selector` does not match template `labels`",
            ));
        }
        let claims = at(object, "spec.volumeClaimTemplates").cloned();
        match claims {
            Some(claims) => {
                // The mounts of a StatefulSet's template may name its claims.
                let mut with_claims = object.clone();
                with_claims["spec"]["template"]["spec"]["volumeClaimTemplates"] = claims;
                errors.extend(pod_spec::validate(&with_claims, TEMPLATE_SPEC));
            }
            None => errors.extend(pod_spec::validate(object, TEMPLATE_SPEC)),
        }
        let restart = at(object, "spec.template.spec.restartPolicy")
            .and_then(Value::as_str)
            .unwrap_or("Always");
        if restart != "Always" {
            errors.push(FieldError::not_supported(
                "spec.template.spec.restartPolicy",
                restart,
                &["Always"],
            ));
        }
        if kind(object) == "Deployment"
            && at(object, "spec.strategy.type").and_then(Value::as_str) == Some("Recreate")
        {
            let given = at(object, "spec.strategy.rollingUpdate").is_some_and(|value| !value.is_null());
            if given {
                errors.push(FieldError::forbidden(
                    "spec.strategy.rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
        }
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let selector = || immutable::check(&[("spec.selector", immutable::Words::Immutable)], object, old);
        let mut errors = Vec::new();
        match kind(object) {
            "DaemonSet" | "ReplicaSet" => {
                errors.extend(selector());
                errors.extend(self.validate_create(object));
            }
            "Deployment" => {
                errors.extend(self.validate_create(object));
                errors.extend(selector());
            }
            "StatefulSet" => {
                errors.extend(self.validate_create(object));
                if stable_part(object) != stable_part(old) {
                    errors.push(FieldError::forbidden("spec", STATEFUL_SET));
                }
            }
            _ => {}
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_spec::warnings(object, TEMPLATE_SPEC)
    }
}

/// The refusal of a change to what a StatefulSet was born with.
const STATEFUL_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// What of a StatefulSet's spec no update may change.
fn stable_part(object: &Value) -> Value {
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            spec.remove(field);
        }
    }
    spec
}

/// Templates of pods that stand alone.
pub(super) struct PodTemplateStrategy;

impl Strategy for PodTemplateStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object.set_meta("generation", 1);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        pod_spec::validate(object, "template.spec")
    }

    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate_create(object)
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_spec::warnings(object, "template.spec")
    }
}
