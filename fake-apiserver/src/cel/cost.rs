//! What rules would cost at worst.
//!
//! The real server estimates every step of a rule from the sizes that the schema allows, and refuses what costs too much. Here
//! steps and loops are counted, the lengths of texts are not: what is refused here is refused there, by a wide margin.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

use super::Expression;
use super::rules::text;
use super::values::escape;
use crate::field_error::FieldError;
use crate::types::{Kind, Schema};

/// What a rule may cost, and all rules of a schema.
const RULE_MAX: f64 = 10_000_000.0;
const SCHEMA_MAX: f64 = 100_000_000.0;
/// Only what is beyond the limit by this factor is surely refused by the real server.
const MARGIN: f64 = 100.0;
/// The largest request, which no object is larger than.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// How many of the most expensive rules are named.
const NAMED_MAX: usize = 4;

/// Complaints about the cost of the rules in a schema, with paths relative to it.
pub(crate) fn check(schema: &Schema) -> Vec<FieldError> {
    let mut costs = Vec::new();
    visit(schema, "", 1.0, &mut costs);
    let total: f64 = costs.iter().map(|(_, cost)| cost).sum();
    let mut errors: Vec<FieldError> = costs
        .iter()
        .filter(|(_, cost)| *cost > RULE_MAX * MARGIN)
        .map(|(path, cost)| {
            FieldError::forbidden(path.clone(), &message("estimated rule cost", cost / RULE_MAX))
        })
        .collect();
    if errors.is_empty() {
        return errors;
    }
    costs.retain(|(_, cost)| *cost > SCHEMA_MAX / 100.0);
    costs.sort_by(|a, b| b.1.total_cmp(&a.1));
    errors.extend(costs.into_iter().take(NAMED_MAX).map(|(path, _)| {
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        FieldError::forbidden(path, detail)
    }));
    let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    errors.push(FieldError::forbidden("", &message(what, total / SCHEMA_MAX)));
    errors
}

fn message(what: &str, factor: f64) -> String {
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// `times` is how often the schema can be there in one object.
fn visit(schema: &Schema, path: &str, times: f64, costs: &mut Vec<(String, f64)>) {
    let at = |part: &str| {
        if path.is_empty() {
            part.to_owned()
        } else {
            format!("{path}.{part}")
        }
    };
    for (index, rule) in schema.validations.iter().enumerate() {
        let Ok(expression) = Expression::read(text(rule, "rule").trim()) else {
            continue;
        };
        let mut names = vec![
            ("self".to_owned(), Some(schema)),
            ("oldSelf".to_owned(), Some(schema)),
        ];
        let cost = cost(expression.program.expression(), &mut names) * times;
        costs.push((at(&format!("x-kubernetes-validations[{index}].rule")), cost));
    }
    match &schema.kind {
        Kind::Object(object) => {
            for (name, field) in &object.fields {
                // What is described elsewhere has no rules.
                if field.schema.name.is_none() {
                    visit(&field.schema, &at(&format!("properties[{name}]")), times, costs);
                }
            }
            if let Some(values) = &object.additional {
                visit(values, &at("additionalProperties"), times * length(schema), costs);
            }
        }
        Kind::Array(array) => visit(&array.items, &at("items"), times * length(schema), costs),
        _ => {}
    }
}

type Names<'a> = Vec<(String, Option<&'a Schema>)>;

fn cost<'a>(expression: &IdedExpr, names: &mut Names<'a>) -> f64 {
    match &expression.expr {
        Expr::Ident(_) => 1.0,
        Expr::Select(select) => 1.0 + cost(&select.operand, names),
        Expr::Call(call) => {
            let target = call.target.as_ref().map_or(0.0, |target| cost(target, names));
            1.0 + target + call.args.iter().map(|arg| cost(arg, names)).sum::<f64>()
        }
        Expr::List(list) => list.elements.iter().map(|element| cost(element, names)).sum(),
        Expr::Map(map) => {
            let entry = |entry: &EntryExpr, names: &mut Names<'a>| match entry {
                EntryExpr::MapEntry(entry) => cost(&entry.key, names) + cost(&entry.value, names),
                EntryExpr::StructField(field) => cost(&field.value, names),
            };
            map.entries.iter().map(|given| entry(&given.expr, names)).sum()
        }
        Expr::Comprehension(all) => {
            let range = described(&all.iter_range, names);
            let before = cost(&all.iter_range, names) + cost(&all.accu_init, names);
            let item = range.and_then(|range| match &range.kind {
                Kind::Array(array) => Some(&*array.items),
                _ => None,
            });
            let depth = names.len();
            names.push((all.accu_var.clone(), None));
            names.push((all.iter_var.clone(), item));
            if let Some(second) = &all.iter_var2 {
                names.push((second.clone(), None));
            }
            let step = cost(&all.loop_cond, names) + cost(&all.loop_step, names);
            let after = cost(&all.result, names);
            names.truncate(depth);
            before + range.map_or(1.0, length) * step + after
        }
        _ => 0.0,
    }
}

