//! Validation of a CustomResourceDefinition: [`schema`] and [`structural`] look at its schemas.

mod go_structs;
mod json_path;
mod schema;
mod structural;

use machinery::meta::{at, string_map, text};
use pod_rules::field_error::FieldError;
use pod_rules::names;
use shared_json::{Array, Value};

use crate::validation::fields::same_in_definitions;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const SELECTABLE_MAX: u64 = 8;
const APPROVAL: &str = "api-approved.kubernetes.io";

fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool) == Some(true)
}

/// Every complaint, in the real server's order.
pub(crate) fn check(definition: &Value) -> Vec<FieldError> {
    let mut errors = check_group(definition);
    match text(definition, "spec.scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", other, &supported));
        }
    }
    let listed = at(definition, "spec.versions").and_then(Value::as_array);
    let is_listed = listed.is_some();
    let versions = listed.map(Array::as_slice).unwrap_or_default();
    let has_schema = |version: &Value| at(version, "schema.openAPIV3Schema").is_some();
    for (index, _) in versions
        .iter()
        .enumerate()
        .filter(|(_, version)| !has_schema(version))
    {
        let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
        errors.push(FieldError::required(path, ""));
    }
    let is_pruned = at(definition, "spec.preserveUnknownFields").and_then(Value::as_bool) != Some(true);
    let mut schemas = versions
        .iter()
        .filter_map(|version| at(version, "schema.openAPIV3Schema"));
    if !is_pruned && schemas.any(schema::has_defaults) {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "name");
        let problems = names::old_label_problems(name);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(
                format!("{path}.name"),
                name,
                problems.join(","),
            ));
        }
        errors.extend(deprecation(version, &path));
        errors.extend(parts(version, versions, &path, false));
    }
    let shown = || {
        let shown: Vec<String> = versions
            .iter()
            .map(|version| go_structs::version(version, versions))
            .collect();
        // What was taken out is none, not an empty list.
        let is_none = shown.is_empty() && !is_listed;
        Some(if is_none {
            "null".to_owned()
        } else {
            format!("[{}]", shown.join(","))
        })
    };
    let of_versions = |detail: &str| FieldError {
        shown: shown(),
        ..FieldError::invalid("spec.versions", Value::Null, detail)
    };
    let mut known: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    known.sort_unstable();
    known.dedup();
    if known.len() < versions.len() {
        errors.push(of_versions("must contain unique version names"));
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        errors.push(of_versions(
            "must have exactly one version marked as storage version",
        ));
    }
    if let Some(first) = versions.first() {
        let name = text(first, "name");
        let problems = names::old_label_problems(name);
        if !name.is_empty() && !problems.is_empty() {
            errors.push(FieldError::invalid("spec.version", name, problems.join(",")));
        }
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(definition, &format!("spec.names.{field}")).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    errors.extend(check_names(at(definition, "spec.names"), "spec.names"));
    if let Some(first) = versions.first() {
        errors.extend(parts(first, versions, "spec", true));
    }
    if flag(
        at(definition, "spec").unwrap_or(&Value::Null),
        "preserveUnknownFields",
    ) && text(definition, "spec.conversion.strategy") != "None"
    {
        let strategy = text(definition, "spec.conversion.strategy");
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid("spec.conversion.strategy", strategy, detail));
    }
    errors.extend(check_conversion(definition));
    errors.extend(check_names(
        at(definition, "status.acceptedNames"),
        "status.acceptedNames",
    ));
    errors.extend(check_stored(definition, versions));
    errors.extend(check_approval(definition));
    if definition
        .pointer("/spec/preserveUnknownFields")
        .and_then(Value::as_bool)
        == Some(true)
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors
}

