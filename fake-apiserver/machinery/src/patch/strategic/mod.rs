//! Strategic merge patch: a merge patch that knows the type, so that lists merge by key and directives express more than a merge
//! can.
//!
//! - `map`: objects, and the directives in them: `$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
//! - `list`: lists, merged by key or by value, and the order of the result.
//! - `restore`: the server's errors when the merged object is no longer of its type.

mod list;
mod map;
pub mod restore;

use super::PatchError;
use super::print::{go_print, json_type};
use crate::types::Schema;
use shared_json::{Map, Name, Value};

/// Merges `patch` into `doc`, an object of the built-in type `schema`.
///
/// Merge keys and strategies come from the type. The result may hold fields that the type does not know, which the server then
/// drops. Errors are the real server's: a bad directive or a missing merge key is [`PatchError::Internal`], a value that
/// cannot be decoded any more is [`PatchError::Invalid`].
///
/// ```
/// use machinery::{patch::strategic, types::builtin};
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
    let mut merged = Value::Object(merged);
    match restore::check_merged(schema, doc, &merged) {
        Err(_) if restore::narrow(schema, &mut merged) && restore::check(schema, &merged).is_ok() => {
            Ok(merged)
        }
        Err(detail) => Err(PatchError::Invalid {
            patch: go_print(&used(Some(doc), patch)),
            detail,
        }),
        Ok(()) => Ok(merged),
    }
}

/// The rest of a patch after it was merged into `doc`, for refusals: merging removes the parts that it has followed.
pub fn used(doc: Option<&Value>, patch: &Value) -> Value {
    match (doc, patch) {
        (None, Value::Object(fields)) => {
            let said = fields.iter().filter(|(_, value)| !value.is_null());
            let said = said.map(|(name, value)| (name.clone(), used(None, value)));
            Value::Object(said.collect())
        }
        (None, Value::Array(items)) => Value::Array(items.iter().map(|item| used(None, item)).collect()),
        (Some(Value::Object(doc)), Value::Object(fields)) => match fields.get(map::DIRECTIVE) {
            Some(directive) => {
                let mut fields = fields.clone();
                if directive.as_str() == Some("replace") {
                    fields.remove(map::DIRECTIVE);
                }
                Value::Object(fields)
            }
            None => {
                let used = |(name, value): (&Name, &Value)| match (doc.get(name), value) {
                    (None, Value::Null) => (name.clone(), Value::Null),
                    (before, value) => (name.clone(), used(before, value)),
                };
                let left = fields.iter().filter(|(name, _)| !map::is_taken(fields, name));
                Value::Object(left.map(used).collect())
            }
        },
        (_, patch) => patch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::absent(json!({}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}}))]
    #[case::ordered(
        json!({"a": {"b": [], "d": 1}}),
        json!({"a": {"$setElementOrder/b": [], "b": [{"name": "x"}], "c": 1}}),
        json!({"a": {"c": 1}})
    )]
    #[case::unordered(json!({"a": {"b": []}}), json!({"a": {"b": [{"name": "x"}]}}), json!({"a": {"b": [{"name": "x"}]}}))]
    #[case::retained(json!({"a": {"b": 1}}), json!({"a": {"$retainKeys": ["b"], "b": 2}}), json!({"a": {"b": 2}}))]
    #[case::replaced(json!({"a": {"b": 1}}), json!({"a": {"$patch": "replace", "b": 2}}), json!({"a": {"b": 2}}))]
    fn what_merging_leaves_of_a_patch(#[case] doc: Value, #[case] patch: Value, #[case] expect: Value) {
        assert_eq!(used(Some(&doc), &patch), expect);
    }
}
