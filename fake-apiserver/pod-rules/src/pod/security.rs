//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use shared_json::Value;

use super::{Around, windows};
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;
use crate::volume_sources::descending;
use crate::{errors::range_text, go};

const ID_MOST: i64 = i32::MAX as i64;

/// The id of a user or a group, if given.
fn id(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(id) = holder.int(field) {
        errors.in_range(&path.field(field), id, 0, ID_MOST);
    }
}

/// The security context of a container.
pub(super) fn of_container(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = container.part("securityContext") else {
        return;
    };
    id(context, "runAsUser", path, errors);
    id(context, "runAsGroup", path, errors);
    if let Some(mount) = context.text_if_set("procMount") {
        let at = path.field("procMount");
        errors.one_of_or_empty(&at, mount, &["Default", "Unmasked"]);
        if mount == "Unmasked" && around.spec.flag("hostUsers") != Some(false) {
            errors.invalid(&at, mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(
        context.part("seccompProfile"),
        &path.field("seccompProfile"),
        errors,
    );
    if context.flag("allowPrivilegeEscalation") == Some(false) {
        let shown = || go::text("core.SecurityContext", Some(context));
        if context.is_true("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid_shown(path, shown(), detail);
        }
        let capabilities = context.part("capabilities").unwrap_or(&NOTHING);
        for capability in capabilities.texts("add") {
            if capability == "CAP_SYS_ADMIN" {
                let detail =
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
                errors.invalid_shown(path, shown(), detail);
            }
        }
    }
    windows::options(
        context.part("windowsOptions"),
        &path.field("windowsOptions"),
        errors,
    );
    app_armor(
        context.part("appArmorProfile"),
        &path.field("appArmorProfile"),
        errors,
    );
}

/// The security context of a pod, of which the API keeps some fields in the spec itself.
pub(super) fn of_pod(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = spec.part("securityContext") else {
        return;
    };
    id(context, "fsGroup", path, errors);
    id(context, "runAsUser", path, errors);
    id(context, "runAsGroup", path, errors);
    let groups = path.field("supplementalGroups");
    for (index, group) in context.list("supplementalGroups").iter().enumerate() {
        errors.in_range(
            &groups.index(index),
            group.as_i64().unwrap_or_default(),
            0,
            ID_MOST,
        );
    }
    if spec.is_true("shareProcessNamespace") && spec.is_true("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.field("shareProcessNamespace"), true, detail);
    }
    sysctls(spec, context, &path.field("sysctls"), errors);
    if let Some(policy) = context.text_if_set("fsGroupChangePolicy") {
        errors.one_of_or_empty(
            &path.field("fsGroupChangePolicy"),
            policy,
            &["Always", "OnRootMismatch"],
        );
    }
    seccomp(
        context.part("seccompProfile"),
        &path.field("seccompProfile"),
        errors,
    );
    windows::options(
        context.part("windowsOptions"),
        &path.field("windowsOptions"),
        errors,
    );
    app_armor(
        context.part("appArmorProfile"),
        &path.field("appArmorProfile"),
        errors,
    );
    if let Some(policy) = context.text_if_set("supplementalGroupsPolicy") {
        errors.one_of_or_empty(
            &path.field("supplementalGroupsPolicy"),
            policy,
            &["Merge", "Strict"],
        );
    }
    if let Some(policy) = context.text_if_set("seLinuxChangePolicy") {
        errors.one_of_or_empty(
            &path.field("seLinuxChangePolicy"),
            policy,
            // The other policy comes with a feature that is off.
            &["Recursive"],
        );
    }
}

const SYSCTL_TEXT: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

fn is_sysctl(name: &str) -> bool {
    let part = |part: &str| {
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        part.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
            && edge(part.bytes().next())
            && edge(part.bytes().last())
    };
    name.len() <= names::SUBDOMAIN_BYTES_MAX && name.split(['.', '/']).all(part)
}

fn sysctls(spec: &Value, context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, sysctl) in context.list("sysctls").iter().enumerate() {
        let at = path.index(index);
        let at = at.field("name");
        let name = sysctl.text("name");
        if name.is_empty() {
            errors.required(&at, "");
        } else if !is_sysctl(name) {
            errors.invalid(&at, name, SYSCTL_TEXT);
        } else if seen.contains(name) {
            errors.duplicate(&at, name);
        }
        let dotted = name.replace('/', ".");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| dotted.starts_with(prefix))
            || dotted == "kernel.sem";
        if spec.is_true("hostNetwork") && dotted.starts_with("net.") {
            errors.invalid(&at, name, "may not be specified when 'hostNetwork' is true");
        } else if spec.is_true("hostIPC") && of_ipc {
            errors.invalid(&at, name, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name);
    }
}

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(profile: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    let kind = profile.text("type");
    if kind.is_empty() {
        errors.required(&path.field("type"), "type is required when seccompProfile is set");
    } else {
        errors.one_of_or_empty(&path.field("type"), kind, &PROFILES);
    }
    let at = path.field("localhostProfile");
    match (kind, profile.text_if_set("localhostProfile")) {
        ("Localhost", None) => errors.required(&at, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(place)) => descending(place, &at, errors),
        (_, Some(_)) => {
            let shown = go::text("core.SeccompProfile", Some(profile));
            errors.invalid_shown(&at, shown, "can only be set when seccomp type is Localhost");
        }
        (_, None) => {}
    }
}

fn app_armor(profile: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    let at = path.field("localhostProfile");
    let given = profile.text_if_set("localhostProfile");
    match profile.text("type") {
        "Localhost" => match given {
            None => errors.required(&at, "must be set when AppArmor type is Localhost"),
            Some(place) => {
                if place.trim() != place {
                    errors.invalid(&at, place, "must not be padded with whitespace");
                } else if place.is_empty() {
                    errors.required(&at, "must be set when AppArmor type is Localhost");
                }
                if place.len() > 4095 {
                    errors.too_long(&at, 4095);
                }
            }
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(place) = given {
                errors.invalid(&at, place, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => errors.required(
            &path.field("type"),
            "type is required when appArmorProfile is set",
        ),
        other => errors.not_supported(&path.field("type"), other, &PROFILES),
    }
}

/// The allowed user in a container's status.
pub(super) fn linux_user(user: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(user) = user else { return };
    for field in ["uid", "gid"] {
        let id = user.int(field).unwrap_or_default();
        if !(0..=ID_MOST).contains(&id) {
            errors.invalid(&path.field(field), id, range_text(0, ID_MOST));
        }
    }
}
