//! Counts the cost of an expression while it evaluates it.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, SelectExpr, operators,
};
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value};

use super::super::library::TYPES;
use super::CALL_MAX;
use super::costs::{LIST, MAP, cost_of};

/// Why counting has ended before the end of the expression: it costs too much, or has no value.
pub(super) struct Ended;

type Counted = Result<Value, Ended>;

/// Counts the cost of an expression while it evaluates it.
pub(super) struct Meter {
    pub spent: u64,
}

/// The names under which values of parts are put in their place.
const TARGET: &str = "@target";
const ARGUMENTS: [&str; 6] = ["@arg0", "@arg1", "@arg2", "@arg3", "@arg4", "@arg5"];

fn ident(name: &str) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Ident(name.to_owned()),
    }
}

fn evaluated(tree: &IdedExpr, context: &Context<'_>) -> Counted {
    Value::resolve(tree, context).map_err(|_| Ended)
}

impl Meter {
    fn pay(&mut self, cost: u64) -> Result<(), Ended> {
        self.spent = self.spent.saturating_add(cost);
        match self.spent > CALL_MAX {
            true => Err(Ended),
            false => Ok(()),
        }
    }

    pub(super) fn run(&mut self, tree: &IdedExpr, context: &Context<'_>) -> Counted {
        match &tree.expr {
            Expr::Literal(_) => evaluated(tree, context),
            Expr::Ident(name) => {
                self.pay(u64::from(!TYPES.contains(&name.as_str())))?;
                evaluated(tree, context)
            }
            Expr::List(_) | Expr::Map(_) if is_constant(tree) => evaluated(tree, context),
            Expr::Select(select) => {
                let operand = self.run(&select.operand, context)?;
                if !select.test {
                    self.pay(cost_of_part(&select.operand))?;
                }
                let mut inner = context.new_inner_scope();
                inner.add_variable_from_value(TARGET, operand);
                let select = SelectExpr {
                    operand: Box::new(ident(TARGET)),
                    ..select.clone()
                };
                let of_value = IdedExpr {
                    id: tree.id,
                    expr: Expr::Select(select),
                };
                evaluated(&of_value, &inner)
            }
            Expr::List(list) => {
                let items: Result<Vec<Value>, Ended> = list
                    .elements
                    .iter()
                    .map(|element| self.run(element, context))
                    .collect();
                let items = items?;
                self.pay(LIST)?;
                if list.optional_indices.is_empty() {
                    return Ok(Value::List(Arc::new(items)));
                }
                evaluated(tree, context)
            }
            Expr::Map(map) => {
                let mut all = HashMap::new();
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(Ended);
                    };
                    let key = key(self.run(&entry.key, context)?).ok_or(Ended)?;
                    all.insert(key, self.run(&entry.value, context)?);
                }
                self.pay(MAP)?;
                Ok(Value::Map(Map { map: Arc::new(all) }))
            }
            Expr::Call(call) => self.call(tree, call, context),
            Expr::Comprehension(all) => self.comprehension(all, context),
            Expr::Struct(_) | Expr::Unspecified => Err(Ended),
        }
    }

    fn call(&mut self, tree: &IdedExpr, call: &CallExpr, context: &Context<'_>) -> Counted {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                return match self.run(condition, context)? {
                    Value::Bool(true) => self.run_as_part(yes, context),
                    Value::Bool(false) => self.run_as_part(no, context),
                    _ => Err(Ended),
                };
            }
            (operators::LOGICAL_AND, [left, right]) => return self.decided(false, left, right, context),
            (operators::LOGICAL_OR, [left, right]) => return self.decided(true, left, right, context),
            _ => {}
        }
        if call.args.len() > ARGUMENTS.len() {
            return Err(Ended);
        }
        let mut inner = context.new_inner_scope();
        let mut values = Vec::new();
        let mut of_values = CallExpr {
            func_name: call.func_name.clone(),
            target: None,
            args: Vec::new(),
        };
        if let Some(target) = &call.target {
            // The name of a library is no value.
            if is_library(target, context) {
                of_values.target = Some(target.clone());
            } else {
                let value = self.run(target, context)?;
                inner.add_variable_from_value(TARGET, value.clone());
                values.push(value);
                of_values.target = Some(Box::new(ident(TARGET)));
            }
        }
        let is_index = matches!(
            call.func_name.as_str(),
            operators::INDEX | operators::OPT_INDEX | "@field"
        );
        for (place, (name, arg)) in ARGUMENTS.iter().zip(&call.args).enumerate() {
            let value = match is_index && place > 0 {
                true => self.run_as_part(arg, context)?,
                false => self.run(arg, context)?,
            };
            inner.add_variable_from_value(*name, value.clone());
            values.push(value);
            of_values.args.push(ident(name));
        }
        let of_values = IdedExpr {
            id: tree.id,
            expr: Expr::Call(of_values),
        };
        let result = evaluated(&of_values, &inner)?;
        self.pay(match call.args.first().filter(|_| is_index) {
            Some(of) => cost_of_part(of),
            None => cost_of(&call.func_name, &values, &result),
        })?;
        Ok(result)
    }

    /// Runs an expression that the real server makes a part of the one around it: the variable at its root costs nothing then.
    fn run_as_part(&mut self, tree: &IdedExpr, context: &Context<'_>) -> Counted {
        let value = self.run(tree, context)?;
        self.spent -= u64::from(is_attribute(tree)).min(self.spent);
        Ok(value)
    }

    /// The value of `&&` and `||`: one side may decide, even if the other has no value.
    fn decided(
        &mut self,
        decisive: bool,
        left: &IdedExpr,
        right: &IdedExpr,
        context: &Context<'_>,
    ) -> Counted {
        let first = self.run(left, context);
        if matches!(first, Ok(Value::Bool(truth)) if truth == decisive) || self.spent > CALL_MAX {
            return first;
        }
        let second = self.run(right, context)?;
        match (first, second) {
            (_, Value::Bool(truth)) if truth == decisive => Ok(Value::Bool(decisive)),
            (Ok(Value::Bool(_)), Value::Bool(truth)) => Ok(Value::Bool(truth)),
            _ => Err(Ended),
        }
    }

    fn comprehension(&mut self, all: &ComprehensionExpr, context: &Context<'_>) -> Counted {
        if all.iter_var2.is_some() {
            return Err(Ended);
        }
        let range = self.run(&all.iter_range, context)?;
        let mut so_far = self.run(&all.accu_init, context)?;
        for item in items(&range).ok_or(Ended)? {
            let mut inner = context.new_inner_scope();
            inner.add_variable_from_value(all.accu_var.as_str(), so_far.clone());
            inner.add_variable_from_value(all.iter_var.as_str(), item);
            if !matches!(self.run(&all.loop_cond, &inner)?, Value::Bool(true)) {
                break;
            }
            so_far = self.run(&all.loop_step, &inner)?;
        }
        let mut inner = context.new_inner_scope();
        inner.add_variable_from_value(all.accu_var.as_str(), so_far);
        self.run(&all.result, &inner)
    }
}

