//! Objects that expressions make: `Object{metadata: Object.metadata{…}}`, `JSONPatch{op: "add", …}`.
//!
//! The real server checks their types against the schema; here they are maps with the names of the fields as keys.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr,
};

use super::values::unescape;

/// Makes maps of the objects in an expression; whether there were any.
pub(super) fn to_maps(expression: &mut IdedExpr) -> bool {
    let mut found = false;
    if let Expr::Struct(object) = &mut expression.expr {
        let entries = std::mem::take(&mut object.entries)
            .into_iter()
            .map(entry)
            .collect();
        expression.expr = Expr::Map(MapExpr { entries });
        found = true;
    }
    for part in parts(&mut expression.expr) {
        found |= to_maps(part);
    }
    found
}

fn entry(entry: IdedEntryExpr) -> IdedEntryExpr {
    let EntryExpr::StructField(field) = entry.expr else {
        return entry;
    };
    let name = unescape(&field.field);
    let key = IdedExpr {
        id: entry.id,
        expr: Expr::Literal(LiteralValue::String(name.as_str().into())),
    };
    IdedEntryExpr {
        id: entry.id,
        expr: EntryExpr::MapEntry(MapEntryExpr {
            key,
            value: field.value,
            optional: field.optional,
        }),
    }
}

/// The expressions right inside of one.
pub(super) fn parts(expression: &mut Expr) -> Vec<&mut IdedExpr> {
    match expression {
        Expr::Call(call) => call
            .target
            .iter_mut()
            .map(|target| &mut **target)
            .chain(&mut call.args)
            .collect(),
        Expr::Comprehension(all) => {
            let all = &mut **all;
            vec![
                &mut all.iter_range,
                &mut all.accu_init,
                &mut all.loop_cond,
                &mut all.loop_step,
                &mut all.result,
            ]
        }
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => {
            let mut out = Vec::new();
            for entry in &mut map.entries {
                match &mut entry.expr {
                    EntryExpr::MapEntry(entry) => out.extend([&mut entry.key, &mut entry.value]),
                    EntryExpr::StructField(field) => out.push(&mut field.value),
                }
            }
            out
        }
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Struct(object) => {
            let fields = object
                .entries
                .iter_mut()
                .filter_map(|entry| match &mut entry.expr {
                    EntryExpr::StructField(field) => Some(&mut field.value),
                    EntryExpr::MapEntry(_) => None,
                });
            fields.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::{Value, json};

    use crate::cel::{Expression, Scope, values};

    #[rstest]
    #[case(r#"Object{metadata: Object.metadata{labels: {"a": "b"}}}"#, json!({"metadata": {"labels": {"a": "b"}}}))]
    #[case(r#"[JSONPatch{op: "add", path: "/x/" + jsonpatch.escapeKey("a/b"), value: Object.spec{n: 1}}]"#,
        json!([{"op": "add", "path": "/x/a~1b", "value": {"n": 1}}]))]
    #[case(r#"[1, 2].map(n, Object.items{n: n})"#, json!([{"n": 1}, {"n": 2}]))]
    #[case(r#"true ? Object{} : Object{a__dash__b: 1}"#, json!({}))]
    #[case(r#"Object{a__dash__b: 1}"#, json!({"a-b": 1}))]
    fn are_maps(#[case] expression: &str, #[case] expected: Value) {
        let read = Expression::read_with_objects(expression).expect("an expression");
        let value = read.value(&Scope::new(), &[]).expect("a value");
        assert_eq!(values::to_json(&value), expected);
    }
}
