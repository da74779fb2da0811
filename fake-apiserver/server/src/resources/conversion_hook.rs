//! The webhook that converts a custom resource between its versions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use machinery::meta::{ObjectMeta, at};
use shared_json::Value;

use crate::webhook_client::ClientConfig;

/// How many answers are remembered of one resource before they are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// The webhook of a definition, and its answers for one version.
#[derive(Debug)]
pub(crate) struct ConversionHook {
    pub(crate) config: ClientConfig,
    pub(crate) review_versions: Vec<String>,
    /// By uid and resource version.
    answers: Mutex<BTreeMap<(String, String), Value>>,
}

impl ConversionHook {
    /// The webhook of a CustomResourceDefinition, if it has one.
    pub(crate) fn of(definition: &Value) -> Option<Self> {
        let text = |path: &str| at(definition, path).and_then(Value::as_str);
        if text("spec.conversion.strategy") != Some("Webhook") {
            return None;
        }
        let webhook = at(definition, "spec.conversion.webhook")?;
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            config: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            review_versions: versions.map(str::to_owned).collect(),
            answers: Mutex::default(),
        })
    }

    fn key(object: &Value) -> (String, String) {
        (object.uid().to_owned(), object.resource_version().to_owned())
    }

    /// The webhook's conversion of a stored object.
    pub(crate) fn answer(&self, object: &Value) -> Option<Value> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(&Self::key(object)).cloned()
    }

    /// Remembers it.
    pub(crate) fn remember(&self, object: &Value, converted: Value) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REMEMBERED_MAX {
            answers.clear();
        }
        answers.insert(Self::key(object), converted);
    }
}
