//! Bodies of requests as a case writes them: some answers follow the order of fields.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use shared_json::{Map, Number, Value};

/// A JSON value whose fields have an order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ordered {
    /// A value without parts, or with parts whose order does not matter.
    Plain(Value),
    List(Vec<Ordered>),
    Fields(Vec<(String, Ordered)>),
}

impl Ordered {
    /// The same without an order.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Fields(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), value.to_value()))
                .collect::<Map>()
                .into(),
        }
    }

    /// The value as text, as Python writes it. `name` fills in the names of fields, `plain` writes values without parts.
    pub(super) fn text(&self, name: &impl Fn(&str) -> String, plain: &impl Fn(&Value) -> String) -> String {
        match self {
            Self::Plain(value) => plain(value),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| item.text(name, plain)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Fields(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, value)| format!("{}: {}", Value::from(name(key)), value.text(name, plain)))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }
}

impl From<Value> for Ordered {
    fn from(value: Value) -> Self {
        Self::Plain(value)
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Ordered;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("any JSON")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(
                    Number::from_f64(value).map_or(Value::Null, Value::Number),
                ))
            }

            fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Plain(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
                let mut out = Vec::new();
                while let Some(item) = items.next_element()? {
                    out.push(item);
                }
                Ok(Ordered::List(out))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Ordered, A::Error> {
                let mut out = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    out.push(field);
                }
                Ok(Ordered::Fields(out))
            }
        }

        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order() {
        let text = r#"{"b": {"z": 1, "a": [true, null, 1.5]}, "a": "x"}"#;
        let read: Ordered = shared_json::from_str(text).expect("JSON");
        assert_eq!(read.text(&str::to_owned, &Value::to_string), text);
        assert_eq!(
            read.to_value(),
            shared_json::from_str::<Value>(text).expect("JSON")
        );
    }
}
