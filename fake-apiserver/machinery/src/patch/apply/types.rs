//! A type as server-side apply sees it: a scalar, a list or a map, granular or atomic.

use super::path::{PathElement, Scalar};
use crate::types::{Array, Field, Kind, ListType, Object, Schema, Written, object_meta};
use shared_json::{Name, Value};
use std::sync::{Arc, LazyLock};

/// A type as the merge sees it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type<'s> {
    /// A described type; the flag says that an ancestor preserves unknown fields, which its descendants inherit.
    Known(&'s Schema, bool),
    /// Whatever the value is: maps are owned by key, lists as one.
    Deduced,
    /// Whatever the value is, owned as one.
    Whole,
}

/// The structure of a type's values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'s> {
    Scalar(ScalarType),
    List(List<'s>),
    Map(MapShape<'s>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarType {
    Text,
    Number,
    Boolean,
    Untyped,
}

/// A list; owned as one unless it has keys or is a set.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'s> {
    array: Option<&'s Array>,
    preserve: bool,
}

/// An object.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapShape<'s> {
    object: Option<&'s Object>,
    rest: Option<Type<'s>>,
    preserve: bool,
    pub(super) atomic: bool,
}

impl<'s> Type<'s> {
    /// The shape of this value, where the type leaves a choice; with no value or null, the first choice is a map.
    pub(super) fn shape(self, value: Option<&Value>) -> Shape<'s> {
        let (schema, inherited) = match self {
            Type::Known(schema, inherited) => (schema, inherited),
            Type::Deduced => return undescribed(value, Type::Deduced, false),
            Type::Whole => return undescribed(value, Type::Whole, true),
        };
        match &schema.kind {
            Kind::Object(object) => {
                let preserve = inherited || object.preserve_unknown;
                let rest = match &object.additional {
                    Some(values) => Some(Type::Known(values, preserve)),
                    None if preserve || object.fields.is_empty() => Some(Type::Deduced),
                    None => None,
                };
                Shape::Map(MapShape {
                    object: Some(object),
                    rest,
                    preserve,
                    atomic: object.atomic,
                })
            }
            Kind::Array(array) => Shape::List(List {
                array: Some(array),
                preserve: inherited,
            }),
            // Texts of a form count as anything that is one value.
            Kind::Time | Kind::MicroTime => Shape::Scalar(ScalarType::Untyped),
            Kind::String if schema.format.as_deref().is_some_and(|format| format != "byte") => {
                Shape::Scalar(ScalarType::Untyped)
            }
            Kind::String | Kind::Bytes => Shape::Scalar(ScalarType::Text),
            Kind::Integer | Kind::Number => Shape::Scalar(ScalarType::Number),
            Kind::Boolean => Shape::Scalar(ScalarType::Boolean),
            Kind::IntOrString | Kind::Quantity => Shape::Scalar(ScalarType::Untyped),
            // What one field holds in whole.
            Kind::Any
                if schema
                    .name
                    .as_deref()
                    .is_some_and(|name| name.ends_with(".RawExtension")) =>
            {
                undescribed(value, Type::Whole, true)
            }
            Kind::Any => undescribed(value, Type::Deduced, false),
        }
    }
}

fn undescribed<'s>(value: Option<&Value>, rest: Type<'s>, atomic: bool) -> Shape<'s> {
    match value {
        Some(Value::Array(_)) => Shape::List(List {
            array: None,
            preserve: false,
        }),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Shape::Scalar(ScalarType::Untyped),
        _ => Shape::Map(MapShape {
            object: None,
            rest: Some(rest),
            preserve: false,
            atomic,
        }),
    }
}

impl<'s> List<'s> {
    /// Whether the list is owned as one.
    pub(super) fn atomic(self) -> bool {
        self.array.is_none_or(|array| array.list_type == ListType::Atomic)
    }

    /// The type of the items.
    pub(super) fn items(self) -> Type<'s> {
        match self.array {
            Some(array) => Type::Known(&array.items, self.preserve),
            None => Type::Whole,
        }
    }

    /// The values of an item's keys; none where some are missing, or are neither texts nor whole numbers.
    pub(super) fn key_values<const MAX: usize>(self, item: &Value) -> Option<[Option<&Value>; MAX]> {
        let is_plain = |value: &&Value| value.is_string() || value.as_i64().is_some();
        let mut values = [None; MAX];
        match self.array.map(|array| &array.list_type) {
            Some(ListType::Map(keys)) => {
                let map = item.as_object()?;
                for (at, key) in keys.iter().enumerate() {
                    *values.get_mut(at)? = Some(map.get(key).filter(is_plain)?);
                }
            }
            Some(ListType::Set) => *values.first_mut()? = Some(Some(item).filter(is_plain)?),
            _ => return None,
        }
        Some(values)
    }

    /// The step to an item of a list that is owned by item; the error says why the item has none.
    pub(super) fn element(self, item: &Value) -> Result<PathElement, String> {
        match self.array.map(|array| (&array.list_type, &array.items)) {
            Some((ListType::Map(keys), items)) => key_element(keys, items, item),
            Some((ListType::Set, _)) => set_element(item),
            _ => Err("invalid indexing of non-associative list".to_owned()),
        }
    }
}

fn key_element(keys: &[String], items: &Schema, item: &Value) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields: Vec<(Name, Scalar)> = keys
        .iter()
        .filter_map(|key| {
            let value = map
                .get(key)
                .cloned()
                .or_else(|| items.field(key).and_then(key_default))?;
            Some((Name::from(key), Scalar(value)))
        })
        .collect();
    if fields.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort();
    Ok(PathElement::Key(fields))
}

/// The value that a missing key field counts as: its default, or the zero value of a field that Go always writes, which is
/// its default in the published OpenAPI.
fn key_default(field: &Field) -> Option<Value> {
    let declared = [&field.default, &field.schema.default, &field.zero];
    if let Some(default) = declared.into_iter().flatten().next() {
        return Some(default.clone());
    }
    match (&field.schema.kind, field.written) {
        (Kind::String, Written::Always) => Some(Value::from("")),
        (Kind::Integer, Written::Always) => Some(Value::from(0)),
        _ => None,
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        scalar => Ok(PathElement::Value(Scalar(scalar.clone()))),
    }
}

impl<'s> MapShape<'s> {
    /// Whether the field is declared.
    pub(super) fn declares(self, name: &Name) -> bool {
        self.object.is_some_and(|object| {
            object.fields.named(name).is_some()
                || object.embedded_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
        })
    }

    /// The type of the value under a name; none if the type knows no such field.
    pub(super) fn child(self, name: &Name) -> Option<Type<'s>> {
        match self.object.and_then(|object| object.fields.named(name)) {
            Some(field) => Some(Type::Known(&field.schema, self.preserve)),
            None if name == "metadata" && self.object.is_some_and(|object| object.embedded_resource) => {
                Some(Type::Known(&METADATA, false))
            }
            None => self.rest,
        }
    }
}

/// The schema of the metadata of embedded resources.
static METADATA: LazyLock<Arc<Schema>> = LazyLock::new(object_meta);

/// Whether two values are the same, numbers compared by value.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || Scalar(a.clone()) == Scalar(b.clone())
}
