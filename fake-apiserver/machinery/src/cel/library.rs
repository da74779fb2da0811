//! Functions that the interpreter lacks or answers otherwise than the real server: types as values, conversions, optional
//! fields, and parts of times in other zones.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{Datelike as _, FixedOffset, SecondsFormat, Timelike as _};
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value};

use super::objects::parts;
use super::values;
use crate::pattern;
use pod_rules::zones;

type Outcome = Result<Value, ExecutionError>;

/// The names of types that are words of the language.
pub(super) const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];
const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DURATION: &str = "google.protobuf.Duration";
/// Calls whose only argument, or whose result, goes through a function of this module.
const BEFORE: [(&str, &str); 5] = [
    ("cidr", "@network"),
    ("int", "@counted"),
    ("ip", "@address"),
    ("semver", "@version"),
    ("string", "@written"),
];
/// Functions that the interpreter takes for methods: as functions they would not say why their argument has no value.
const METHODS: [&str; 13] = [
    "double", "int", "ip", "isSemver", "matches", "semver", "sign", "size", "string", "uint", "min", "max",
    "sum",
];

/// Methods whose first argument is a regular expression, and the function that it goes through.
pub(super) const SEARCHES: [&str; 3] = ["matches", "find", "findAll"];
const PATTERN: &str = "@pattern";

/// Adds the functions and the names of types.
pub(super) fn add(context: &mut Context<'static>) {
    context.add_function("@entries", |of: Value| Ok(values::entries(&of)));
    context.add_function("@mapInsert", |map: Value, key: Value, value: Value| {
        Ok(values::with_entry(&map, key, value))
    });
    context.add_function(PATTERN, |pattern: Value| -> Outcome {
        match &pattern {
            Value::String(text) => pattern::translate(text)
                .map(|text| Value::String(text.into()))
                .map_err(|why| ExecutionError::function_error("matches", why)),
            _ => Ok(pattern),
        }
    });
    context.add_function("@written", |value: Value| -> Outcome {
        match &value {
            Value::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => Err(
                ExecutionError::function_error("string", "invalid UTF-8 in bytes, cannot convert to string"),
            ),
            _ => Ok(written(value)),
        }
    });
    context.add_function("timestamp", timestamp);
    context.add_function(
        "replace",
        |This(text): This<Arc<String>>, Arguments(args): Arguments| replaced(&text, &args),
    );
    context.add_function("@merged", |a: Value, b: Value| -> Outcome { merged(&a, &b) });
    context.add_function("@sortByAssociatedKeys", |This(of): This<Value>, keys: Value| {
        sorted(&of, &keys)
    });
    context.add_function("sum", |This(of): This<Arc<Vec<Value>>>| sum(&of));
    context.add_function("@counted", |value: Value| -> Outcome { Ok(counted(value)) });
    context.add_function("@some", |value: Value| -> Outcome {
        Ok(values::optional(
            Some(value).filter(|value| *value != Value::Null),
        ))
    });
    context.add_function("@field", field);
    context.add_function("bool", truth);
    context.add_function("dyn", |value: Value| -> Outcome { Ok(value) });
    context.add_function("size", |This(of): This<Value>| size(&of));
    context.add_function("type", |value: Value| -> Outcome {
        Ok(type_named(type_of(&value)))
    });
    for (part, read) in CALENDAR {
        context.add_function(
            part,
            move |This(of): This<Value>, Arguments(zone): Arguments| match of {
                Value::Timestamp(time) => Ok(Value::Int(read(&in_zone(time, &zone)?))),
                Value::Duration(length) => elapsed(part, &length),
                _ => Err(ExecutionError::NoSuchOverload),
            },
        );
    }
    for name in TYPES {
        context.add_variable_from_value(name, type_named(name));
    }
    let protobuf = values::map([
        ("Timestamp".to_owned(), type_named(TIMESTAMP)),
        ("Duration".to_owned(), type_named(DURATION)),
    ]);
    context.add_variable_from_value("google", values::map([("protobuf".to_owned(), protobuf)]));
}

