//! JMESPath expressions with variables and arithmetic: `(length($pods) + `1`)`.

use std::collections::BTreeMap;

use jmespath::Runtime;
use shared_json::{Value, json};

use super::{functions, operators};

/// Values by name, used in expressions as `$name`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bindings(BTreeMap<String, Value>);

impl Bindings {
    /// Gives a name to a value, hiding what had it before.
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// The expression within parentheses, if the text is one.
#[must_use]
pub fn inner(text: &str) -> Option<&str> {
    text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
}

/// Evaluates an expression over a value.
///
/// # Errors
/// Why it is none, or cannot be evaluated.
pub fn evaluate(expression: &str, over: &Value, bindings: &Bindings) -> Result<Value, String> {
    // `$` alone is what the whole expression is evaluated over.
    let known = |name: &str| match name {
        "" => Ok(over.to_string()),
        name => match bindings.get(name) {
            Some(value) => Ok(value.to_string()),
            None => Err(format!("the variable ${name} is not defined")),
        },
    };
    let text = operators::rewrite(expression, &known)?;
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    functions::register(&mut runtime);
    let compiled = runtime.compile(&text).map_err(|error| one_line(&error))?;
    let found = compiled.search(over).map_err(|error| one_line(&error))?;
    shared_json::to_value(&*found).map_err(|error| error.to_string())
}

fn one_line(error: &jmespath::JmespathError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Evaluates every text in a value that is an expression in parentheses, over nothing: an empty object, since JMESPath makes
/// no list of parts of what is not there.
///
/// # Errors
/// As [`evaluate`].
pub fn fill(template: &Value, bindings: &Bindings) -> Result<Value, String> {
    Ok(match template {
        Value::String(text) => match inner(text) {
            Some(expression) => evaluate(expression, &json!({}), bindings)?,
            None => template.clone(),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| fill(item, bindings))
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| Ok((key.clone(), fill(value, bindings)?)))
            .collect::<Result<shared_json::Map, String>>()?
            .into(),
        other => other.clone(),
    })
}
