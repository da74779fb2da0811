//! Expressions in parentheses: JMESPath with variables and arithmetic, `(length($pods) + `1`)`, or CEL. A text may name its
//! language itself: `(cel; object.spec.replicas)`.

use std::collections::BTreeMap;

use jmespath::Runtime;
use serde::Deserialize;
use shared_json::{Value, json};

use super::questions::Questions;
use super::{cel, functions, operators};

/// A language of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compiler {
    /// JMESPath.
    #[default]
    Jp,
    /// CEL.
    Cel,
}

/// Values by name, used in expressions as `$name`, and the language of expressions that name none.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    values: BTreeMap<String, Value>,
    compiler: Compiler,
    questions: Questions,
}

impl Bindings {
    /// Gives a name to a value, hiding its former value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// All names and values, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The same with another language, if one is given.
    #[must_use]
    pub fn compiled_by(mut self, compiler: Option<Compiler>) -> Self {
        self.compiler = compiler.unwrap_or(self.compiler);
        self
    }

    /// The language of expressions that name none.
    #[must_use]
    pub fn compiler(&self) -> Compiler {
        self.compiler
    }

    /// The questions of expressions to the cluster.
    #[must_use]
    pub fn questions(&self) -> &Questions {
        &self.questions
    }
}

/// The expression within parentheses, if the text is one.
#[must_use]
pub fn inner(text: &str) -> Option<&str> {
    text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
}

/// The language that an expression names itself, and the rest of it.
///
/// # Errors
/// If the language is not known.
fn language(expression: &str) -> Result<(Option<Compiler>, &str), String> {
    let Some((word, rest)) = expression.split_once(';') else {
        return Ok((None, expression));
    };
    match word {
        "jp" => Ok((Some(Compiler::Jp), rest)),
        "cel" => Ok((Some(Compiler::Cel), rest)),
        word if !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            Err(format!("the language of expressions \"{word}\" is not known"))
        }
        _ => Ok((None, expression)),
    }
}

/// Evaluates an expression over a value.
///
/// # Errors
/// Why it is none, or cannot be evaluated.
pub fn evaluate(expression: &str, over: &Value, bindings: &Bindings) -> Result<Value, String> {
    let (named, expression) = language(expression)?;
    match named.unwrap_or(bindings.compiler) {
        Compiler::Jp => jmespath(expression, over, bindings),
        Compiler::Cel => cel::evaluate(expression.trim(), over, bindings),
    }
}

fn jmespath(expression: &str, over: &Value, bindings: &Bindings) -> Result<Value, String> {
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
    functions::register(&mut runtime, bindings.questions());
    let compiled = runtime.compile(&text).map_err(|error| one_line(&error))?;
    let found = compiled.search(over).map_err(|error| one_line(&error))?;
    shared_json::to_value(&*found).map_err(|error| error.to_string())
}

fn one_line(error: &jmespath::JmespathError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Evaluates every text in a value that is an expression in parentheses, over nothing: an empty object, since JMESPath makes
/// no list of parts of a missing value.
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_the_bindings_say("a", Compiler::Jp, Ok(json!(2)))]
    #[case::as_the_bindings_say_cel("object.a", Compiler::Cel, Ok(json!(2)))]
    #[case::named_jp("jp; $b", Compiler::Cel, Ok(json!(3)))]
    #[case::named_cel("cel; bindings.resolve('b')", Compiler::Jp, Ok(json!(3)))]
    #[case::semicolon_in_a_text("'a;b'", Compiler::Jp, Ok(json!("a;b")))]
    #[case::unknown("lua; b", Compiler::Jp, Err("the language of expressions \"lua\" is not known".to_owned()))]
    fn languages(#[case] text: &str, #[case] compiler: Compiler, #[case] expected: Result<Value, String>) {
        let mut bindings = Bindings::default().compiled_by(Some(compiler));
        bindings.set("b", json!(3));
        assert_eq!(evaluate(text, &json!({"a": 2}), &bindings), expected);
    }

    #[test]
    fn a_question_is_answered_once_and_forgotten() {
        let bindings = Bindings::default();
        let ask = || {
            evaluate(
                "length(x_k8s_list($client, 'v1', 'Node').items)",
                &json!({}),
                &bindings,
            )
        };
        let mut bound = bindings.clone();
        bound.set("client", Value::Null);
        assert!(ask().is_err(), "$client is not bound");
        let ask = || {
            evaluate(
                "length(x_k8s_list($client, 'v1', 'Node').items)",
                &json!({}),
                &bound,
            )
        };
        assert!(ask().is_err());
        let open = bindings.questions().take_open();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].arguments, ["v1", "Node"]);
        for question in open {
            bindings
                .questions()
                .answer(question, Ok(json!({"items": [1, 2]})));
        }
        assert_eq!(ask(), Ok(json!(2)));
        bindings.questions().forget();
        assert!(ask().is_err());
    }
}
