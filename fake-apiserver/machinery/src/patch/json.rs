//! JSON patch (RFC 6902), with the leniency and the words of the library that the real server uses.
//!
//! Where it differs from the RFC: `replace` sets a field that is not there, an index may be negative and counts from the end,
//! a missing `value` is null, a path may lack its first slash, and characters before that slash are ignored.

use super::PatchError;
use super::print::json_type;
use shared_json::Value;

/// The most operations in one patch, the real server's `maxJSONPatchOperations`.
pub const OPERATIONS_MAX: usize = 10_000;

/// Applies the operations in order, all or none. A null patch is an empty one.
///
/// ```
/// use shared_json::json;
/// let patch = json!([{"op": "replace", "path": "/a/0", "value": 2}, {"op": "remove", "path": "/b"}]);
/// assert_eq!(machinery::patch::json::apply(&json!({"a": [1], "b": 1}), &patch), Ok(json!({"a": [2]})));
/// ```
pub fn apply(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = match patch {
        Value::Null => return Ok(doc.clone()),
        Value::Array(operations) => operations,
        other => return Err(wrong_type(other, "[]handlers.jsonPatchOp")),
    };
    for operation in operations {
        check(operation)?;
    }
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut patched = doc.clone();
    for operation in operations {
        perform(&mut patched, operation).map_err(PatchError::DoesNotApply)?;
    }
    Ok(patched)
}

/// Whether an operation is one, with texts where there must be texts.
fn check(operation: &Value) -> Result<(), PatchError> {
    if !operation.is_object() && !operation.is_null() {
        return Err(wrong_type(operation, "handlers.jsonPatchOp"));
    }
    for field in ["op", "from", "path"] {
        let value = operation.get(field).unwrap_or(&Value::Null);
        if !value.is_string() && !value.is_null() {
            let found = json_type(value);
            return Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go struct field jsonPatchOp.{field} of type string"
            )));
        }
    }
    Ok(())
}

/// The operations for a client that ignores unknown fields: nothing checks them before they are applied. An
/// invalid one is then an unknown operation.
///
/// # Errors
/// A patch that is no list of objects, in the words of the library that applies it.
pub fn unchecked(mut patch: Value) -> Result<Value, PatchError> {
    let refuse = |found: &Value, wanted: &str| {
        let found = json_type(found);
        Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"
        )))
    };
    let operations = match &mut patch {
        Value::Null => return Ok(patch),
        Value::Array(operations) => operations,
        other => return refuse(other, "Patch"),
    };
    for operation in operations.iter_mut() {
        if operation.is_null() {
            continue;
        }
        if !operation.is_object() {
            return refuse(operation, "Operation");
        }
        if check(operation).is_err() {
            *operation = shared_json::json!({});
        }
    }
    Ok(patch)
}

fn wrong_type(found: &Value, wanted: &str) -> PatchError {
    let found = json_type(found);
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
    ))
}

fn perform(doc: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path");
    match text("op") {
        "add" => add(doc, path, value(), "add"),
        "remove" => remove(doc, path, "remove").map(drop),
        "replace" => replace(doc, path, value()),
        "move" => {
            let moved = remove(doc, text("from"), "move")?;
            add(doc, path, moved, "move")
        }
        "copy" => {
            let from = text("from");
            // What is missing in an object that is there is copied as null.
            let (container, key) = parent(doc, from).ok_or_else(|| no_path("copy", from))?;
            let copied = match container {
                Value::Object(map) => map.get(&key).cloned().unwrap_or_default(),
                Value::Array(items) => {
                    let at = index(&key, items.len()).and_then(|at| items.get(at));
                    at.cloned().ok_or_else(|| no_path("copy", from))?
                }
                _ => return Err(no_path("copy", from)),
            };
            add(doc, path, copied, "copy")
        }
        "test" => test(doc, path, operation.get("value").unwrap_or(&Value::Null)),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn no_path(operation: &str, path: &str) -> String {
    format!("{operation} operation does not apply: doc is missing path: {path:?}: missing value")
}

fn add(doc: &mut Value, path: &str, value: Value, operation: &str) -> Result<(), String> {
    let (parent, key) = parent(doc, path).ok_or_else(|| no_path(operation, path))?;
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
            Ok(())
        }
        Value::Array(items) if key == "-" => {
            items.push(value);
            Ok(())
        }
        Value::Array(items) => match index(&key, items.len() + 1) {
            Some(at) => {
                items.insert(at, value);
                Ok(())
            }
            None => Err(format!(
                "error in add for path: '{path}': Unable to access invalid index: {key}: invalid index referenced"
            )),
        },
        _ => Err(no_path(operation, path)),
    }
}

