//! The expressions in `json!`. Of those that are JSON already it takes a copy, which shares their memory.

use serde::Serialize;

use crate::{Array, Map, Text, Value};

/// An expression in a literal.
pub struct Expression<'a, T: ?Sized>(pub &'a T);

/// Expressions that are JSON. Found before [`Serialised`], as a method of the type itself goes before one of its reference.
pub trait Shared {
    /// The expression as a value.
    fn written(self) -> Value;
}

/// All others.
pub trait Serialised {
    /// The expression as a value.
    fn written(self) -> Value;
}

impl<T: Serialize + ?Sized> Serialised for &Expression<'_, T> {
    /// # Panics
    /// If it cannot be JSON.
    fn written(self) -> Value {
        match crate::to_value(self.0) {
            Ok(value) => value,
            Err(error) => panic!("write JSON: {error}"),
        }
    }
}

macro_rules! shared {
    ($($ty:ty),*) => {$(
        impl Shared for Expression<'_, $ty> {
            fn written(self) -> Value {
                Value::from(self.0.clone())
            }
        }

        impl Shared for Expression<'_, &$ty> {
            fn written(self) -> Value {
                Value::from((*self.0).clone())
            }
        }

        impl Shared for Expression<'_, Option<$ty>> {
            fn written(self) -> Value {
                Value::from(self.0.clone())
            }
        }

        impl Shared for Expression<'_, Option<&$ty>> {
            fn written(self) -> Value {
                Value::from(self.0.cloned())
            }
        }
    )*};
}

shared!(Value, Map, Array, Vec<Value>, Text, String, &str, bool);
