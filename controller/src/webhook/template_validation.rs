//! What is wrong with a pod template: the rules of Kubernetes' own validation that people run into. The full set is the
//! API server's, which applies it to the pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field::FieldError;

const PATH: &str = "spec.template";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const ENV_NAME: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
     and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation \
     is '[-._a-zA-Z][-._a-zA-Z0-9]*')";

/// Everything that is wrong with the template. The names of `claims` count as volumes.
pub(super) fn pod_template(template: &Value, claims: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (_, value) in template
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if let Some(text) = value.as_str().filter(|text| !is_label_value(text)) {
            errors.push(FieldError::invalid(
                format!("{PATH}.labels"),
                format!("{text:?}"),
                LABEL_VALUE,
            ));
        }
    }
    let null = Value::Null;
    let spec = template.get("spec").unwrap_or(&null);
    let path = format!("{PATH}.spec");
    let volumes = volumes(spec, claims, &path, &mut errors);
    containers(spec, &volumes, &path, &mut errors);
    match text(spec, "restartPolicy") {
        Some("Always") | None => {}
        Some(other) => errors.push(FieldError::not_supported(
            format!("{path}.restartPolicy"),
            other,
            &["Always"],
        )),
    }
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    if let Some(policy) = text(spec, "dnsPolicy").filter(|policy| !policies.contains(policy)) {
        errors.push(FieldError::not_supported(
            format!("{path}.dnsPolicy"),
            policy,
            &policies,
        ));
    }
    if let Some(seconds) = spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .filter(|s| *s < 0)
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            format!("{path}.terminationGracePeriodSeconds"),
            seconds,
            detail,
        ));
    }
    if spec
        .get("activeDeadlineSeconds")
        .is_some_and(|value| !value.is_null())
    {
        let detail = "activeDeadlineSeconds in cloneset is not Supported";
        errors.push(FieldError::forbidden(
            format!("{path}.activeDeadlineSeconds"),
            detail,
        ));
    }
    errors
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn volumes(spec: &Value, claims: &[Value], path: &str, errors: &mut Vec<FieldError>) -> BTreeSet<String> {
    let claim_name = |claim: &Value| {
        claim
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let own: BTreeSet<String> = claims.iter().filter_map(claim_name).collect();
    let mut names = own.clone();
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{at}].name");
        let name = text(volume, "name").unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if !is_dns_label(name) {
            errors.push(FieldError::invalid(path, format!("{name:?}"), DNS_LABEL));
        } else if !names.insert(name.to_owned()) && !own.contains(name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
    names
}

fn containers(spec: &Value, volumes: &BTreeSet<String>, path: &str, errors: &mut Vec<FieldError>) {
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for field in ["initContainers", "containers"] {
        for (at, container) in list(spec, field).iter().enumerate() {
            let path = format!("{path}.{field}[{at}]");
            match text(container, "name").unwrap_or_default() {
                "" => errors.push(FieldError::required(format!("{path}.name"), "")),
                name if !is_dns_label(name) => {
                    errors.push(FieldError::invalid(
                        format!("{path}.name"),
                        format!("{name:?}"),
                        DNS_LABEL,
                    ));
                }
                name if !names.insert(name) => {
                    errors.push(FieldError::duplicate(format!("{path}.name"), name))
                }
                _ => {}
            }
            self::container(container, volumes, &path, errors);
        }
    }
}

fn container(container: &Value, volumes: &BTreeSet<String>, path: &str, errors: &mut Vec<FieldError>) {
    if text(container, "image").unwrap_or_default().is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    for (field, supported) in [
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"][..]),
        ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"][..]),
    ] {
        if let Some(value) = text(container, field).filter(|value| !supported.contains(value)) {
            errors.push(FieldError::not_supported(
                format!("{path}.{field}"),
                value,
                supported,
            ));
        }
    }
    for (at, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{at}]");
        for field in ["containerPort", "hostPort"] {
            match port.get(field).and_then(Value::as_i64) {
                Some(number) if !(1..=65535).contains(&number) => errors.push(FieldError::invalid(
                    format!("{path}.{field}"),
                    number,
                    "must be between 1 and 65535, inclusive",
                )),
                None if field == "containerPort" => {
                    errors.push(FieldError::required(format!("{path}.{field}"), ""))
                }
                _ => {}
            }
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        if let Some(protocol) = text(port, "protocol").filter(|protocol| !protocols.contains(protocol)) {
            errors.push(FieldError::not_supported(
                format!("{path}.protocol"),
                protocol,
                &protocols,
            ));
        }
    }
    for (at, env) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{at}].name");
        match text(env, "name").unwrap_or_default() {
            "" => errors.push(FieldError::required(path, "")),
            name if !is_env_name(name) => {
                errors.push(FieldError::invalid(path, format!("{name:?}"), ENV_NAME))
            }
            _ => {}
        }
    }
    for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        match text(mount, "name").unwrap_or_default() {
            "" => errors.push(FieldError::required(format!("{path}.name"), "")),
            name if !volumes.contains(name) => {
                errors.push(FieldError::not_found(format!("{path}.name"), name))
            }
            _ => {}
        }
        if text(mount, "mountPath").unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{path}.mountPath"), ""));
        }
    }
}

fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 63
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.is_empty()
}

fn is_label_value(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= 63 && text.bytes().all(inner) && edge(text.chars().next()) && edge(text.chars().last())
}

fn is_env_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.bytes().all(inner) && !text.starts_with(|c: char| c.is_ascii_digit())
}
