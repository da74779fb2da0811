//! The rules of custom resources: `x-kubernetes-validations`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::Value as Cel;
use pod_rules::field_error::{FieldError, FieldErrorKind, go_quote};
use shared_json::Value;

use super::lists::{self, Lists};
use super::spending::{Budget, Overrun};
use super::{Expression, Failure, Scope, field_path, values};
use crate::types::{Kind, ListType, Schema};

/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Every expression in the rules of a schema, read once. One that means several things, by the schemas where it stands, is there
/// several times.
#[derive(Debug, Default)]
pub struct RuleSet {
    expressions: BTreeMap<String, Vec<(Lists, Arc<Expression>)>>,
}

pub(super) fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl RuleSet {
    /// Reads the rules of a schema; those that cannot be read are left out.
    pub fn of(schema: &Schema) -> Self {
        let mut set = Self::default();
        set.add(schema, schema);
        set
    }

    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Reads the rules of `rules`, which are about values of `schema`.
    fn add(&mut self, rules: &Schema, schema: &Schema) {
        // Built-in types have no rules, and some contain themselves.
        if rules.name.is_some() {
            return;
        }
        for rule in &rules.validations {
            for field in ["rule", "messageExpression"] {
                let text = text(rule, field).trim();
                if !text.is_empty() {
                    self.read(text, schema);
                }
            }
        }
        match &rules.kind {
            Kind::Object(object) => {
                let typed = schema.as_object();
                for (name, field) in &object.fields {
                    let typed = typed.and_then(|typed| typed.fields.get(name));
                    self.add(
                        &field.schema,
                        typed.map_or(&*field.schema, |typed| &*typed.schema),
                    );
                }
                if let Some(values) = &object.additional {
                    let typed = typed.and_then(|typed| typed.additional.as_ref());
                    self.add(values, typed.map_or(&**values, |typed| &**typed));
                }
            }
            Kind::Array(array) => {
                let typed = schema.as_array().unwrap_or(array);
                self.add(&array.items, &typed.items);
            }
            _ => {}
        }
        for part in rules.logic.iter().flat_map(|logic| &logic.all_of) {
            self.add(part, schema);
        }
    }

    fn read(&mut self, text: &str, schema: &Schema) {
        let lists = lists::of(schema);
        let known = self.expressions.get(text);
        if known.is_some_and(|known| known.iter().any(|(own, _)| *own == lists)) {
            return;
        }
        if let Ok(expression) = Expression::read(text) {
            let expression = Arc::new(expression.lowered(schema));
            let all = self.expressions.entry(text.to_owned()).or_default();
            all.push((lists, expression));
        }
    }

    /// The expression of this text, for values of a schema.
    fn get(&self, text: &str, schema: &Schema) -> Option<&Arc<Expression>> {
        let found = match self.expressions.get(text.trim())?.as_slice() {
            [only] => Some(only),
            several => {
                let lists = lists::of(schema);
                several.iter().find(|(own, _)| *own == lists)
            }
        };
        found.map(|(_, expression)| expression)
    }

    /// The rules' complaints about an object, new or changed, and the complaints that were true before.
    pub fn check(&self, schema: &Schema, new: &Value, old: Option<&Value>) -> (Vec<FieldError>, Vec<String>) {
        let walk = self.walk(schema, new, old, Budget::assuming());
        let walk = match walk.budget.is_doubtful() {
            true => self.walk(schema, new, old, Budget::counting()),
            false => walk,
        };
        (walk.errors, walk.warnings)
    }

    fn walk(&self, schema: &Schema, new: &Value, old: Option<&Value>, budget: Budget) -> Walk<'_> {
        let mut walk = Walk {
            rules: self,
            scope: Scope::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            budget,
            is_over: false,
        };
        walk.visit(schema, schema, new, old, false, "");
        walk
    }
}

struct Walk<'a> {
    rules: &'a RuleSet,
    scope: Scope,
    errors: Vec<FieldError>,
    warnings: Vec<String>,
    /// The costs that the rules may still have.
    budget: Budget,
    /// Whether that was not enough: then no more rules are looked at.
    is_over: bool,
}

