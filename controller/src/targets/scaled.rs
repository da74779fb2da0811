//! A workload as caches hold it: the fields that wake those who look after its pods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::api::v1alpha1::CloneSet;
use crate::api::v1beta1::StatefulSet;
use crate::kit::views::{lean_metadata, view_of_kind};

/// A workload of kind `K`: its name, its owners, its number of pods and the labels that its pods get.
#[derive(Debug)]
pub(crate) struct Scaled<K> {
    metadata: ObjectMeta,
    replicas: Option<i64>,
    labels: BTreeMap<String, String>,
    /// The number of the template of a Deployment, which the server's controller counts up.
    template: Option<String>,
    kind: PhantomData<fn() -> K>,
}

/// A workload that has a number of pods.
pub(crate) trait Scales {
    /// How many pods it is to have, as far as it says so.
    fn replicas(&self) -> Option<i64>;
    /// The labels that its pods get.
    fn pod_labels(&self) -> Cow<'_, BTreeMap<String, String>>;
}

impl<K> Scaled<K> {
    /// The annotation in which kube-controller-manager counts the templates of a Deployment.
    pub(crate) fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }
}

impl<K> Scales for Scaled<K> {
    fn replicas(&self) -> Option<i64> {
        self.replicas
    }

    fn pod_labels(&self) -> Cow<'_, BTreeMap<String, String>> {
        Cow::Borrowed(&self.labels)
    }
}

impl Scales for CloneSet {
    fn replicas(&self) -> Option<i64> {
        self.spec.replicas.map(i64::from)
    }

    fn pod_labels(&self) -> Cow<'_, BTreeMap<String, String>> {
        Cow::Owned(labels_of(Some(&self.spec.template)))
    }
}

impl Scales for StatefulSet {
    fn replicas(&self) -> Option<i64> {
        self.spec.replicas.map(i64::from)
    }

    fn pod_labels(&self) -> Cow<'_, BTreeMap<String, String>> {
        Cow::Owned(labels_of(Some(&self.spec.template)))
    }
}

/// The labels in a pod template.
fn labels_of(template: Option<&Value>) -> BTreeMap<String, String> {
    let labels = template.and_then(|template| template.pointer("/metadata/labels"));
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

impl<K> Clone for Scaled<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            replicas: self.replicas,
            labels: self.labels.clone(),
            template: self.template.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> From<Value> for Scaled<K> {
    fn from(object: Value) -> Self {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let template = metadata.annotations.as_ref();
        let template = template.and_then(|notes| notes.get("deployment.kubernetes.io/revision").cloned());
        Self {
            metadata: lean_metadata(metadata),
            replicas: number("/spec/replicas").or_else(|| number("/spec/parallelism")),
            labels: labels_of(object.pointer("/spec/template")),
            template,
            kind: PhantomData,
        }
    }
}

view_of_kind!(Scaled);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::Resource as _;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({ "replicas": 3 }), Some(3))]
    #[case(json!({ "parallelism": 2 }), Some(2))]
    #[case(json!({}), None)]
    fn numbers_of_pods(#[case] mut spec: Value, #[case] want: Option<i64>) {
        spec["template"] = json!({ "metadata": { "labels": { "app": "x" } } });
        let object = json!({ "metadata": { "name": "a", "labels": { "l": "1" } }, "spec": spec });
        let scaled: Scaled<Deployment> = serde_json::from_value(object).unwrap();
        assert_eq!(scaled.replicas(), want);
        assert_eq!(scaled.pod_labels()["app"], "x");
        assert!(scaled.meta().labels.is_none(), "it holds no more than it needs");
    }
}