/// Puts this module's functions where the interpreter's own would do; whether there was such a place.
pub(super) fn lower(expression: &mut IdedExpr) -> bool {
    let mut found = false;
    for part in parts(&mut expression.expr) {
        found |= lower(part);
    }
    let id = expression.id;
    let call = |name: &str, args| {
        Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        })
    };
    // What is selected of something optional is optional.
    if let Expr::Select(own) = &mut expression.expr
        && !own.test
        && is_optional(&own.operand)
    {
        let name = Expr::Literal(LiteralValue::String(own.field.as_str().into()));
        let operand = std::mem::take(&mut *own.operand);
        expression.expr = call("@field", vec![operand, IdedExpr { id, expr: name }]);
        return true;
    }
    let Expr::Call(own) = &mut expression.expr else {
        return found;
    };
    if own.func_name == operators::INDEX && own.args.first().is_some_and(is_optional) {
        own.func_name = operators::OPT_INDEX.to_owned();
        return true;
    }
    if own.func_name == "_?._" {
        own.func_name = "@field".to_owned();
        return true;
    }
    let helper = BEFORE
        .iter()
        .find(|(name, _)| *name == own.func_name && own.target.is_none());
    if let (Some((_, helper)), [argument]) = (helper, own.args.as_mut_slice()) {
        let inner = std::mem::take(argument);
        *argument = IdedExpr {
            id,
            expr: call(helper, vec![inner]),
        };
        found = true;
    }
    // Patterns are Go's.
    if SEARCHES.contains(&own.func_name.as_str())
        && let Some(pattern) = own.args.get_mut(usize::from(own.target.is_none()))
        && !matches!(&pattern.expr, Expr::Call(inner) if inner.func_name == PATTERN)
    {
        let inner = std::mem::take(pattern);
        *pattern = IdedExpr {
            id,
            expr: call(PATTERN, vec![inner]),
        };
        found = true;
    }
    if own.target.is_none() && !own.args.is_empty() && METHODS.contains(&own.func_name.as_str()) {
        own.target = Some(Box::new(own.args.remove(0)));
        return true;
    }
    let is_library = own
        .target
        .as_ref()
        .is_some_and(|target| target.expr == Expr::Ident("format".to_owned()));
    let is_address = |name: &str| {
        let library = Expr::Ident("ip".to_owned());
        name == "isCanonical" && own.target.as_ref().is_some_and(|target| target.expr == library)
    };
    let reader = match own.func_name.as_str() {
        "containsIP" => Some("@anyAddress"),
        name if is_address(name) => Some("@address"),
        _ => None,
    };
    if let (Some(reader), [argument]) = (reader, own.args.as_mut_slice()) {
        let inner = std::mem::take(argument);
        *argument = IdedExpr {
            id,
            expr: call(reader, vec![inner]),
        };
        return true;
    }
    if own.func_name == "named" && is_library {
        let inner = std::mem::take(expression);
        *expression = IdedExpr {
            id,
            expr: call("@some", vec![inner]),
        };
        return true;
    }
    found
}

/// Whether an expression, brought into shape, is a field or an item that may not be there.
fn is_optional(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Call(call) if matches!(call.func_name.as_str(), "@field" | operators::OPT_INDEX))
}

fn type_named(name: &str) -> Value {
    values::text(&format!("type({name})"))
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        Value::Timestamp(_) => TIMESTAMP,
        Value::Duration(_) => DURATION,
        _ => "type",
    }
}

/// Times and durations as texts, as conversion to text writes them; other values as they are.
pub(super) fn written(value: Value) -> Value {
    match value {
        Value::Timestamp(time) => values::text(&time_text(&time)),
        Value::Duration(length) => {
            let nanos = length.num_nanoseconds().unwrap_or(i64::MAX);
            values::text(&format!("{}s", nanos as f64 / 1e9))
        }
        Value::Bool(truth) => values::text(&truth.to_string()),
        Value::Float(number) => values::text(&number_text(number)),
        other => other,
    }
}

/// A time as Go's `time.RFC3339Nano` writes it: in the zone in which it was given, and without zeros behind the fraction.
fn time_text(time: &Time) -> String {
    let mut text = time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let nanoseconds = time.timestamp_subsec_nanos();
    if nanoseconds > 0 {
        let fraction = format!(".{nanoseconds:09}");
        text.insert_str(SECONDS_END.min(text.len()), fraction.trim_end_matches('0'));
    }
    text
}

