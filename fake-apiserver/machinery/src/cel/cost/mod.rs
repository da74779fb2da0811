//! The worst-case cost of an expression, by the sizes that the schema allows: the estimate by which the real server refuses
//! rules.

mod library;
mod range;

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use self::range::{Entries, Range, UNKNOWN};
use super::sizes::size_at;
use super::ty::Ty;
use super::types::Checked;
use crate::types::Schema;

/// Reading a text costs a tenth of its length.
const TEXT: f64 = 0.1;
/// A regular expression costs a quarter of its length, for each tenth of the text.
const PATTERN: f64 = 0.25;
const LIST: u64 = 10;
const MAP: u64 = 30;
const OBJECT: u64 = 40;
/// The longest pattern of a named format.
const FORMAT_PATTERN_BYTES_MAX: f64 = 128.0;

type Path = Option<Vec<String>>;

struct Local {
    name: String,
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Call {
    cost: Range,
    size: Option<Range>,
}

impl Call {
    fn of(cost: Range) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: Range, size: Range) -> Self {
        Self {
            cost,
            size: Some(size),
        }
    }
}

/// The most that evaluating the expression may cost, for values of `root`.
pub(super) fn most(expression: &IdedExpr, checked: &Checked<'_>, root: &Schema) -> u64 {
    let mut coster = Coster {
        checked,
        root,
        paths: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        locals: Vec::new(),
    };
    coster.cost(expression).max
}

struct Coster<'c> {
    checked: &'c Checked<'c>,
    root: &'c Schema,
    /// Where in the value that the schema describes nodes are.
    paths: BTreeMap<u64, Path>,
    sizes: BTreeMap<u64, Range>,
    entries: BTreeMap<u64, Entries>,
    locals: Vec<Local>,
}

/// A part of a value without a path begins a path of its own, as in the real server.
fn below(path: Path, part: &str) -> Path {
    let mut path = path.unwrap_or_default();
    path.push(part.to_owned());
    Some(path)
}

