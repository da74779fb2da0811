//! The functions that Chainsaw adds to JMESPath's: those of JMESPath Community, of kyverno-json and of Kyverno.
//!
//! Functions that ask a cluster are in [`questions`]. Functions that ask a clock or chance, or read certificates, are left out:
//! those names stay unknown.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jmespath::functions::ArgumentType::{self, Any, Array, Expref, Number, Object, String as Text};
use jmespath::functions::{CustomFunction, Signature};
use jmespath::{Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable, interpret};
use regex::Regex;
use shared_json::{Map, Value, json};

use super::operators;
use super::questions::{self, Question, Questions};

/// So long a text may be padded to be.
const WIDTH_MAX: usize = 1 << 16;

/// A function of values.
type Plain = fn(&[Value]) -> Result<Value, String>;
/// Its name, the types of its arguments, how many of these are optional, and its function.
type Row = (&'static str, &'static [ArgumentType], usize, Plain);

fn text(args: &[Value], index: usize) -> &str {
    args.get(index).and_then(Value::as_str).unwrap_or_default()
}

fn number(args: &[Value], index: usize) -> Option<f64> {
    args.get(index).and_then(Value::as_f64)
}

fn items(args: &[Value], index: usize) -> &[Value] {
    args.get(index)
        .and_then(Value::as_array)
        .map_or(&[][..], |items| items.as_slice())
}

/// A text, or a number or truth value as text.
fn as_text(args: &[Value], index: usize) -> Result<String, String> {
    match args.get(index) {
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        _ => Err(format!("argument #{} must be a string or a number", index + 1)),
    }
}

/// A number, whole if it is; none is null.
fn of_number(number: f64) -> Value {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() < WHOLE_MAX {
        true => Value::from(number as i64),
        false if number.is_finite() => Value::from(number),
        false => Value::Null,
    }
}

/// A whole number that is not negative.
fn whole(args: &[Value], index: usize) -> Result<usize, String> {
    let number = number(args, index).unwrap_or_default();
    match number.fract() == 0.0 && number >= 0.0 {
        true => Ok(number as usize),
        false => Err(format!("argument #{} must be a whole number from 0", index + 1)),
    }
}

fn texts(args: &[Value], of: impl Fn(&str, &str) -> String) -> Result<Value, String> {
    Ok(Value::from(of(text(args, 0), text(args, 1))))
}

fn numbers(args: &[Value], of: impl Fn(f64, f64) -> f64) -> Result<Value, String> {
    match (number(args, 0), number(args, 1)) {
        (Some(one), Some(other)) => Ok(of_number(of(one, other))),
        _ => Err("quantities and durations are not known here, only numbers".to_owned()),
    }
}

fn not_zero(args: &[Value], of: impl Fn(f64, f64) -> f64) -> Result<Value, String> {
    match number(args, 1) {
        Some(0.0) => Err("division by zero".to_owned()),
        _ => numbers(args, of),
    }
}

fn split(args: &[Value]) -> Result<Value, String> {
    let (whole, separator) = (text(args, 0), text(args, 1));
    Ok(match separator {
        "" => whole.chars().map(|c| Value::from(c.to_string())).collect(),
        separator => whole.split(separator).map(Value::from).collect(),
    })
}

/// Characters to be taken from an end; white space if none are given.
fn is_in_set(args: &[Value]) -> impl Fn(char) -> bool + use<'_> {
    let set = args.get(1).and_then(Value::as_str);
    move |c| set.map_or(c.is_whitespace(), |set| set.contains(c))
}

fn replace(args: &[Value]) -> Result<Value, String> {
    let (whole, from, to) = (text(args, 0), text(args, 1), text(args, 2));
    Ok(Value::from(match number(args, 3) {
        Some(count) if count >= 0.0 => whole.replacen(from, to, count as usize),
        _ => whole.replace(from, to),
    }))
}

fn regex(args: &[Value]) -> Result<Regex, String> {
    Regex::new(text(args, 0)).map_err(|error| error.to_string())
}