/// Where the seconds end in `2024-02-29T12:30:45Z`.
const SECONDS_END: usize = 19;

/// The seconds of the first and of the last year that a time may be in.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The time that a text says, or so many seconds after the beginning of 1970.
fn timestamp(value: Value) -> Outcome {
    let refused = |why: &str| ExecutionError::function_error("timestamp", why);
    let time = match value {
        Value::Timestamp(time) => time,
        Value::Int(seconds) if TIMES.contains(&seconds) => {
            let time = chrono::DateTime::from_timestamp(seconds, 0).map(|time| time.fixed_offset());
            time.ok_or_else(|| refused(TIME_OVERFLOW))?
        }
        Value::Int(_) => return Err(refused(TIME_OVERFLOW)),
        Value::String(text) => {
            // What takes the place of the `T` is nothing else.
            let parsed = text.contains('T').then(|| Time::parse_from_rfc3339(&text));
            match parsed {
                Some(Ok(time)) if TIMES.contains(&time.timestamp()) => time,
                Some(Ok(_)) => return Err(refused(TIME_OVERFLOW)),
                Some(Err(_)) | None => return Err(refused("no time")),
            }
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Timestamp(time))
}

/// The error for a time in no year from 1 to 9999.
pub(super) const TIME_OVERFLOW: &str = "timestamp overflow";

/// A text with another in place of a part: everywhere, or at most so often. A negative number is no limit.
fn replaced(text: &str, args: &[Value]) -> Outcome {
    let (old, new, most) = match args {
        [Value::String(old), Value::String(new)] => (old, new, None),
        [Value::String(old), Value::String(new), Value::Int(most)] => (old, new, usize::try_from(*most).ok()),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(values::text(&match most {
        Some(most) => text.replacen(old.as_str(), new, most),
        None => text.replace(old.as_str(), new),
    }))
}

/// A number as Go's `%g` writes it.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{number:e}");
    let (mantissa, power) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    if number != 0.0 && !(-4..6).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", power.abs());
    }
    number.to_string()
}

/// Two maps as one.
fn merged(a: &Value, b: &Value) -> Outcome {
    let (Value::Map(a), Value::Map(b)) = (a, b) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut all = (*a.map).clone();
    for (key, value) in b.map.iter() {
        if all.insert(key.clone(), value.clone()).is_some() {
            let why = format!("insert failed: key {key} already exists");
            return Err(ExecutionError::function_error("@merged", why));
        }
    }
    Ok(Value::Map(Map { map: Arc::new(all) }))
}

/// A list in the order of the keys that belong to its items.
fn sorted(of: &Value, keys: &Value) -> Outcome {
    let (Value::List(items), Value::List(keys)) = (of, keys) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(items.iter()).collect();
    pairs.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let items = pairs.into_iter().map(|(_, item)| item.clone()).collect();
    Ok(Value::List(Arc::new(items)))
}

/// The sum of numbers or durations; 0 of none.
fn sum(items: &[Value]) -> Outcome {
    let mut items = items.iter().cloned();
    let Some(first) = items.next() else {
        return Ok(Value::Int(0));
    };
    items.try_fold(first, |sum, item| sum + item)
}

/// Times as seconds, durations as nanoseconds; other values as they are.
fn counted(value: Value) -> Value {
    match value {
        Value::Timestamp(time) => Value::Int(time.timestamp()),
        Value::Duration(length) => Value::Int(length.num_nanoseconds().unwrap_or(i64::MAX)),
        other => other,
    }
}

