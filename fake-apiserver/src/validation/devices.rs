//! Devices: classes, claims, templates of claims, and slices (`resource.k8s.io`).

use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::{go, selectors};
use crate::field_error::FieldError;
use crate::{cel, names};

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

/// Requests, constraints, configurations and selectors: at most so many each.
const LIST_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const DEVICES_MAX: usize = 128;
const DEVICES_WITH_TAINTS_MAX: usize = 64;
const DRIVER_BYTES_MAX: usize = 63;
const POOL_BYTES_MAX: usize = 253;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;

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

/// Checks each item of a list that must not be too long; `key` names what must be unique among them.
fn each(
    list: &[Value],
    most: usize,
    key: Option<&str>,
    path: &Path<'_>,
    errors: &mut Errors,
    check: impl Fn(&Value, &Path<'_>, &mut Errors),
) {
    if list.len() > most {
        errors.too_many(path, list.len(), most as u64);
    }
    for (index, item) in list.iter().enumerate() {
        let at = path.index(index);
        check(item, &at, errors);
        let own = |item: &Value| match key {
            Some("") => item.as_str().map(str::to_owned),
            Some(key) => Some(item.text(key).to_owned()),
            None => None,
        };
        if let Some(value) = own(item)
            && list
                .iter()
                .take(index)
                .any(|other| own(other).as_ref() == Some(&value))
        {
            errors.duplicate(&at, value);
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

fn configuration(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("opaque");
    let Some(opaque) = config.part("opaque") else {
        return errors.required(&at, "");
    };
    driver(opaque.text("driver"), &at.field("driver"), errors);
    match opaque.part("parameters") {
        None => errors.required(&at.field("parameters"), ""),
        Some(Value::Object(_)) => {}
        Some(_) => {
            let detail = "must be a valid JSON object";
            errors.invalid(&at.field("parameters"), "<value omitted>", detail);
        }
    }
}

/// A DeviceClass.
pub(super) fn class(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    each(
        spec.list("selectors"),
        LIST_MAX,
        None,
        &path.field("selectors"),
        errors,
        selector,
    );
    each(
        spec.list("config"),
        LIST_MAX,
        None,
        &path.field("config"),
        errors,
        configuration,
    );
    if let Some(name) = spec.text_if_set("extendedResourceName") {
        let extended =
            name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.");
        if !extended || !names::qualified_problems(&format!("requests.{name}")).is_empty() {
            let at = path.field("extendedResourceName");
            errors.invalid(&at, name, "must be a valid extended resource name");
        }
    }
}

/// Whether `asked` names a request of the claim, or an alternative of one: `request/alternative`.
fn is_request(claim: &Value, asked: &str) -> bool {
    let (name, alternative) = match asked.split_once('/') {
        Some((name, alternative)) => (name, Some(alternative)),
        None => (asked, None),
    };
    claim.list("requests").iter().any(|request| {
        let has = |wanted: &str| {
            let list = request.list("firstAvailable");
            list.iter().any(|sub| sub.text("name") == wanted)
        };
        request.text("name") == name && alternative.is_none_or(has)
    })
}

const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

fn request_name(claim: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            label(part, path, errors);
        }
    }
    if name.matches('/').count() > 1 || !is_request(claim, name) {
        errors.invalid(path, name, NO_REQUEST);
    }
}

fn request_names(claim: &Value, holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("requests");
    each(
        holder.list("requests"),
        LIST_MAX,
        Some(""),
        &at,
        errors,
        |name, at, errors| {
            request_name(claim, name.as_str().unwrap_or_default(), at, errors);
        },
    );
}

/// What is asked of one kind of device.
fn wanted(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("deviceClassName");
    match request.text("deviceClassName") {
        "" => errors.required(&at, ""),
        name => errors.problems(&at, name, names::subdomain_problems(name)),
    }
    each(
        request.list("selectors"),
        LIST_MAX,
        None,
        &path.field("selectors"),
        errors,
        selector,
    );
    let (mode, count) = (
        request.text("allocationMode"),
        request.int("count").unwrap_or_default(),
    );
    let at = path.field("count");
    match mode {
        "All" if count != 0 => {
            errors.invalid(&at, count, "must not be specified when allocationMode is 'All'");
        }
        "All" => {}
        "ExactCount" if count <= 0 => errors.invalid(&at, count, "must be greater than zero"),
        "ExactCount" => {}
        other => errors.not_supported(&path.field("allocationMode"), other, &["All", "ExactCount"]),
    }
    let at = path.field("tolerations");
    for (index, toleration) in request.list("tolerations").iter().enumerate() {
        device_toleration(toleration, &at.index(index), errors);
    }
}

fn device_toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let key = toleration.text("key");
    if !key.is_empty() {
        errors.problems(&path.field("key"), key, names::qualified_problems(key));
    }
    let at = path.field("operator");
    match toleration.text("operator") {
        "Exists" if !toleration.text("value").is_empty() => {
            let detail = "must be empty for operator `Exists`";
            errors.invalid(&path.field("value"), toleration.text("value"), detail);
        }
        "Exists" => {}
        "Equal" => {
            let value = toleration.text("value");
            errors.problems(&path.field("value"), value, names::label_value_problems(value));
        }
        "" => errors.required(&at, ""),
        other => errors.not_supported(&at, other, &["Equal", "Exists"]),
    }
    let effect = toleration.text("effect");
    let effects = ["NoExecute", "NoSchedule", "None"];
    if !effect.is_empty() && !effects.contains(&effect) {
        errors.not_supported(&path.field("effect"), effect, &effects);
    }
}

fn request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    label(request.text("name"), &path.field("name"), errors);
    let alternatives = request.list("firstAvailable");
    match (request.part("exactly"), alternatives.is_empty()) {
        (None, true) => errors.required(path, "exactly one of `exactly` or `firstAvailable` is required"),
        (Some(_), false) => errors.invalid(
            path,
            Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        (Some(exactly), true) => wanted(exactly, &path.field("exactly"), errors),
        (None, false) => {
            let at = path.field("firstAvailable");
            each(
                alternatives,
                ALTERNATIVES_MAX,
                Some("name"),
                &at,
                errors,
                |sub, at, errors| {
                    label(sub.text("name"), &at.field("name"), errors);
                    wanted(sub, at, errors);
                },
            );
        }
    }
}

/// A name with the domain of whoever defines it.
fn full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let identifier = |id: &str, errors: &mut Errors| {
        if id.is_empty() || !is_identifier(id) {
            errors.invalid(path, id, "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')");
        }
    };
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => {
            identifier(id, errors);
            let detail = "a fully qualified name must be a domain and a name separated by a slash";
            errors.invalid(path, name, detail);
        }
        [domain, id] => {
            match domain.is_empty() {
                true => errors.invalid(path, "", "the domain must not be empty"),
                false => errors.problems(path, domain, names::subdomain_problems(domain)),
            }
            match id.is_empty() {
                true => errors.invalid(path, "", "the name must not be empty"),
                false => identifier(id, errors),
            }
        }
        // The real server looks no closer at names with more parts.
        _ => {}
    }
}

