//! Lists of kind `set` and `map` in the rules of custom resources: they are equal whatever their order, and `+` merges them.
//!
//! Values do not know their schema. So a comparison or a sum whose left side is such a list, or holds one, becomes a
//! call that says how: as in the real server, the left side alone decides.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::{Context, Value};
use shared_json::{Value as Json, json};
use std::sync::Arc;

use super::objects::parts;
use super::values::{escape, is_reserved, unescape};
use crate::types::{Kind, ListType, Schema};

const SAME: &str = "@same";
const JOINED: &str = "@joined";

/// Adds the functions.
pub(super) fn add(context: &mut Context<'static>) {
    context.add_function(SAME, |a: Value, b: Value, plan: Arc<String>| {
        let plan: Json = shared_json::from_str(&plan).unwrap_or_default();
        Ok(Value::Bool(ordered(&a, &plan) == ordered(&b, &plan)))
    });
    context.add_function(JOINED, |a: Value, b: Value, plan: Arc<String>| {
        let plan: Json = shared_json::from_str(&plan).unwrap_or_default();
        Ok(joined(&a, &b, &plan))
    });
}

/// The unordered lists of a schema; none if it has none.
pub(super) type Lists = Option<Arc<str>>;

pub(super) fn of(schema: &Schema) -> Lists {
    plan(schema).map(|plan| plan.to_string().into())
}

/// The expression with such calls, if it needs any. `names` are its variables, with the schemas that are known of them.
pub(super) fn lower(expression: &IdedExpr, names: &[(&str, &Schema)]) -> Option<IdedExpr> {
    let mut names = names
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), Some(*schema)))
        .collect();
    let mut lowered = expression.clone();
    rewrite(&mut lowered, &mut names).then_some(lowered)
}

/// Variables and their schemas, the innermost last.
type Names<'a> = Vec<(String, Option<&'a Schema>)>;

fn rewrite(expression: &mut IdedExpr, names: &mut Names<'_>) -> bool {
    if let Expr::Comprehension(all) = &mut expression.expr {
        let mut found = rewrite(&mut all.iter_range, names) | rewrite(&mut all.accu_init, names);
        let items = described(&all.iter_range, names)
            .and_then(Schema::as_array)
            .map(|array| &*array.items);
        let before = names.len();
        names.push((all.iter_var.clone(), items.filter(|_| all.iter_var2.is_none())));
        names.extend(all.iter_var2.iter().map(|name| (name.clone(), items)));
        names.push((all.accu_var.clone(), None));
        for part in [&mut all.loop_cond, &mut all.loop_step, &mut all.result] {
            found |= rewrite(part, names);
        }
        names.truncate(before);
        return found;
    }
    let mut found = false;
    for part in parts(&mut expression.expr) {
        found |= rewrite(part, names);
    }
    let id = expression.id;
    let Expr::Call(call) = &mut expression.expr else {
        return found;
    };
    let name = call.func_name.as_str();
    if !matches!(name, operators::EQUALS | operators::NOT_EQUALS | operators::ADD) {
        return found;
    }
    let Some(schema) = call.args.first().and_then(|left| described(left, names)) else {
        return found;
    };
    let merges = schema
        .as_array()
        .is_some_and(|array| array.list_type != ListType::Atomic);
    let helper = match name {
        operators::ADD if merges => JOINED,
        operators::ADD => return found,
        _ => SAME,
    };
    let Some(plan) = plan(schema) else { return found };
    let is_negated = name == operators::NOT_EQUALS;
    let text = Expr::Literal(LiteralValue::String(plan.to_string().into()));
    call.args.push(IdedExpr { id, expr: text });
    call.func_name = helper.to_owned();
    if is_negated {
        let inner = std::mem::take(expression);
        *expression = IdedExpr {
            id,
            expr: Expr::Call(CallExpr {
                func_name: operators::LOGICAL_NOT.to_owned(),
                target: None,
                args: vec![inner],
            }),
        };
    }
    true
}