fn truth(value: Value) -> Outcome {
    let text = match &value {
        Value::Bool(_) => return Ok(value),
        Value::String(text) => text.as_str(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        other => {
            let why = format!("strconv.ParseBool: parsing {other:?}: invalid syntax");
            Err(ExecutionError::function_error("bool", why))
        }
    }
}

fn size(of: &Value) -> Outcome {
    let size = match of {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Int(size as i64))
}

/// A field of an object, or of an optional one, as an optional value.
fn field(of: Value, name: Arc<String>) -> Outcome {
    let holder = match &of {
        Value::Opaque(_) => <&OptionalValue>::try_from(&of).map(|inner| inner.value().cloned())?,
        other => Some(other.clone()),
    };
    let Some(holder) = holder else {
        return Ok(values::optional(None));
    };
    let Value::Map(Map { map }) = holder else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let map: &HashMap<Key, Value> = &map;
    Ok(values::optional(map.get(&Key::from(name.as_str())).cloned()))
}

type Time = chrono::DateTime<FixedOffset>;

/// Reads one part of a time.
type Part = fn(&Time) -> i64;

/// Parts of a time, by the methods that read them.
const CALENDAR: [(&str, Part); 10] = [
    ("getFullYear", |time| time.year().into()),
    ("getMonth", |time| time.month0().into()),
    ("getDayOfYear", |time| time.ordinal0().into()),
    ("getDayOfMonth", |time| time.day0().into()),
    ("getDate", |time| time.day().into()),
    ("getDayOfWeek", |time| {
        time.weekday().num_days_from_sunday().into()
    }),
    ("getHours", |time| time.hour().into()),
    ("getMinutes", |time| time.minute().into()),
    ("getSeconds", |time| time.second().into()),
    ("getMilliseconds", |time| time.timestamp_subsec_millis().into()),
];

/// The time in a zone: one is named by the methods' argument, and UTC without.
fn in_zone(time: Time, zone: &[Value]) -> Result<Time, ExecutionError> {
    let utc = FixedOffset::east_opt(0).ok_or(ExecutionError::NoSuchOverload)?;
    let name = match zone {
        [Value::String(name)] => name.as_str(),
        _ => "UTC",
    };
    // The machine of a server keeps no time of its own.
    if matches!(name, "UTC" | "" | "Local") {
        return Ok(time.with_timezone(&utc));
    }
    let offset = name.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = hours.abs() * 3600 + minutes * 60;
        FixedOffset::east_opt(if name.starts_with('-') { -seconds } else { seconds })
    });
    match offset.or_else(|| offset_of(name, &time)) {
        Some(offset) => Ok(time.with_timezone(&offset)),
        None => {
            let why = format!("unknown time zone {name}");
            Err(ExecutionError::function_error("timestamp", why))
        }
    }
}

/// How far a zone that has a name is from UTC at a time.
fn offset_of(name: &str, time: &Time) -> Option<FixedOffset> {
    let zone = zones::named(name)?;
    let moment = jiff::Timestamp::from_second(time.timestamp()).ok()?;
    FixedOffset::east_opt(zone.to_offset(moment).seconds())
}