fn round(args: &[Value]) -> Result<Value, String> {
    let places = i32::try_from(whole(args, 1)?).map_err(|error| error.to_string())?;
    let shift = 10_f64.powi(places);
    Ok(of_number(
        (number(args, 0).unwrap_or_default() * shift).round() / shift,
    ))
}

fn sum(args: &[Value]) -> Result<Value, String> {
    let (first, rest) = items(args, 0)
        .split_first()
        .ok_or("at least one element in the array is required")?;
    rest.iter().try_fold(first.clone(), |sum, item| {
        numbers(&[sum, item.clone()], |one, other| one + other)
    })
}

fn to_boolean(args: &[Value]) -> Result<Value, String> {
    match text(args, 0).to_lowercase().as_str() {
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        _ => Err(format!(
            "lowercase argument must be 'true' or 'false' (provided: '{}')",
            text(args, 0)
        )),
    }
}

fn decoded(args: &[Value]) -> Result<Value, String> {
    let bytes = STANDARD
        .decode(text(args, 0))
        .map_err(|error| error.to_string())?;
    Ok(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A path in its shortest form: without empty parts, `.`, and `..` with the part before it.
fn path(args: &[Value]) -> Result<Value, String> {
    let given = text(args, 0);
    let mut parts: Vec<&str> = Vec::new();
    for part in given.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => _ = parts.pop(),
            ("..", None) if given.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if given.starts_with('/') { "/" } else { "" };
    let path = format!("{root}{}", parts.join("/"));
    Ok(Value::from(if path.is_empty() && !given.is_empty() {
        ".".to_owned()
    } else {
        path
    }))
}

fn lookup(args: &[Value]) -> Result<Value, String> {
    let found = match (args.first(), args.get(1)) {
        (Some(Value::Object(map)), Some(Value::String(name))) => map.get(name.as_str()),
        (Some(Value::Array(items)), Some(Value::Number(_))) => items.get(whole(args, 1)?),
        _ => return Err("an object is looked up by a string, an array by a number".to_owned()),
    };
    Ok(found.cloned().unwrap_or_default())
}

/// Objects with a key and a value each.
fn items_of(args: &[Value]) -> Result<Value, String> {
    let (key, value) = (text(args, 1), text(args, 2));
    Ok(match args.first() {
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, held)| json!({key: name.as_str(), value: held.clone()}))
            .collect(),
        _ => items(args, 0)
            .iter()
            .enumerate()
            .map(|(index, held)| json!({key: index, value: held.clone()}))
            .collect(),
    })
}

fn object_from_lists(args: &[Value]) -> Result<Value, String> {
    let mut object = Map::new();
    for (index, _) in items(args, 0).iter().enumerate() {
        let value = items(args, 1).get(index).cloned().unwrap_or_default();
        object.insert(as_text(items(args, 0), index)?, value);
    }
    Ok(Value::Object(object))
}

fn from_items(args: &[Value]) -> Result<Value, String> {
    let mut object = Map::new();
    for pair in items(args, 0) {
        let pair = std::slice::from_ref(pair);
        match items(pair, 0) {
            [Value::String(name), value] => _ = object.insert(name.as_str(), value.clone()),
            _ => return Err("every element must be a pair of a string and a value".to_owned()),
        }
    }
    Ok(Value::Object(object))
}

fn zip(args: &[Value]) -> Result<Value, String> {
    let lists: Vec<&[Value]> = (0..args.len()).map(|index| items(args, index)).collect();
    let length = lists.iter().map(|list| list.len()).min().unwrap_or_default();
    let row = |at: usize| {
        lists
            .iter()
            .filter_map(|list| list.get(at).cloned())
            .collect::<Value>()
    };
    Ok((0..length).map(row).collect())
}

