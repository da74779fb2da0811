//! Fields of owners that are the same memory where they are the same.
//!
//! Nearly all objects of a kind are written by the same programs in the same way, and who owns what is often half of such an
//! object. What one owner has in many objects is kept once.

use std::cell::RefCell;
use std::collections::HashMap;

use shared_json::Value;

/// So many different sets of fields are known at a time; one more, and all are forgotten.
const KNOWN_MAX: usize = 1024;
/// Sets of more fields than these are not remembered.
const FIELDS_MAX: usize = 512;

thread_local! {
    static KNOWN: RefCell<HashMap<u64, Value>> = RefCell::default();
}

/// The value, or one that is equal to it and was seen before.
pub(super) fn interned(fields: Value) -> Value {
    let mut left = FIELDS_MAX;
    let key = mixed(0, &fields, &mut left);
    if left == 0 {
        return fields;
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(same) = known.get(&key)
            && *same == fields
        {
            return same.clone();
        }
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, fields.clone());
        fields
    })
}

/// A number for fields, which are objects in objects and nothing else: equal ones have equal numbers. What has the same number and is
/// not equal takes the other's place, so that it need not be hard to find. Ends early where `left` comes to 0.
fn mixed(start: u64, fields: &Value, left: &mut usize) -> u64 {
    let Value::Object(map) = fields else { return start };
    let mix = |number: u64, word: u64| (number.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut number = mix(start, map.len() as u64);
    for (name, below) in map {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return number;
        }
        for bytes in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
            number = mix(number, u64::from_le_bytes(word));
        }
        number = mixed(number, below, left);
    }
    number
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    #[test]
    fn what_is_equal_is_the_same_memory() {
        let fields = || json!({"f:spec": {"f:replicas": {}}});
        let (one, other) = (interned(fields()), interned(fields()));
        assert_eq!(one, fields());
        assert!(one.is_same(&other) && !one.is_same(&fields()));
        let different = interned(json!({"f:spec": {"f:replicas": {".": {}}}}));
        assert!(different != one);
        for number in 0..KNOWN_MAX {
            interned(json!({"f:spec": {format!("f:{number}"): {}}}));
        }
        assert!(!interned(fields()).is_same(&one), "what is remembered is bounded");
        let many = || {
            (0..FIELDS_MAX)
                .map(|number| (format!("f:{number}"), json!({})))
                .collect::<Value>()
        };
        assert!(
            !interned(many()).is_same(&interned(many())),
            "and so is each of it"
        );
    }
}
