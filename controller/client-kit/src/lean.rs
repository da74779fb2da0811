//! An object without the fields that no watcher reads.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use shared_json::{Map, Value};

/// An object as JSON without `metadata.managedFields`, often half of it: skipped while it is read, never built.
#[derive(Debug, Clone, PartialEq)]
pub struct LeanObject(pub Value);

impl<'de> serde::Deserialize<'de> for LeanObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Part::Object.deserialize(deserializer).map(Self)
    }
}

/// The same of an object that is there already; both share their common parts.
pub(crate) fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The parts of an object on the way to the fields that are left out.
#[derive(Clone, Copy)]
enum Part {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(field) = entries.next_key::<String>()? {
            let value = match (self, field.as_str()) {
                (Self::Object, "metadata") => entries.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => entries.next_value()?,
            };
            map.insert(field, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    #[test]
    fn only_managed_fields_are_left_out() {
        let rows = [
            (
                json!({"kind": "Pod", "metadata": {"name": "a", "managedFields": [{"manager": "m"}]}, "spec": {}}),
                json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {}}),
            ),
            (
                json!({"managedFields": 1, "spec": {"managedFields": [2], "metadata": {"managedFields": 3}}}),
                json!({"managedFields": 1, "spec": {"managedFields": [2], "metadata": {"managedFields": 3}}}),
            ),
            (json!({}), json!({})),
        ];
        for (sent, read) in rows {
            assert_eq!(
                shared_json::from_value::<LeanObject>(sent).expect("an object"),
                LeanObject(read)
            );
        }
        assert!(shared_json::from_str::<LeanObject>("[]").is_err());
        assert!(shared_json::from_str::<LeanObject>(r#"{"metadata": 1}"#).is_err());
    }
}
