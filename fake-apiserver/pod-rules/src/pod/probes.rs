//! Probes and hooks of containers.

use shared_json::Value;

use super::{Around, Release, ports};
use crate::errors::Errors;
use crate::fields::Fields;
use crate::names;
use crate::path::Path;

const MORE_THAN_ONE: &str = "may not specify more than 1 handler type";

/// The three probes.
pub(super) fn all(release: Release, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.part(field) else {
            continue;
        };
        let at = path.field(field);
        handler(
            release,
            probe,
            None,
            &["exec", "httpGet", "tcpSocket", "grpc"],
            &at,
            errors,
        );
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            errors.not_negative(&at.field(field), probe.int(field));
        }
        let grace_path = at.field("terminationGracePeriodSeconds");
        let grace = probe.int("terminationGracePeriodSeconds");
        if let Some(grace) = grace.filter(|grace| *grace <= 0) {
            errors.invalid(&grace_path, grace, "must be greater than 0");
        }
        if field == "readinessProbe" {
            if let Some(grace) = grace {
                errors.invalid(&grace_path, grace, "must not be set for readinessProbes");
            }
        } else {
            let successes = probe.int("successThreshold").unwrap_or_default();
            if successes != 1 {
                errors.invalid(&at.field("successThreshold"), successes, "must be 1");
            }
        }
    }
}

/// The hooks of a container's life.
pub(super) fn lifecycle(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(lifecycle) = container.part("lifecycle") else {
        return;
    };
    let grace = around.spec.int("terminationGracePeriodSeconds");
    for field in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.part(field) {
            handler(
                around.release,
                hook,
                grace,
                &["exec", "httpGet", "tcpSocket", "sleep"],
                &path.field(field),
                errors,
            );
        }
    }
}

fn handler(
    release: Release,
    holder: &Value,
    grace: Option<i64>,
    kinds: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen = false;
    for kind in kinds {
        let Some(action) = holder.part(kind) else { continue };
        let at = path.field(kind);
        if seen {
            errors.forbidden(&at, MORE_THAN_ONE);
            continue;
        }
        seen = true;
        match *kind {
            "exec" => {
                if action.list("command").is_empty() {
                    errors.required(&at.field("command"), "");
                }
            }
            "httpGet" => http_get(action, &at, errors),
            "tcpSocket" => ports::number_or_name(action.part("port"), &at.field("port"), errors),
            "grpc" => ports::number(action.int("port").unwrap_or_default(), &at.field("port"), errors),
            _ => {
                let seconds = action.int("seconds").unwrap_or_default();
                let least = if release > Release::V1_32 { 0 } else { 1 };
                if let Some(grace) = grace.filter(|grace| seconds < least || seconds > *grace) {
                    let detail = match release {
                        Release::V1_32 => format!(
                            "must be greater than 0 and less than terminationGracePeriodSeconds ({grace}). Enable \
                             AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
                        ),
                        Release::V1_36 => {
                            format!(
                                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                            )
                        }
                    };
                    errors.invalid(&at, seconds, detail);
                }
            }
        }
    }
    if !seen {
        errors.required(path, "must specify a handler type");
    }
}

fn http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    if action.text("path").is_empty() {
        errors.required(&path.field("path"), "");
    }
    ports::number_or_name(action.part("port"), &path.field("port"), errors);
    errors.one_of_or_empty(&path.field("scheme"), action.text("scheme"), &["HTTP", "HTTPS"]);
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        errors.problems(&path.field("httpHeaders"), name, names::header_problems(name));
    }
}
