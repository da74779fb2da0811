//! Fields of owners that are the same memory where they are the same.
//!
//! Nearly all objects of a kind are written by the same programs in the same way, and who owns what is often half of such an
//! object. What one owner has in many objects is kept once.

use std::cell::RefCell;
use std::collections::HashMap;

use shared_json::Value;

use super::field_set::FieldSet;
use super::path::{PathElement, Scalar};

/// So many different sets of fields are known at a time; one more, and all are forgotten.
const KNOWN_MAX: usize = 1024;
/// Sets of more paths than these are not remembered.
const PATHS_MAX: usize = 512;

/// A set of fields, and how `fieldsV1` writes it. Neither goes before it is forgotten: by their addresses both are found again.
#[derive(Clone)]
struct Pair {
    set: FieldSet,
    fields: Value,
}

#[derive(Default)]
struct Known {
    by_number: HashMap<u64, Pair>,
    by_set: HashMap<usize, Value>,
    by_fields: HashMap<usize, FieldSet>,
}

impl Known {
    /// The pair of a set that is equal, if one is known.
    fn find(&self, number: u64, set: &FieldSet) -> Option<&Pair> {
        self.by_number.get(&number).filter(|pair| pair.set == *set)
    }

    fn remember(&mut self, number: u64, pair: &Pair) {
        // What has the same number and is not equal stays unknown: it need not be hard to find.
        if self.by_number.contains_key(&number) {
            return;
        }
        if self.by_number.len() >= KNOWN_MAX {
            *self = Self::default();
        }
        if let (Some(set), Some(fields)) = (pair.set.address(), address(&pair.fields)) {
            self.by_set.insert(set, pair.fields.clone());
            self.by_fields.insert(fields, pair.set.clone());
            self.by_number.insert(number, pair.clone());
        }
    }
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

fn address(fields: &Value) -> Option<usize> {
    fields.as_object().and_then(shared_json::Map::address)
}

/// The set as `fieldsV1`: the same memory as what is equal and was seen before.
pub(super) fn encode(set: &FieldSet) -> Value {
    KNOWN.with_borrow_mut(|known| {
        if let Some(fields) = set.address().and_then(|address| known.by_set.get(&address)) {
            return fields.clone();
        }
        let Some(number) = number_of(set) else {
            return set.encode();
        };
        if let Some(pair) = known.find(number, set) {
            return pair.fields.clone();
        }
        let pair = Pair {
            set: set.clone(),
            fields: set.encode(),
        };
        known.remember(number, &pair);
        pair.fields
    })
}

/// Reads `fieldsV1`; what was written here is found again.
///
/// # Errors
/// What cannot be read.
pub(super) fn decode(fields: &Value) -> Result<FieldSet, String> {
    KNOWN.with_borrow_mut(|known| {
        if let Some(set) = address(fields).and_then(|address| known.by_fields.get(&address)) {
            return Ok(set.clone());
        }
        let set = FieldSet::decode(fields)?;
        let Some(number) = number_of(&set) else {
            return Ok(set);
        };
        Ok(known.find(number, &set).map_or(set, |pair| pair.set.clone()))
    })
}

fn mix(number: u64, word: u64) -> u64 {
    (number.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn mix_text(mut number: u64, text: &str) -> u64 {
    for bytes in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        number = mix(number, u64::from_le_bytes(word));
    }
    number
}

/// A number for a set; equal ones have equal numbers. None for large ones.
fn number_of(set: &FieldSet) -> Option<u64> {
    let mut left = PATHS_MAX;
    let number = mixed(0, set, &mut left);
    (left > 0).then_some(number)
}

fn mixed(start: u64, set: &FieldSet, left: &mut usize) -> u64 {
    let mut number = start;
    for (element, member, below) in set.steps() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return number;
        }
        number = mix(number, u64::from(member));
        number = match element {
            PathElement::Field(name) => mix_text(number, name),
            PathElement::Key(fields) => fields.iter().fold(number, |number, (name, value)| {
                mix_scalar(mix_text(number, name), value)
            }),
            PathElement::Value(value) => mix_scalar(number, value),
            PathElement::Index(at) => mix(number, at.unsigned_abs()),
        };
        number = mix(mixed(number, below, left), 1);
    }
    number
}

fn mix_scalar(number: u64, scalar: &Scalar) -> u64 {
    match &scalar.0 {
        Value::String(text) => mix_text(number, text),
        other => mix(number, other.as_i64().map_or(0, i64::unsigned_abs)),
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::decode(fields).expect("fields")
    }

    #[test]
    fn what_is_equal_is_the_same_memory() {
        let written = json!({"f:spec": {"f:replicas": {}, "k:{\"port\":80}": {".": {}, "f:port": {}}, "v:\"x\"": {}, "i:3": {}}});
        let (one, other) = (encode(&set(&written)), encode(&set(&written)));
        assert_eq!(one, written);
        assert!(one.is_same(&other) && !one.is_same(&written));
        let read = decode(&one).expect("fields");
        assert_eq!(read, set(&written));
        assert_eq!(read.address(), decode(&written).expect("fields").address());
        assert!(encode(&read).is_same(&one));
        let different = json!({"f:spec": {"f:replicas": {".": {}}}});
        assert!(encode(&set(&different)) != one);
        for number in 0..KNOWN_MAX {
            encode(&set(&json!({"f:spec": {format!("f:{number}"): {}}})));
        }
        assert!(
            !encode(&set(&written)).is_same(&one),
            "what is remembered is bounded"
        );
        let many = || {
            let fields = (0..PATHS_MAX).map(|number| (format!("f:{number}"), json!({})));
            set(&fields.collect::<Value>())
        };
        assert!(!encode(&many()).is_same(&encode(&many())), "and so is each of it");
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        assert_eq!(
            decode(&json!({"x": {}})).unwrap_err(),
            "key must be 2 characters long: x"
        );
    }
}
