//! What an expression costs at worst, by the sizes that the schema allows: the estimate by which the real server refuses rules.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

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

/// From the least to the most: of sizes, and of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    min: u64,
    max: u64,
}

const UNKNOWN: Range = Range {
    min: 0,
    max: u64::MAX,
};

impl Range {
    const fn of(value: u64) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    fn scaled(self, factor: f64) -> Self {
        // Conversion to whole numbers saturates.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Self {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// The sizes of what a list or map made by the expression holds.
#[derive(Debug, Clone, Copy)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}

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

/// What is below something that stands nowhere begins a path of its own, as it does for the real server.
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

    /// What the schema allows at a path.
    fn allowed(&self, path: Path) -> Option<Range> {
        let path = path.filter(|path| path.first().is_some_and(|first| first != "@result"))?;
        let max = size_at(self.root, path.get(1..).unwrap_or_default())?;
        Some(Range { min: 0, max })
    }

    /// What the schema allows for the items of a list that stands somewhere.
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

    /// The functions of Kubernetes' libraries.
    fn of_library(&mut self, call: &CallExpr, overload: &str, target: Option<&IdedExpr>) -> Option<Call> {
        let args = call.args.as_slice();
        let name = call.func_name.as_str();
        let one = Some(Call::of(Range::of(1)));
        match (name, target, args) {
            ("check", ..) => Some(Call::of(Range::of(350_000))),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                let size = self.size_or_unknown(list);
                let Ty::List(items) = self.ty(list).clone() else {
                    return Some(Call::of(size.scaled(TEXT)));
                };
                let mut each = Range::of(1);
                if matches!(*items, Ty::Text | Ty::Bytes) {
                    let item = self.item_of(list).unwrap_or(UNKNOWN);
                    each = each.plus(item.scaled(TEXT));
                }
                Some(Call::of(size.times(each)))
            }
            ("url", _, [text]) => {
                let size = self.size_or_unknown(text);
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                let size = self.size_or_unknown(text);
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("replace", Some(text), [old, new, ..]) => {
                let (size, old, new) = (
                    self.size_or_unknown(text),
                    self.size_or_unknown(old),
                    self.size_or_unknown(new),
                );
                Some(Call::sized(size.scaled(2.0 * TEXT), replaced(size, old, new)))
            }
            ("split", Some(text), _) => {
                let size = self.size_or_unknown(text);
                let parts = match args.get(1).map(|count| &count.expr) {
                    Some(Expr::Literal(LiteralValue::Int(count))) => {
                        u64::try_from(*count.inner()).unwrap_or(u64::MAX)
                    }
                    _ => size.max,
                };
                Some(Call::sized(size.scaled(2.0 * TEXT), Range { min: 0, max: parts }))
            }
            ("join", Some(list), _) => {
                let count = self.size_or_unknown(list);
                let item = self.item_of(list).unwrap_or(UNKNOWN);
                let mut size = count.times(item);
                if let Some(separator) = args.first() {
                    let between = Range {
                        min: count.min.saturating_sub(1),
                        max: count.max.saturating_sub(1),
                    };
                    size = size.plus(self.size_or_unknown(separator).times(between));
                }
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = self.size_or_unknown(text);
                let cost = size.plus(Range::of(1)).scaled(TEXT);
                let cost = cost.times(self.size_or_unknown(pattern).scaled(PATTERN));
                Some(Call::sized(
                    cost,
                    Range {
                        min: 0,
                        max: size.max,
                    },
                ))
            }
            ("ip", ..) if overload == "cidr_ip" => one,
            ("isCanonical", _, [text]) => Some(Call::of(self.size_or_unknown(text).scaled(2.0 * TEXT))),
            (
                "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
                _,
                [text, ..],
            ) => Some(Call::of(self.size_or_unknown(text).scaled(TEXT))),
            ("containsIP" | "containsCIDR", Some(_), [other]) => {
                let address = Range { min: 4, max: 16 };
                let mut cost = address.plus(address).scaled(TEXT);
                if name == "containsCIDR" {
                    cost = cost.plus(address.scaled(TEXT)).plus(Range::of(1));
                }
                if overload.ends_with("_string") {
                    cost = cost.plus(self.size_or_unknown(other).scaled(TEXT));
                }
                Some(Call::of(cost))
            }
            ("validate", Some(_), [text]) => {
                let cost = self.size_or_unknown(text).scaled(TEXT);
                Some(Call::of(cost.scaled(FORMAT_PATTERN_BYTES_MAX * PATTERN)))
            }
            (
                "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast"
                | "named"
                | "sign"
                | "asInteger"
                | "isInteger"
                | "asApproximateFloat"
                | "isGreaterThan"
                | "isLessThan"
                | "compareTo"
                | "add"
                | "sub"
                | "major"
                | "minor"
                | "patch"
                | "getScheme"
                | "getHostname"
                | "getHost"
                | "getPort"
                | "getEscapedPath"
                | "getQuery",
                ..,
            ) => one,
            ("_==_", _, [left, right]) => match (self.ty(left), self.ty(right)) {
                (Ty::Named(a), Ty::Named(b)) if a == b && *a != "kubernetes.URL" => one,
                _ => None,
            },
            _ => None,
        }
    }
}

/// How long a text may be in which parts were replaced.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let part = |size: u64, old: u64| (size as f64 / old as f64).ceil() as u64;
    let (mut count, mut kept) = (Range::of(0), Range::of(0));
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = part(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = part(text.min, old.max);
    }
    count.times(new).plus(kept)
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
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::cel::Expression;
    use crate::cel::types::{check, of};

