//! Expressions in CEL, as Chainsaw evaluates them: `object` is the value, `bindings.resolve("name")` gives the value of a name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map as CelMap};
use kube_cel::cel::{Context, ExecutionError, Program, Value as CelValue};
use shared_json::{Map, Value};

use super::expression::Bindings;

/// So long an expression may be, in bytes. The parser has its own limit of brackets.
const LENGTH_MAX: usize = 1 << 13;

/// Evaluates an expression over a value.
///
/// # Errors
/// Why it is none, or cannot be evaluated.
pub(super) fn evaluate(expression: &str, over: &Value, bindings: &Bindings) -> Result<Value, String> {
    if expression.len() > LENGTH_MAX {
        return Err(format!("an expression has {LENGTH_MAX} bytes at most"));
    }
    let program = Program::compile(expression).map_err(|error| error.to_string())?;
    let mut context = Context::default().with_all();
    context.add_variable_from_value("object", of_json(over));
    let named = bindings.all().map(|(name, value)| (name.into(), of_json(value)));
    context.add_variable_from_value("bindings", of_pairs(named));
    context.add_function("resolve", resolve);
    let found = program.execute(&context).map_err(|error| error.to_string())?;
    to_json(&found)
}

/// Looks up a binding. The parameters are the engine's: it hands shared texts over.
fn resolve(This(bindings): This<CelValue>, name: Arc<String>) -> Result<CelValue, ExecutionError> {
    let found = match &bindings {
        CelValue::Map(map) => map.map.get(&Key::String(Arc::clone(&name))),
        _ => None,
    };
    found
        .cloned()
        .ok_or_else(|| ExecutionError::function_error("resolve", format!("variable not defined: ${name}")))
}

fn of_pairs(pairs: impl Iterator<Item = (Key, CelValue)>) -> CelValue {
    CelValue::Map(CelMap {
        map: Arc::new(pairs.collect::<HashMap<_, _>>()),
    })
}

fn of_json(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(_) => match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => CelValue::Int(whole),
            (None, Some(number)) => CelValue::Float(number),
            (None, None) => CelValue::Null,
        },
        Value::String(text) => CelValue::String(Arc::new(text.to_string())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(of_json).collect())),
        Value::Object(fields) => of_pairs(
            fields
                .iter()
                .map(|(name, value)| (name.as_str().into(), of_json(value))),
        ),
    }
}

fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(value) => Value::Bool(*value),
        CelValue::Int(number) => Value::from(*number),
        CelValue::UInt(number) => Value::from(*number),
        CelValue::Float(number) => Value::from(*number),
        CelValue::String(text) => Value::from(text.as_str()),
        CelValue::List(items) => items.iter().map(to_json).collect::<Result<Vec<_>, _>>()?.into(),
        CelValue::Map(fields) => {
            let mut sorted = BTreeMap::new();
            for (key, value) in fields.map.iter() {
                sorted.insert(key.to_string(), to_json(value)?);
            }
            Value::Object(sorted.into_iter().collect::<Map>())
        }
        other => return Err(format!("a value of type {} is none of JSON", other.type_of())),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case("object.replicas + 1", Ok(json!(4)))]
    #[case("object.list.filter(item, item > 1).size()", Ok(json!(1)))]
    #[case("object.list.map(item, {'n': item})", Ok(json!([{"n": 1}, {"n": 2}])))]
    #[case("string(bindings.resolve('a') + bindings.resolve(\"b\"))", Ok(json!("3")))]
    #[case("bindings.resolve('deep').x[0]", Ok(json!(1.5)))]
    #[case("object.name.startsWith('cs-') ? 'yes' : 'no'", Ok(json!("yes")))]
    #[case("object.name.split('-')", Ok(json!(["cs", "demo"])))]
    #[case("has(object.nothing)", Ok(json!(false)))]
    #[case("bindings.resolve('c')", Err("variable not defined: $c"))]
    #[case("object.nothing", Err("No such key"))]
    #[case("object.", Err("ERROR"))]
    fn expressions(#[case] expression: &str, #[case] expected: Result<Value, &str>) {
        let over = json!({"name": "cs-demo", "replicas": 3, "list": [1, 2]});
        let mut bindings = Bindings::default();
        bindings.set("a", json!(1));
        bindings.set("b", json!(2));
        bindings.set("deep", json!({"x": [1.5]}));
        match (evaluate(expression, &over, &bindings), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn long_expressions_are_refused() {
        let text = format!("'{}'", "a".repeat(LENGTH_MAX));
        assert!(evaluate(&text, &json!({}), &Bindings::default()).is_err());
    }
}
