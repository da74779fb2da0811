//! Interned sets of owned fields: equal sets share memory.
//!
//! Nearly all objects of a kind are written by the same programs in the same way, and managed fields are often half of such an
//! object. One owner's fields that are equal in many objects are kept once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use shared_json::Value;

use super::field_set::FieldSet;
use super::memo::Words;
use super::path::mix;

/// So many different sets of fields are remembered anew before those are forgotten that have not been met since.
const KNOWN_MAX: usize = 1024;

/// A set of fields, and how `fieldsV1` writes it. Neither goes before it is forgotten: by their addresses both are found again.
#[derive(Clone)]
struct Pair {
    set: FieldSet,
    /// Whether the step above is a path of the set, too.
    member: bool,
    fields: Value,
}

/// The entries that were met in one span of time.
#[derive(Default)]
struct Span {
    pairs: HashMap<u64, Pair, BuildHasherDefault<Words>>,
    by_fields: HashMap<usize, u64, BuildHasherDefault<Words>>,
}

#[derive(Default)]
struct Known {
    now: Span,
    before: Span,
}

impl Known {
    /// The entry with a number.
    fn get(&mut self, number: u64) -> Option<&Pair> {
        if !self.now.pairs.contains_key(&number) {
            let pair = self.before.pairs.get(&number)?.clone();
            self.remember(number, pair);
        }
        self.now.pairs.get(&number)
    }

    fn remember(&mut self, number: u64, pair: Pair) {
        // What has the same number and is not equal stays unknown: it need not be hard to find.
        if self.now.pairs.contains_key(&number) {
            return;
        }
        if self.now.pairs.len() >= KNOWN_MAX {
            self.before = std::mem::take(&mut self.now);
        }
        if let Some(fields) = address(&pair.fields) {
            self.now.by_fields.insert(fields, number);
            self.now.pairs.insert(number, pair);
        }
    }

    /// The set that is written so, if it was met in this form.
    fn set_of(&mut self, fields: &Value) -> Option<FieldSet> {
        let address = address(fields)?;
        let number = self.now.by_fields.get(&address);
        let number = *number.or_else(|| self.before.by_fields.get(&address))?;
        self.get(number).map(|pair| pair.set.clone())
    }
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

fn address(fields: &Value) -> Option<usize> {
    fields.as_object().and_then(shared_json::Map::address)
}

/// The set as `fieldsV1`, with a path for the step above if that is a member: shares memory with an equal one that was seen
/// before.
pub(super) fn encode(set: &FieldSet, member: bool) -> Value {
    let Some(number) = set.number().map(|number| mix(number, u64::from(member))) else {
        return set.encode_part(member);
    };
    let met = KNOWN.with_borrow_mut(|known| {
        let pair = known.get(number)?;
        (pair.member == member && pair.set == *set).then(|| pair.fields.clone())
    });
    met.unwrap_or_else(|| {
        let pair = Pair {
            set: set.clone(),
            member,
            fields: set.encode_part(member),
        };
        let fields = pair.fields.clone();
        KNOWN.with_borrow_mut(|known| known.remember(number, pair));
        fields
    })
}

/// Reads `fieldsV1`; finds the interned set if [`encode`] wrote it.
///
/// # Errors
/// The unreadable part.
pub(super) fn decode(fields: &Value) -> Result<FieldSet, String> {
    if let Some(set) = KNOWN.with_borrow_mut(|known| known.set_of(fields)) {
        return Ok(set);
    }
    let set = FieldSet::decode(fields)?;
    let met = KNOWN.with_borrow_mut(|known| {
        let mut same = |member: u64| {
            let number = mix(set.number()?, member);
            let pair = known.get(number)?;
            (pair.set == set).then(|| pair.set.clone())
        };
        same(0).or_else(|| same(1))
    });
    Ok(met.unwrap_or(set))
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::super::field_set::NUMBERED_MAX;
    use super::*;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::decode(fields).expect("fields")
    }

    #[test]
    fn what_is_equal_is_the_same_memory() {
        let written = json!({"f:spec": {"f:replicas": {}, "k:{\"port\":80}": {".": {}, "f:port": {}}, "v:\"x\"": {}, "i:3": {}}});
        let encode = |set: &FieldSet| super::encode(set, false);
        let (one, other) = (encode(&set(&written)), encode(&set(&written)));
        assert_eq!(one, written);
        assert!(one.is_same(&other) && !one.is_same(&written));
        let read = decode(&one).expect("fields");
        assert_eq!(read, set(&written));
        assert_eq!(read.address(), decode(&written).expect("fields").address());
        assert!(encode(&read).is_same(&one));
        // What differs in one place has the others in common.
        let other =
            json!({"f:spec": {"f:replicas": {}, "k:{\"port\":80}": {".": {}, "f:port": {}}}, "f:status": {}});
        let other = encode(&set(&other));
        let port = |fields: &Value| fields["f:spec"]["k:{\"port\":80}"].clone();
        assert!(port(&other).is_same(&port(&one)) && !other["f:spec"].is_same(&one["f:spec"]));
        let part = decode(&port(&other)).expect("fields");
        assert_eq!(
            encode(&part),
            json!({"f:port": {}}),
            "the step above is no path of the part"
        );
        let different = json!({"f:spec": {"f:replicas": {".": {}}}});
        assert!(encode(&set(&different)) != one);
        let meet = |numbers: std::ops::Range<usize>| {
            for number in numbers {
                encode(&set(&json!({"f:spec": {format!("f:{number}"): {}}})));
            }
        };
        meet(0..KNOWN_MAX / 4);
        assert!(encode(&set(&written)).is_same(&one), "what is met again stays");
        meet(KNOWN_MAX..2 * KNOWN_MAX);
        meet(2 * KNOWN_MAX..3 * KNOWN_MAX);
        assert!(
            !encode(&set(&written)).is_same(&one),
            "what is remembered is bounded"
        );
        let many = || {
            let fields = (0..NUMBERED_MAX).map(|number| (format!("f:{number}"), json!({})));
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