/// The schema of an expression's value, where that is a part of the object.
fn described<'a>(expression: &IdedExpr, names: &Names<'a>) -> Option<&'a Schema> {
    match &expression.expr {
        Expr::Ident(name) => names.iter().rev().find(|(other, _)| other == name)?.1,
        Expr::Select(select) if !select.test => {
            described(&select.operand, names)?.child(&unescape(&select.field))
        }
        Expr::Call(call) => match (
            call.func_name.as_str(),
            call.target.as_deref(),
            call.args.as_slice(),
        ) {
            (operators::INDEX, None, [of, _]) => {
                let of = described(of, names)?;
                match &of.kind {
                    Kind::Array(array) => Some(&array.items),
                    Kind::Object(object) => object.additional.as_deref(),
                    _ => None,
                }
            }
            (operators::ADD | JOINED, None, [left, ..]) => described(left, names),
            (operators::CONDITIONAL, None, [_, yes, _]) => described(yes, names),
            ("value" | "orValue", Some(of), _) => described(of, names),
            _ => None,
        },
        _ => None,
    }
}

/// How values of a schema are compared; none if every list in it has an order.
fn plan(schema: &Schema) -> Option<Json> {
    // Built-in types have lists with an order only, as far as rules can see them.
    if schema.name.is_some() {
        return None;
    }
    match &schema.kind {
        Kind::Array(array) => {
            let items = plan(&array.items);
            match &array.list_type {
                ListType::Set => Some(json!({"set": items})),
                ListType::Map(keys) => Some(json!({"keys": keys, "items": items})),
                ListType::Atomic => items.map(|items| json!({"items": items})),
            }
        }
        Kind::Object(object) => {
            let fields: shared_json::Map = object
                .fields
                .iter()
                .filter_map(|(name, field)| Some((name, plan(&field.schema)?)))
                .flat_map(|(name, plan)| {
                    // Both names of a field that is called by a reserved word.
                    let other = is_reserved(name).then(|| (name.to_string(), plan.clone()));
                    std::iter::once((escape(name), plan)).chain(other)
                })
                .collect();
            let values = object.additional.as_deref().and_then(plan);
            match (fields.is_empty(), values) {
                (true, None) => None,
                (false, None) => Some(json!({"fields": fields})),
                (_, Some(values)) => Some(json!({"values": values})),
            }
        }
        _ => None,
    }
}

/// A value with its lists in one order, where they know none.
fn ordered(value: &Value, plan: &Json) -> Value {
    match value {
        Value::List(items) => {
            let within = plan
                .get("items")
                .or_else(|| plan.get("set"))
                .unwrap_or(&Json::Null);
            let mut items: Vec<Value> = items.iter().map(|item| ordered(item, within)).collect();
            if plan.get("set").is_some() {
                items.sort_by_cached_key(|item| format!("{item:?}"));
            } else if let Some(keys) = plan.get("keys") {
                items.sort_by_cached_key(|item| identity(item, keys));
            }
            Value::List(Arc::new(items))
        }
        Value::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| {
                let name = key.to_string();
                let below = plan
                    .get("values")
                    .or_else(|| plan.get("fields")?.get(&name))
                    .unwrap_or(&Json::Null);
                (name, ordered(value, below))
            });
            super::values::map(entries)
        }
        other => other.clone(),
    }
}

/// The identity of an item of a list of kind `map`: its keys.
fn identity(item: &Value, keys: &Json) -> String {
    let Value::Map(map) = item else {
        return String::new();
    };
    let keys = keys.as_array().into_iter().flatten().filter_map(Json::as_str);
    let values = keys.map(|wanted| {
        let wanted = escape(wanted);
        let found = map.map.iter().find(|(key, _)| key.to_string() == wanted);
        format!("{:?}", found.map(|(_, value)| value))
    });
    values.collect::<Vec<_>>().join(",")
}

/// The items of the first list, those of a map with the second list's values where both have them, and then the rest of the
/// second.
fn joined(a: &Value, b: &Value, plan: &Json) -> Value {
    let (Value::List(a), Value::List(b)) = (a, b) else {
        return Value::Null;
    };
    let identity = |item: &Value| match plan.get("keys") {
        Some(keys) => identity(item, keys),
        None => format!("{item:?}"),
    };
    let mut items: Vec<Value> = a.to_vec();
    for item in b.iter() {
        match items.iter_mut().find(|other| identity(other) == identity(item)) {
            Some(other) => *other = item.clone(),
            None => items.push(item.clone()),
        }
    }
    Value::List(Arc::new(items))
}