/// How many whole hours, minutes, seconds or milliseconds a duration has.
fn elapsed(part: &str, length: &chrono::Duration) -> Outcome {
    match part {
        "getHours" => Ok(Value::Int(length.num_hours())),
        "getMinutes" => Ok(Value::Int(length.num_minutes())),
        "getSeconds" => Ok(Value::Int(length.num_seconds())),
        "getMilliseconds" => Ok(Value::Int(length.num_milliseconds())),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::super::{Expression, Scope};
    use super::*;

    #[rstest]
    #[case("type(self.n) == int && type(self.s) == string && type(self) == map && type(null) == null_type")]
    #[case("type(timestamp('2024-01-01T00:00:00Z')) == google.protobuf.Timestamp")]
    #[case("string(timestamp('2024-02-29T12:30:45+02:00')) == '2024-02-29T12:30:45+02:00'")]
    #[case("string(timestamp('2024-02-29T12:30:45.500+00:00')) == '2024-02-29T12:30:45.5Z'")]
    #[case("timestamp(10) == timestamp('1970-01-01T00:00:10Z') && timestamp(timestamp(10)) == timestamp(10)")]
    #[case("'a-b-c'.replace('-', '+', -1) == 'a+b+c' && 'a-b-c'.replace('-', '+', 0) == 'a-b-c'")]
    #[case("'a-b-c'.replace('-', '+', 1) == 'a+b-c' && 'ab'.replace('', '-') == '-a-b-'")]
    #[case("!isCIDR('01.2.3.4/8') && isCIDR('1.2.3.4/8') && !isCIDR('::ffff:1.2.3.4/96')")]
    #[case("url('https://Example.com:443/a/../b?x=1&x=2&y').getHost() == 'Example.com:443'")]
    #[case("url('https://a/?x=1&x=2&y').getQuery() == {'x': ['1', '2'], 'y': ['']}")]
    #[case("url('/a') == url('/a') && url('https://a/') != url('https://a') && !isURL('a')")]
    #[case("bool('true') && !bool('f') && dyn(self.n) == 5")]
    #[case(
        "string(timestamp('2024-02-29T12:30:45Z')) == '2024-02-29T12:30:45Z' && string(duration('90m')) == '5400s'"
    )]
    #[case("string(true) == 'true' && 'is ' + string(1 > 2) == 'is false'")]
    #[case("string(duration('1.5s')) == '1.5s' && string(self.n) == '5'")]
    #[case("int(timestamp('1970-01-01T00:00:10Z')) == 10 && int('7') == 7")]
    #[case(
        "timestamp('2024-02-29T12:30:45Z').getHours() == 12 && timestamp('2024-02-29T12:30:45Z').getHours('-02:00') == 10"
    )]
    #[case(
        "timestamp('2024-02-29T12:30:45Z').getHours('America/New_York') == 7 && timestamp('2024-07-29T12:30:45Z').getHours('America/New_York') == 8"
    )]
    #[case(
        "timestamp('2024-02-29T23:30:45Z').getDate('Asia/Kolkata') == 1 && timestamp('2024-02-29T12:30:45Z').getMinutes('Asia/Kolkata') == 0"
    )]
    #[case(
        "timestamp('2024-02-29T12:30:45Z').getDate() == 29 && timestamp('2024-02-29T12:30:45Z').getMonth() == 1"
    )]
    #[case("duration('90m').getHours() == 1 && duration('1.5s').getMilliseconds() == 1500")]
    #[case(
        "self.?o.x.orValue('none') == 'q' && self.?o['x'].orValue('none') == 'q' && !self.?z.y.hasValue()"
    )]
    #[case(
        "self.?o.?y.orValue('none') == 'none' && self.?o.?x.orValue('none') == 'q' && !self.?z.?y.hasValue()"
    )]
    #[case("format.named('uri').hasValue() && !format.named('foo').hasValue()")]
    #[case("'é'.size() == 1 && size([1, 2]) == 2 && {'a': 1}.size() == 1")]
    #[case("[3, 4].transformList(i, v, v + i) == [3, 5] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}")]
    #[case("[3, 4].all(i, v, v > i) && optional.of(2).optMap(v, v * 2).value() == 4")]
    fn are_true(#[case] rule: &str) {
        let read = Expression::read(rule).expect("an expression");
        let this = values::plain(&json!({"n": 5, "s": "x", "o": {"x": "q"}}));
        let value = read.value(&Scope::new(), &[("self", this)]).expect("a value");
        assert_eq!(value, Value::Bool(true));
    }

    #[rstest]
    #[case("timestamp(253402300800) == timestamp(0)", "timestamp overflow")]
    #[case(
        "timestamp(self) == timestamp(0)",
        "type conversion error from 'string' to 'google.protobuf.Timestamp'"
    )]
    #[case(
        "url('a').getHost() == ''",
        "URL parse error during conversion from string: parse \"a\": invalid URI for request"
    )]
    fn refusals(#[case] rule: &str, #[case] expected: &str) {
        let read = Expression::read(rule).expect("an expression");
        let this = values::text("2024-02-29 12:30:45Z");
        let failure = read
            .value(&Scope::new(), &[("self", this)])
            .expect_err("no value");
        assert_eq!(failure.text, expected);
    }

    #[rstest]
    #[case("America/Nowhere")]
    #[case("america/new_york")]
    fn zones_that_are_none(#[case] name: &str) {
        let rule = format!("timestamp('2024-02-29T12:30:45Z').getHours('{name}') == 7");
        let read = Expression::read(&rule).expect("an expression");
        let failure = read.value(&Scope::new(), &[]).expect_err("no value");
        assert_eq!(failure.text, format!("unknown time zone {name}"));
    }
}
