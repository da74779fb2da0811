//! The rules for one operating system only.

use shared_json::Value;

use super::each_container;
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;

const SPEC_BYTES_MAX: usize = 64 * 1024;

/// Options of a security context that Windows understands.
pub(super) fn options(options: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(options) = options else { return };
    if let Some(name) = options.text_if_set("gmsaCredentialSpecName") {
        errors.problems(
            &path.field("gmsaCredentialSpecName"),
            name,
            names::subdomain_problems(name),
        );
    }
    if let Some(spec) = options.text_if_set("gmsaCredentialSpec") {
        let at = path.field("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.invalid(&at, spec, "gmsaCredentialSpec cannot be an empty string");
        } else if spec.len() > SPEC_BYTES_MAX {
            errors.invalid(&at, spec, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if let Some(name) = options.text_if_set("runAsUserName") {
        user_name(name, &path.field("runAsUserName"), errors);
    }
}

fn user_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.invalid(path, name, "runAsUserName cannot be an empty string");
    }
    if name.chars().any(char::is_control) {
        return errors.invalid(path, name, "runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>().as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return errors.invalid(path, name, "runAsUserName cannot contain more than one backslash"),
    };
    if domain.is_some_and(|domain| domain.len() >= 256) {
        let detail = "runAsUserName's Domain length must be under 256 characters";
        errors.invalid(path, name, detail);
    }
    if domain.is_some_and(|domain| !is_domain(domain)) {
        let detail = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        errors.invalid(path, name, detail);
    }
    if user.is_empty() {
        errors.invalid(path, name, "runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        let detail = "runAsUserName's User length must not be longer than 104 characters";
        errors.invalid(path, name, detail);
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        let detail = "runAsUserName's User cannot contain only periods or spaces";
        errors.invalid(path, name, detail);
    }
    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        let detail = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        errors.invalid(path, name, detail);
    }
}

fn is_domain(domain: &str) -> bool {
    let bad = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    let net_bios =
        !domain.is_empty() && domain.len() <= 15 && !domain.starts_with('.') && !domain.contains(bad);
    net_bios || names::is_subdomain(&domain.to_lowercase())
}

const NOT_HERE: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";

const OF_POD_CONTEXT: [&str; 9] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
];
const OF_CONTAINER_CONTEXT: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The fields that the pod's operating system allows.
pub(super) fn system(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(os) = spec.part("os") else { return };
    let context_path = path.field("securityContext");
    let context = spec.part("securityContext").unwrap_or(&NOTHING);
    match os.text("name") {
        "" => errors.required(&path.field("os.name"), ""),
        "linux" => {
            if context.has("windowsOptions") {
                errors.forbidden(&context_path.field("windowsOptions"), NOT_ON_LINUX);
            }
            each_container(spec, path, &mut |container, path| {
                let context = container.part("securityContext").unwrap_or(&NOTHING);
                if context.has("windowsOptions") {
                    errors.forbidden(&path.field("securityContext.windowsOptions"), NOT_ON_LINUX);
                }
            });
        }
        "windows" => {
            for field in &OF_POD_CONTEXT {
                if context.has(field) {
                    errors.forbidden(&context_path.field(field), NOT_HERE);
                }
            }
            for field in ["hostUsers", "shareProcessNamespace"] {
                if spec.has(field) {
                    errors.forbidden(&path.field(field), NOT_HERE);
                }
            }
            for field in ["hostPID", "hostIPC"] {
                if spec.is_true(field) {
                    errors.forbidden(&path.field(field), NOT_HERE);
                }
            }
            each_container(spec, path, &mut |container, path| {
                let context = container.part("securityContext").unwrap_or(&NOTHING);
                let path = path.field("securityContext");
                for field in &OF_CONTAINER_CONTEXT {
                    if context.has(field) {
                        errors.forbidden(&path.field(field), NOT_HERE);
                    }
                }
            });
        }
        other => errors.not_supported(&path.field("os"), other, &["linux", "windows"]),
    }
}

/// Containers that are processes of a Windows host: all of them or none.
pub(super) fn host_process(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |holder: &Value| {
        holder
            .part("securityContext")
            .and_then(|context| context.part("windowsOptions"))
            .and_then(|options| options.flag("hostProcess"))
    };
    let of_pod = of(spec);
    let (mut all, mut host) = (0, 0);
    each_container(spec, path, &mut |container, path| {
        all += 1;
        let own = of(container);
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.invalid(
                &path.field("securityContext.windowsOptions.hostProcess"),
                own,
                detail,
            );
        }
        host += usize::from(own.or(of_pod) == Some(true));
    });
    if host == 0 {
        return;
    }
    if host != all {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(path, "", detail);
    }
    if !spec.is_true("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.field("hostNetwork"), false, detail);
    }
}
