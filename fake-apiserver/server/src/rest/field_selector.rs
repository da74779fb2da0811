//! Field selectors: `metadata.name=x,spec.nodeName!=y`, per resource those the real server supports.

use machinery::meta::at;
use machinery::status::ApiError;
use shared_json::Value;
use store::Scope;

use crate::resources::Resource;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

/// A parsed field selector. The empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Term>);

impl FieldSelector {
    /// Parses the text of a `fieldSelector` parameter for a resource.
    ///
    /// # Errors
    /// 400 for an invalid selector, or one with a field that the resource does not support.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        let mut parts = split_terms(text);
        parts.sort_unstable();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, value, equal)) = split_term(part) else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            let value = unescape(value)
                .map_err(|error| ApiError::bad_request(format!("invalid field selector: {error}")))?;
            if field.is_empty() && value.is_empty() {
                continue;
            }
            terms.push(Term {
                field: field.to_owned(),
                value,
                equal,
            });
        }
        Ok(Self(terms))
    }

    /// The same by the names that the resource's fields have here.
    ///
    /// # Errors
    /// 400 for a field by which nothing can be selected.
    pub(super) fn of(mut self, resource: &Resource) -> Result<Self, ApiError> {
        for term in &mut self.0 {
            let field = term.field.as_str();
            let always = field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced);
            let other = by_other_name(resource, field);
            if !always && other.is_none() && !resource.selectable.iter().any(|known| known == field) {
                return Err(ApiError::bad_request(unknown(resource, field)));
            }
            if let Some(other) = other {
                term.field = other;
            }
        }
        Ok(self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it names more than name and namespace, which all versions of an object share.
    pub(super) fn names_content(&self) -> bool {
        self.0
            .iter()
            .any(|term| !matches!(term.field.as_str(), "metadata.name" | "metadata.namespace"))
    }

    /// The one part of the table that is selected from, where watchers are kept by it: one object, or the pods of a node (the
    /// real server's watch cache knows these, too).
    pub(super) fn scope(&self) -> Option<Scope> {
        ["metadata.name", "spec.nodeName"].into_iter().find_map(|path| {
            let term = self.0.iter().find(|term| term.equal && term.field == path)?;
            Some(Scope::Field(path, term.value.clone()))
        })
    }

    /// Whether `object` is selected.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|term| (field_text(object, &term.field) == term.value) == term.equal)
    }
}

/// A term at its first operator: field, value, and whether they are to be equal.
fn split_term(part: &str) -> Option<(&str, &str, bool)> {
    let at = part.char_indices().find_map(|(at, c)| {
        let is_operator =
            c == '=' || c == '!' && part.get(at + 1..).is_some_and(|rest| rest.starts_with('='));
        is_operator.then_some(at)
    })?;
    let (field, rest) = part.split_at_checked(at)?;
    let equal = !rest.starts_with('!');
    let operator = if rest.starts_with("==") || !equal { 2 } else { 1 };
    Some((field, rest.get(operator..)?, equal))
}

/// The parts of the object that an event is about, by which events are selected.
const INVOLVED: [&str; 7] = [
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
];

/// The stored field, of one that selectors may name and that no list of a running server has: old names, and the names of the
/// newer version of events.
fn by_other_name(resource: &Resource, field: &str) -> Option<String> {
    let involved = |prefix: &str| {
        let part = field.strip_prefix(prefix)?;
        INVOLVED.contains(&part).then(|| format!("involvedObject.{part}"))
    };
    match (resource.group.as_str(), resource.plural.as_str(), field) {
        ("", "pods", "spec.host") => Some("spec.nodeName".to_owned()),
        ("", "events", _) => involved("involvedObject."),
        ("events.k8s.io", "events", "reportingController") => Some("reportingComponent".to_owned()),
        ("events.k8s.io", "events", _) => involved("regarding."),
        _ => None,
    }
}

/// Types with selectable fields of their own say it in other words than those that have name and namespace alone.
fn unknown(resource: &Resource, field: &str) -> String {
    let own = |field: &&String| !matches!(field.as_str(), "metadata.name" | "metadata.namespace");
    match resource.plural.as_str() {
        "resourceslices" if !resource.is_custom() => {
            let (version, kind) = (resource.api_version(), &resource.kind);
            return format!("field label not supported for {version}, Kind={kind}: {field}");
        }
        "jobs" if resource.group == "batch" => {
            return format!("field label \"{field}\" not supported for Job");
        }
        _ => {}
    }
    if resource.is_custom() || resource.selectable.iter().any(|field| own(&field)) {
        return format!("field label not supported: {field}");
    }
    format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
}

/// Splits at the commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// Undoes the escapes of a value: of backslash, comma and equals sign, and no others.
fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            '=' => return Err("unescaped character in value: 61".to_owned()),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The value of a field as selectors see it: an absent one is the empty text, or the type's default.
fn field_text(object: &Value, field: &str) -> String {
    // Selectors of events name the fields of the newer group; what is stored is the older one's.
    let renamed = field
        .strip_prefix("regarding.")
        .map(|rest| format!("involvedObject.{rest}"));
    let field = match (renamed.as_deref(), field) {
        (Some(renamed), _) => renamed,
        (None, "reportingController") => "reportingComponent",
        (None, field) => field,
    };
    let value = match field {
        "source" => at(object, "source.component").or_else(|| at(object, "reportingComponent")),
        "status.podIPs" => at(object, "status.podIP"),
        _ => at(object, field),
    };
    match value {
        Some(Value::String(text)) => text.to_string(),
        Some(Value::Bool(_) | Value::Number(_)) => value.map(Value::to_string).unwrap_or_default(),
        _ => match field {
            "spec.hostNetwork" | "spec.unschedulable" => "false".to_owned(),
            "status.replicas" | "status.successful" => "0".to_owned(),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a=b", Some(("a", "b", true)))]
    #[case("a==b", Some(("a", "b", true)))]
    #[case("a!=b", Some(("a", "b", false)))]
    #[case("a=b!=c", Some(("a", "b!=c", true)))]
    #[case("a", None)]
    #[case("!a", None)]
    fn terms(#[case] text: &str, #[case] expected: Option<(&str, &str, bool)>) {
        assert_eq!(split_term(text), expected);
    }

    #[test]
    fn an_equals_sign_in_a_value_is_escaped() {
        assert_eq!(unescape("a\\=b").as_deref(), Ok("a=b"));
        assert!(unescape("a=b").is_err());
    }
}
