//! Strategic merge patch: a merge patch that knows the type, so that lists merge by key and directives say what a merge
//! cannot.
//!
//! - `map`: objects, and the directives in them: `$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
//! - `list`: lists, merged by key or by value, and the order of the result.
//! - `restore`: what the server then says when the merged object is no longer of its type.

mod list;
mod map;
mod restore;

use super::PatchError;
use super::print::{go_print, json_type};
use crate::types::Schema;
use shared_json::{Map, Value};

/// Merges `patch` into `doc`, an object of the built-in type `schema`.
///
/// Merge keys and strategies come from the type. The result may hold fields that the type does not know, which the server then
/// drops. Errors are the real server's: a bad directive or a missing merge key is [`PatchError::Internal`], a value that
/// cannot be decoded any more is [`PatchError::Invalid`].
///
/// ```
/// use fake_apiserver::{patch::strategic, types::builtin};
/// use shared_json::json;
/// let pod = builtin(("", "v1", "Pod")).unwrap();
/// let doc = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}});
/// let patch = json!({"spec": {"containers": [{"name": "b", "image": "y"}]}});
/// let merged = strategic::apply(&pod, &doc, &patch).unwrap();
/// assert_eq!(merged, json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}));
/// ```
pub fn apply(schema: &Schema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let fields = match patch {
        Value::Null => return Ok(doc.clone()),
        Value::Object(fields) => fields,
        other => {
            let found = json_type(other);
            return Err(PatchError::Malformed(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let mut merged = doc.as_object().cloned().unwrap_or_else(Map::new);
    map::merge(&mut merged, fields, Some(schema))?;
    let merged = Value::Object(merged);
    restore::check_merged(schema, doc, &merged).map_err(|detail| PatchError::Invalid {
        patch: go_print(patch),
        detail,
    })?;
    Ok(merged)
}
