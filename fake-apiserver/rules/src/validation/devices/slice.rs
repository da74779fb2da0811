//! Slices of a pool: the devices that a driver offers, and their shared counters.

use pod_rules::names;
use shared_json::Value;

use super::super::errors::Errors;
use super::super::fields::{Fields, NOTHING};
use super::super::path::Path;
use super::super::{go, immutable, selectors};
use super::device::{Place, counters, device};
use super::{driver, each_unique, label, pool_name};

const DEVICES_MAX: usize = 128;
/// How many if any has taints, takes from counters or has lists of attributes.
const COMPLEX_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;

/// A ResourceSlice.
pub(in crate::validation) fn slice(object: &Value, errors: &mut Errors) {
    slice_spec(object, None, errors);
}

/// A changed ResourceSlice.
pub(in crate::validation) fn slice_update(new: &Value, old: &Value, errors: &mut Errors) {
    slice_spec(new, Some(old), errors);
}

fn slice_spec(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    driver(spec.text("driver"), &path.field("driver"), errors);
    pool(spec.part("pool").unwrap_or(&NOTHING), &path.field("pool"), errors);
    if let Some(old) = old {
        for pointer in ["/spec/pool/name", "/spec/driver", "/spec/nodeName"] {
            let dotted = pointer.trim_start_matches('/').replace('/', ".");
            immutable(object, old, pointer, &Path::new(&dotted), errors);
        }
    }
    where_to(spec, &path, errors);
    if spec.has("sharedCounters") && spec.has("devices") {
        errors.invalid(&path, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let devices = spec.list("devices");
    let most = if devices.iter().any(is_complex) {
        COMPLEX_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let before = old
        .and_then(|old| old.part("spec"))
        .map_or(&[][..], |spec| spec.list("devices"));
    let place = match spec.is_true("perDeviceNodeSelection") {
        true => Place::Own,
        false => Place::OfSlice,
    };
    let at = path.field("devices");
    each_unique(devices, most, "name", &at, errors, |item, at, errors| {
        let before = before
            .iter()
            .find(|other| other.text("name") == item.text("name"));
        device(item, before, place, at, errors);
    });
    let at = path.field("sharedCounters");
    let sets = spec.list("sharedCounters");
    each_unique(sets, COUNTER_SETS_MAX, "name", &at, errors, |set, at, errors| {
        match set.text("name") {
            "" => errors.required(&at.field("name"), ""),
            name => label(name, &at.field("name"), errors),
        }
        counters(set, at, errors);
    });
}

fn pool(pool: &Value, path: &Path<'_>, errors: &mut Errors) {
    pool_name(pool.text("name"), &path.field("name"), errors);
    let count = pool.int("resourceSliceCount").unwrap_or_default();
    if count <= 0 {
        let at = path.field("resourceSliceCount");
        errors.invalid(&at, count, "must be greater than zero");
    }
    if let Some(generation) = pool.int("generation").filter(|generation| *generation < 0) {
        let at = path.field("generation");
        errors.invalid(&at, generation, "must be greater than or equal to zero");
    }
}

fn is_complex(device: &Value) -> bool {
    let is_list = |field: &str| matches!(field, "bools" | "ints" | "strings" | "versions");
    let has_lists = |attribute: &Value| {
        let fields = attribute.as_object().into_iter().flatten();
        fields.into_iter().any(|(field, _)| is_list(field))
    };
    !device.list("taints").is_empty()
        || !device.list("consumesCounters").is_empty()
        || device.map("attributes").values().any(has_lists)
}

/// Where the devices of a slice can be reached from: said in one way.
fn where_to(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut ways = Vec::new();
    if let Some(name) = spec.text_if_set("nodeName") {
        let at = path.field("nodeName");
        if name.is_empty() {
            errors.invalid(&at, name, "must be either unset or set to a non-empty string");
        } else {
            ways.push("`nodeName`");
            errors.problems(&at, name, names::subdomain_problems(name));
        }
    }
    if let Some(selector) = spec.part("nodeSelector") {
        ways.push("`nodeSelector`");
        selectors::node_selector(selector, &path.field("nodeSelector"), errors);
        let terms = selector.list("nodeSelectorTerms");
        if terms.len() != 1 {
            let at = path.field("nodeSelector.nodeSelectorTerms");
            let shown = match selector.has("nodeSelectorTerms") {
                true => go::list_text("core.NodeSelectorTerm", terms),
                false => "null".to_owned(),
            };
            errors.invalid_shown(&at, shown, "must have exactly one node selector term");
        }
    }
    for (field, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        match spec.flag(field) {
            Some(true) => ways.push(shown),
            Some(false) => {
                errors.invalid(&path.field(field), false, "must be either unset or set to true");
            }
            None => {}
        }
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.len() {
        0 => errors.required(path, one),
        1 => {}
        _ => errors.invalid(
            path,
            format!("{{{}}}", ways.join(", ")),
            format!("{one}, but multiple fields are set"),
        ),
    }
}
