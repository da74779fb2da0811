//! ConfigMaps and Secrets.

use serde_json::Value;

use super::{Strategy, immutable};
use crate::field_error::FieldError;

pub(super) struct ConfigMapStrategy;

impl Strategy for ConfigMapStrategy {
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let keys = |field: &str| object.get(field).and_then(Value::as_object);
        let (Some(data), Some(binary)) = (keys("data"), keys("binaryData")) else {
            return Vec::new();
        };
        let both = data.keys().filter(|key| binary.contains_key(*key));
        both.map(|key| {
            FieldError::invalid(
                format!("data[{key}]"),
                key.as_str(),
                "duplicate of key present in binaryData",
            )
        })
        .collect()
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = immutable::check_data(object, old);
        errors.extend(self.validate_create(object));
        errors
    }
}

pub(super) struct SecretStrategy;

impl Strategy for SecretStrategy {
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = immutable::check(&[("type", immutable::Words::Immutable)], object, old);
        errors.extend(immutable::check_data(object, old));
        errors
    }
}
