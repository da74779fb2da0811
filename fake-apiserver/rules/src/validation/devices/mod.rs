//! Devices: classes, claims, templates of claims, and slices (`resource.k8s.io`).
//!
//! The rules that several of them share are here.

mod claim;
mod device;
mod sharing;
mod slice;
mod status;

use std::borrow::Cow;

use machinery::cel;
use pod_rules::names;
use shared_json::{Map, Value};

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;

pub(super) use claim::{claim, claim_update, template, template_update};
pub(super) use slice::{slice, slice_update};
pub(super) use status::claim_status;

/// Requests, constraints, configurations, selectors and results: at most so many each.
const LIST_MAX: usize = 32;
const DRIVER_BYTES_MAX: usize = 63;
const POOL_BYTES_MAX: usize = 253;
const IDENTIFIER_BYTES_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// Parameters and data of drivers, in bytes.
const RAW_BYTES_MAX: usize = 10 * 1024;

fn label(name: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.problems(path, name, names::label_problems(name));
}

fn driver(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > DRIVER_BYTES_MAX {
        errors.too_long(path, DRIVER_BYTES_MAX);
    }
    errors.problems(path, name, names::subdomain_problems(&name.to_lowercase()));
}

/// Checks each item of a list, or only that it is too long.
fn each(
    list: &[Value],
    most: usize,
    path: &Path<'_>,
    errors: &mut Errors,
    mut check: impl FnMut(&Value, &Path<'_>, &mut Errors),
) {
    if list.len() > most {
        return errors.too_many(path, list.len(), most as u64);
    }
    for (index, item) in list.iter().enumerate() {
        check(item, &path.index(index), errors);
    }
}

/// The same where the field `key` (`""`: the item itself) must be unique among them.
fn each_unique(
    list: &[Value],
    most: usize,
    key: &str,
    path: &Path<'_>,
    errors: &mut Errors,
    check: impl FnMut(&Value, &Path<'_>, &mut Errors),
) {
    each(list, most, path, errors, check);
    if list.len() > most {
        return;
    }
    let own = |item: &Value| match key {
        "" => item.as_str().unwrap_or_default().to_owned(),
        key => item.text(key).to_owned(),
    };
    let keys: Vec<String> = list.iter().map(own).collect();
    for (index, key) in keys.iter().enumerate() {
        if keys.iter().take(index).any(|other| other == key) {
            errors.duplicate(&path.index(index), key.as_str());
        }
    }
}

fn selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("cel");
    let Some(cel) = selector.part("cel") else {
        return errors.required(&at, "");
    };
    let (at, text) = (at.field("expression"), cel.text("expression"));
    if text.len() > EXPRESSION_BYTES_MAX {
        errors.too_long(&at, EXPRESSION_BYTES_MAX);
    } else if let Err(problem) = cel::device_selector(text) {
        errors.invalid(&at, text, problem);
    }
}

fn configuration(config: &Value, stored: bool, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("opaque");
    let Some(opaque) = config.part("opaque") else {
        return errors.required(&at, "");
    };
    driver(opaque.text("driver"), &at.field("driver"), errors);
    let bytes_max = if stored { usize::MAX } else { RAW_BYTES_MAX };
    raw(
        opaque.part("parameters"),
        bytes_max,
        &at.field("parameters"),
        errors,
    );
}

/// JSON that is the driver's own: an object.
fn raw(value: Option<&Value>, bytes_max: usize, path: &Path<'_>, errors: &mut Errors) {
    match value {
        None => errors.required(path, ""),
        Some(value) if value.to_string().len() > bytes_max => errors.too_long(path, bytes_max),
        Some(Value::Object(_)) => {}
        Some(_) => errors.invalid(path, "<value omitted>", "must be a valid JSON object"),
    }
}

/// A DeviceClass.
pub(super) fn class(object: &Value, errors: &mut Errors) {
    class_spec(object, None, errors);
}

/// A changed DeviceClass. Its old parts may be longer than new ones.
pub(super) fn class_update(new: &Value, old: &Value, errors: &mut Errors) {
    class_spec(new, Some(old), errors);
}

fn class_spec(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let before = old.and_then(|old| old.part("spec"));
    let path = Path::new("spec");
    let at = path.field("selectors");
    each(spec.list("selectors"), LIST_MAX, &at, errors, selector);
    let stored = before.is_some_and(|before| same(spec.part("config"), before.part("config")));
    let at = path.field("config");
    each(
        spec.list("config"),
        LIST_MAX,
        &at,
        errors,
        |config, at, errors| {
            configuration(config, stored, at, errors);
        },
    );
    if let Some(name) = spec
        .text_if_set("extendedResourceName")
        .filter(|name| !super::amounts::is_extended(name))
    {
        let at = path.field("extendedResourceName");
        errors.invalid(&at, name, "must be a valid extended resource name");
    }
}

fn pool_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > POOL_BYTES_MAX {
        errors.too_long(path, POOL_BYTES_MAX);
    }
    for part in name.split('/') {
        errors.problems(path, part, names::subdomain_problems(part));
    }
}