    fn kind(name: &str) -> Value {
        match name {
            "byte" | "date" | "date-time" | "duration" => json!({"type": "string", "format": name}),
            name => json!({"type": name}),
        }
    }

    fn list(items: Value) -> Value {
        json!({"type": "array", "items": items})
    }

    fn estimated(fields: Value, rule: &str) -> u64 {
        let schema = Schema::from_openapi_v3_unchecked(&json!({"type": "object", "properties": fields}));
        let read = Expression::read(rule).expect("an expression");
        let this = of(&schema).expect("a type");
        let checked = check(&read.tree, vec![("self".to_owned(), this)]);
        assert_eq!(checked.wrong, Vec::new());
        most(&read.tree, &checked, &schema)
    }

    // The costs are those that the real server's own tests hold stable.
    #[rstest]
    #[case("string", "self.v.startsWith('Rook')", 3)]
    #[case("string", "self.v.matches('^[^0-9]*$')", 943_721)]
    #[case("string", "size(self.v) == 12", 4)]
    #[case("string", "type(self.v) == string", 4)]
    #[case("string", "self.v.charAt(3) == 'k'", 4)]
    #[case("string", "self.v.indexOf('o') == 1", 314_576)]
    #[case("string", "self.v.replace(' ', 'x') == 'Rookxtakesx'", 629_150)]
    #[case("string", "self.v.split(' ') == ['Rook', 'takes', 'x']", 629_159)]
    #[case("string", "self.v.substring(4, 10).trim() == 'takes'", 629_149)]
    #[case("string", "self.v.lowerAscii() == self.v.lowerAscii()", 943_723)]
    #[case("byte", "self.v == b'AB'", 3)]
    #[case("duration", "self.v == duration('1h2m') + duration('3s4ms')", 6)]
    #[case("duration", "type(self.v) == google.protobuf.Duration", 4)]
    #[case("date", "self.v.getDate() == 16", 4)]
    #[case("date-time", "self.v.getDate('01:00') == 18", 4)]
    #[case("number", "self.v == 1.0", 2)]
    fn of_scalars(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
        assert_eq!(estimated(json!({"v": kind(of)}), rule), cost);
    }