/// Where a text begins in another, in characters: the first time, or the last time.
fn find(args: &[Value], last: bool) -> Result<Value, String> {
    let characters: Vec<char> = text(args, 0).chars().collect();
    let wanted: Vec<char> = text(args, 1).chars().collect();
    if characters.is_empty() || wanted.is_empty() {
        return Ok(Value::Null);
    }
    let length = characters.len();
    // Positions below zero count from the end.
    let place = |index: usize, otherwise: usize| match number(args, index) {
        Some(given) if given < 0.0 => length.saturating_sub((-given) as usize),
        Some(given) => length.min(given as usize),
        None => otherwise,
    };
    let (start, end) = (place(2, 0), place(3, length));
    let within = characters.get(start..end).unwrap_or_default();
    let mut places = within.windows(wanted.len());
    let found = match last {
        true => places.rposition(|part| part == wanted),
        false => places.position(|part| part == wanted),
    };
    Ok(found.map_or(Value::Null, |at| Value::from(start + at)))
}

fn padding(args: &[Value]) -> Result<String, String> {
    let width = whole(args, 1)?;
    if width > WIDTH_MAX {
        return Err(format!("texts are padded to {WIDTH_MAX} characters at most"));
    }
    let missing = width.saturating_sub(text(args, 0).chars().count());
    let with = args.get(2).and_then(Value::as_str).unwrap_or(" ");
    match with.chars().count() {
        1 => Ok(with.repeat(missing)),
        _ => Err("what is padded with must be one character".to_owned()),
    }
}

fn instant(args: &[Value], index: usize) -> Result<jiff::Timestamp, String> {
    text(args, index)
        .parse()
        .map_err(|error: jiff::Error| error.to_string())
}

fn at(args: &[Value]) -> Result<Value, String> {
    let index = whole(args, 1)?;
    let found = items(args, 0).get(index);
    found
        .cloned()
        .ok_or_else(|| format!("there is no element {index}"))
}

fn yaml(args: &[Value]) -> Result<Value, String> {
    serde_saphyr::from_str(text(args, 0)).map_err(|error| error.to_string())
}

