//! One complaint about one field, in the words and shapes of the real server.

use shared_json::{Value, json};
use std::fmt;

/// The kind of an error in a field; decides the `reason` of the cause and the first words of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldErrorKind {
    /// A value is missing.
    Required,
    /// The form of a value is not allowed.
    Invalid,
    /// The same of a value that is not shown.
    InvalidUnshown,
    /// A value is of the wrong JSON type.
    TypeInvalid,
    /// A value is not one of a list.
    NotSupported,
    /// A value must not be set.
    Forbidden,
    /// A value that must be unique is there twice.
    Duplicate,
    /// A value names something that does not exist.
    NotFound,
    /// A text has too many bytes.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// The server is at fault.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` in a status cause.
    pub fn reason(self) -> &'static str {
        match self {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Invalid | FieldErrorKind::InvalidUnshown => "FieldValueInvalid",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Invalid | FieldErrorKind::InvalidUnshown | FieldErrorKind::TypeInvalid => {
                "Invalid value"
            }
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::NotFound => "Not found",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(
            self,
            FieldErrorKind::Required
                | FieldErrorKind::InvalidUnshown
                | FieldErrorKind::Forbidden
                | FieldErrorKind::TooLong
                | FieldErrorKind::Internal
        )
    }
}

/// A complaint about one field.
///
/// `Display` gives the text of Go's `field.Error`:
///
/// ```
/// use pod_rules::FieldError;
/// let error = FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0");
/// assert_eq!(error.to_string(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The kind of error.
    pub kind: FieldErrorKind,
    /// The field, as `spec.containers[0].name` or `metadata.labels[app]`; empty for the object itself.
    pub path: String,
    /// The value complained about; `None` prints as `null` where a value is printed.
    pub value: Option<Value>,
    /// The value as it is to be printed, where JSON cannot say it (fields in an order of their own).
    pub shown: Option<String>,
    /// The details: the valid values, or the rule.
    pub detail: String,
}

impl FieldError {
    /// A complaint of any kind.
    pub fn new(
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        FieldError {
            kind,
            path: path.into(),
            value,
            shown: None,
            detail: detail.into(),
        }
    }

    /// `Invalid value: <value>: <detail>`.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        FieldError::new(FieldErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// `Invalid value: <shown>: <detail>` for a value that Go prints in another form than JSON.
    pub fn invalid_shown(
        path: impl Into<String>,
        shown: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Self {
        let mut error = FieldError::new(FieldErrorKind::Invalid, path, None, detail);
        error.shown = Some(shown.to_string());
        error
    }

    /// `Required value: <detail>`; the detail may be empty.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError::new(FieldErrorKind::Required, path, None, detail)
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError::new(FieldErrorKind::Forbidden, path, None, detail)
    }

    /// `Duplicate value: <value>`.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        FieldError::new(FieldErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// `Not found: <value>`.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Self {
        FieldError::new(FieldErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`, in the order given.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
        let detail = match list.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", list.join(", ")),
        };
        FieldError::new(FieldErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// `Too long: may not be more than <max> bytes`.
    pub fn too_long(path: impl Into<String>, bytes_max: usize) -> Self {
        let noun = if bytes_max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {bytes_max} {noun}");
        FieldError::new(FieldErrorKind::TooLong, path, None, detail)
    }

    /// `Too many: <actual>: must have at most <max> items`.
    pub fn too_many(path: impl Into<String>, actual: usize, items_max: u64) -> Self {
        let noun = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {noun}");
        FieldError::new(FieldErrorKind::TooMany, path, Some(actual.into()), detail)
    }

    /// The same complaint about the same field seen from further out: `prefix` goes before the path.
    pub fn under(mut self, prefix: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => prefix.to_owned(),
            // Complaints without a field stay without.
            "<nil>" => self.path,
            path if path.starts_with('[') => format!("{prefix}{path}"),
            path => format!("{prefix}.{path}"),
        };
        self
    }

    /// The message without the path, as it stands in a status cause.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        // A value that is shown as nothing is not shown.
        let is_shown = self.shown.as_deref() != Some("");
        if self.kind.shows_value() && is_shown {
            text.push_str(": ");
            match &self.shown {
                Some(shown) => text.push_str(shown),
                None => text.push_str(&go_value(self.value.as_ref().unwrap_or(&Value::Null))),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    /// The `StatusCause`: `{"reason", "message", "field"}`.
    pub fn to_cause(&self) -> Value {
        json!({ "reason": self.kind.reason(), "message": self.body(), "field": self.path })
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Several complaints in one line, as a status message gives them: alone, or `[a, b]`; repeats are left out.
pub fn aggregate(errors: &[FieldError]) -> String {
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

/// A value as Go prints it in a field error: text quoted, null as `null`, the rest as JSON.
fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        // A label selector is shown in the order of its struct.
        Value::Object(map)
            if map.len() == 2 && map.contains_key("matchExpressions") && map.contains_key("matchLabels") =>
        {
            let part = |name: &str| map.get(name).map(crate::go::json).unwrap_or_default();
            format!(
                "{{\"matchLabels\":{},\"matchExpressions\":{}}}",
                part("matchLabels"),
                part("matchExpressions")
            )
        }
        other => crate::go::json(other),
    }
}

/// Text in double quotes, escaped as Go's `%q` does.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c < ' ' || c == '\u{7f}' => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{feff}' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(FieldError::required("a", ""), "a: Required value")]
    #[case(FieldError::required("a", "x"), "a: Required value: x")]
    #[case(
        FieldError::invalid("a[0].b", "q\"\n", "no"),
        r#"a[0].b: Invalid value: "q\"\n": no"#
    )]
    #[case(FieldError::invalid("a", json!(["/x"]), "no"), r#"a: Invalid value: ["/x"]: no"#)]
    #[case(
        FieldError::new(FieldErrorKind::Invalid, "a", None, "no"),
        "a: Invalid value: null: no"
    )]
    #[case(FieldError::not_supported("a", "z", &["x", "y"]), r#"a: Unsupported value: "z": supported values: "x", "y""#)]
    #[case(FieldError::invalid("a", json!({"matchExpressions": [], "matchLabels": {"b": "c"}}), "no"),
        r#"a: Invalid value: {"matchLabels":{"b":"c"},"matchExpressions":[]}: no"#)]
    #[case(FieldError::forbidden("a", "no"), "a: Forbidden: no")]
    #[case(FieldError::duplicate("a[1]", json!({"k": "v"})), r#"a[1]: Duplicate value: {"k":"v"}"#)]
    #[case(FieldError::too_long("a", 63), "a: Too long: may not be more than 63 bytes")]
    #[case(FieldError::too_long("a", 1), "a: Too long: may not be more than 1 byte")]
    #[case(FieldError::too_many("a", 3, 1), "a: Too many: 3: must have at most 1 item")]
    fn prints_as_go_does(#[case] error: FieldError, #[case] text: &str) {
        assert_eq!(error.to_string(), text);
    }
}
