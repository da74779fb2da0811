//! What is wrong with the rules of a CustomResourceDefinition.

use serde_json::Value;

use super::rules::text;
use super::types::{Checker, Type, of};
use super::{Expression, field_path};
use crate::field_error::FieldError;
use crate::types::{Kind, ListType, Schema};

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Every complaint about the rules in a schema, with paths relative to it.
pub(crate) fn check(schema: &Schema) -> Vec<FieldError> {
    let mut out = Vec::new();
    visit(schema, Type::Root(schema), "", None, &mut out);
    out
}

/// `loose` is the innermost list around the schema whose items cannot be told apart.
fn visit(schema: &Schema, this: Type<'_>, path: &str, loose: Option<&str>, out: &mut Vec<FieldError>) {
    if schema.name.is_some() {
        return;
    }
    let at = |part: &str| {
        if path.is_empty() {
            part.to_owned()
        } else {
            format!("{path}.{part}")
        }
    };
    let mut complaints = Vec::new();
    for (index, rule) in schema.validations.iter().enumerate() {
        written(
            rule,
            schema,
            &at(&format!("x-kubernetes-validations[{index}]")),
            &mut complaints,
        );
    }
    if complaints.is_empty() {
        for (index, rule) in schema.validations.iter().enumerate() {
            let path = at(&format!("x-kubernetes-validations[{index}]"));
            compiled(rule, this, &path, loose, &mut complaints);
        }
    }
    out.extend(complaints);
    match &schema.kind {
        Kind::Object(object) => {
            for (name, field) in &object.fields {
                let path = at(&format!("properties[{name}]"));
                visit(&field.schema, of(&field.schema), &path, loose, out);
            }
            if let Some(values) = &object.additional {
                visit(values, of(values), &at("additionalProperties"), loose, out);
            }
        }
        Kind::Array(array) => {
            let loose = loose.or_else(|| (!matches!(array.list_type, ListType::Map(_))).then_some(path));
            visit(&array.items, of(&array.items), &at("items"), loose, out);
        }
        _ => {}
    }
}

fn has_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// What can be said of a rule without reading it.
fn written(rule: &Value, schema: &Schema, path: &str, out: &mut Vec<FieldError>) {
    let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
    let place = |field: &str| format!("{path}.{field}");
    if expression.is_empty() {
        out.push(FieldError::required(place("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        out.push(FieldError::invalid(place("message"), message, detail));
    } else if has_break(message.trim()) {
        out.push(FieldError::invalid(
            place("message"),
            message,
            "must not contain line breaks",
        ));
    } else if has_break(expression) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        out.push(FieldError::required(place("message"), detail));
    }
    let made = text(rule, "messageExpression");
    if !made.is_empty() && made.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        out.push(FieldError::required(place("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        out.push(FieldError::not_supported(place("reason"), reason, &REASONS));
    }
    let field = text(rule, "fieldPath");
    if !field.is_empty() && field.trim().is_empty() {
        let detail = "must be non-empty if specified";
        out.push(FieldError::invalid(place("fieldPath"), field, detail));
    }
    if has_break(field) {
        out.push(FieldError::invalid(
            place("fieldPath"),
            field,
            "must not contain line breaks",
        ));
    }
    if !field.is_empty() && field_path::read(field, schema).is_none() {
        out.push(FieldError::invalid(
            place("fieldPath"),
            field,
            "must be a valid path",
        ));
    }
}

/// A rule as the real server's own struct prints.
fn shown(rule: &Value) -> String {
    let quoted = |field: &str| Value::from(text(rule, field)).to_string();
    let or_null = |field: &str| rule.get(field).cloned().unwrap_or_default().to_string();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        or_null("reason"),
        quoted("fieldPath"),
        or_null("optionalOldSelf")
    )
}

fn compiled(rule: &Value, this: Type<'_>, path: &str, loose: Option<&str>, out: &mut Vec<FieldError>) {
    let invalid = |field: &str, detail: String| FieldError {
        shown: Some(shown(rule)),
        ..FieldError::invalid(format!("{path}.{field}"), Value::Null, detail)
    };
    let optional = rule.get("optionalOldSelf");
    let old = match optional.and_then(Value::as_bool) {
        Some(true) => Type::Any,
        _ => this,
    };
    let problem =
        |text: &str, wanted: fn(&Type<'_>) -> bool, otherwise: &str| -> Result<Expression, String> {
            let expression =
                Expression::read(text).map_err(|error| format!("compilation failed: {error}"))?;
            let mut checker = Checker {
                names: vec![("self".to_owned(), this), ("oldSelf".to_owned(), old)],
                wrong: Vec::new(),
            };
            let found = checker.check(expression.program.expression());
            if !checker.wrong.is_empty() {
                let all: Vec<String> = checker.wrong.iter().map(|wrong| wrong.text(text)).collect();
                return Err(format!("compilation failed: {}", all.join("\n")));
            }
            if !wanted(&found) {
                return Err(otherwise.to_owned());
            }
            Ok(expression)
        };
    let is_test = |found: &Type<'_>| matches!(found, Type::Bool | Type::Any);
    let is_text = |found: &Type<'_>| matches!(found, Type::Text | Type::Any);
    let mut is_transition = false;
    let text_of = |field| text(rule, field).trim();
    match problem(text_of("rule"), is_test, "cel expression must evaluate to a bool") {
        Ok(expression) => is_transition = expression.uses("oldSelf"),
        Err(detail) => out.push(invalid("rule", detail)),
    }
    if !text_of("messageExpression").is_empty()
        && let Err(detail) = problem(
            text_of("messageExpression"),
            is_text,
            "messageExpression must evaluate to a string",
        )
    {
        let detail = match detail.strip_prefix("compilation failed") {
            Some(rest) => format!("messageExpression compilation failed{rest}"),
            None => detail,
        };
        out.push(invalid("messageExpression", detail));
    }
    if is_transition && let Some(list) = loose {
        let detail =
            format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
        out.push(FieldError::invalid(
            format!("{path}.rule"),
            text(rule, "rule"),
            detail,
        ));
    }
    if let (false, Some(optional)) = (is_transition, optional.filter(|optional| !optional.is_null())) {
        let detail = "may not be set if oldSelf is not used in rule";
        out.push(FieldError::invalid(
            format!("{path}.optionalOldSelf"),
            optional.clone(),
            detail,
        ));
    }
}