const FUNCTIONS: &[Row] = &[
    ("split", &[Text, Text], 0, split),
    ("concat", &[Text, Text], 0, |args| {
        texts(args, |one, other| format!("{one}{other}"))
    }),
    ("to_upper", &[Text], 0, |args| {
        texts(args, |whole, _| whole.to_uppercase())
    }),
    ("to_lower", &[Text], 0, |args| {
        texts(args, |whole, _| whole.to_lowercase())
    }),
    ("upper", &[Text], 0, |args| {
        texts(args, |whole, _| whole.to_uppercase())
    }),
    ("lower", &[Text], 0, |args| {
        texts(args, |whole, _| whole.to_lowercase())
    }),
    ("trim", &[Text, Text], 1, |args| {
        Ok(Value::from(text(args, 0).trim_matches(is_in_set(args))))
    }),
    ("trim_left", &[Text, Text], 1, |args| {
        Ok(Value::from(text(args, 0).trim_start_matches(is_in_set(args))))
    }),
    ("trim_right", &[Text, Text], 1, |args| {
        Ok(Value::from(text(args, 0).trim_end_matches(is_in_set(args))))
    }),
    ("trim_space", &[Text], 0, |args| {
        texts(args, |whole, _| whole.trim().to_owned())
    }),
    ("trim_prefix", &[Text, Text], 0, |args| {
        texts(args, |whole, prefix| {
            whole.strip_prefix(prefix).unwrap_or(whole).to_owned()
        })
    }),
    ("replace", &[Text, Text, Text, Number], 1, replace),
    ("replace_all", &[Text, Text, Text], 0, replace),
    ("truncate", &[Text, Number], 0, |args| {
        let length = number(args, 1).unwrap_or_default().max(0.0) as usize;
        Ok(Value::from(
            text(args, 0).chars().take(length).collect::<String>(),
        ))
    }),
    ("pad_left", &[Text, Number, Text], 1, |args| {
        Ok(Value::from(format!("{}{}", padding(args)?, text(args, 0))))
    }),
    ("pad_right", &[Text, Number, Text], 1, |args| {
        Ok(Value::from(format!("{}{}", text(args, 0), padding(args)?)))
    }),
    ("find_first", &[Text, Text, Number, Number], 2, |args| {
        find(args, false)
    }),
    ("find_last", &[Text, Text, Number, Number], 2, |args| {
        find(args, true)
    }),
    ("compare", &[Text, Text], 0, |args| {
        Ok(Value::from(text(args, 0).cmp(text(args, 1)) as i64))
    }),
    ("equal_fold", &[Text, Text], 0, |args| {
        Ok(Value::Bool(
            text(args, 0).to_lowercase() == text(args, 1).to_lowercase(),
        ))
    }),
    ("wildcard", &[Text, Text], 0, |args| {
        Ok(Value::Bool(crate::glob::matches_glob(
            text(args, 0),
            text(args, 1),
        )))
    }),
    ("pattern_match", &[Text, Any], 0, |args| {
        Ok(Value::Bool(crate::glob::matches_glob(
            text(args, 0),
            &as_text(args, 1)?,
        )))
    }),
    ("regex_match", &[Text, Any], 0, |args| {
        Ok(Value::Bool(regex(args)?.is_match(&as_text(args, 1)?)))
    }),
    ("regex_replace_all", &[Text, Any, Any], 0, |args| {
        let (whole, by) = (as_text(args, 1)?, as_text(args, 2)?);
        Ok(Value::from(regex(args)?.replace_all(&whole, by).into_owned()))
    }),
    ("regex_replace_all_literal", &[Text, Any, Any], 0, |args| {
        let (whole, by) = (as_text(args, 1)?, as_text(args, 2)?);
        Ok(Value::from(
            regex(args)?
                .replace_all(&whole, regex::NoExpand(&by))
                .into_owned(),
        ))
    }),
    ("label_match", &[Object, Object], 0, |args| {
        let of = |index: usize| args.get(index).and_then(Value::as_object);
        let mut wanted = of(0).into_iter().flatten();
        Ok(Value::Bool(wanted.all(|(name, value)| {
            of(1).and_then(|labels| labels.get(name.as_str())) == Some(value)
        })))
    }),
    ("to_boolean", &[Text], 0, to_boolean),
    ("add", &[Any, Any], 0, |args| {
        numbers(args, |one, other| one + other)
    }),
    ("subtract", &[Any, Any], 0, |args| {
        numbers(args, |one, other| one - other)
    }),
    ("multiply", &[Any, Any], 0, |args| {
        numbers(args, |one, other| one * other)
    }),
    ("divide", &[Any, Any], 0, |args| {
        not_zero(args, |one, other| one / other)
    }),
    ("modulo", &[Any, Any], 0, |args| {
        not_zero(args, |one, other| one % other)
    }),
    ("sum", &[Array], 0, sum),
    ("round", &[Number, Number], 0, round),
    ("base64_encode", &[Text], 0, |args| {
        Ok(Value::from(STANDARD.encode(text(args, 0))))
    }),
    ("base64_decode", &[Text], 0, decoded),
    ("path_canonicalize", &[Text], 0, path),
    ("json_parse", &[Text], 0, |args| {
        shared_json::from_str(text(args, 0)).map_err(|error| error.to_string())
    }),
    ("parse_json", &[Text], 0, |args| {
        shared_json::from_str(text(args, 0)).map_err(|error| error.to_string())
    }),
    ("parse_yaml", &[Text], 0, yaml),
    ("at", &[Array, Number], 0, at),
    ("lookup", &[Any, Any], 0, lookup),
    ("items", &[Any, Text, Text], 0, items_of),
    ("object_from_lists", &[Array, Array], 0, object_from_lists),
    ("from_items", &[Array], 0, from_items),
    ("time_before", &[Text, Text], 0, |args| {
        Ok(Value::Bool(instant(args, 0)? < instant(args, 1)?))
    }),
    ("time_after", &[Text, Text], 0, |args| {
        Ok(Value::Bool(instant(args, 0)? > instant(args, 1)?))
    }),
    ("time_between", &[Text, Text, Text], 0, |args| {
        let time = instant(args, 0)?;
        Ok(Value::Bool(time > instant(args, 1)? && time < instant(args, 2)?))
    }),
];

fn fail(context: &Context<'_>, why: String) -> JmespathError {
    JmespathError::new(context.expression, context.offset, ErrorReason::Parse(why))
}