impl Coster<'_> {
    fn ty(&self, expression: &IdedExpr) -> &Ty<'_> {
        self.checked.types.get(&expression.id).unwrap_or(&Ty::Dyn)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expression: &IdedExpr) -> Path {
        if let Expr::Ident(name) = &expression.expr
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expression.id).cloned().flatten()
    }

    fn cost(&mut self, expression: &IdedExpr) -> Range {
        match &expression.expr {
            Expr::Literal(_) | Expr::Unspecified => Range::of(0),
            Expr::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Some(vec![name.clone()]),
                };
                self.paths.insert(expression.id, path);
                Range::of(1)
            }
            // The name of a type.
            Expr::Select(select) if matches!(self.ty(expression), Ty::Type(_)) => {
                self.paths.insert(expression.id, Some(vec![select.field.clone()]));
                Range::of(1)
            }
            Expr::Select(select) => {
                let cost = self.cost(&select.operand);
                if select.test {
                    return cost;
                }
                let path = below(self.path(&select.operand), &select.field);
                self.paths.insert(expression.id, path);
                let costs = matches!(self.ty(&select.operand), Ty::Map(..) | Ty::Object(_) | Ty::Var(_));
                cost.plus(Range::of(u64::from(costs)))
            }
            Expr::List(list) => {
                let mut items: Option<Range> = None;
                let mut cost = Range::of(LIST);
                for element in &list.elements {
                    cost = cost.plus(self.cost(element));
                    let size = self.size_or_unknown(element);
                    items = Some(items.map_or(size, |items| items.or(size)));
                }
                let entries = Entries {
                    is_list: true,
                    key: Range::of(1),
                    value: items.unwrap_or(Range::of(0)),
                };
                self.entries.insert(expression.id, entries);
                cost
            }
            Expr::Map(map) => {
                let (mut keys, mut values): (Option<Range>, Option<Range>) = (None, None);
                let mut cost = Range::of(MAP);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        continue;
                    };
                    cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    let (key, value) = (
                        self.size_or_unknown(&entry.key),
                        self.size_or_unknown(&entry.value),
                    );
                    keys = Some(keys.map_or(key, |keys| keys.or(key)));
                    values = Some(values.map_or(value, |values| values.or(value)));
                }
                let none = Range::of(0);
                let entries = Entries {
                    is_list: false,
                    key: keys.unwrap_or(none),
                    value: values.unwrap_or(none),
                };
                self.entries.insert(expression.id, entries);
                cost
            }
            Expr::Struct(object) => {
                let mut cost = Range::of(OBJECT);
                for entry in &object.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        cost = cost.plus(self.cost(&field.value));
                    }
                }
                cost
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(all) if is_binding(all) => {
                let cost = self.cost(&all.iter_range).plus(self.cost(&all.accu_init));
                self.push(&all.accu_var, &all.accu_init);
                let cost = cost.plus(self.cost(&all.result));
                self.locals.pop();
                self.copy(expression, &all.result);
                cost
            }
            Expr::Comprehension(all) => self.comprehension(expression, all),
        }
    }

    fn copy(&mut self, to: &IdedExpr, from: &IdedExpr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    /// A variable that has the value of an expression.
    fn push(&mut self, name: &str, value: &IdedExpr) {
        let local = Local {
            name: name.to_owned(),
            path: self.path(value),
            size: self.size(value),
            entries: self.entries_of(value),
        };
        self.locals.push(local);
    }

    fn comprehension(&mut self, expression: &IdedExpr, all: &ComprehensionExpr) -> Range {
        let cost = self.cost(&all.iter_range).plus(self.cost(&all.accu_init));
        self.push(&all.accu_var, &all.accu_init);
        let entries = self.entries_of(&all.iter_range);
        let is_list = entries.map_or(matches!(self.ty(&all.iter_range), Ty::List(_)), |entries| {
            entries.is_list
        });
        let path = self.path(&all.iter_range);
        let mut over = |name: &str, size: Option<Range>, part: &str| {
            let path = below(path.clone(), part);
            self.locals.push(Local {
                name: name.to_owned(),
                path,
                size,
                entries: None,
            });
        };
        let (key, value) = (
            entries.map(|entries| entries.key),
            entries.map(|entries| entries.value),
        );
        match (&all.iter_var2, is_list) {
            (Some(second), true) => {
                over(&all.iter_var, key, "@indices");
                over(second, value, "@items");
            }
            (Some(second), false) => {
                over(&all.iter_var, key, "@keys");
                over(second, value, "@values");
            }
            (None, true) => over(&all.iter_var, value, "@items"),
            (None, false) => over(&all.iter_var, key, "@keys"),
        }
        let cond = self.cost(&all.loop_cond);
        let step = self.cost(&all.loop_step);
        let step_entries = self.entries_of(&all.loop_step);
        self.locals.pop();
        if all.iter_var2.is_some() {
            self.locals.pop();
        }
        let result = self.cost(&all.result);
        self.locals.pop();
        let count = self.size_or_unknown(&all.iter_range);
        match &all.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&all.accu_init) {
                    self.sizes.insert(expression.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(expression.id, count);
                if let Some(entries) = step_entries {
                    self.entries.insert(expression.id, entries);
                }
            }
            _ => {}
        }
        cost.plus(result).plus(count.times(step.plus(cond)))
    }

    fn size_or_unknown(&mut self, expression: &IdedExpr) -> Range {
        self.size(expression).unwrap_or(UNKNOWN)
    }

    fn size(&mut self, expression: &IdedExpr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expression.id) {
            return Some(*size);
        }
        let written = match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().chars().count()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => Some(bytes.inner().len()),
            Expr::Literal(_) => Some(1),
            Expr::List(list) => Some(list.elements.len()),
            Expr::Map(map) => Some(map.entries.len()),
            _ => None,
        };
        if let Some(written) = written {
            return Some(Range::of(written as u64));
        }
        if let Some(size) = self.allowed(self.path(expression)) {
            self.sizes.insert(expression.id, size);
            return Some(size);
        }
        if self.ty(expression).is_scalar() {
            return Some(Range::of(1));
        }
        match &expression.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    /// The sizes that the schema allows at a path.
    fn allowed(&self, path: Path) -> Option<Range> {
        let path = path.filter(|path| path.first().is_some_and(|first| first != "@result"))?;
        let max = size_at(self.root, path.get(1..).unwrap_or_default())?;
        Some(Range { min: 0, max })
    }

    /// The sizes that the schema allows for the items of a list with a path.
    fn item_of(&self, list: &IdedExpr) -> Option<Range> {
        let path = self.path(list)?;
        self.allowed(below(Some(path), "@items"))
    }

    fn entries_of(&self, expression: &IdedExpr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expression.id) {
            return Some(*entries);
        }
        match &expression.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Range {
        let id = expression.id;
        if let ("dyn", [value]) = (call.func_name.as_str(), call.args.as_slice()) {
            let cost = self.cost(value);
            self.copy(expression, value);
            return cost.plus(Range::of(1));
        }
        let costs: Vec<Range> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let taken = self.checked.overloads.get(&id).cloned().unwrap_or_default();
        if taken.is_empty() {
            return Range::of(0);
        }
        // What a library's function is called on is its name.
        let target = call
            .target
            .as_deref()
            .filter(|target| self.checked.types.contains_key(&target.id));
        let target_cost = target.map_or(Range::of(0), |target| self.cost(target));
        let mut cost = Range {
            min: u64::MAX,
            max: 0,
        };
        let mut size: Option<Range> = None;
        for overload in taken {
            let one = self.one(expression, call, overload, target, &costs);
            cost = cost.or(one.cost);
            if let Some(own) = one.size {
                size = Some(size.map_or(own, |size| size.or(own)));
            }
            if let ("index_list" | "index_map", Some(holder)) = (overload, call.args.first()) {
                size = self.entries_of(holder).map(|entries| entries.value);
                let part = if overload == "index_list" {
                    "@items"
                } else {
                    "@values"
                };
                let path = below(self.path(holder), part);
                self.paths.insert(id, path);
            }
            if size.is_none() {
                size = self.size(expression);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
        target_cost.plus(cost)
    }

    /// One way to make a call.
    fn one(
        &mut self,
        expression: &IdedExpr,
        call: &CallExpr,
        overload: &str,
        target: Option<&IdedExpr>,
        costs: &[Range],
    ) -> Call {
        let sum = costs.iter().fold(Range::of(0), |sum, cost| sum.plus(*cost));
        if let Some(known) = self.of_library(call, overload, target) {
            return Call {
                cost: known.cost.plus(sum),
                ..known
            };
        }
        let args = call.args.as_slice();
        let plain = Call::of(Range::of(1).plus(sum));
        match (overload, args) {
            ("string_format", _) => match target {
                Some(target) => Call::of(self.size_or_unknown(target).scaled(TEXT).plus(sum)),
                None => plain,
            },
            ("string_to_bytes", [text]) => {
                let size = self.size_or_unknown(text);
                let bytes = Range {
                    min: size.min,
                    max: size.max.saturating_mul(4),
                };
                Call::sized(size.scaled(TEXT).plus(sum), bytes)
            }
            ("bytes_to_string", [bytes]) => {
                let size = self.size_or_unknown(bytes);
                Call::sized(
                    size.scaled(TEXT).plus(sum),
                    Range {
                        min: size.min / 4,
                        max: size.max,
                    },
                )
            }
            ("strings_quote", [text]) => {
                let size = self.size_or_unknown(text);
                let quoted = size.times(Range { min: 1, max: 2 }).plus(Range::of(2));
                Call::sized(size.scaled(TEXT).plus(sum), quoted)
            }
            ("starts_with_string" | "ends_with_string", [part]) => {
                Call::of(self.size_or_unknown(part).scaled(TEXT).plus(sum))
            }
            ("in_list", [_, list]) => Call::of(self.size_or_unknown(list).plus(sum)),
            ("matches_string", [pattern]) => match target {
                Some(target) => {
                    let text = self.size_or_unknown(target).plus(Range::of(1)).scaled(TEXT);
                    let pattern = self.size_or_unknown(pattern).scaled(PATTERN);
                    Call::of(text.times(pattern).plus(sum))
                }
                None => plain,
            },
            ("contains_string", [part]) => match target {
                Some(target) => {
                    let text = self.size_or_unknown(target).scaled(TEXT);
                    let part = self.size_or_unknown(part).scaled(TEXT);
                    Call::of(text.times(part).plus(sum))
                }
                None => plain,
            },
            ("logical_or" | "logical_and", [_, _]) => {
                let least = costs.first().map_or(0, |first| first.min);
                Call::of(Range {
                    min: least,
                    max: sum.max,
                })
            }
            ("conditional", [_, yes, no]) => {
                let size = self.size_or_unknown(yes).or(self.size_or_unknown(no));
                if let (Some(yes), Some(no)) = (self.entries_of(yes), self.entries_of(no)) {
                    self.entries.insert(expression.id, yes.or(no));
                }
                let cost = match costs {
                    [test, yes, no] => test.plus(yes.or(*no)),
                    _ => sum,
                };
                Call::sized(cost, size)
            }
            ("add_string" | "add_bytes" | "add_list", [left, right]) => {
                let size = self.size_or_unknown(left).plus(self.size_or_unknown(right));
                if let (Some(left), Some(right)) = (self.entries_of(left), self.entries_of(right)) {
                    self.entries.insert(expression.id, left.or(right));
                }
                let own = if overload == "add_list" {
                    Range::of(1)
                } else {
                    size.scaled(TEXT)
                };
                Call::sized(own.plus(sum), size)
            }
            (_, [left, right]) if compares_whole(overload) => {
                let (left, right) = (self.size_or_unknown(left), self.size_or_unknown(right));
                let most = left.max.min(right.max);
                let own = Range {
                    min: u64::from(most > 0),
                    max: most,
                };
                Call::of(own.scaled(TEXT).plus(sum))
            }
            _ => plain,
        }
    }
}

fn compares_whole(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || (["less_", "greater_"]
            .iter()
            .any(|kind| overload.starts_with(kind))
            && (overload.ends_with("_string") || overload.ends_with("_bytes")))
}

/// A loop over nothing, by which a name is given to a value.
fn is_binding(all: &ComprehensionExpr) -> bool {
    let over_nothing = matches!(&all.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&all.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(flag)) if !*flag.inner());
    over_nothing && never && all.accu_var != "@result"
}

#[cfg(test)]
mod tests;