fn remove(doc: &mut Value, path: &str, operation: &str) -> Result<Value, String> {
    let (parent, key) = parent(doc, path).ok_or_else(|| no_path(operation, path))?;
    match parent {
        Value::Object(map) => map.remove(&key).ok_or_else(|| {
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        }),
        Value::Array(items) => match index(&key, items.len()) {
            Some(at) => Ok(items.remove(at)),
            None => Err(format!(
                "error in remove for path: '{path}': Unable to access invalid index: {key}: invalid index referenced"
            )),
        },
        _ => Err(no_path(operation, path)),
    }
}

fn replace(doc: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let missing = || format!("replace operation does not apply: doc is missing path: {path}: missing value");
    if path.is_empty() {
        return set_root(doc, value).map_err(|_| missing());
    }
    let (parent, key) = parent(doc, path).ok_or_else(missing)?;
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
            Ok(())
        }
        Value::Array(items) => {
            let at = index(&key, items.len()).and_then(|at| items.get_mut(at));
            *at.ok_or_else(|| {
                format!("replace operation does not apply: doc is missing key: {path}: missing value")
            })? = value;
            Ok(())
        }
        _ => Err(missing()),
    }
}

fn test(doc: &Value, path: &str, value: &Value) -> Result<(), String> {
    if get(doc, path).unwrap_or(&Value::Null) == value {
        return Ok(());
    }
    Err(format!("testing value {path} failed: test failed"))
}

fn set_root(doc: &mut Value, value: Value) -> Result<(), ()> {
    match value {
        Value::Object(_) | Value::Array(_) => {
            *doc = value;
            Ok(())
        }
        _ => Err(()),
    }
}

/// The container that the path's last part is looked up in, and that part.
fn parent<'a>(doc: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parents, key) = path.rsplit_once('/')?;
    let mut at = doc;
    for part in parents.split('/').skip(1) {
        at = match at {
            Value::Object(map) => map.get_mut(&unescape(part))?,
            Value::Array(items) => {
                let length = items.len();
                items.get_mut(index(part, length)?)?
            }
            _ => return None,
        };
    }
    Some((at, unescape(key)))
}

fn get<'a>(doc: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(doc, |at, part| match at {
        Value::Object(map) => map.get(&unescape(part)),
        Value::Array(items) => items.get(index(part, items.len())?),
        _ => None,
    })
}