fn is_identifier(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let claim = spec.part("devices").unwrap_or(&NOTHING);
    let path = path.field("devices");
    each(
        claim.list("requests"),
        LIST_MAX,
        Some("name"),
        &path.field("requests"),
        errors,
        request,
    );
    let at = path.field("constraints");
    each(
        claim.list("constraints"),
        LIST_MAX,
        None,
        &at,
        errors,
        |constraint, at, errors| {
            request_names(claim, constraint, at, errors);
            if let Some(name) = constraint.text_if_set("matchAttribute") {
                full_name(name, &at.field("matchAttribute"), errors);
            } else if let Some(name) = constraint.text_if_set("distinctAttribute") {
                full_name(name, &at.field("distinctAttribute"), errors);
            } else {
                let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
                errors.required(at, detail);
            }
        },
    );
    each(
        claim.list("config"),
        LIST_MAX,
        None,
        &path.field("config"),
        errors,
        |config, at, errors| {
            request_names(claim, config, at, errors);
            configuration(config, at, errors);
        },
    );
}

/// A ResourceClaim.
pub(super) fn claim(object: &Value, errors: &mut Errors) {
    claim_spec(
        object.part("spec").unwrap_or(&NOTHING),
        &Path::new("spec"),
        errors,
    );
}

/// What is claimed cannot be changed.
pub(super) fn claim_update(new: &Value, old: &Value, errors: &mut Errors) {
    stays(new, old, "resource.ResourceClaimSpec", errors);
}

fn stays(new: &Value, old: &Value, name: &str, errors: &mut Errors) {
    if !same(new.part("spec"), old.part("spec")) {
        let shown = go::text(name, new.part("spec"));
        errors.invalid_shown(&Path::new("spec"), shown, IMMUTABLE);
    }
}

/// A ResourceClaimTemplate.
pub(super) fn template(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    super::pod::template_metadata(spec, &Path::new("spec"), errors);
    claim_spec(
        spec.part("spec").unwrap_or(&NOTHING),
        &Path::new("spec.spec"),
        errors,
    );
}