/// The errors in a version's own parts, or, with `shared`, in those that are equal in all versions: the real server keeps them
/// once, at the top.
fn parts(version: &Value, versions: &[Value], path: &str, shared: bool) -> Vec<FieldError> {
    let is_here = |field: &str| {
        let alike = versions
            .iter()
            .all(|other| same_in_definitions(other.get(field), version.get(field)));
        alike == shared
    };
    let mut errors = Vec::new();
    if let Some(schema) = at(version, "schema.openAPIV3Schema").filter(|_| is_here("schema")) {
        let has_status = if shared {
            versions
                .iter()
                .any(|version| at(version, "subresources.status").is_some())
        } else {
            at(version, "subresources.status").is_some()
        };
        let path = if shared {
            format!("{path}.validation.openAPIV3Schema")
        } else {
            format!("{path}.schema.openAPIV3Schema")
        };
        errors.extend(schema::check(schema, has_status, &path));
    }
    if is_here("subresources") {
        errors.extend(check_scale(version, &format!("{path}.subresources")));
    }
    if is_here("additionalPrinterColumns") {
        errors.extend(check_columns(
            version,
            &format!("{path}.additionalPrinterColumns"),
        ));
    }
    if is_here("selectableFields") {
        let path = format!("{path}.selectableFields");
        let has_any = version
            .get("selectableFields")
            .and_then(Value::as_array)
            .is_some();
        if has_any && !shared && !is_here("schema") {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(path, "", detail));
        } else if has_any && shared && !is_here("schema") {
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid(path, "", detail));
        } else {
            errors.extend(check_selectable(version, &path));
        }
    }
    errors
}

fn deprecation(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !flag(version, "deprecated") {
        problems.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    let path = format!("{path}.deprecationWarning");
    problems
        .into_iter()
        .map(|problem| FieldError::invalid(path.clone(), warning, problem))
        .collect()
}

fn check_names(given: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(given) = given else {
        return errors;
    };
    let kinds = "may have mixed case, but should otherwise match: ";
    for (field, prefix) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", kinds),
        ("listKind", kinds),
    ] {
        let name = text(given, field);
        let looked_at = if prefix.is_empty() {
            name.to_owned()
        } else {
            name.to_lowercase()
        };
        let problems = names::old_label_problems(&looked_at);
        if !name.is_empty() && !problems.is_empty() {
            let detail = format!("{prefix}{}", problems.join(","));
            errors.push(FieldError::invalid(format!("{path}.{field}"), name, detail));
        }
    }
    let mut each = |field: &str| {
        let list = given.get(field).and_then(Value::as_array);
        for (index, name) in list.into_iter().flatten().filter_map(Value::as_str).enumerate() {
            let problems = names::old_label_problems(name);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(
                    format!("{path}.{field}[{index}]"),
                    name,
                    problems.join(","),
                ));
            }
        }
    };
    each("shortNames");
    each("categories");
    let (kind, list_kind) = (text(given, "kind"), text(given, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let at = errors
            .iter()
            .position(|error| error.path.contains(".categories"))
            .unwrap_or(errors.len());
        let error = FieldError::invalid(
            format!("{path}.listKind"),
            list_kind,
            "kind and listKind may not be the same",
        );
        errors.insert(at, error);
    }
    errors
}

fn check_scale(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(scale) = at(version, "subresources.scale") else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let rows: [(&str, &[&str], &str); 3] = [
        (
            "specReplicasPath",
            &[".spec."],
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            &[".status."],
            "should be a json path under .status",
        ),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ];
    for (field, under, detail) in rows {
        let (given, path) = (text(scale, field), format!("{path}.scale.{field}"));
        if given.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(FieldError::required(path, ""));
            }
        } else if !given.starts_with('.') {
            errors.push(FieldError::invalid(
                path,
                given,
                "must be a simple json path starting with .",
            ));
        } else if !under.iter().any(|prefix| given.starts_with(prefix)) {
            errors.push(FieldError::invalid(path, given, detail));
        }
    }
    errors
}

/// A version that was stored once must stay until no object of it is left.
fn check_stored(definition: &Value, versions: &[Value]) -> Vec<FieldError> {
    const PATH: &str = "status.storedVersions";
    let stored = at(definition, PATH)
        .and_then(Value::as_array)
        .map_or(&[][..], Array::as_slice);
    if stored.is_empty() {
        return vec![FieldError::invalid(
            PATH,
            Value::Null,
            "must have at least one stored version",
        )];
    }
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, "name");
        // The real server strikes out what it has found: a second version of the name is missing.
        let again = versions
            .iter()
            .take(index)
            .any(|other| text(other, "name") == name);
        if flag(version, "storage") && (again || !stored.iter().any(|stored| stored == name)) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(PATH, stored.to_vec(), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        if !versions.iter().any(|version| text(version, "name") == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
                 a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{PATH}[{index}]"), name, detail));
        }
    }
    errors
}

/// The formats of texts that the real server knows.
const FORMATS: [&str; 27] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
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

