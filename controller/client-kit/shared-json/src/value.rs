//! Values.

use std::borrow::Cow;
use std::{fmt, mem, str};

use serde_json::Number;

use crate::{Array, Index, Map, Text};

/// Any JSON value.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    String(Text),
    /// A row of values.
    Array(Array),
    /// Named values.
    Object(Map),
}

impl Value {
    /// A field by name, or an element by place.
    #[inline]
    pub fn get<I: Index>(&self, index: I) -> Option<&Value> {
        index.index_into(self)
    }

    /// The same, to be written.
    pub fn get_mut<I: Index>(&mut self, index: I) -> Option<&mut Value> {
        index.index_into_mut(self)
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_object().is_some()
    }

    /// The object that it is.
    #[must_use]
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The object that it is, to be written.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Whether it is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.as_array().is_some()
    }

    /// The array that it is.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The array that it is, to be written.
    pub fn as_array_mut(&mut self) -> Option<&mut Array> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is text.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.as_str().is_some()
    }

    /// The text that it is.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a number.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// The number that it is.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is an integer of 64 bits with a sign.
    #[must_use]
    pub fn is_i64(&self) -> bool {
        self.as_number().is_some_and(Number::is_i64)
    }

    /// Whether it is an integer of 64 bits without a sign.
    #[must_use]
    pub fn is_u64(&self) -> bool {
        self.as_number().is_some_and(Number::is_u64)
    }

    /// Whether it is a number that is written with a fraction.
    #[must_use]
    pub fn is_f64(&self) -> bool {
        self.as_number().is_some_and(Number::is_f64)
    }

    /// The integer that it is.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The integer that it is, if that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// The number that it is.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().and_then(Number::as_f64)
    }

    /// Whether it is true or false.
    #[must_use]
    pub fn is_boolean(&self) -> bool {
        self.as_bool().is_some()
    }

    /// Whether it is true or false, and which.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(is) => Some(*is),
            _ => None,
        }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value that a JSON pointer (RFC 6901) points to.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let (mut target, mut rest) = (self, pointer);
        while let Some((token, next)) = first_token(rest) {
            target = match target {
                Self::Object(map) => map.get(token.as_ref())?,
                Self::Array(items) => items.get(place(&token)?)?,
                _ => return None,
            };
            rest = next;
        }
        rest.is_empty().then_some(target)
    }

    /// The same, to be written.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        let (mut target, mut rest) = (self, pointer);
        while let Some((token, next)) = first_token(rest) {
            target = match target {
                Self::Object(map) => map.get_mut(token.as_ref())?,
                Self::Array(items) => items.get_mut(place(&token)?)?,
                _ => return None,
            };
            rest = next;
        }
        rest.is_empty().then_some(target)
    }

    /// Leaves null in its place.
    #[must_use]
    pub fn take(&mut self) -> Value {
        mem::take(self)
    }

    /// Changes it as a JSON merge patch (RFC 7386) says.
    pub fn merge(&mut self, patch: &Value) {
        let Self::Object(changes) = patch else {
            *self = patch.clone();
            return;
        };
        if !self.is_object() {
            *self = Self::Object(Map::new());
        }
        let Self::Object(map) = self else { return };
        for (name, change) in changes {
            if change.is_null() {
                map.remove(name);
            } else {
                map.entry(name).or_insert(Self::Null).merge(change);
            }
        }
    }

    /// Whether both are equal, and that costs nothing to see: the same object in memory, or small and alike. False says nothing.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(one), Self::Object(other)) => one.is_same(other),
            (Self::Array(one), Self::Array(other)) => {
                one.is_same(other)
                    || one.len() == other.len()
                        && std::iter::zip(one, other).all(|(one, other)| one.is_same(other))
            }
            (one, other) => one == other,
        }
    }
}

/// The first name of a pointer, and the rest of the pointer.
fn first_token(pointer: &str) -> Option<(Cow<'_, str>, &str)> {
    let after = pointer.strip_prefix('/')?;
    // Pointers are short: nothing is gained by searching them in words.
    let end = after.bytes().position(|byte| byte == b'/');
    let (token, rest) = after.split_at(end.unwrap_or(after.len()));
    let token = if token.bytes().any(|byte| byte == b'~') {
        token.replace("~1", "/").replace("~0", "~").into()
    } else {
        token.into()
    };
    Some((token, rest))
}

fn place(token: &str) -> Option<usize> {
    if token.starts_with('+') || token.starts_with('0') && token.len() != 1 {
        return None;
    }
    token.parse().ok()
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(is) => write!(f, "Bool({is})"),
            Self::Number(number) => fmt::Debug::fmt(number, f),
            Self::String(text) => write!(f, "String({text:?})"),
            Self::Array(items) => {
                f.write_str("Array ")?;
                fmt::Debug::fmt(items, f)
            }
            Self::Object(map) => {
                f.write_str("Object ")?;
                fmt::Debug::fmt(map, f)
            }
        }
    }
}

/// As JSON: on one line, or with `{:#}` on many.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written as a whole: the formatter would look at every piece.
        let text = if f.alternate() {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string(self)
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl str::FromStr for Value {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}