impl Walk<'_> {
    /// Checks a value and its parts. `rules` holds the rules, `schema` describes the value; `same_above` is whether the
    /// value around it is unchanged.
    fn visit(
        &mut self,
        rules: &Schema,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        same_above: bool,
        path: &str,
    ) {
        if rules.name.is_some() || new.is_null() || self.is_over {
            return;
        }
        let same = old.map_or(same_above, |old| old == new);
        self.apply(rules, schema, new, old, same, path);
        for part in rules.logic.iter().flat_map(|logic| &logic.all_of) {
            self.visit(part, schema, new, old, same, path);
        }
        match (&rules.kind, new) {
            (Kind::Object(object), Value::Object(map)) => {
                for (name, value) in map {
                    let before = old.and_then(|old| old.get(name));
                    let typed = schema.as_object();
                    if let Some(field) = object.fields.get(name) {
                        let typed = typed.and_then(|typed| typed.fields.get(name));
                        let described = typed.map_or(&*field.schema, |typed| &*typed.schema);
                        let path = if path.is_empty() {
                            name.to_string()
                        } else {
                            format!("{path}.{name}")
                        };
                        self.visit(&field.schema, described, value, before, same, &path);
                    } else if let Some(values) = &object.additional {
                        let typed = typed.and_then(|typed| typed.additional.as_ref());
                        let described = typed.map_or(&**values, |typed| &**typed);
                        self.visit(values, described, value, before, same, &format!("{path}[{name}]"));
                    }
                }
            }
            (Kind::Array(array), Value::Array(items)) => {
                let typed = schema.as_array().unwrap_or(array);
                for (index, item) in items.iter().enumerate() {
                    let before = old.and_then(|old| correlated(&typed.list_type, item, old));
                    self.visit(
                        &array.items,
                        &typed.items,
                        item,
                        before,
                        same,
                        &format!("{path}[{index}]"),
                    );
                }
            }
            _ => {}
        }
    }

    fn apply(
        &mut self,
        rules: &Schema,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        same: bool,
        path: &str,
    ) {
        if rules.validations.is_empty() {
            return;
        }
        let value = values::typed(new, schema);
        let before = old
            .filter(|old| !old.is_null())
            .map(|old| values::typed(old, schema));
        let shown_path = if path.is_empty() { "<nil>" } else { path };
        for rule in &rules.validations {
            let Some(expression) = self.rules.get(text(rule, "rule"), schema).cloned() else {
                continue;
            };
            let is_transition = expression.uses("oldSelf");
            let optional = rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
            if is_transition && before.is_none() && !optional {
                continue;
            }
            let mut variables = vec![("self", value.clone())];
            if optional {
                variables.push(("oldSelf", values::optional(before.clone())));
            } else if let Some(before) = &before {
                variables.push(("oldSelf", before.clone()));
            }
            let outcome = expression.value_within(&self.scope, &variables, &mut self.budget);
            let failure = match outcome {
                Ok(Cel::Bool(true)) => continue,
                Ok(_) => None,
                Err(failure) => Some(failure),
            };
            let named = match text(rule, "message").trim() {
                "" => text(rule, "rule").trim(),
                message => message,
            };
            if let Some(failure) = failure {
                let detail = failed(&failure, named);
                self.errors
                    .push(FieldError::invalid(shown_path, kind_name(schema), detail));
                self.is_over = failure.overrun.is_some();
                if self.is_over {
                    return;
                }
                continue;
            }
            // Messages cannot ask for what was before where nothing was.
            if optional && before.is_none() {
                variables.retain(|(name, _)| *name != "oldSelf");
            }
            let made = match self.message(rule, &variables, schema) {
                Ok(made) => made,
                Err(detail) => {
                    self.errors
                        .push(FieldError::invalid(shown_path, kind_name(schema), detail));
                    self.is_over = true;
                    return;
                }
            };
            let detail = made.unwrap_or_else(|| match text(rule, "message").trim() {
                "" => format!("failed rule: {named}"),
                message => message.to_owned(),
            });
            let place = match field_path::read(text(rule, "fieldPath"), schema) {
                Some(below) if path.is_empty() => below,
                Some(below) if below.starts_with('[') => format!("{path}{below}"),
                Some(below) => format!("{path}.{below}"),
                None => shown_path.to_owned(),
            };
            let error = complaint(rule, schema, new, place, detail);
            if !is_transition && same {
                self.warnings.push(error.to_string());
            } else {
                self.errors.push(error);
            }
        }
    }

    /// The message that an expression makes, if it makes a proper one.
    ///
    /// # Errors
    /// The complaint about an expression that costs too much.
    fn message(
        &mut self,
        rule: &Value,
        variables: &[(&str, Cel)],
        schema: &Schema,
    ) -> Result<Option<String>, String> {
        let written = text(rule, "messageExpression");
        let Some(expression) = self.rules.get(written, schema).cloned() else {
            return Ok(None);
        };
        let message = match expression.value_within(&self.scope, variables, &mut self.budget) {
            Ok(Cel::String(message)) => message,
            Ok(_) => return Ok(None),
            Err(failure) => {
                return match failure.overrun {
                    None => Ok(None),
                    Some(Overrun::Call) => Err(format!(
                        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                        go_quote(written)
                    )),
                    Some(Overrun::Budget) => Err(
                        "messageExpression evaluation failed due to running out of cost budget, no further validation \
                         rules will be run"
                            .to_owned(),
                    ),
                };
            }
        };
        let message = message.trim();
        let proper = !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n');
        Ok(proper.then(|| message.to_owned()))
    }
}

