//! How large an object may be.

use shared_json::Value;

use crate::status::ApiError;

/// The largest object that the real server's store takes, in bytes.
const STORED_BYTES_MAX: usize = 1024 * 1024 * 3 / 2;

/// Checks that the store would take the object.
///
/// # Errors
/// 500, as the real server has it.
pub(super) fn check(object: &Value) -> Result<(), ApiError> {
    if size(object) > STORED_BYTES_MAX {
        return Err(ApiError::too_large_to_store());
    }
    Ok(())
}

/// About as many bytes as the object has as JSON: escapes are not counted.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter()
                .map(|(key, value)| key.len() + 4 + size(value))
                .sum::<usize>()
                + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_json::json;

    #[test]
    fn a_mebibyte_and_a_half() {
        assert!(check(&json!({"data": {"k": "x".repeat(1_500_000)}})).is_ok());
        let refused = check(&json!({"data": {"k": "x".repeat(1_600_000)}})).expect_err("too large");
        assert_eq!(refused.message, "etcdserver: request is too large");
    }
}
