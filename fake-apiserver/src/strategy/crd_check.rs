//! What is wrong with a CustomResourceDefinition, besides its schemas.

use serde_json::Value;

use crate::field_error::FieldError;
use crate::meta::{at, string_map};
use crate::names;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const APPROVAL: &str = "api-approved.kubernetes.io";

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool) == Some(true)
}

/// Every complaint, in the real server's order.
pub(super) fn check(definition: &Value) -> Vec<FieldError> {
    let mut errors = check_group(definition);
    let scope = text(definition, "spec.scope");
    match scope {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(
            "spec.scope",
            other,
            &["Cluster", "Namespaced"],
        )),
    }
    let versions = at(definition, "spec.versions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        let shown: Vec<String> = versions.iter().map(|version| shown(version, versions)).collect();
        errors.push(FieldError {
            shown: Some(format!("[{}]", shown.join(","))),
            ..FieldError::invalid("spec.versions", Value::Null, detail)
        });
    }
    errors.extend(check_conversion(definition));
    if definition
        .pointer("/spec/preserveUnknownFields")
        .and_then(Value::as_bool)
        == Some(true)
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    for (index, version) in versions.iter().enumerate() {
        // What all versions share is kept once, at the top.
        let shared = |field: &str| {
            versions
                .iter()
                .all(|other| other.get(field) == version.get(field))
        };
        let path = |field: &str| {
            if shared(field) {
                format!("spec.{field}")
            } else {
                format!("spec.versions[{index}].{field}")
            }
        };
        if at(version, "schema.openAPIV3Schema").is_none() {
            errors.push(FieldError::required(
                format!("spec.versions[{index}].schema.openAPIV3Schema"),
                "",
            ));
        }
        if index == 0 || !shared("additionalPrinterColumns") {
            errors.extend(check_columns(version, &path("additionalPrinterColumns")));
        }
        if index == 0 || !shared("selectableFields") {
            errors.extend(check_selectable(version, &path("selectableFields")));
        }
    }
    let stored = at(definition, "status.storedVersions").and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        errors.push(FieldError::invalid(
            "status.storedVersions",
            Value::Null,
            "must have at least one stored version",
        ));
    }
    errors
}

/// A version as the real server's own struct prints; what all versions share is kept elsewhere.
fn shown(version: &Value, versions: &[Value]) -> String {
    let own = |field: &str| {
        let value = version.get(field);
        let is_shared = versions.iter().all(|other| other.get(field) == value);
        value.filter(|_| !is_shared).cloned().unwrap_or_default()
    };
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
         \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        Value::from(text(version, "name")),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        version.get("deprecationWarning").cloned().unwrap_or_default(),
        own("schema"),
        own("subresources"),
        own("additionalPrinterColumns"),
        own("selectableFields"),
    )
}

/// The formats that the real server knows.
const FORMATS: [&str; 31] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Warnings about what is accepted and has no effect.
pub(crate) fn warnings(definition: &Value) -> Vec<String> {
    let mut formats = std::collections::BTreeSet::new();
    let versions = at(definition, "spec.versions").and_then(Value::as_array);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = at(version, "schema.openAPIV3Schema") {
            find_formats(schema, &mut formats);
        }
    }
    formats
        .iter()
        .map(|format| format!("unrecognized format \"{format}\""))
        .collect()
}

fn find_formats<'a>(schema: &'a Value, found: &mut std::collections::BTreeSet<&'a str>) {
    let format = schema.get("format").and_then(Value::as_str);
    found.extend(format.filter(|format| !format.is_empty() && !FORMATS.contains(format)));
    let properties = schema.get("properties").and_then(Value::as_object);
    let parts = properties.into_iter().flatten().map(|(_, part)| part);
    let inner = ["items", "additionalProperties"]
        .iter()
        .filter_map(|field| schema.get(*field));
    for part in parts.chain(inner) {
        find_formats(part, found);
    }
}

fn check_group(definition: &Value) -> Vec<FieldError> {
    let group = text(definition, "spec.group");
    let mut errors = Vec::new();
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else {
        let problems = names::subdomain_problems(group);
        if problems.is_empty() && !group.contains('.') {
            errors.push(FieldError::invalid(
                "spec.group",
                group,
                "should be a domain with at least one dot",
            ));
        }
        errors.extend(
            problems
                .into_iter()
                .map(|problem| FieldError::invalid("spec.group", group, problem)),
        );
    }
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|suffix| group == *suffix || group.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.')));
    if protected && !string_map(definition, "annotations").contains_key(APPROVAL) {
        let detail = format!(
            "protected groups must have approval annotation \"{APPROVAL}\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(
            format!("metadata.annotations[{APPROVAL}]"),
            detail,
        ));
    }
    errors
}

fn check_conversion(definition: &Value) -> Vec<FieldError> {
    if text(definition, "spec.conversion.strategy") != "Webhook" {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if at(definition, "spec.conversion.webhook.clientConfig").is_none() {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(
            "spec.conversion.webhookClientConfig",
            detail,
        ));
    }
    let reviews =
        at(definition, "spec.conversion.webhook.conversionReviewVersions").and_then(Value::as_array);
    if reviews.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(
            "spec.conversion.conversionReviewVersions",
            "",
        ));
    }
    errors
}

fn check_columns(version: &Value, path: &str) -> Vec<FieldError> {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let mut errors = Vec::new();
    for (index, column) in columns.into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        let kind = text(column, "type");
        if !COLUMN_TYPES.contains(&kind) {
            let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
            errors.push(if kind.is_empty() {
                FieldError::required(format!("{at}.type"), detail)
            } else {
                FieldError::invalid(format!("{at}.type"), kind, detail)
            });
        }
        let json_path = text(column, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(format!("{at}.JSONPath"), ""));
        } else if !json_path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(format!("{at}.JSONPath"), json_path, detail));
        }
    }
    errors
}

fn check_selectable(version: &Value, path: &str) -> Vec<FieldError> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let mut errors = Vec::new();
    for (index, field) in fields.into_iter().flatten().enumerate() {
        let json_path = text(field, "jsonPath");
        let schema = at(version, "schema.openAPIV3Schema");
        let mut place = schema;
        let parts = json_path.trim_start_matches('.').split('.');
        for part in parts {
            place = place
                .and_then(|schema| schema.get("properties"))
                .and_then(|fields| fields.get(part));
        }
        if place.is_none() || json_path.starts_with(".metadata") {
            let detail = "is an invalid path: does not refer to a valid field";
            errors.push(FieldError::invalid(
                format!("{path}[{index}].jsonPath"),
                json_path,
                detail,
            ));
        }
    }
    errors
}
