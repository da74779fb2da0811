//! Complaints as they are found.

use shared_json::Value;

use super::path::Path;
use crate::field_error::{FieldError, FieldErrorKind};

/// The complaints so far, in the order in which they were found.
#[derive(Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many complaints there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All complaints in order.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// Adds a complaint.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// `Required value`
    pub fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::required(path.to_string(), detail));
    }

    /// `Forbidden`
    pub fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::forbidden(path.to_string(), detail));
    }

    /// `Invalid value: <value>: <detail>`
    pub fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::invalid(path.to_string(), value, detail));
    }

    /// The same for a value that is printed as this text.
    pub fn invalid_shown(&mut self, path: &Path<'_>, shown: String, detail: impl Into<String>) {
        let mut error = FieldError::invalid(path.to_string(), Value::Null, detail);
        error.shown = Some(shown);
        self.0.push(error);
    }

    /// `Unsupported value: <shown>: supported values: …`
    pub fn not_supported_shown(&mut self, path: &Path<'_>, shown: String, supported: &[&str]) {
        let mut error = FieldError::not_supported(path.to_string(), Value::Null, supported);
        error.shown = Some(shown);
        self.0.push(error);
    }

    /// `Duplicate value: <shown>: <detail>`
    pub fn duplicate_shown(&mut self, path: &Path<'_>, shown: String, detail: &str) {
        let mut error = FieldError::duplicate(path.to_string(), Value::Null);
        error.shown = Some(shown);
        error.detail = detail.to_owned();
        self.0.push(error);
    }

    /// One complaint for each problem with a value.
    pub fn problems(&mut self, path: &Path<'_>, value: &str, problems: Vec<String>) {
        for problem in problems {
            self.invalid(path, value, problem);
        }
    }

    /// `Unsupported value: <value>: supported values: …`
    pub fn not_supported(&mut self, path: &Path<'_>, value: impl Into<Value>, supported: &[&str]) {
        self.0
            .push(FieldError::not_supported(path.to_string(), value, supported));
    }

    /// `Duplicate value: <value>`
    pub fn duplicate(&mut self, path: &Path<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::duplicate(path.to_string(), value));
    }

    /// `Not found: <value>`
    pub fn not_found(&mut self, path: &Path<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::not_found(path.to_string(), value));
    }

    /// `Too long: may not be more than <bytes_max> bytes`
    pub fn too_long(&mut self, path: &Path<'_>, bytes_max: usize) {
        self.0.push(FieldError::too_long(path.to_string(), bytes_max));
    }

    /// `Too many: <actual>: must have at most <items_max> items`
    pub fn too_many(&mut self, path: &Path<'_>, actual: usize, items_max: u64) {
        self.0
            .push(FieldError::too_many(path.to_string(), actual, items_max));
    }

    /// `Invalid value: <detail>`, for values that are not shown.
    pub fn invalid_unshown(&mut self, path: &Path<'_>, detail: &str) {
        self.0.push(FieldError::new(
            FieldErrorKind::InvalidUnshown,
            path.to_string(),
            None,
            detail,
        ));
    }

    /// A value that must be one of a few: required if it is empty.
    pub fn one_of(&mut self, path: &Path<'_>, value: &str, allowed: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else {
            self.one_of_or_empty(path, value, allowed);
        }
    }

    /// A value that must be there and one of a few; an empty one is there.
    pub fn one_of_if_set(&mut self, path: &Path<'_>, value: Option<&str>, allowed: &[&str]) {
        match value {
            None => self.required(path, ""),
            Some(value) => self.one_of_or_empty(path, value, allowed),
        }
    }

    /// A value that must be one of a few, an empty one too.
    pub fn one_of_or_empty(&mut self, path: &Path<'_>, value: &str, allowed: &[&str]) {
        if !allowed.contains(&value) {
            self.not_supported(path, value, allowed);
        }
    }

    /// A number, if there is one, that must not be negative.
    pub fn not_negative(&mut self, path: &Path<'_>, value: Option<i64>) {
        if let Some(value) = value.filter(|value| *value < 0) {
            self.invalid(path, value, NEGATIVE);
        }
    }

    /// A number that must be between two, both included.
    pub fn in_range(&mut self, path: &Path<'_>, value: i64, least: i64, most: i64) {
        if value < least || value > most {
            self.invalid(path, value, range_text(least, most));
        }
    }
}

/// The message for a negative number.
pub const NEGATIVE: &str = "must be greater than or equal to 0";
/// The message for a change of an immutable field.
pub const IMMUTABLE: &str = "field is immutable";

/// The message for a number out of range.
pub fn range_text(least: i64, most: i64) -> String {
    format!("must be between {least} and {most}, inclusive")
}