/// Whether an expression is a variable, or a part of one.
fn is_attribute(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => !select.test && is_attribute(&select.operand),
        Expr::Call(call) => call.func_name == operators::INDEX && call.args.first().is_some_and(is_attribute),
        _ => false,
    }
}

/// The cost of taking a part of a value: more where the value is no part of a variable.
fn cost_of_part(of: &IdedExpr) -> u64 {
    if is_attribute(of) { 1 } else { 2 }
}

/// Whether an expression is written out: the real server makes such lists and maps before it runs anything.
fn is_constant(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => is_constant(&entry.key) && is_constant(&entry.value),
            EntryExpr::StructField(_) => false,
        }),
        _ => false,
    }
}

/// The items of a list, or the keys of a map in their order.
fn items(range: &Value) -> Option<Vec<Value>> {
    match range {
        Value::List(items) => Some(items.to_vec()),
        Value::Map(map) => {
            let mut keys: Vec<&Key> = map.map.keys().collect();
            keys.sort_by_cached_key(|key| key.to_string());
            Some(keys.into_iter().cloned().map(Value::from).collect())
        }
        _ => None,
    }
}

fn key(value: Value) -> Option<Key> {
    match value {
        Value::String(text) => Some(Key::String(text)),
        Value::Int(number) => Some(Key::Int(number)),
        Value::UInt(number) => Some(Key::Uint(number)),
        Value::Bool(truth) => Some(Key::Bool(truth)),
        _ => None,
    }
}

