//! The keys that a YAML document gives more than once, as Go's parser tells of them.

use std::collections::BTreeSet;
use std::fmt;

use pod_rules::field_error::go_quote;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

/// The complaints about repeated keys, in the order in which Go finds them: those in a value come before that about its key, and
/// the line is the value's.
pub(super) fn repeated(text: &str) -> Vec<String> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let read = serde_saphyr::from_str_with_options::<Node>(text, options);
    read.map(|node| node.repeated).unwrap_or_default()
}

/// A part of a document: its form in complaints if it can be a key, and the complaints about it.
#[derive(Default)]
struct Node {
    text: String,
    repeated: Vec<String>,
}

impl Node {
    fn scalar(value: impl fmt::Display) -> Self {
        Self {
            text: value.to_string(),
            repeated: Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::scalar(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::scalar(go_quote(value)))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::scalar("<nil>"))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::scalar("<nil>"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut list = Node::default();
        while let Some(item) = elements.next_element::<Node>()? {
            list.repeated.extend(item.repeated);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let (mut map, mut known) = (Node::default(), BTreeSet::new());
        while let Some((key, value)) = entries.next_entry::<Node, Spanned<Node>>()? {
            map.repeated.extend(value.value.repeated);
            let line = value.referenced.line();
            if known.contains(&key.text) {
                map.repeated
                    .push(format!("line {line}: key {} already set in map", key.text));
            }
            known.insert(key.text);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a: 1\nb: 2\n", &[])]
    #[case("a: 1\na: 2\n", &["line 2: key \"a\" already set in map"])]
    #[case("a: 1\na: 2\na: 3\n", &["line 2: key \"a\" already set in map", "line 3: key \"a\" already set in map"])]
    #[case("m:\n  x: 1\n  x: 2\nl:\n- y: 1\n  y: 2\nm:\n  z: 1\n", &[
        "line 3: key \"x\" already set in map",
        "line 6: key true already set in map",
        "line 8: key \"m\" already set in map",
    ])]
    fn keys(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(repeated(text), expected);
    }
}
