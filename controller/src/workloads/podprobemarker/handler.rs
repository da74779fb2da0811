//! The errors of a probe itself. Texts and their order are those of OpenKruise, which looks at probes as they were sent, without defaults.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, names, pod};

/// The schemes that a probe by HTTP may have.
const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];

/// Adds the errors of a probe.
pub(super) fn handler(probe: &Probe, out: &mut Vec<FieldError>) {
    let spec = Path::new("spec");
    let path = spec.field("probe");
    let mut errors = Errors::default();
    let mut count = 0;
    let mut is_first = |kind: &str, errors: &mut Errors| {
        count += 1;
        if count > 1 {
            errors.forbidden(&path.field(kind), "may not specify more than 1 handler type");
        }
        count == 1
    };
    if let Some(exec) = &probe.exec
        && is_first("exec", &mut errors)
        && exec.command.iter().flatten().next().is_none()
    {
        errors.required(&path.field("exec").field("command"), "");
    }
    if let Some(action) = &probe.http_get
        && is_first("httpGet", &mut errors)
    {
        http_get(action, &path.field("httpGet"), &mut errors);
    }
    if let Some(action) = &probe.tcp_socket
        && is_first("tcpSocket", &mut errors)
    {
        let at = path.field("tcpSocket");
        host(action.host.as_deref(), &at, &mut errors);
        port(&action.port, &at, &mut errors);
    }
    if count == 0 {
        errors.required(&path, "must specify a handler type");
    }
    for (field, value) in [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ] {
        errors.not_negative(&path.field(field), value.map(i64::from));
    }
    out.extend(errors.into_vec());
}

fn http_get(action: &HTTPGetAction, path: &Path<'_>, errors: &mut Errors) {
    if action.path.as_deref().unwrap_or_default().is_empty() {
        errors.required(&path.field("path"), "");
    }
    host(action.host.as_deref(), path, errors);
    port(&action.port, path, errors);
    let scheme = action.scheme.as_deref().unwrap_or_default();
    if !SCHEMES.contains(&scheme) {
        errors.not_supported(&path.field("scheme"), scheme, &SCHEMES);
    }
    for header in action.http_headers.iter().flatten() {
        let problems = names::header_problems(&header.name);
        errors.problems(&path.field("httpHeaders"), &header.name, problems);
    }
}

fn host(host: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        errors.invalid(&path.field("host"), host, "host field in probes is not allowed");
    }
}

fn port(port: &IntOrString, path: &Path<'_>, errors: &mut Errors) {
    let port = shared_json::to_value(port).unwrap_or_default();
    pod::port_number_or_name(Some(&port), &path.field("port"), errors);
}