/// A key or a value that a device's taint or a toleration of it has.
fn label_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.problems(path, name, names::qualified_problems(name));
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Under which conditions a pod waits for a device, and gives up on it.
fn binding_conditions(holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    const MOST: usize = 4;
    let check = |name: &Value, at: &Path<'_>, errors: &mut Errors| {
        label_name(name.as_str().unwrap_or_default(), at, errors);
    };
    let (met, failed) = (
        holder.list("bindingConditions"),
        holder.list("bindingFailureConditions"),
    );
    let (met_at, failed_at) = (
        path.field("bindingConditions"),
        path.field("bindingFailureConditions"),
    );
    each(met, MOST, &met_at, errors, check);
    each(failed, MOST, &failed_at, errors, check);
    for (index, name) in met.iter().enumerate() {
        if met.iter().take(index).any(|other| other == name) {
            errors.duplicate(&met_at.index(index), name.clone());
        }
    }
    for (index, name) in failed.iter().enumerate() {
        let at = failed_at.index(index);
        if failed.iter().take(index).any(|other| other == name) {
            errors.duplicate(&at, name.clone());
        }
        if met.contains(name) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.invalid(&at, name.clone(), detail);
        }
    }
    let none = |field: &str| holder.get(field).cloned().unwrap_or_default();
    if met.is_empty() && !failed.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        errors.invalid(&met_at, none("bindingConditions"), detail);
    }
    if failed.is_empty() && !met.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        errors.invalid(&failed_at, none("bindingFailureConditions"), detail);
    }
}

/// The name of an attribute or a capacity: of the driver's own domain, or with one.
fn qualified_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(id, path, errors),
        [domain, id] => {
            match domain.is_empty() {
                true => errors.invalid(path, "", "the domain must not be empty"),
                false => driver(domain, path, errors),
            }
            match id.is_empty() {
                true => errors.invalid(path, "", "the name must not be empty"),
                false => identifier(id, path, errors),
            }
        }
        // The real server looks no closer at names with more parts.
        _ => {}
    }
}

/// A fully qualified name: a domain and a name.
fn full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    qualified_name(name, path, errors);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.invalid(path, name, detail);
    }
}

fn identifier(id: &str, path: &Path<'_>, errors: &mut Errors) {
    if id.len() > IDENTIFIER_BYTES_MAX {
        errors.too_long(path, IDENTIFIER_BYTES_MAX);
    }
    let is_identifier = !id.is_empty()
        && !id.starts_with(|c: char| c.is_ascii_digit())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_identifier {
        errors.invalid(path, id, "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')");
    }
}

/// Checks the keys and values of a map, or only that it has too many. Of longer keys than `key_bytes_max` the middle is not shown.
fn each_entry(
    map: &Map,
    (most, key_bytes_max): (usize, usize),
    path: &Path<'_>,
    errors: &mut Errors,
    check_key: impl Fn(&str, &Path<'_>, &mut Errors),
    check: impl Fn(&Value, &Path<'_>, &mut Errors),
) {
    if map.len() > most {
        return errors.too_many(path, map.len(), most as u64);
    }
    for (key, value) in map {
        check_key(key, path, errors);
        check(value, &path.key(&shortened(key, key_bytes_max)), errors);
    }
}

fn shortened(key: &str, bytes_max: usize) -> Cow<'_, str> {
    const GAP: &str = "...";
    let rest = bytes_max - GAP.len();
    let (head, tail) = (rest.div_ceil(2), rest / 2);
    match (key.get(..head), key.get(key.len().saturating_sub(tail)..)) {
        (Some(head), Some(tail)) if key.len() > bytes_max => Cow::Owned(format!("{head}{GAP}{tail}")),
        _ => Cow::Borrowed(key),
    }
}

fn stays(new: &Value, old: &Value, name: &str, errors: &mut Errors) {
    if !same(new.part("spec"), old.part("spec")) {
        let shown = super::go::text(name, new.part("spec"));
        errors.invalid_shown(&Path::new("spec"), shown, IMMUTABLE);
    }
}

#[cfg(test)]
mod tests {
    use super::claim::NO_REQUEST;
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    fn said(check: fn(&Value, &mut Errors), spec: Value) -> Vec<String> {
        let mut errors = Errors::default();
        check(&json!({"spec": spec}), &mut errors);
        errors.into_vec().iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case(json!([{"name": "a", "exactly": {"deviceClassName": "x", "allocationMode": "ExactCount", "count": 1}}]), &[])]
    #[case(json!([{"name": "a"}]), &[
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
    ])]
    #[case(json!([{"name": "a", "exactly": {"allocationMode": "All", "count": 1}}]), &[
        "spec.devices.requests[0].exactly.deviceClassName: Required value",
        "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'",
    ])]
    fn claims(#[case] requests: Value, #[case] expect: &[&str]) {
        assert_eq!(said(claim, json!({"devices": {"requests": requests}})), expect);
    }

    #[rstest]
    #[case("a", None)]
    #[case("a/s", None)]
    #[case("b", Some(NO_REQUEST))]
    #[case("a/t", Some(NO_REQUEST))]
    #[case("a/s/t", Some(NO_REQUEST))]
    fn constraints_name_requests(#[case] name: &str, #[case] expect: Option<&str>) {
        let sub = json!({"name": "s", "deviceClassName": "x", "allocationMode": "ExactCount", "count": 1});
        let spec = json!({"devices": {
            "requests": [{"name": "a", "firstAvailable": [sub]}],
            "constraints": [{"requests": [name], "matchAttribute": "e.com/id"}],
        }});
        let expect = expect.map(|detail| {
            format!("spec.devices.constraints[0].requests[0]: Invalid value: \"{name}\": {detail}")
        });
        assert_eq!(said(claim, spec), expect.into_iter().collect::<Vec<_>>());
    }

    #[rstest]
    #[case(json!({"driver": "d.e", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": true}), &[])]
    #[case(json!({"driver": "d.e", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": true, "nodeName": "n"}), &[
        "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
    ])]
    fn slices(#[case] spec: Value, #[case] expect: &[&str]) {
        assert_eq!(said(slice, spec), expect);
    }
}
