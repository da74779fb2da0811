//! The description of a type: the form of its values, the optional fields, the merge of two values.

use super::defaults::Row;
use super::fields::Fields;
use shared_json::{Name, Value};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The description of one type.
///
/// Cheap to share behind an [`Arc`]: children are reference-counted, and a type that contains itself (such as
/// `JSONSchemaProps`) does so through a named definition.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The kind of value.
    pub kind: Kind,
    /// The name of the definition (`io.k8s.api.core.v1.Container`), for built-in types only.
    pub name: Option<Arc<str>>,
    /// Whether `null` is a value of this type (custom resources only).
    pub nullable: bool,
    /// The default of a custom resource's field, item or map value.
    pub default: Option<Value>,
    /// The only values allowed; empty means any.
    pub allowed: Vec<Value>,
    /// OpenAPI's `format`, such as `int32` or `date-time`.
    pub format: Option<Arc<str>>,
    /// The description for users.
    pub description: Option<Arc<str>>,
    /// Bounds on the value (custom resources only).
    pub limits: Option<Box<Limits>>,
    /// `allOf`, `anyOf`, `oneOf`, `not` (custom resources only).
    pub logic: Option<Box<Logic>>,
    /// `x-kubernetes-validations` as written. Kept for the evaluation in `cel`; nothing here evaluates it.
    pub validations: Vec<Value>,
    /// No `type` was given: the kind was guessed, and values of other types pass validation (custom resources only).
    pub(crate) untyped: bool,
    /// The name of a scalar's Go type when it is not the plain one (`v1.Protocol`); it appears in decoding errors.
    pub go_type: Option<Arc<str>>,
}

/// The kinds of values.
#[derive(Debug, Clone, Default)]
pub enum Kind {
    /// An object: a Go struct, a map, or a custom resource's object.
    Object(Object),
    /// A list.
    Array(Array),
    /// Text.
    String,
    /// A whole number; `format` says `int32` or `int64`.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A 32-bit whole number or text.
    IntOrString,
    /// An amount such as `100m` or `1Gi`; a number is taken as well.
    Quantity,
    /// A time in whole seconds (`metav1.Time`).
    Time,
    /// A time in microseconds (`metav1.MicroTime`).
    MicroTime,
    /// Bytes, in base64.
    Bytes,
    /// Any JSON value.
    #[default]
    Any,
}

/// The contents of an object.
#[derive(Debug, Clone, Default)]
pub struct Object {
    /// The declared fields.
    pub fields: Fields,
    /// The type of every undeclared field, for a map.
    pub additional: Option<Child>,
    /// The names of the fields that must be there (custom resources only; a built-in type's are checked by its strategy).
    pub required: Vec<String>,
    /// `x-kubernetes-preserve-unknown-fields`: undeclared fields are kept.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`: has `apiVersion`, `kind` and `metadata` of its own.
    pub embedded_resource: bool,
    /// Whether the object is owned and merged as one value.
    pub atomic: bool,
    /// The output of Go's encoder for unset fields, computed once.
    pub(super) unset: OnceLock<Vec<(Name, Value)>>,
    /// The defaults within the type, computed once.
    pub(super) defaults: OnceLock<Defaults>,
}

/// The defaults of an object's own fields.
#[derive(Debug, Clone)]
pub(super) struct Defaults {
    /// Those that the table has.
    pub(super) rows: &'static [Row],
    /// Those that OpenAPI declares.
    pub(super) declared: Vec<(Name, Value)>,
}

/// A list and how it merges.
#[derive(Debug, Clone, Default)]
pub struct Array {
    /// The type of the items.
    pub items: Child,
    /// How the list is owned and merged.
    pub list_type: ListType,
}

/// How a list is owned and merged by server-side apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// As one value.
    #[default]
    Atomic,
    /// Items are unique scalars, each owned by itself.
    Set,
    /// Items are objects identified by these fields.
    Map(Vec<String>),
}

/// One field of an object: its type, and the properties of this field only.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// The type of the field.
    pub schema: Child,
    /// The default OpenAPI declares for this field of a built-in type.
    pub default: Option<Value>,
    /// The zero value, where OpenAPI declares that as the default of a field that may be left out.
    pub zero: Option<Value>,
    /// How strategic merge patch merges the field.
    pub patch: PatchStrategy,
    /// When Go's encoder writes the field.
    pub written: Written,
    /// Whether Go holds the field behind a pointer, so that "unset" and "zero" differ.
    pub pointer: bool,
}

/// When Go's encoder writes a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Written {
    /// Unless it is false, 0, "", or an empty list or map (`omitempty`). Structs are always written.
    #[default]
    UnlessEmpty,
    /// Unless it is the zero value, structs included (`omitzero`).
    UnlessZero,
    /// Always, null included.
    Always,
}

