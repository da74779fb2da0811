//! The status of a claim: its allocation, its users, and the drivers' status of devices.

use shared_json::Value;

use super::super::errors::{Errors, IMMUTABLE};
use super::super::fields::{Fields, NOTHING, same};
use super::super::path::Path;
use super::super::{addresses, go, rbac_and_policy, selectors};
use super::claim::{request_name, request_names};
use super::{
    LIST_MAX, RAW_BYTES_MAX, binding_conditions, configuration, driver, each, each_unique, label, pool_name,
    raw,
};

const USERS_MAX: usize = 256;
const CONDITIONS_MAX: usize = 8;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;
const ADDRESSES_MAX: usize = 16;

/// The allocation of a claim, and its users.
pub(in crate::validation) fn claim_status(new: &Value, old: &Value, errors: &mut Errors) {
    let (status, before) = (
        new.part("status").unwrap_or(&NOTHING),
        old.part("status").unwrap_or(&NOTHING),
    );
    let claim = new
        .part("spec")
        .and_then(|spec| spec.part("devices"))
        .unwrap_or(&NOTHING);
    let path = Path::new("status");
    let reserved = path.field("reservedFor");
    let users = status.list("reservedFor");
    each_unique(users, USERS_MAX, "uid", &reserved, errors, |user, at, errors| {
        for field in ["resource", "name", "uid"] {
            if user.text(field).is_empty() {
                errors.required(&at.field(field), "");
            }
        }
    });
    let allocation = status.part("allocation");
    devices(status, allocation, &path.field("devices"), errors);
    if !users.is_empty() && allocation.is_none() {
        errors.forbidden(&reserved, "may not be specified when `allocated` is not set");
    } else if new
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
        && users
            .iter()
            .any(|user| !before.list("reservedFor").contains(user))
    {
        let detail =
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.forbidden(&reserved, detail);
    }
    let path = path.field("allocation");
    match (before.part("allocation"), allocation) {
        (Some(before), Some(now)) if !same(Some(before), Some(now)) => {
            errors.invalid_shown(&path, go::text("resource.AllocationResult", Some(now)), IMMUTABLE);
        }
        (None, Some(now)) => allocated(claim, now, &path, errors),
        _ => {}
    }
}

/// A new allocation.
fn allocated(claim: &Value, allocation: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (devices, at) = (
        allocation.part("devices").unwrap_or(&NOTHING),
        path.field("devices"),
    );
    let results = at.field("results");
    each(
        devices.list("results"),
        LIST_MAX,
        &results,
        errors,
        |result, at, errors| {
            request_name(claim, result.text("request"), &at.field("request"), errors);
            driver(result.text("driver"), &at.field("driver"), errors);
            pool_name(result.text("pool"), &at.field("pool"), errors);
            label(result.text("device"), &at.field("device"), errors);
            binding_conditions(result, at, errors);
            share(result, at, errors);
        },
    );
    // Those of the class, and those of the claim.
    let config = at.field("config");
    each(
        devices.list("config"),
        2 * LIST_MAX,
        &config,
        errors,
        |config, at, errors| {
            errors.one_of(
                &at.field("source"),
                config.text("source"),
                &["FromClaim", "FromClass"],
            );
            request_names(claim, config, at, errors);
            configuration(config, false, at, errors);
        },
    );
    if let Some(selector) = allocation.part("nodeSelector") {
        selectors::node_selector(selector, &path.field("nodeSelector"), errors);
    }
}

/// Which part of a device that is shared.
fn share(holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(uid) = holder.text_if_set("shareID") else {
        return;
    };
    let at = path.field("shareID");
    if let Some(problem) = uid_problem(uid) {
        errors.invalid(&at, uid, format!("error validating uid: {problem}"));
    } else if uid.len() != 36 || uid.chars().any(|c| c.is_ascii_uppercase()) {
        errors.invalid(&at, uid, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
    }
}

/// The error for an invalid uid, as the real server's library says it, which takes several forms of one.
fn uid_problem(uid: &str) -> Option<String> {
    let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    let with_dashes = |text: &str| {
        let at_dashes = [8, 13, 18, 23]
            .iter()
            .all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        at_dashes && is_hex(&text.replace('-', "")) && text.matches('-').count() == 4
    };
    let malformed = || Some("invalid UUID format".to_owned());
    match uid.len() {
        36 if with_dashes(uid) => None,
        32 if is_hex(uid) => None,
        38 => match uid.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            None => Some("invalid bracketed UUID format".to_owned()),
            Some(inner) if with_dashes(inner) => None,
            Some(_) => malformed(),
        },
        45 => match uid.split_at_checked(9) {
            Some((prefix, _)) if !prefix.eq_ignore_ascii_case("urn:uuid:") => {
                Some(format!("invalid urn prefix: {prefix:?}"))
            }
            Some((_, rest)) if with_dashes(rest) => None,
            _ => malformed(),
        },
        32 | 36 => malformed(),
        length => Some(format!("invalid UUID length: {length}")),
    }
}

/// A device among all, as far as it is allocated: driver, pool, device and share.
fn identity(holder: &Value) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| holder.text(field))
}

fn identity_shown(identity: [&str; 4]) -> String {
    let [driver, pool, device, share] = identity.map(|text| go::json(&Value::from(text)));
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device},\"ShareID\":{share}}}")
}

/// The drivers' status of devices.
fn devices(status: &Value, allocation: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let results = allocation
        .and_then(|allocation| allocation.part("devices"))
        .map_or(&[][..], |devices| devices.list("results"));
    let told = status.list("devices");
    each(told, usize::MAX, path, errors, |device, at, errors| {
        driver(device.text("driver"), &at.field("driver"), errors);
        pool_name(device.text("pool"), &at.field("pool"), errors);
        label(device.text("device"), &at.field("device"), errors);
        share(device, at, errors);
        if !results.iter().any(|result| identity(result) == identity(device)) {
            let detail = "must be an allocated device in the claim";
            errors.invalid_shown(at, identity_shown(identity(device)), detail);
        }
        let conditions = at.field("conditions");
        let count = device.list("conditions").len();
        if count > CONDITIONS_MAX {
            errors.too_many(&conditions, count, CONDITIONS_MAX as u64);
        }
        rbac_and_policy::conditions(device, &conditions, errors);
        if let Some(data) = device.part("data") {
            raw(Some(data), RAW_BYTES_MAX, &at.field("data"), errors);
        }
        if let Some(network) = device.part("networkData") {
            network_data(network, &at.field("networkData"), errors);
        }
    });
    for (index, device) in told.iter().enumerate() {
        let own = identity(device);
        if told.iter().take(index).any(|other| identity(other) == own) {
            errors.duplicate_shown(&path.index(index), identity_shown(own), "");
        }
    }
}

fn network_data(network: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (field, bytes_max) in [
        ("interfaceName", INTERFACE_BYTES_MAX),
        ("hardwareAddress", HARDWARE_BYTES_MAX),
    ] {
        if network.text(field).len() > bytes_max {
            errors.too_long(&path.field(field), bytes_max);
        }
    }
    let at = path.field("ips");
    each_unique(
        network.list("ips"),
        ADDRESSES_MAX,
        "",
        &at,
        errors,
        |address, at, errors| {
            addresses::interface(at, address.as_str().unwrap_or_default(), errors);
        },
    );
}
