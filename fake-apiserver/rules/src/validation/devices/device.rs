//! One device of a slice: attributes, capacity, taints, counters, and where it can be reached from.

use machinery::cel;
use pod_rules::names;
use shared_json::Value;

use super::super::errors::Errors;
use super::super::fields::{Fields, same};
use super::super::path::Path;
use super::super::{go, selectors};
use super::{
    EFFECTS, binding_conditions, each, each_entry, each_unique, label, label_name, qualified_name, sharing,
};

/// The domain of a driver, a slash and an identifier.
const NAME_BYTES_MAX: usize = super::DRIVER_BYTES_MAX + 1 + super::IDENTIFIER_BYTES_MAX;
const ATTRIBUTES_AND_CAPACITIES_MAX: usize = 32;
const ATTRIBUTE_VALUES_MAX: usize = 48;
const ATTRIBUTE_BYTES_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
const CONSUMED_SETS_MAX: usize = 2;
const COUNTERS_MAX: usize = 32;

/// The object that says from where a device can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Each device.
    Own,
    /// Its slice, for all of them.
    OfSlice,
}

/// A device, which may have been there before.
pub(super) fn device(
    device: &Value,
    before: Option<&Value>,
    place: Place,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    label(device.text("name"), &path.field("name"), errors);
    let (attributes, capacity) = (device.map("attributes"), device.map("capacity"));
    let count = attributes.len() + capacity.len();
    if count > ATTRIBUTES_AND_CAPACITIES_MAX {
        let detail = format!(
            "the total number of attributes and capacities must not exceed {ATTRIBUTES_AND_CAPACITIES_MAX}"
        );
        errors.invalid(path, count, detail);
    }
    let count: usize = attributes.values().map(values_of).sum();
    if count > ATTRIBUTE_VALUES_MAX {
        let detail = format!("the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}");
        errors.invalid(path, count, detail);
    }
    let at = path.field("attributes");
    each_entry(
        attributes,
        (usize::MAX, NAME_BYTES_MAX),
        &at,
        errors,
        qualified_name,
        attribute,
    );
    let is_shared = device.is_true("allowMultipleAllocations");
    let at = path.field("capacity");
    each_entry(
        capacity,
        (usize::MAX, NAME_BYTES_MAX),
        &at,
        errors,
        qualified_name,
        |capacity, at, errors| {
            let Some(policy) = capacity.part("requestPolicy") else {
                return;
            };
            let at = at.field("requestPolicy");
            match is_shared {
                true => sharing::policy(capacity, policy, &at, errors),
                false => errors.forbidden(&at, "allowMultipleAllocations must be true"),
            }
        },
    );
    if before.is_none_or(|before| !same(before.part("taints"), device.part("taints"))) {
        let at = path.field("taints");
        each(device.list("taints"), TAINTS_MAX, &at, errors, taint);
    }
    let at = path.field("consumesCounters");
    let consumed = device.list("consumesCounters");
    each_unique(
        consumed,
        CONSUMED_SETS_MAX,
        "counterSet",
        &at,
        errors,
        |set, at, errors| {
            match set.text("counterSet") {
                "" => errors.required(&at.field("counterSet"), ""),
                name => label(name, &at.field("counterSet"), errors),
            }
            counters(set, at, errors);
        },
    );
    reached_from(device, place, path, errors);
    binding_conditions(device, path, errors);
}

/// How many values an attribute has.
fn values_of(attribute: &Value) -> usize {
    let lists = ["bools", "ints", "strings", "versions"];
    let count: usize = lists.iter().map(|field| attribute.list(field).len()).sum();
    count.max(1)
}

fn attribute(attribute: &Value, path: &Path<'_>, errors: &mut Errors) {
    if attribute.text("string").len() > ATTRIBUTE_BYTES_MAX {
        errors.too_long(&path.field("string"), ATTRIBUTE_BYTES_MAX);
    }
    if let Some(version) = attribute.text_if_set("version") {
        let at = path.field("version");
        if !cel::is_version(version) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.invalid(&at, version, detail);
        }
        if version.len() > ATTRIBUTE_BYTES_MAX {
            errors.too_long(&at, ATTRIBUTE_BYTES_MAX);
        }
    }
    let detail = "exactly one value must be specified";
    let kinds = ["int", "bool", "string", "version"];
    match kinds.iter().filter(|kind| attribute.has(kind)).count() {
        0 => errors.invalid(path, "", detail),
        1 => {}
        _ => errors.invalid_shown(path, attribute_shown(attribute), detail),
    }
}

/// An attribute of a device as the real server's own struct prints.
fn attribute_shown(value: &Value) -> String {
    let fields = [
        ("IntValue", "int"),
        ("BoolValue", "bool"),
        ("StringValue", "string"),
        ("VersionValue", "version"),
        ("IntValues", "ints"),
        ("BoolValues", "bools"),
        ("StringValues", "strings"),
        ("VersionValues", "versions"),
    ];
    let shown = fields.map(|(name, field)| {
        let value = value.get(field).unwrap_or(&Value::Null);
        format!("\"{name}\":{}", go::json(value))
    });
    format!("{{{}}}", shown.join(","))
}

fn taint(taint: &Value, path: &Path<'_>, errors: &mut Errors) {
    label_name(taint.text("key"), &path.field("key"), errors);
    let value = taint.text("value");
    if !value.is_empty() {
        errors.problems(&path.field("value"), value, names::label_value_problems(value));
    }
    errors.one_of(&path.field("effect"), taint.text("effect"), &EFFECTS);
}

/// The counters of a set, or those that a device takes from it.
pub(super) fn counters(set: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (at, counters) = (path.field("counters"), set.map("counters"));
    if counters.is_empty() {
        return errors.required(&at, "");
    }
    each_entry(
        counters,
        (COUNTERS_MAX, names::LABEL_BYTES_MAX),
        &at,
        errors,
        label,
        |_, _, _| {},
    );
}

fn reached_from(device: &Value, place: Place, path: &Path<'_>, errors: &mut Errors) {
    let own = ["nodeName", "nodeSelector", "allNodes"];
    if place == Place::OfSlice {
        if own.iter().any(|field| device.has(field)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.invalid(path, Value::Null, detail);
        }
        return;
    }
    let mut ways = Vec::new();
    if let Some(name) = device.text_if_set("nodeName") {
        let at = path.field("nodeName");
        if name.is_empty() {
            errors.invalid(&at, name, "must not be empty");
        } else {
            ways.push("`nodeName`");
            errors.problems(&at, name, names::subdomain_problems(name));
        }
    }
    if let Some(selector) = device.part("nodeSelector") {
        ways.push("`nodeSelector`");
        selectors::node_selector(selector, &path.field("nodeSelector"), errors);
    }
    match device.flag("allNodes") {
        Some(true) => ways.push("`allNodes`"),
        Some(false) => errors.invalid(
            &path.field("allNodes"),
            false,
            "must be either unset or set to true",
        ),
        None => {}
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match ways.len() {
        0 => errors.required(path, one),
        1 => {}
        _ => errors.invalid(path, format!("{{{}}}", ways.join(", ")), one),
    }
}