/// How strategic merge patch merges a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Objects are replaced rather than merged.
    pub replace: bool,
    /// `$retainKeys` is understood.
    pub retain_keys: bool,
    /// The merge key of a list's items; none for scalars.
    pub key: Option<String>,
}

/// Bounds on a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The smallest number.
    pub minimum: Option<f64>,
    /// The smallest number itself is not allowed.
    pub exclusive_minimum: bool,
    /// The largest number.
    pub maximum: Option<f64>,
    /// The largest number itself is not allowed.
    pub exclusive_maximum: bool,
    /// The number is a multiple of this.
    pub multiple_of: Option<f64>,
    /// The fewest characters.
    pub min_length: Option<i64>,
    /// The most characters.
    pub max_length: Option<i64>,
    /// A regular expression that the text must match somewhere.
    pub pattern: Option<String>,
    /// The fewest items.
    pub min_items: Option<i64>,
    /// The most items.
    pub max_items: Option<i64>,
    /// Items differ from one another.
    pub unique_items: bool,
    /// The fewest fields.
    pub min_properties: Option<i64>,
    /// The most fields.
    pub max_properties: Option<i64>,
}

/// Combinations of value validations.
#[derive(Debug, Clone, Default)]
pub struct Logic {
    /// Every one of these holds.
    pub all_of: Vec<Schema>,
    /// At least one of these holds.
    pub any_of: Vec<Schema>,
    /// Exactly one of these holds.
    pub one_of: Vec<Schema>,
    /// This one does not hold.
    pub not: Option<Schema>,
}

/// A reference to the description of a part: inline, or by the name of a definition that may contain itself.
#[derive(Clone)]
pub struct Child(Inner);

#[derive(Clone)]
enum Inner {
    Inline(Arc<Schema>),
    Named(Arc<Definition>),
}

/// A named definition, filled in once its own parts are known.
#[derive(Debug)]
pub struct Definition {
    pub(crate) name: Arc<str>,
    pub(crate) schema: OnceLock<Arc<Schema>>,
}

impl Child {
    pub(crate) fn named(definition: Arc<Definition>) -> Child {
        Child(Inner::Named(definition))
    }

    /// The description, shared.
    pub fn shared(&self) -> Arc<Schema> {
        match &self.0 {
            Inner::Inline(schema) => schema.clone(),
            Inner::Named(definition) => definition.schema.get().unwrap_or_else(|| any()).clone(),
        }
    }
}

fn any() -> &'static Arc<Schema> {
    static ANY: OnceLock<Arc<Schema>> = OnceLock::new();
    ANY.get_or_init(Arc::default)
}

impl Default for Child {
    fn default() -> Child {
        Child(Inner::Inline(any().clone()))
    }
}

impl From<Schema> for Child {
    fn from(schema: Schema) -> Child {
        Child(Inner::Inline(Arc::new(schema)))
    }
}

impl From<Arc<Schema>> for Child {
    fn from(schema: Arc<Schema>) -> Child {
        Child(Inner::Inline(schema))
    }
}

impl Deref for Child {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match &self.0 {
            Inner::Inline(schema) => schema,
            Inner::Named(definition) => definition.schema.get().unwrap_or_else(|| any()),
        }
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Inner::Inline(schema) => schema.fmt(f),
            Inner::Named(definition) => write!(f, "#{}", definition.name),
        }
    }
}

impl Schema {
    /// A description of this kind and nothing else.
    pub fn of(kind: Kind) -> Schema {
        Schema {
            kind,
            ..Schema::default_any()
        }
    }

    /// The description of any JSON value. (`Schema::default` is the method that fills in defaults.)
    pub(crate) fn default_any() -> Schema {
        <Schema as Default>::default()
    }

    /// The object description, if values are objects.
    pub fn as_object(&self) -> Option<&Object> {
        match &self.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The list description, if values are lists.
    pub fn as_array(&self) -> Option<&Array> {
        match &self.kind {
            Kind::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The declared field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.as_object().and_then(|object| object.fields.get(name))
    }

    /// The type of the value under `name`: the declared field's, or that of the map's values.
    pub fn child(&self, name: &str) -> Option<&Schema> {
        let object = self.as_object()?;
        match object.fields.get(name) {
            Some(field) => Some(&field.schema),
            None => object.additional.as_deref(),
        }
    }

    /// Walks down a path of field names; a list stands for its items wherever the path goes through one.
    ///
    /// `schema.at(&["spec", "containers", "ports"])` is the type of a container's ports.
    pub fn at(&self, path: &[&str]) -> Option<&Schema> {
        path.iter().try_fold(self, |at, name| {
            let mut at = at;
            while let Kind::Array(array) = &at.kind {
                at = &array.items;
            }
            at.child(name)
        })
    }

    /// Whether this is a Go struct or a custom resource's object with declared fields, as opposed to a map.
    pub fn is_struct(&self) -> bool {
        self.as_object().is_some_and(|object| !object.fields.is_empty())
    }
}
