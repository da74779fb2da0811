//! One step of a path into an object, as managed fields name it.

use shared_json::{Map, Name, Value};
use std::cmp::Ordering;
use std::fmt;

/// One step of a path.
///
/// Steps are ordered as the real server orders them: fields, keys, values, indexes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object or a key of a map: `f:name`.
    Field(Name),
    /// An item of a list, by the values of its key fields, sorted by name: `k:{"name":"x"}`.
    Key(Vec<(Name, Scalar)>),
    /// An item of a set, by its value: `v:"x"`.
    Value(Scalar),
    /// An item of a list, by its position: `i:0`.
    Index(i64),
}

/// A JSON value with a total order, numbers compared by value.
#[derive(Debug, Clone)]
pub struct Scalar(pub Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a
                .as_f64()
                .unwrap_or(f64::NAN)
                .total_cmp(&b.as_f64().unwrap_or(f64::NAN)),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differs = a
                .iter()
                .zip(b)
                .map(|(a, b)| compare(a, b))
                .find(|order| order.is_ne());
            differs.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let differs = a
                .iter()
                .zip(b)
                .map(|((ka, a), (kb, b))| ka.cmp(kb).then_with(|| compare(a, b)));
            differs
                .into_iter()
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Mixes a word into a number.
pub(super) fn mix(number: u64, word: u64) -> u64 {
    (number.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Scalar {
    fn number(&self, number: u64) -> u64 {
        match &self.0 {
            Value::String(text) => mix(number, Name::number_of(text)),
            other => mix(number, other.as_i64().map_or(0, i64::unsigned_abs)),
        }
    }
}

impl PathElement {
    /// A hash of the former number and the step: the same for equal ones.
    pub(super) fn number(&self, number: u64) -> u64 {
        match self {
            PathElement::Field(name) => mix(number, name.number()),
            PathElement::Key(fields) => fields.iter().fold(mix(number, 1), |number, (name, value)| {
                value.number(mix(number, name.number()))
            }),
            PathElement::Value(value) => value.number(mix(number, 2)),
            PathElement::Index(at) => mix(mix(number, 3), at.unsigned_abs()),
        }
    }

    /// A field's step.
    pub fn field(name: &str) -> PathElement {
        PathElement::Field(Name::from(name))
    }

    /// The step as a key of `fieldsV1`.
    pub fn encode(&self) -> Name {
        Name::from(match self {
            PathElement::Field(name) => ["f:", name].concat(),
            PathElement::Key(fields) => {
                let object: Map = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.0.clone()))
                    .collect();
                format!("k:{}", Value::Object(object))
            }
            PathElement::Value(value) => format!("v:{}", value.0),
            PathElement::Index(at) => format!("i:{at}"),
        })
    }

    /// Reads a key of `fieldsV1`. `Ok(None)` is a kind of step from a future version, which is skipped.
    pub fn decode(key: &str) -> Result<Option<PathElement>, String> {
        let (kind, rest) = key
            .split_at_checked(2)
            .ok_or_else(|| format!("key must be 2 characters long: {key}"))?;
        let json = || shared_json::from_str::<Value>(rest).map_err(|error| format!("{error} in {key:?}"));
        Ok(Some(match kind {
            "f:" => PathElement::field(rest),
            "v:" => PathElement::Value(Scalar(json()?)),
            "i:" => PathElement::Index(rest.parse().map_err(|error| format!("{error} in {key:?}"))?),
            "k:" => match json()? {
                Value::Object(fields) => PathElement::Key(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name, Scalar(value)))
                        .collect(),
                ),
                _ => return Err(format!("expected an object in {key:?}")),
            },
            _ if kind.ends_with(':') => return Ok(None),
            _ => return Err(format!("missing colon: {key}")),
        }))
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.0))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            PathElement::Value(value) => write!(f, "[={}]", value.0),
            PathElement::Index(at) => write!(f, "[{at}]"),
        }
    }
}