fn evaluated(args: &[Rcvar], context: &Context<'_>, run: Plain) -> Result<Rcvar, JmespathError> {
    let values: Result<Vec<Value>, String> = args
        .iter()
        .map(|arg| shared_json::to_value(&**arg).map_err(|error| error.to_string()))
        .collect();
    let result = values.and_then(|values| run(&values));
    let result = result.map_err(|why| fail(context, why))?;
    Variable::from_serializable(result).map(Rcvar::new)
}

/// The result of an operator on two numbers; of anything else null.
fn operator(name: &str, args: &[Value]) -> Value {
    let (Some(one), Some(other)) = (number(args, 0), number(args, 1)) else {
        return Value::Null;
    };
    of_number(match name {
        "operator_plus" => one + other,
        "operator_minus" => one - other,
        "operator_times" => one * other,
        "operator_divide" => one / other,
        "operator_divide_whole" => (one / other).floor(),
        _ => one % other,
    })
}

thread_local! {
    /// The variables that `let` binds around the present expression, innermost last.
    static BOUND: RefCell<Vec<(String, Rcvar)>> = const { RefCell::new(Vec::new()) };
}

/// Evaluates an expression over a value, with names and values bound.
fn with_bound(args: &[Rcvar], context: &mut Context<'_>) -> Result<Rcvar, JmespathError> {
    let [body, over, bindings @ ..] = args else {
        return Err(fail(context, "an expression is missing".to_owned()));
    };
    let Variable::Expref(body) = &**body else {
        return Err(fail(context, "an expression is missing".to_owned()));
    };
    let before = BOUND.with_borrow(Vec::len);
    for pair in bindings.chunks(2) {
        if let [name, value] = pair
            && let Some(name) = name.as_string()
        {
            BOUND.with_borrow_mut(|bound| bound.push((name.clone(), value.clone())));
        }
    }
    let result = interpret(over, body, context);
    BOUND.with_borrow_mut(|bound| bound.truncate(before));
    result
}

fn bound(args: &[Rcvar]) -> Rcvar {
    let name = args.first().and_then(|name| name.as_string());
    let found = BOUND.with_borrow(|bound| {
        let mut inner = bound.iter().rev();
        inner
            .find(|(bound, _)| Some(bound) == name)
            .map(|(_, value)| value.clone())
    });
    found.unwrap_or_else(|| Rcvar::new(Variable::Null))
}

/// The elements of a list, grouped by the result of an expression.
fn grouped(args: &[Rcvar], context: &mut Context<'_>) -> Result<Rcvar, JmespathError> {
    let mut groups: BTreeMap<String, Rcvar> = BTreeMap::new();
    let [list, by] = args else {
        return Err(fail(context, "a list and an expression are needed".to_owned()));
    };
    if let (Some(list), Variable::Expref(by)) = (list.as_array(), &**by) {
        for item in list {
            let key = interpret(item, by, context)?;
            let Some(key) = key.as_string() else {
                continue;
            };
            let group = groups
                .entry(key.clone())
                .or_insert_with(|| Rcvar::new(Variable::Array(Vec::new())));
            if let Variable::Array(group) = Rcvar::make_mut(group) {
                group.push(item.clone());
            }
        }
    }
    Ok(Rcvar::new(Variable::Object(groups)))
}