/// Whether a name stands before a function for its library: `sets.contains`.
fn is_library(target: &IdedExpr, context: &Context<'_>) -> bool {
    matches!(&target.expr, Expr::Ident(name) if context.get_variable(name.as_str()).is_none())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::super::super::{Expression, Scope, values};
    use super::super::most::{Sizes, most};
    use super::*;

    /// The cost of an expression for a list of a hundred numbers, a text of a hundred characters, and a map of two.
    fn cost(rule: &str) -> u64 {
        let list: Vec<u64> = (0..100).collect();
        let variables = [
            ("l", values::plain(&json!(list))),
            ("t", values::text(&"a".repeat(100))),
            ("m", values::plain(&json!({"a": 1, "b": 2}))),
        ];
        let read = Expression::read(rule).expect("an expression");
        let scope = Scope::new();
        let mut context = scope.root.new_inner_scope();
        for (name, value) in &variables {
            context.add_variable_from_value(*name, value.clone());
        }
        let mut meter = Meter { spent: 0 };
        let tree = read.run.as_ref().unwrap_or(&read.tree);
        let value = meter.run(tree, &context);
        assert!(value.is_ok() || meter.spent > CALL_MAX, "no value");
        assert!(most(tree, &Sizes::of(&variables)) >= meter.spent.min(CALL_MAX));
        meter.spent
    }

    #[rstest]
    #[case("l[0] == 1", 3)]
    #[case("l.map(a, a)[0] == 0", 1305)]
    #[case("{'a': 1}.a == 1", 3)]
    #[case("m.all(k, m[k] > 0)", 14)]
    #[case("l.map(a, {'x': a}).size() > 0", 4304)]
    #[case("l.map(a, [1]).size() > 0", 204)]
    #[case("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3)]
    #[case("t.trim() == t", 22)]
    #[case("l.reverse().size() > 0", 114)]
    #[case("l.slice(0, 50).size() > 0", 64)]
    #[case("l.distinct().size() > 0", 20014)]
    #[case("l.sort().size() > 0", 20014)]
    #[case("[[1]].flatten().size() > 0", 14)]
    #[case("t.split('').join('') == t", 52)]
    #[case("t < t", 12)]
    #[case("t.format([1]) == t", 22)]
    #[case("bytes(t).size() > 1", 13)]
    #[case("string(t) == t", 13)]
    #[case("!isURL(t)", 3)]
    #[case("l.all(a, a >= 0)", 502)]
    #[case("l.exists(a, a == 3)", 29)]
    #[case("l.map(a, a + 1).size() == 100", 1404)]
    #[case("l.filter(a, a > 50).size() > 0", 841)]
    #[case("t.matches('a+b?')", 12)]
    #[case("t.contains('bb')", 11)]
    #[case("t.startsWith('a')", 11)]
    #[case("t + 'b' != ''", 12)]
    #[case("1 in l", 101)]
    #[case("t.replace('a', 'b').size() == 100", 23)]
    #[case("t.split('').size() > 1", 23)]
    #[case("l.sum() > 0", 102)]
    #[case("[1, 2].size() == 2", 2)]
    #[case("{'a': 1}.size() == 1", 2)]
    #[case("l.size() > 1 ? true : t == ''", 3)]
    #[case("false || t == 'a'", 2)]
    #[case("string(l[0]) == '0'", 4)]
    #[case("t.find('b*') == ''", 12)]
    #[case("isURL(t)", 2)]
    #[case("sets.contains(l, [1])", 102)]
    #[case("l.exists_one(a, a == 1)", 205)]
    #[case("t.lowerAscii().size() > 1", 13)]
    #[case("type(t) == string", 3)]
    #[case("l == l", 12)]
    #[case("optional.of(t).hasValue()", 3)]
    #[case("l.isSorted()", 101)]
    #[case("quantity('1k').isGreaterThan(quantity('1'))", 3)]
    #[case("l.all(a, l.all(b, a + b >= 0))", 70502)]
    fn costs(#[case] rule: &str, #[case] expected: u64) {
        assert_eq!(cost(rule), expected);
    }

    #[rstest]
    #[case("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))")]
    #[case("l.map(a, l.map(b, t.matches('a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*q*r*s*'))).size() > 0")]
    fn what_costs_too_much(#[case] rule: &str) {
        assert!(cost(rule) > CALL_MAX);
    }
}
