//! About the most that an expression can cost, by the sizes of the values in its variables.

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};
use kube_cel::cel::objects::Key;

use super::costs::{CHECK, FORMAT_PATTERN, LIST, MAP, PATTERN, TEXT, scaled};

/// The largest of the sizes of values.
pub(super) struct Sizes {
    /// Of lists and maps: the number of entries.
    entries: u64,
    /// Of texts and bytes.
    length: u64,
}

impl Sizes {
    pub(super) fn of(variables: &[(&str, Value)]) -> Self {
        let mut sizes = Self {
            entries: 1,
            length: 1,
        };
        for (_, value) in variables {
            sizes.add(value);
        }
        sizes
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::List(items) => {
                self.entries = self.entries.max(items.len() as u64);
                items.iter().for_each(|item| self.add(item));
            }
            Value::Map(map) => {
                self.entries = self.entries.max(map.map.len() as u64);
                for (key, value) in map.map.iter() {
                    if let Key::String(text) = key {
                        self.length = self.length.max(text.len() as u64);
                    }
                    self.add(value);
                }
            }
            Value::String(text) => self.length = self.length.max(text.len() as u64),
            Value::Bytes(bytes) => self.length = self.length.max(bytes.len() as u64),
            _ => {}
        }
    }
}

/// About the most that an expression can cost for values of these sizes.
pub(super) fn most(tree: &IdedExpr, sizes: &Sizes) -> u64 {
    let all = |parts: &[IdedExpr]| {
        let costs = parts.iter().map(|part| most(part, sizes));
        costs.fold(0_u64, u64::saturating_add)
    };
    match &tree.expr {
        Expr::Literal(_) | Expr::Unspecified => 0,
        Expr::Ident(_) => 1,
        Expr::Select(select) => most(&select.operand, sizes).saturating_add(1),
        Expr::List(list) => all(&list.elements).saturating_add(LIST),
        Expr::Map(map) => map.entries.iter().fold(MAP, |cost, entry| {
            cost.saturating_add(most_of_entry(entry, sizes))
        }),
        Expr::Struct(object) => object.entries.iter().fold(MAP, |cost, entry| {
            cost.saturating_add(most_of_entry(entry, sizes))
        }),
        Expr::Call(call) => {
            let target = call.target.as_ref().map_or(0, |target| most(target, sizes));
            let own = most_of_call(call, sizes);
            all(&call.args).saturating_add(target).saturating_add(own)
        }
        Expr::Comprehension(all) => {
            let before = most(&all.iter_range, sizes).saturating_add(most(&all.accu_init, sizes));
            let each = most(&all.loop_cond, sizes).saturating_add(most(&all.loop_step, sizes));
            let written = match &all.iter_range.expr {
                Expr::List(list) => list.elements.len() as u64,
                _ => 0,
            };
            let count = sizes.entries.max(written);
            before
                .saturating_add(each.saturating_mul(count))
                .saturating_add(most(&all.result, sizes))
        }
    }
}

fn most_of_entry(entry: &IdedEntryExpr, sizes: &Sizes) -> u64 {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => most(&entry.key, sizes).saturating_add(most(&entry.value, sizes)),
        EntryExpr::StructField(field) => most(&field.value, sizes),
    }
}

fn most_of_call(call: &CallExpr, sizes: &Sizes) -> u64 {
    let largest = sizes.entries.max(sizes.length);
    match call.func_name.as_str() {
        "check" => CHECK,
        "matches" | "find" | "findAll" | "contains" | "validate" => {
            let written = call.args.iter().filter_map(|arg| match &arg.expr {
                Expr::Literal(LiteralValue::String(text)) => Some(text.inner().len() as u64),
                _ => None,
            });
            let pattern = written.max().unwrap_or(sizes.length).max(FORMAT_PATTERN);
            scaled(sizes.length + 1, TEXT).saturating_mul(scaled(pattern, PATTERN))
        }
        "sort" | "distinct" | "intersects" | "equivalent" => sizes.entries.saturating_mul(sizes.entries) * 3,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => largest.saturating_mul(2),
        operators::IN => sizes.entries,
        "reverse" | "flatten" | "slice" | "range" => sizes.entries.saturating_add(1 + LIST),
        _ => 1 + scaled(largest, 2.0 * TEXT),
    }
}
