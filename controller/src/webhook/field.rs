//! What is wrong with a field.

use std::fmt;

/// In which way a field is wrong; the words of apimachinery's `field.ErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// It must be there.
    Required,
    /// Its value is not allowed.
    Invalid,
    /// Its value is not one of a list.
    NotSupported,
    /// It must not be there, or must not change.
    Forbidden,
    /// Its value occurs twice.
    Duplicate,
    /// What it refers to does not exist.
    NotFound,
}

impl fmt::Display for FieldErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
        })
    }
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// In which way.
    pub kind: FieldErrorKind,
    /// The field's path, such as `spec.replicas`.
    pub path: String,
    /// Its value as Go prints it; none for kinds that do not print it.
    pub value: Option<String>,
    /// A sentence, or nothing.
    pub detail: String,
}

impl FieldError {
    /// A value that is not allowed; `value` as Go prints it.
    pub(crate) fn invalid(
        path: impl Into<String>,
        value: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind: FieldErrorKind::Invalid,
            path: path.into(),
            value: Some(value.to_string()),
            detail: detail.into(),
        }
    }

    /// A field that must be there.
    pub(crate) fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind: FieldErrorKind::Required,
            path: path.into(),
            value: None,
            detail: detail.into(),
        }
    }

    /// A field that must not be there or change.
    pub(crate) fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind: FieldErrorKind::Forbidden,
            path: path.into(),
            value: None,
            detail: detail.into(),
        }
    }

    /// A value that is none of `supported`.
    pub(crate) fn not_supported(path: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        Self {
            kind: FieldErrorKind::NotSupported,
            path: path.into(),
            value: Some(format!("{value:?}")),
            detail,
        }
    }

    /// A value that occurs twice.
    pub(crate) fn duplicate(path: impl Into<String>, value: &str) -> Self {
        let value = Some(format!("{value:?}"));
        Self {
            kind: FieldErrorKind::Duplicate,
            path: path.into(),
            value,
            detail: String::new(),
        }
    }

    /// A reference to nothing.
    pub(crate) fn not_found(path: impl Into<String>, value: &str) -> Self {
        let value = Some(format!("{value:?}"));
        Self {
            kind: FieldErrorKind::NotFound,
            path: path.into(),
            value,
            detail: String::new(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.kind)?;
        if let Some(value) = &self.value {
            write!(f, ": {value}")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// Several errors as one text: alone as it is, together in brackets, each text once.
pub(crate) fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