/// An index below `length`; a negative one counts from the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let at: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let at = if at < 0 { at + length } else { at };
    usize::try_from(at).ok().filter(|_| at < length)
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    /// Rows recorded of a 1.36.2 server (group `patch-json`) and of the RFC's appendix.
    #[rstest]
    #[case::append(json!({"op": "add", "path": "/l/-", "value": 4}), json!({"l": [1, 2, 3, 4], "m": {"a/b": 1}}))]
    #[case::insert(json!({"op": "add", "path": "/l/1", "value": 9}), json!({"l": [1, 9, 2, 3], "m": {"a/b": 1}}))]
    #[case::at_the_end(json!({"op": "add", "path": "/l/3", "value": 9}), json!({"l": [1, 2, 3, 9], "m": {"a/b": 1}}))]
    #[case::remove_item(json!({"op": "remove", "path": "/l/0"}), json!({"l": [2, 3], "m": {"a/b": 1}}))]
    #[case::negative(json!({"op": "remove", "path": "/l/-1"}), json!({"l": [1, 2], "m": {"a/b": 1}}))]
    #[case::replace_missing(json!({"op": "replace", "path": "/m/x", "value": 1}), json!({"l": [1, 2, 3], "m": {"a/b": 1, "x": 1}}))]
    #[case::escaped(json!({"op": "replace", "path": "/m/a~1b", "value": 2}), json!({"l": [1, 2, 3], "m": {"a/b": 2}}))]
    #[case::no_slash(json!({"op": "add", "path": "m/x", "value": 1}), json!({"l": [1, 2, 3], "m": {"a/b": 1}, "x": 1}))]
    #[case::no_value(json!({"op": "add", "path": "/x"}), json!({"l": [1, 2, 3], "m": {"a/b": 1}, "x": null}))]
    #[case::moved(json!({"op": "move", "from": "/l/0", "path": "/x"}), json!({"l": [2, 3], "m": {"a/b": 1}, "x": 1}))]
    #[case::copied(json!({"op": "copy", "from": "/l/0", "path": "/x"}), json!({"l": [1, 2, 3], "m": {"a/b": 1}, "x": 1}))]
    #[case::tested(json!({"op": "test", "path": "/l/0", "value": 1}), json!({"l": [1, 2, 3], "m": {"a/b": 1}}))]
    #[case::root(json!({"op": "replace", "path": "", "value": {}}), json!({}))]
    fn performs(#[case] operation: Value, #[case] patched: Value) {
        assert_eq!(
            apply(&json!({"l": [1, 2, 3], "m": {"a/b": 1}}), &json!([operation])),
            Ok(patched)
        );
    }

    #[rstest]
    #[case(json!({"op": "remove", "path": "/l/7"}), "error in remove for path: '/l/7': Unable to access invalid index: 7: invalid index referenced")]
    #[case(json!({"op": "remove", "path": "/l/-"}), "error in remove for path: '/l/-': Unable to access invalid index: -: invalid index referenced")]
    #[case(json!({"op": "add", "path": "/l/9/x", "value": 1}), "add operation does not apply: doc is missing path: \"/l/9/x\": missing value")]
    #[case(json!({"op": "remove", "path": "/nope/nope"}), "remove operation does not apply: doc is missing path: \"/nope/nope\": missing value")]
    #[case(json!({"op": "remove", "path": "/nope"}), "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value")]
    #[case(json!({"op": "replace", "path": "/nope/nope", "value": 1}), "replace operation does not apply: doc is missing path: /nope/nope: missing value")]
    #[case(json!({"op": "remove", "path": ""}), "remove operation does not apply: doc is missing path: \"\": missing value")]
    #[case(json!({"op": "test", "path": "/l/0", "value": 2}), "testing value /l/0 failed: test failed")]
    #[case(json!({"op": "nope", "path": "/l"}), "Unexpected kind: nope")]
    #[case(json!({"path": "/l"}), "Unexpected kind: ")]
    fn does_not_apply(#[case] operation: Value, #[case] message: &str) {
        let found = apply(&json!({"l": [1, 2, 3], "m": {}}), &json!([operation]));
        assert_eq!(found, Err(PatchError::DoesNotApply(message.to_owned())));
    }

    #[rstest]
    #[case(json!({"op": "add"}), "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")]
    #[case(json!("text"), "error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp")]
    #[case(json!([1]), "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp")]
    fn malformed(#[case] patch: Value, #[case] message: &str) {
        assert_eq!(
            apply(&json!({}), &patch),
            Err(PatchError::Malformed(message.to_owned()))
        );
    }

    #[test]
    fn limits_operations() {
        let patch = vec![json!({"op": "add", "path": "/a", "value": 1}); OPERATIONS_MAX + 1];
        let error = apply(&json!({}), &Value::from(patch)).unwrap_err();
        assert_eq!(error.code(), 413);
        assert_eq!(
            error.to_string(),
            "The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }
}
