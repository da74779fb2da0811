//! Fields of owners that are the same memory where they are the same.
//!
//! Nearly all objects of a kind are written by the same programs in the same way, and who owns what is often half of such an
//! object. What one owner has in many objects is kept once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use shared_json::Value;

/// So many different sets of fields are known at a time; one more, and all are forgotten.
const KNOWN_MAX: usize = 4096;

thread_local! {
    static KNOWN: RefCell<HashMap<u64, Value>> = RefCell::default();
}

/// The value, or one that is equal to it and was seen before.
pub(super) fn interned(fields: Value) -> Value {
    let mut hasher = DefaultHasher::new();
    hash(&fields, &mut hasher);
    let key = hasher.finish();
    KNOWN.with_borrow_mut(|known| {
        if let Some(same) = known.get(&key)
            && *same == fields
        {
            return same.clone();
        }
        if known.len() == KNOWN_MAX {
            known.clear();
        }
        known.insert(key, fields.clone());
        fields
    })
}

/// Fields of owners are objects in objects, and nothing else.
fn hash(fields: &Value, hasher: &mut DefaultHasher) {
    let Value::Object(map) = fields else { return };
    map.len().hash(hasher);
    for (name, below) in map {
        name.hash(hasher);
        hash(below, hasher);
    }
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
    }
}