/// A template cannot be changed.
pub(super) fn template_update(new: &Value, old: &Value, errors: &mut Errors) {
    template(new, errors);
    stays(new, old, "resource.ResourceClaimTemplateSpec", errors);
}

/// What was allocated to a claim, and who uses it.
pub(super) fn claim_status(new: &Value, old: &Value, errors: &mut Errors) {
    let (status, before) = (
        new.part("status").unwrap_or(&NOTHING),
        old.part("status").unwrap_or(&NOTHING),
    );
    let claim = new
        .part("spec")
        .and_then(|spec| spec.part("devices"))
        .unwrap_or(&NOTHING);
    let path = Path::new("status");
    let at = path.field("reservedFor");
    let users = status.list("reservedFor");
    each(users, 256, Some("uid"), &at, errors, |user, at, errors| {
        for field in ["resource", "name", "uid"] {
            if user.text(field).is_empty() {
                errors.required(&at.field(field), "");
            }
        }
    });
    let allocation = status.part("allocation");
    if !users.is_empty() && allocation.is_none() {
        errors.forbidden(&at, "may not be specified when `allocated` is not set");
    }
    let path = path.field("allocation");
    match (before.part("allocation"), allocation) {
        (Some(before), Some(now)) if !same(Some(before), Some(now)) => {
            errors.invalid(&path, now.clone(), IMMUTABLE);
        }
        (None, Some(now)) => {
            let at = path.field("devices.results");
            let results = now.part("devices").map(|devices| devices.list("results"));
            for (index, result) in results.unwrap_or_default().iter().enumerate() {
                let at = at.index(index);
                request_name(claim, result.text("request"), &at.field("request"), errors);
                driver(result.text("driver"), &at.field("driver"), errors);
                pool_name(result.text("pool"), &at.field("pool"), errors);
                label(result.text("device"), &at.field("device"), errors);
            }
            if let Some(selector) = now.part("nodeSelector") {
                selectors::node_selector(selector, &path.field("nodeSelector"), errors);
            }
        }
        _ => {}
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

/// A ResourceSlice.
pub(super) fn slice(object: &Value, errors: &mut Errors) {
    slice_spec(object, None, errors);
}

/// A changed ResourceSlice.
pub(super) fn slice_update(new: &Value, old: &Value, errors: &mut Errors) {
    slice_spec(new, Some(old), errors);
}

fn slice_spec(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    driver(spec.text("driver"), &path.field("driver"), errors);
    let (pool, at) = (spec.part("pool").unwrap_or(&NOTHING), path.field("pool"));
    pool_name(pool.text("name"), &at.field("name"), errors);
    let count = pool.int("resourceSliceCount").unwrap_or_default();
    if count <= 0 {
        errors.invalid(
            &at.field("resourceSliceCount"),
            count,
            "must be greater than zero",
        );
    }
    if let Some(generation) = pool.int("generation").filter(|generation| *generation < 0) {
        errors.invalid(
            &at.field("generation"),
            generation,
            "must be greater than or equal to zero",
        );
    }
    if let Some(old) = old {
        for pointer in ["/spec/pool/name", "/spec/driver", "/spec/nodeName"] {
            let dotted = pointer.trim_start_matches('/').replace('/', ".");
            super::immutable(object, old, pointer, &Path::new(&dotted), errors);
        }
    }
    where_to(spec, &path, errors);
    let devices = spec.list("devices");
    let most = if devices.iter().any(|device| !device.list("taints").is_empty()) {
        DEVICES_WITH_TAINTS_MAX
    } else {
        DEVICES_MAX
    };
    each(
        devices,
        most,
        Some("name"),
        &path.field("devices"),
        errors,
        |device, at, errors| {
            label(device.text("name"), &at.field("name"), errors);
            let attributes = at.field("attributes");
            for (name, value) in device.map("attributes") {
                let at = attributes.key(name);
                let known = ["int", "bool", "string", "version"];
                let version = value.text_if_set("version");
                if let Some(version) = version.filter(|text| !cel::is_version(text)) {
                    let detail = "must be a string compatible with semver.org spec 2.0.0";
                    errors.invalid(&at.field("version"), version, detail);
                }
                match known.iter().filter(|kind| value.has(kind)).count() {
                    0 => errors.invalid(&at, "", "exactly one value must be specified"),
                    1 => {}
                    _ => errors.push(FieldError {
                        shown: Some(attribute_shown(value)),
                        ..FieldError::invalid(
                            at.to_string(),
                            Value::Null,
                            "exactly one value must be specified",
                        )
                    }),
                }
            }
        },
    );
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
            errors.invalid(&at, terms.to_vec(), "must have exactly one node selector term");
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

#[cfg(test)]
mod tests {
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
