//! The protobuf form of discovery, whose kinds have no published description.

use shared_json::{Array, Value};

use crate::wire::Writer;

/// The type of a field.
#[derive(Clone, Copy)]
enum Shape {
    /// A text, written even if it is empty unless it is behind a pointer.
    Text,
    /// A flag (or a number that is never set), written even if it is false.
    Flag,
    /// Texts.
    Texts,
    /// Texts in a message of their own.
    Wrapped,
    /// A message; written even if it is empty.
    Part(&'static [Field]),
    /// A message behind a pointer.
    Pointer(&'static [Field]),
    /// Messages.
    Parts(&'static [Field]),
}
use Shape::{Flag, Part, Parts, Pointer, Text, Texts, Wrapped};

type Field = (&'static str, u32, Shape);

const ADDRESS: &[Field] = &[("clientCIDR", 1, Text), ("serverAddress", 2, Text)];
const VERSION: &[Field] = &[("groupVersion", 1, Text), ("version", 2, Text)];
const LIST_META: &[Field] = &[
    ("selfLink", 1, Text),
    ("resourceVersion", 2, Text),
    ("continue", 3, Text),
];
const META: &[Field] = &[
    ("name", 1, Text),
    ("generateName", 2, Text),
    ("namespace", 3, Text),
    ("selfLink", 4, Text),
    ("uid", 5, Text),
    ("resourceVersion", 6, Text),
    ("generation", 7, Flag),
    ("creationTimestamp", 8, Part(&[])),
];
const GROUP: &[Field] = &[
    ("name", 1, Text),
    ("versions", 2, Parts(VERSION)),
    ("preferredVersion", 3, Part(VERSION)),
    ("serverAddressByClientCIDRs", 4, Parts(ADDRESS)),
];
const RESOURCE: &[Field] = &[
    ("name", 1, Text),
    ("namespaced", 2, Flag),
    ("kind", 3, Text),
    ("verbs", 4, Wrapped),
    ("shortNames", 5, Texts),
    ("singularName", 6, Text),
    ("categories", 7, Texts),
    ("group", 8, Text),
    ("version", 9, Text),
    ("storageVersionHash", 10, Text),
];
const KIND: &[Field] = &[("group", 1, Text), ("version", 2, Text), ("kind", 3, Text)];
const SUBRESOURCE: &[Field] = &[
    ("subresource", 1, Text),
    ("responseKind", 2, Pointer(KIND)),
    ("acceptedTypes", 3, Parts(KIND)),
    ("verbs", 4, Texts),
];
const AGGREGATED_RESOURCE: &[Field] = &[
    ("resource", 1, Text),
    ("responseKind", 2, Pointer(KIND)),
    ("scope", 3, Text),
    ("singularResource", 4, Text),
    ("verbs", 5, Texts),
    ("shortNames", 6, Texts),
    ("categories", 7, Texts),
    ("subresources", 8, Parts(SUBRESOURCE)),
];
const AGGREGATED_VERSION: &[Field] = &[
    ("version", 1, Text),
    ("resources", 2, Parts(AGGREGATED_RESOURCE)),
    ("freshness", 3, Text),
];
const AGGREGATED_GROUP: &[Field] = &[
    ("metadata", 1, Part(META)),
    ("versions", 2, Parts(AGGREGATED_VERSION)),
];

/// The fields of the kinds of discovery, by their numbers.
const KINDS: [(&str, &[Field]); 5] = [
    (
        "APIVersions",
        &[
            ("versions", 1, Texts),
            ("serverAddressByClientCIDRs", 2, Parts(ADDRESS)),
        ],
    ),
    ("APIGroup", GROUP),
    ("APIGroupList", &[("groups", 1, Parts(GROUP))]),
    (
        "APIResourceList",
        &[("groupVersion", 1, Text), ("resources", 2, Parts(RESOURCE))],
    ),
    (
        "APIGroupDiscoveryList",
        &[
            ("metadata", 1, Part(LIST_META)),
            ("items", 2, Parts(AGGREGATED_GROUP)),
        ],
    ),
];

/// Writes a document of this kind; none if it is not one of discovery.
pub(super) fn body(out: &mut Writer, kind: &str, document: &Value) -> Option<()> {
    let (_, fields) = KINDS.iter().find(|(name, _)| *name == kind)?;
    message(out, fields, document);
    Some(())
}

fn message(out: &mut Writer, fields: &[Field], value: &Value) {
    for (name, number, shape) in fields {
        let found = value.get(name).unwrap_or(&Value::Null);
        let items = found.as_array().map_or(&[][..], Array::as_slice);
        match shape {
            Text => out.string(*number, found.as_str().unwrap_or_default()),
            Flag => out.varint(*number, u64::from(found.as_bool().unwrap_or_default())),
            Texts => texts(out, *number, items),
            Wrapped => out.message(*number, |out| texts(out, 1, items)),
            Part(fields) => out.message(*number, |out| message(out, fields, found)),
            Pointer(fields) if found.is_object() => out.message(*number, |out| message(out, fields, found)),
            Pointer(_) => {}
            Parts(fields) => {
                for item in items {
                    out.message(*number, |out| message(out, fields, item));
                }
            }
        }
    }
}

fn texts(out: &mut Writer, number: u32, items: &[Value]) {
    for text in items.iter().filter_map(Value::as_str) {
        out.string(number, text);
    }
}