/// What the schema says of an expression's value.
fn described<'a>(expression: &IdedExpr, names: &Names<'a>) -> Option<&'a Schema> {
    match &expression.expr {
        Expr::Ident(name) => names.iter().rev().find(|(known, _)| known == name)?.1,
        Expr::Select(select) if !select.test => {
            let Kind::Object(object) = &described(&select.operand, names)?.kind else {
                return None;
            };
            let field = object
                .fields
                .iter()
                .find(|(name, _)| escape(name) == select.field);
            field
                .map(|(_, field)| &*field.schema)
                .or(object.additional.as_deref())
        }
        Expr::Call(call) if call.func_name == "_[_]" => match &described(call.args.first()?, names)?.kind {
            Kind::Array(array) => Some(&array.items),
            Kind::Object(object) => object.additional.as_deref(),
            _ => None,
        },
        _ => None,
    }
}

/// How many items a list or a map can have.
fn length(schema: &Schema) -> f64 {
    let limits = schema.limits.as_deref();
    let count = match &schema.kind {
        Kind::Array(array) => limits
            .and_then(|limits| limits.max_items)
            .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (least_bytes(&array.items) + 1)),
        Kind::Object(object) => limits
            .and_then(|limits| limits.max_properties)
            .unwrap_or_else(|| {
                let value = object.additional.as_deref().map_or(1, least_bytes);
                (REQUEST_BYTES_MAX - 2) / (value + 6)
            }),
        _ => 1,
    };
    count as f64
}

/// The least bytes of a value as JSON.
fn least_bytes(schema: &Schema) -> u64 {
    match &schema.kind {
        Kind::Object(object) => {
            let required = object.required.iter().map(|name| {
                let value = object
                    .fields
                    .get(name)
                    .map_or(1, |field| least_bytes(&field.schema));
                name.len() as u64 + 4 + value
            });
            2 + required.sum::<u64>()
        }
        Kind::Array(_) | Kind::String => 2,
        Kind::Boolean => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn lists(limits: Value) -> Value {
        let mut inner = json!({"type": "array", "items": {"type": "string"}});
        let mut outer = json!({"type": "array", "items": Value::Null});
        for (field, value) in limits.as_object().into_iter().flatten() {
            inner[field] = value.clone();
            outer[field] = value.clone();
        }
        outer["items"] = inner;
        outer
    }

    #[rstest]
    #[case("self.l.all(x, self.l.all(y, x == y))", json!({}), 3)]
    #[case("self.l.all(x, x.all(y, y != 'a'))", json!({}), 3)]
    #[case("self.l.all(x, self.l.all(y, x == y))", json!({"maxItems": 10}), 0)]
    #[case("self.l.all(x, x.size() < 5)", json!({}), 0)]
    #[case("self.l.size() < 5", json!({}), 0)]
    fn loops_in_loops_need_limits(#[case] rule: &str, #[case] limits: Value, #[case] complaints: usize) {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"l": lists(limits)}, "x-kubernetes-validations": [{"rule": rule}],
        }}});
        let errors = check(&Schema::from_openapi_v3_unchecked(&schema));
        assert_eq!(errors.len(), complaints, "{errors:?}");
    }

    #[test]
    fn a_rule_counts_as_often_as_it_can_be_there() {
        let item = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": "self.l.all(x, x != 'a')"}]});
        let of = |limit: Option<u64>| {
            let mut list = json!({"type": "array", "items": item});
            if let Some(limit) = limit {
                list["maxItems"] = json!(limit);
            }
            let schema = json!({"type": "object", "properties": {"spec": list}});
            check(&Schema::from_openapi_v3_unchecked(&schema)).len()
        };
        assert_eq!((of(None), of(Some(2))), (3, 0));
    }
}