/// Warnings about valid fields without effect.
pub fn warnings(definition: &Value) -> Vec<String> {
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
    let known: &[&str] = match schema.get("type").and_then(Value::as_str) {
        None | Some("" | "string") => &FORMATS,
        Some("integer") => &["int32", "int64"],
        Some("number") => &["float", "double"],
        Some(_) => &[],
    };
    found.extend(format.filter(|format| !format.is_empty() && !known.contains(format)));
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
    const PATH: &str = "spec.group";
    let group = text(definition, PATH);
    let problems = names::subdomain_problems(group);
    let error = if group.is_empty() {
        FieldError::required(PATH, "")
    } else if !problems.is_empty() {
        FieldError::invalid(PATH, group, problems.join(","))
    } else if !group.contains('.') {
        FieldError::invalid(PATH, group, "should be a domain with at least one dot")
    } else {
        return Vec::new();
    };
    vec![error]
}

/// Groups of the community need its approval.
fn check_approval(definition: &Value) -> Option<FieldError> {
    let group = text(definition, "spec.group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|suffix| group == *suffix || group.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.')));
    if !protected {
        return None;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    let given = string_map(definition, "annotations")
        .get(APPROVAL)
        .and_then(Value::as_str);
    match given {
        None | Some("") => {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"
            );
            Some(FieldError::required(path, detail))
        }
        Some(given) if given.starts_with("unapproved") => None,
        Some(given) => {
            let is_url = given.split_once("://").is_some_and(|(scheme, rest)| {
                !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
            });
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \
                 \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            );
            (!is_url).then(|| FieldError::invalid(path, given, detail))
        }
    }
}

fn check_conversion(definition: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.conversion";
    let Some(conversion) = at(definition, PATH) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => errors.push(FieldError::required(format!("{PATH}.strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            let path = format!("{PATH}.strategy");
            errors.push(FieldError::not_supported(path, other, &["None", "Webhook"]));
        }
    }
    let client = at(conversion, "webhook.clientConfig").filter(|client| !client.is_null());
    let reviews = at(conversion, "webhook.conversionReviewVersions").and_then(Value::as_array);
    let reviews = reviews.map_or(&[][..], Array::as_slice);
    let (client_path, reviews_path) = (
        format!("{PATH}.webhookClientConfig"),
        format!("{PATH}.conversionReviewVersions"),
    );
    if strategy != "Webhook" {
        const DETAIL: &str = "should not be set when strategy is not set to Webhook";
        errors.extend(client.map(|_| FieldError::forbidden(client_path, DETAIL)));
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(reviews_path, DETAIL));
        }
        return errors;
    }
    match client {
        None => errors.push(FieldError::required(
            client_path,
            "required when strategy is set to Webhook",
        )),
        Some(client) => errors.extend(crate::validation::webhook_client(client, &client_path)),
    }
    if reviews.is_empty() {
        errors.push(FieldError::required(reviews_path, ""));
        return errors;
    }
    let known: Vec<&str> = reviews.iter().filter_map(Value::as_str).collect();
    for (index, version) in known.iter().enumerate() {
        let path = format!("{reviews_path}[{index}]");
        if known.get(..index).is_some_and(|before| before.contains(version)) {
            errors.push(FieldError::invalid(path, *version, "duplicate version"));
            continue;
        }
        let problems = names::old_label_problems(version).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(path.clone(), *version, problem)));
    }
    if !known.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(reviews_path, reviews.to_vec(), detail));
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
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(format!("{at}.format"), format, detail));
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
    let schema = at(version, "schema.openAPIV3Schema").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for (index, field) in fields.into_iter().flatten().enumerate() {
        let json_path = text(field, "jsonPath");
        let path = format!("{path}[{index}].jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let found = match json_path::follow(json_path, schema, false) {
            Ok(found) => found,
            Err(problem) => {
                let detail = format!("is an invalid path: {problem}");
                errors.push(FieldError::invalid(path, json_path, detail));
                continue;
            }
        };
        if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(path.clone(), json_path, detail));
        }
        if !matches!(text(found, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                          formats are allowed.";
            errors.push(FieldError::invalid(path.clone(), json_path, detail));
        }
        if known.contains(&json_path) {
            errors.push(FieldError::duplicate(path, json_path));
        } else {
            known.push(json_path);
        }
    }
    if known.len() as u64 > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, known.len(), SELECTABLE_MAX));
    }
    errors
}