    #[rstest]
    #[case("integer", "1 in self.v", 1_572_865)]
    #[case("integer", "self.w[0] in self.v", 1_572_868)]
    #[case("integer", "self.v + self.w == [1, 2, 3, 1, 2, 3]", 16)]
    #[case("integer", "self.v + [4, 5] == [1, 2, 3, 4, 5]", 24)]
    #[case("integer", "has(self.v) && has(self.w)", 2)]
    #[case("integer", "self.v.all(k, size(self.v) > 0)", 11_010_044)]
    #[case("integer", "self.v.exists_one(k, self.v == [2])", 23_592_949)]
    #[case("integer", "size(self.v.filter(k, size(self.v) > 1)) == 1", 26_738_686)]
    #[case("integer", "self.v.all(e, e > 0)", 7_864_318)]
    #[case("integer", "self.v.exists(e, e > 2)", 9_437_181)]
    #[case("integer", "size(self.v.filter(e, e%2 == 0)) == 3", 25_165_823)]
    #[case(
        "integer",
        "self.v.map(e, e * 20).filter(e, e > 50).exists(e, e == 60)",
        53_477_367
    )]
    #[case("string", "'a' in self.v", 1_048_577)]
    #[case("string", "self.v == self.w", 104_862)]
    #[case("string", "!self.v.exists_one(k, size(self.v) > 0)", 6_291_455)]
    fn of_lists(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
        assert_eq!(
            estimated(json!({"v": list(kind(of)), "w": list(kind(of))}), rule),
            cost
        );
    }

    #[rstest]
    #[case("string", "self.v == self.w", 39_326)]
    #[case("string", "self.v == {'k1': 'a', 'k2': 'b'}", 33)]
    #[case("string", "self.v.all(k, size(self.v) > 0)", 2_752_508)]
    #[case("string", "size(self.v.filter(k, size(self.v) > 1)) == 1", 6_684_670)]
    #[case("integer", "self.v.all(k, self.v[k] > 0)", 3_595_115)]
    #[case("integer", "self.v.exists_one(k, self.v[k] == 2)", 2_696_338)]
    #[case("integer", "has(self.v.b)", 2)]
    fn of_maps(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
        let map = json!({"type": "object", "additionalProperties": kind(of)});
        assert_eq!(estimated(json!({"v": map, "w": map}), rule), cost);
    }

    #[rstest]
    #[case("has(self.v[0].k)", 3)]
    #[case("self.v.all(m, m.k.startsWith('a'))", 6_291_453)]
    #[case("self.v.exists_one(m, m.k == 'a3')", 5_242_879)]
    #[case("size(self.v.filter(m, m.k == 'a1')) == 1", 16_777_215)]
    #[case("self.v.map(m, m.k).exists(v, v == 'b1')", 19_922_939)]
    #[case("self.v.map(m, has(m.w) && m.w == 'z', m.w).size() == 1", 18_874_365)]
    #[case("self.v[0] == self.v[1]", 6)]
    fn of_lists_of_objects(#[case] rule: &str, #[case] cost: u64) {
        let object =
            json!({"type": "object", "properties": {"k": {"type": "string"}, "w": {"type": "string"}}});
        assert_eq!(estimated(json!({"v": list(object)}), rule), cost);
    }

    #[rstest]
    #[case("int(self.n) == self.i", 5)]
    #[case("bytes(self.s) == self.b", 629_150)]
    #[case("string(self.i) == self.s", 314_578)]
    #[case("string(self.b) == self.s", 629_150)]
    #[case("timestamp(self.s) == self.t", 6)]
    #[case("self.e == 'Pending'", 3)]
    #[case("self.e in ['Pending', 'Available']", 14)]
    #[case("self.is == '25%' || self.is == 1", 6)]
    #[case("type(self.is) == int ? self.is == 1 : self.is == '25%'", 7)]
    #[case("type(self.is) == string && self.is.matches(r'(\\d+(\\.\\d+)?%)')", 1_258_298)]
    fn of_conversions(#[case] rule: &str, #[case] cost: u64) {
        let fields = json!({
            "i": kind("integer"), "n": kind("number"), "s": kind("string"), "b": kind("byte"), "t": kind("date-time"),
            "e": {"type": "string", "enum": ["Pending", "Available", "Bound", "Released", "Failed"]},
            "is": {"x-kubernetes-int-or-string": true},
        });
        assert_eq!(estimated(fields, rule), cost);
    }
}
