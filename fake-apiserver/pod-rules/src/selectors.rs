//! Labels and the selectors over them.

use shared_json::{Map, Value};

use super::errors::Errors;
use super::fields::Fields;
use super::path::Path;
use crate::names;

/// Labels, or anything else of their form.
pub fn labels(labels: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in labels {
        errors.problems(path, key, names::qualified_problems(key));
        let value = value.as_str().unwrap_or_default();
        errors.problems(path, value, names::label_value_problems(value));
    }
}

/// A label selector, if there is one.
pub fn selector(selector: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    labels(selector.map("matchLabels"), &path.field("matchLabels"), errors);
    let expressions = path.field("matchExpressions");
    for (index, expression) in selector.list("matchExpressions").iter().enumerate() {
        let at = expressions.index(index);
        let values = expression.list("values");
        match expression.text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&at.field("values"), WITHOUT_VALUES);
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    errors.forbidden(&at.field("values"), WITH_VALUES);
                }
            }
            operator => errors.invalid(&at.field("operator"), operator, "not a valid selector operator"),
        }
        let key = expression.text("key");
        errors.problems(&at.field("key"), key, names::qualified_problems(key));
        let values_path = at.field("values");
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            errors.problems(
                &values_path.index(index),
                value,
                names::label_value_problems(value),
            );
        }
    }
}

const WITHOUT_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
const WITH_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Whether the selector says nothing.
pub fn is_empty(selector: &Value) -> bool {
    selector.map("matchLabels").is_empty() && selector.list("matchExpressions").is_empty()
}

/// Whether Go can make a selector of it; an invalid one matches nothing.
pub fn is_usable(selector: &Value) -> bool {
    let mut errors = Errors::default();
    self::selector(Some(selector), &Path::new(""), &mut errors);
    errors.is_empty()
}

/// A selector as complaints print it: unset fields are not shown, as in its JSON.
pub fn shown(selector: &Value) -> Value {
    let mut out = Map::new();
    for field in ["matchLabels", "matchExpressions"] {
        if let Some(value) = selector.part(field) {
            out.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(out)
}

/// One requirement on the labels of a node.
fn node_requirement(requirement: &Value, strict_values: bool, path: &Path<'_>, errors: &mut Errors) {
    let values = requirement.list("values");
    let values_path = path.field("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => errors.required(&values_path, WITHOUT_VALUES),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(&values_path, WITH_VALUES),
        "Gt" | "Lt" if values.len() != 1 => {
            errors.required(
                &values_path,
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            );
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        operator => errors.invalid(&path.field("operator"), operator, "not a valid selector operator"),
    }
    let key = requirement.text("key");
    errors.problems(&path.field("key"), key, names::qualified_problems(key));
    if strict_values {
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            errors.problems(
                &values_path.index(index),
                value,
                names::label_value_problems(value),
            );
        }
    }
}

/// One requirement on the fields of a node, of which only the name can be selected.
fn node_field(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    let values_path = path.field("values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if requirement.list("values").len() != 1 {
                errors.required(
                    &values_path,
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                );
            }
        }
        operator => errors.invalid(&path.field("operator"), operator, "not a valid selector operator"),
    }
    match requirement.text("key") {
        "metadata.name" => {
            for (index, value) in requirement.texts("values").enumerate() {
                errors.problems(&values_path.index(index), value, names::subdomain_problems(value));
            }
        }
        key => errors.invalid(&path.field("key"), key, "not a valid field selector key"),
    }
}

/// One of the terms of a node selector. Preferences may have values that no label can have.
pub fn node_term(term: &Value, strict_values: bool, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in term.list("matchExpressions").iter().enumerate() {
        node_requirement(requirement, strict_values, &expressions.index(index), errors);
    }
    let fields = path.field("matchFields");
    for (index, requirement) in term.list("matchFields").iter().enumerate() {
        node_field(requirement, &fields.index(index), errors);
    }
}

/// A node selector.
pub fn node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let terms_path = path.field("nodeSelectorTerms");
    let terms = selector.list("nodeSelectorTerms");
    if terms.is_empty() {
        return errors.required(&terms_path, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, true, &terms_path.index(index), errors);
    }
}
