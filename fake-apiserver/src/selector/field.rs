//! Field selectors: `metadata.name=x,spec.nodeName!=y`, per resource those the real server supports.

use serde_json::Value;

use crate::meta::at;
use crate::resources::Resource;
use crate::status::ApiError;

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
    /// 400 for what is not a selector, or names a field the resource cannot be selected by.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let split = part
                .split_once("!=")
                .map(|(field, value)| (field, value, false))
                .or_else(|| part.split_once("==").map(|(field, value)| (field, value, true)))
                .or_else(|| part.split_once('=').map(|(field, value)| (field, value, true)));
            let Some((field, value, equal)) = split else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            let always = field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced);
            if !always && !resource.selectable.iter().any(|known| known == field) {
                let message = if resource.is_custom() || resource.selectable.len() <= 2 {
                    format!("field label not supported: {field}")
                } else {
                    format!(
                        "\"{field}\" is not a known field selector: only {}",
                        known(resource)
                    )
                };
                return Err(ApiError::bad_request(message));
            }
            terms.push(Term {
                field: field.to_owned(),
                value: value.to_owned(),
                equal,
            });
        }
        Ok(Self(terms))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name that the selector demands, if it does.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|term| term.equal && term.field == "metadata.name")
            .map(|term| term.value.as_str())
    }

    /// Whether the selector says nothing but a name.
    pub(crate) fn is_name_only(&self) -> bool {
        self.0.len() == 1 && self.name().is_some()
    }

    /// Whether `object` is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|term| (field_text(object, &term.field) == term.value) == term.equal)
    }
}

fn known(resource: &Resource) -> String {
    resource
        .selectable
        .iter()
        .map(|field| format!("\"{field}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The value of a field as selectors see it: absent is the empty text, or what the type's default says.
fn field_text(object: &Value, field: &str) -> String {
    let value = match field {
        "source" => at(object, "source.component").or_else(|| at(object, "reportingComponent")),
        "status.podIPs" => at(object, "status.podIP"),
        _ => at(object, field),
    };
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(_) | Value::Number(_)) => value.map(Value::to_string).unwrap_or_default(),
        _ => match field {
            "spec.hostNetwork" | "spec.unschedulable" => "false".to_owned(),
            "status.replicas" | "status.successful" => "0".to_owned(),
            _ => String::new(),
        },
    }
}