/// The complaint about a rule without a value, which has this message or text.
fn failed(failure: &Failure, named: &str) -> String {
    let text = &failure.text;
    match failure.overrun {
        Some(Overrun::Budget) => text.clone(),
        Some(Overrun::Call) => format!(
            "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {named}"
        ),
        None if text == "no such overload" => format!(
            "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {named}"
        ),
        None => format!("{text} evaluating rule: {named}"),
    }
}

fn complaint(rule: &Value, schema: &Schema, value: &Value, path: String, detail: String) -> FieldError {
    let shows = !matches!(schema.kind, Kind::Object(_) | Kind::Array(_));
    match text(rule, "reason") {
        "FieldValueForbidden" => FieldError::forbidden(path, detail),
        "FieldValueRequired" => FieldError::required(path, detail),
        "FieldValueDuplicate" => {
            let shown = (!shows).then(String::new);
            FieldError {
                shown,
                ..FieldError::duplicate(path, value.clone())
            }
        }
        _ if shows => FieldError::invalid(path, value.clone(), detail),
        _ => FieldError::new(FieldErrorKind::InvalidUnshown, path, None, detail),
    }
}

/// The former item that is the same one, if the list says which that is.
pub fn correlated<'a>(list_type: &ListType, item: &Value, old: &'a Value) -> Option<&'a Value> {
    let ListType::Map(keys) = list_type else {
        return None;
    };
    let same = |candidate: &&Value| keys.iter().all(|key| candidate.get(key) == item.get(key));
    old.as_array()?.iter().find(same)
}

/// The name of a type as complaints show it in place of the value.
fn kind_name(schema: &Schema) -> &'static str {
    match schema.kind {
        Kind::Object(_) => "object",
        Kind::Array(_) => "array",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString | Kind::Any => "",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::super::BUDGET_OVERRUN;
    use super::*;

    /// How many complaints a rule has about a list of kind `set`.
    fn complaints(rule: &str) -> usize {
        let list = json!({"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {"s": list}, "x-kubernetes-validations": [{"rule": rule}]});
        let schema = Schema::from_openapi_v3_unchecked(&schema);
        let (errors, _) = RuleSet::of(&schema).check(&schema, &json!({"s": ["a", "b"]}), None);
        errors.len()
    }

    #[rstest]
    #[case("self.s == ['a', 'b']", 0)]
    #[case("self.s + ['c'] == ['a', 'b', 'c']", 0)]
    #[case("self.s == ['b', 'a']", 0)]
    #[case("self.s != ['b', 'a']", 1)]
    #[case("['b', 'a'] == self.s", 1)]
    #[case("self.s + ['a'] == ['a', 'b']", 0)]
    #[case("self.s + ['a'] + ['c'] == ['c', 'a', 'b']", 0)]
    fn sets_know_no_order(#[case] rule: &str, #[case] expect: usize) {
        assert_eq!(complaints(rule), expect);
    }

    /// Rules that are cheap one by one: an object of so many texts has so many complaints, of which the last is this.
    #[rstest]
    #[case(10, 0, "")]
    #[case(120, 1, BUDGET_OVERRUN)]
    fn what_rules_may_cost_together(#[case] count: usize, #[case] complaints: usize, #[case] last: &str) {
        let rule = format!("!self.matches('{}')", "x".repeat(200));
        let items = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": items}}});
        let schema = Schema::from_openapi_v3_unchecked(&schema);
        let texts: Vec<String> = (0..count).map(|_| "a".repeat(20_000)).collect();
        let (errors, _) = RuleSet::of(&schema).check(&schema, &json!({"l": texts}), None);
        assert_eq!(errors.len(), complaints);
        assert_eq!(errors.last().map_or("", |error| error.detail.as_str()), last);
    }
}
