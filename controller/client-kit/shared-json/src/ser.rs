//! Values from whatever serialises.

use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

use crate::{Array, Map, Name, Value};

/// Writes a type into a value.
///
/// # Errors
/// If the type cannot be JSON, as with keys that are no text.
pub fn to_value(value: impl Serialize) -> Result<Value, Error> {
    value.serialize(Writer)
}

struct Writer;

/// Elements, and the variant of an enumeration that has them.
struct Elements {
    variant: Option<&'static str>,
    items: Array,
}

/// Fields, the name of the next one, and the variant of an enumeration that has them.
struct Fields {
    variant: Option<&'static str>,
    map: Map,
    name: Option<Name>,
}

fn of_variant(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(variant) => Value::Object(std::iter::once((variant, value)).collect()),
        None => value,
    }
}

impl Elements {
    fn new(variant: Option<&'static str>, length: usize) -> Self {
        Self {
            variant,
            items: Array::with_capacity(length),
        }
    }

    fn push(&mut self, item: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.items.push(item.serialize(Writer)?);
        Ok(())
    }

    fn done(self) -> Value {
        of_variant(self.variant, Value::Array(self.items))
    }
}

impl Fields {
    fn new(variant: Option<&'static str>, length: usize) -> Self {
        Self {
            variant,
            map: Map::with_capacity(length),
            name: None,
        }
    }

    fn set(&mut self, name: impl Into<Name>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.map.insert(name, value.serialize(Writer)?);
        Ok(())
    }

    fn done(mut self) -> Value {
        if self.map.is_empty() {
            self.map.clear();
        }
        of_variant(self.variant, Value::Object(self.map))
    }
}

/// The name that a key is written as.
fn name(key: &(impl Serialize + ?Sized)) -> Result<Name, Error> {
    match key.serialize(Writer)? {
        Value::String(text) => Ok(text.as_str().into()),
        Value::Number(number) => Ok(number.to_string().into()),
        Value::Bool(is) => Ok(is.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Error::custom("key must be a string")),
    }
}

macro_rules! numbers {
    ($($method:ident $ty:ty),*) => {$(
        fn $method(self, value: $ty) -> Result<Value, Error> {
            Ok(Value::from(value))
        }
    )*};
}

impl ser::Serializer for Writer {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    numbers!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_u8 u8,
        serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_f32 f32, serialize_f64 f64, serialize_str &str
    );

    fn serialize_char(self, value: char) -> Result<Value, Error> {
        Ok(Value::String(value.into()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Value, Error> {
        Ok(value.iter().copied().collect())
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(of_variant(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, Error> {
        Ok(Elements::new(None, length.unwrap_or_default()))
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements, Error> {
        Ok(Elements::new(None, length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Elements, Error> {
        Ok(Elements::new(None, length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements, Error> {
        Ok(Elements::new(Some(variant), length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Fields, Error> {
        Ok(Fields::new(None, length.unwrap_or_default()))
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Fields, Error> {
        Ok(Fields::new(None, length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields, Error> {
        Ok(Fields::new(Some(variant), length))
    }
}

macro_rules! elements {
    ($($of:ident $method:ident),*) => {$(
        impl ser::$of for Elements {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
                self.push(item)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.done())
            }
        }
    )*};
}

elements!(
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Fields {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.name = Some(name(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let name = self
            .name
            .take()
            .ok_or_else(|| Error::custom("a value without a key"))?;
        self.set(name, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.done())
    }
}

macro_rules! fields {
    ($($of:ident)*) => {$(
        impl ser::$of for Fields {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.set(name, value)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.done())
            }
        }
    )*};
}

fields!(SerializeStruct SerializeStructVariant);