/// Adds the functions to a runtime.
pub(super) fn register(runtime: &mut Runtime, asked: &Questions) {
    let mut add = |name: &str, types: &[ArgumentType], more: Option<ArgumentType>, run| {
        let signature = Signature::new(types.to_vec(), more);
        runtime.register_function(name, Box::new(CustomFunction::new(signature, run)));
    };
    for (name, types, optional, run) in FUNCTIONS {
        let (needed, more) = types.split_at(types.len() - optional);
        // What is optional is of one type.
        add(
            name,
            needed,
            more.first().cloned(),
            Box::new(|args, context| evaluated(args, context, *run)),
        );
    }
    add(
        "zip",
        &[Array],
        Some(Array),
        Box::new(|args, context| evaluated(args, context, zip)),
    );
    for (name, _) in operators::OF_TWO {
        add(
            name,
            &[Any, Any],
            None,
            Box::new(move |args, _| {
                let values: Vec<Value> = args
                    .iter()
                    .map(|arg| shared_json::to_value(&**arg).unwrap_or_default())
                    .collect();
                Variable::from_serializable(operator(name, &values)).map(Rcvar::new)
            }),
        );
    }
    add(
        operators::NEGATIVE,
        &[Any],
        None,
        Box::new(|args, context| {
            evaluated(args, context, |args| {
                Ok(number(args, 0).map_or(Value::Null, |of| of_number(-of)))
            })
        }),
    );
    for (name, texts, optional) in questions::FUNCTIONS {
        let mut types = vec![Any];
        types.extend(std::iter::repeat_n(Text, texts - optional));
        let asked = asked.clone();
        let run = move |args: &[Rcvar], context: &mut Context<'_>| {
            let texts = args.iter().skip(1).filter_map(|arg| arg.as_string().cloned());
            let question = Question {
                function: name.to_owned(),
                arguments: texts.collect(),
            };
            let answer = asked.ask(question).map_err(|why| fail(context, why))?;
            Variable::from_serializable(answer).map(Rcvar::new)
        };
        add(name, &types, (optional > 0).then_some(Text), Box::new(run));
    }
    add("group_by", &[Array, Expref], None, Box::new(grouped));
    add(operators::LET, &[Expref, Any], Some(Any), Box::new(with_bound));
    add(
        operators::VARIABLE,
        &[Text],
        None,
        Box::new(|args, _| Ok(bound(args))),
    );
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::expression::{Bindings, evaluate};
    use super::*;

    #[rstest]
    #[case("n + `1`", json!(4))]
    #[case("n - `1` - `1`", json!(1))]
    #[case("n * n + `1`", json!(10))]
    #[case("n * (n + `1`)", json!(12))]
    #[case("n / `2`", json!(1.5))]
    #[case("n // `2`", json!(1))]
    #[case("n % `2`", json!(1))]
    #[case("-n + `1`", json!(-2))]
    #[case("n / `0`", json!(null))]
    #[case("name + `1`", json!(null))]
    #[case("n + `1` == `4` && n - `3` == `0`", json!(true))]
    #[case("list[?a + `1` == b].a", json!([1]))]
    #[case("list[*].{sum: a + b}", json!([{"sum": 3}, {"sum": 6}]))]
    #[case("length($pods) * `2`", json!(4))]
    #[case("$pods[0].a + n", json!(10))]
    #[case("let $x = n in list[?b == $x + `1`]", json!([{"a": 2, "b": 4}]))]
    #[case("let $x = n, $y = name in {x: $x, y: $y}", json!({"x": 3, "y": "cs-demo"}))]
    #[case("let $x = n in let $x = `1` in $x", json!(1))]
    #[case("list[*].[let $a = a in $a + $.n]", json!([[4], [5]]))]
    #[case("split(name, '-')", json!(["cs", "demo"]))]
    #[case("split('ab', '')", json!(["a", "b"]))]
    #[case("trim('--a-', '-')", json!("a"))]
    #[case("trim('  a ')", json!("a"))]
    #[case("trim_left('--a-', '-')", json!("a-"))]
    #[case("trim_right('--a-', '-')", json!("--a"))]
    #[case("trim_prefix(name, 'cs-')", json!("demo"))]
    #[case("to_upper(name)", json!("CS-DEMO"))]
    #[case("replace('aaa', 'a', 'b', `2`)", json!("bba"))]
    #[case("replace_all('aaa', 'a', 'b')", json!("bbb"))]
    #[case("truncate(name, `2`)", json!("cs"))]
    #[case("pad_left('7', `3`, '0')", json!("007"))]
    #[case("pad_right('7', `3`)", json!("7  "))]
    #[case("find_first('cs-cs', 'cs')", json!(0))]
    #[case("find_first('cs-cs', 'cs', `1`)", json!(3))]
    #[case("find_last('cs-cs', 'cs')", json!(3))]
    #[case("find_last('cs-cs', 'x')", json!(null))]
    #[case("compare('a', 'b')", json!(-1))]
    #[case("equal_fold('A', 'a')", json!(true))]
    #[case("wildcard('cs-*', name)", json!(true))]
    #[case("pattern_match('1*', `12`)", json!(true))]
    #[case("regex_match('^cs-[a-z]+$', name)", json!(true))]
    #[case("regex_replace_all('(c)s', name, '${1}x')", json!("cx-demo"))]
    #[case("regex_replace_all_literal('cs', name, '$1')", json!("$1-demo"))]
    #[case("label_match(`{\"a\": \"1\"}`, `{\"a\": \"1\", \"b\": \"2\"}`)", json!(true))]
    #[case("label_match(`{\"a\": \"1\"}`, `{\"b\": \"2\"}`)", json!(false))]
    #[case("to_boolean('True')", json!(true))]
    #[case("add(n, `1`)", json!(4))]
    #[case("subtract(n, `1`)", json!(2))]
    #[case("multiply(n, `0.5`)", json!(1.5))]
    #[case("divide(n, `2`)", json!(1.5))]
    #[case("modulo(n, `2`)", json!(1))]
    #[case("sum(list[].a)", json!(3))]
    #[case("round(`2.345`, `1`)", json!(2.3))]
    #[case("base64_decode(base64_encode(name))", json!("cs-demo"))]
    #[case("path_canonicalize('/a//b/../c/.')", json!("/a/c"))]
    #[case("parse_json('{\"a\": [1]}').a", json!([1]))]
    #[case("parse_yaml('a: [1]').a", json!([1]))]
    #[case("at(list, `1`).a", json!(2))]
    #[case("lookup(@, 'n')", json!(3))]
    #[case("lookup(list, `5`)", json!(null))]
    #[case("items(`{\"a\": 1}`, 'key', 'value')", json!([{"key": "a", "value": 1}]))]
    #[case("items(`[5]`, 'key', 'value')", json!([{"key": 0, "value": 5}]))]
    #[case("object_from_lists(`[\"a\", \"b\"]`, `[1]`)", json!({"a": 1, "b": null}))]
    #[case("from_items(`[[\"a\", 1]]`)", json!({"a": 1}))]
    #[case("zip(`[1, 2]`, `[3]`)", json!([[1, 3]]))]
    #[case("group_by(`[{\"k\": \"x\", \"v\": 1}, {\"k\": \"y\"}, {\"k\": \"x\", \"v\": 2}]`, &k).x[].v", json!([1, 2]))]
    #[case("time_before('2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z')", json!(true))]
    #[case("time_after('2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z')", json!(false))]
    #[case("time_between('2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-03T00:00:00Z')", json!(true))]
    fn values(#[case] expression: &str, #[case] expected: Value) {
        assert_eq!(outcome(expression), Ok(expected));
    }

    #[rstest]
    #[case("divide(n, `0`)", "division by zero")]
    #[case(
        "add(name, '1Gi')",
        "quantities and durations are not known here, only numbers"
    )]
    #[case(
        "to_boolean('yes')",
        "lowercase argument must be 'true' or 'false' (provided: 'yes')"
    )]
    #[case("sum(`[]`)", "at least one element in the array is required")]
    #[case("at(list, `2`)", "there is no element 2")]
    #[case("pad_left(name, `9`, 'ab')", "what is padded with must be one character")]
    #[case("pad_left(name, `1e15`)", "texts are padded to 65536 characters at most")]
    #[case("regex_match('(', name)", "regex parse error")]
    #[case("split(name)", "Not enough arguments")]
    #[case("random('[a-z]')", "Call to undefined function random")]
    fn refusals(#[case] expression: &str, #[case] expected: &str) {
        let why = outcome(expression).expect_err("a refusal");
        assert!(why.contains(expected), "{why}");
    }

    fn outcome(expression: &str) -> Result<Value, String> {
        let over = json!({"name": "cs-demo", "n": 3, "list": [{"a": 1, "b": 2}, {"a": 2, "b": 4}]});
        let mut bindings = Bindings::default();
        bindings.set("pods", json!([{"a": 7}, {"a": 8}]));
        evaluate(expression, &over, &bindings)
    }
}
