//! The smaller kinds of the core group.

use std::collections::BTreeSet;

use base64::Engine as _;
use machinery::types::Quantity;
use pod_rules::field_error::{FieldError, FieldErrorKind};
use pod_rules::names;
use shared_json::{Map, Value};

use super::addresses;
use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::{amounts, go, pod};

/// The largest content of a ConfigMap or a Secret, in bytes.
const DATA_BYTES_MAX: usize = 1024 * 1024;
const IMMUTABLE_DATA: &str = "field is immutable when `immutable` is set";

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default().trim_end_matches('=');
    text.len() * 3 / 4
}

/// A ConfigMap.
pub(super) fn config_map(object: &Value, errors: &mut Errors) {
    let (data, binary) = (object.map("data"), object.map("binaryData"));
    let mut bytes = 0;
    let path = Path::new("data");
    for (key, value) in data {
        let at = path.key(key);
        errors.problems(&at, key, names::config_key_problems(key));
        if binary.contains_key(key) {
            errors.invalid(&at, key.as_str(), "duplicate of key present in binaryData");
        }
        bytes += value.as_str().map_or(0, str::len);
    }
    let path = Path::new("binaryData");
    for (key, value) in binary {
        errors.problems(&path.key(key), key, names::config_key_problems(key));
        bytes += decoded_length(value);
    }
    if bytes > DATA_BYTES_MAX {
        // The real server gives the whole object this name.
        errors.too_long(&Path::new("[]"), DATA_BYTES_MAX);
    }
}

/// A changed ConfigMap.
pub(super) fn config_map_update(new: &Value, old: &Value, errors: &mut Errors) {
    data_stay(new, old, &["data", "binaryData"], errors);
    config_map(new, errors);
}

fn data_stay(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !old.is_true("immutable") {
        return;
    }
    if !new.is_true("immutable") {
        errors.forbidden(&Path::new("immutable"), IMMUTABLE_DATA);
    }
    for field in fields {
        if !same(new.part(field), old.part(field)) {
            errors.forbidden(&Path::new(field), IMMUTABLE_DATA);
        }
    }
}

/// A Secret: keys, size, and the keys that its type requires.
pub(super) fn secret(object: &Value, errors: &mut Errors) {
    let data = object.map("data");
    let path = Path::new("data");
    let mut bytes = 0;
    for (key, value) in data {
        errors.problems(&path.key(key), key, names::config_key_problems(key));
        bytes += decoded_length(value);
    }
    if bytes > DATA_BYTES_MAX {
        errors.too_long(&path, DATA_BYTES_MAX);
    }
    let mut needed = |key: &str| {
        if !data.contains_key(key) {
            errors.required(&path.key(key), "");
        }
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
            if annotations.text(NAME).is_empty() {
                errors.required(&Path::new("metadata.annotations").key(NAME), "");
            }
        }
        "kubernetes.io/dockercfg" => json_in(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => json_in(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.contains_key("username") && !data.contains_key("password") => {
            needed("username");
            needed("password");
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_none_or(|key| key == "") => {
            errors.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            needed("tls.crt");
            needed("tls.key");
        }
        _ => {}
    }
}

fn json_in(data: &Map, key: &str, errors: &mut Errors) {
    let path = Path::new("data");
    let at = path.key(key);
    let Some(value) = data.get(key) else {
        return errors.required(&at, "");
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap_or_default();
    const HIDDEN: &str = "<secret contents redacted>";
    match machinery::go_json::parse(&bytes) {
        Ok(document) if document.value.is_object() || document.value.is_null() => {}
        Ok(document) => {
            let found = match document.value {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            let detail =
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            errors.invalid(&at, HIDDEN, detail);
        }
        Err(error) => errors.invalid(&at, HIDDEN, error),
    }
}

/// A changed Secret.
pub(super) fn secret_update(new: &Value, old: &Value, errors: &mut Errors) {
    if new.part("type") != old.part("type") {
        errors.invalid(&Path::new("type"), new.text("type"), IMMUTABLE);
    }
    data_stay(new, old, &["data"], errors);
    secret(new, errors);
}

/// A Namespace.
pub(super) fn namespace(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec.finalizers");
    for finalizer in spec.texts("finalizers") {
        finalizer_name(finalizer, &path, errors);
    }
}

fn finalizer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.problems(path, name, names::qualified_problems(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(path, name, detail);
    }
}

/// A Namespace whose finalizers change.
pub(super) fn namespace_finalize(object: &Value, _old: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec.finalizers");
    for (index, finalizer) in spec.texts("finalizers").enumerate() {
        finalizer_name(finalizer, &path.index(index), errors);
    }
}

/// A changed status of a Namespace.
pub(super) fn namespace_status(object: &Value, _old: &Value, errors: &mut Errors) {
    let phase = object
        .pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let ending = object
        .part("metadata")
        .is_some_and(|meta| meta.has("deletionTimestamp"));
    let path = Path::new("status.Phase");
    match (ending, phase) {
        (false, "Active") | (true, "Terminating") => {}
        (false, _) => errors.invalid(
            &path,
            phase,
            "may only be 'Active' if `deletionTimestamp` is empty",
        ),
        (true, _) => errors.invalid(
            &path,
            phase,
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        ),
    }
}

fn node_amounts(object: &Value, errors: &mut Errors) {
    let status = object.part("status").unwrap_or(&NOTHING);
    for field in ["capacity", "allocatable"] {
        let path = Path::new("status");
        let path = path.field(field);
        for (name, amount) in status.map(field) {
            amounts::of_resource(name, &path.field(name), amount, errors);
        }
    }
}

/// A Node.
pub(super) fn node(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    const AVOID: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
    let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
    let avoid = annotations.text(AVOID);
    if let Some(error) = Some(avoid)
        .filter(|avoid| !avoid.is_empty())
        .and_then(|avoid| machinery::go_json::parse(avoid.as_bytes()).err())
    {
        errors.invalid(&Path::new("metadata.annotations.AvoidPods"), AVOID, error);
    }
    // The real server gives taints the path of the metadata.
    pod::taints(spec.list("taints"), &Path::new("metadata.taints"), errors);
    node_amounts(object, errors);
    let path = Path::new("spec.podCIDRs");
    let networks = spec.list("podCIDRs");
    for (index, network) in spec.texts("podCIDRs").enumerate() {
        addresses::network(&path.index(index), network, &[], errors);
    }
    if networks.len() > 1 {
        let kinds: Vec<bool> = spec
            .texts("podCIDRs")
            .filter_map(addresses::Network::parse)
            .map(|network| network.address.is_ipv4())
            .collect();
        let odd = spec
            .texts("podCIDRs")
            .enumerate()
            .find(|(_, network)| addresses::Network::parse(network).is_none());
        if let Some((index, network)) = odd {
            let detail = format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR \
                 address: {network})"
            );
            errors.push(FieldError::new(
                FieldErrorKind::Internal,
                path.to_string(),
                None,
                detail,
            ));
        }
        if odd.is_some() || networks.len() > 2 || kinds.first() == kinds.get(1) {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.invalid(&path, networks.to_vec(), detail);
        }
    }
}

/// A changed Node, or its status.
pub(super) fn node_update(new: &Value, old: &Value, errors: &mut Errors) {
    node_amounts(new, errors);
    let status = new.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status.addresses");
    let list = status.list("addresses");
    for (index, address) in list.iter().enumerate() {
        if list.iter().take(index).any(|other| other == address) {
            let shown = go::text("core.NodeAddress", Some(address));
            errors.duplicate_shown(&path.index(index), shown, "");
        }
    }
    let (spec, before) = (
        new.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    let networks = before.list("podCIDRs");
    if !networks.is_empty() && networks != spec.list("podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden(&Path::new("spec.podCIDRs"), detail);
    }
    let provider = before.text("providerID");
    if !provider.is_empty() && provider != spec.text("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&Path::new("spec.providerID"), detail);
    }
    pod::taints(spec.list("taints"), &Path::new("metadata.taints"), errors);
    if before.text("externalID") != spec.text("externalID") {
        errors.forbidden(&Path::new("spec.externalID"), "may not be updated");
    }
}

const LIMIT_TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

fn limit_name(kind: &str, name: &str, path: &Path<'_>, errors: &mut Errors) {
    if matches!(kind, "Pod" | "Container") {
        amounts::container_resource_name(name, path, errors);
    } else {
        amounts::resource_name(name, path, errors);
    }
}

/// A LimitRange.
pub(super) fn limit_range(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec.limits");
    let mut kinds = BTreeSet::new();
    for (index, limit) in spec.list("limits").iter().enumerate() {
        let at = path.index(index);
        let kind = limit.text("type");
        let kind_path = at.field("type");
        let problems = names::qualified_problems(kind);
        if !problems.is_empty() {
            errors.problems(&kind_path, kind, problems);
        } else if !kind.contains('/') && !LIMIT_TYPES.contains(&kind) {
            let detail = "must be a standard limit type or fully qualified";
            errors.invalid(&kind_path, kind, detail);
        }
        if !kinds.insert(kind) {
            errors.duplicate(&kind_path, kind);
        }
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let amounts = limit.map(field);
            if kind == "Pod" && field.starts_with("default") {
                if !amounts.is_empty() {
                    errors.forbidden(&at.field(field), "may not be specified when `type` is 'Pod'");
                }
                continue;
            }
            if field == "maxLimitRequestRatio"
                && kind == "PersistentVolumeClaim"
                && !limit.map("min").contains_key("storage")
                && !limit.map("max").contains_key("storage")
            {
                let detail = "either minimum or maximum storage value is required, but neither was provided";
                errors.required(&at.field("limits"), detail);
            }
            for name in amounts.keys() {
                limit_name(kind, name, &at.field(field).key(name), errors);
                keys.insert(name);
            }
        }
        for key in keys {
            limit_of(limit, kind, key, &at, errors);
        }
    }
}

/// How the amounts of one resource must stand to each other.
fn limit_of(limit: &Value, kind: &str, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let get = |field: &str| {
        // Pods have no defaults, and so nothing stands to them.
        let counts = kind != "Pod" || !field.starts_with("default");
        let amount = limit.map(field).get(key).filter(|_| counts);
        amount.map(Quantity::of)
    };
    let (min, max) = (get("min"), get("max"));
    let (default, request) = (get("default"), get("defaultRequest"));
    let ratio = get("maxLimitRequestRatio");
    let mut ordered = |low: Option<Quantity>,
                       high: Option<Quantity>,
                       field: &str,
                       shown: Option<Quantity>,
                       words: (&str, &str)| {
        if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
            && low.nanos() > high.nanos()
        {
            let detail = format!(
                "{} value {} is greater than {} value {}",
                words.0,
                low.canonical(),
                words.1,
                high.canonical()
            );
            errors.invalid(&path.field(field).key(key), shown.canonical(), detail);
        }
    };
    ordered(min, max, "min", min, ("min", "max"));
    ordered(
        min,
        request,
        "defaultRequest",
        request,
        ("min", "default request"),
    );
    ordered(
        request,
        max,
        "defaultRequest",
        request,
        ("default request", "max"),
    );
    ordered(
        request,
        default,
        "defaultRequest",
        request,
        ("default request", "default limit"),
    );
    ordered(min, default, "default", min, ("min", "default"));
    ordered(default, max, "default", max, ("default", "max"));
    if let Some(ratio) = ratio {
        let at = path.field("maxLimitRequestRatio");
        let at = at.key(key);
        if ratio.nanos() < Quantity::count(1).nanos() {
            let detail = format!("ratio {} is less than 1", ratio.canonical());
            errors.invalid(&at, ratio.canonical(), detail);
        }
        if let (Some(min), Some(max)) = (min, max) {
            let most = max.nanos() as f64 / min.nanos() as f64;
            if ratio.nanos() as f64 / 1e9 > most {
                let detail = format!("ratio {} is greater than max/min = {most:.6}", ratio.canonical());
                errors.invalid(&at, ratio.canonical(), detail);
            }
        }
    }
    if let (Some(default), Some(request)) = (default, request)
        && !amounts::may_be_overcommitted(key)
        && default.nanos() != request.nanos()
    {
        let detail = format!(
            "default value {} must equal to defaultRequest value {} in {key}",
            default.canonical(),
            request.canonical()
        );
        errors.invalid(
            &path.field("defaultRequest").key(key),
            request.canonical(),
            detail,
        );
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

fn scope_fits(scope: &str, resource: &str) -> bool {
    let of_pods = matches!(
        resource,
        "pods" | "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
    );
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => of_pods,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn quota_spec(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let hard = spec.map("hard");
    amounts::quota_amounts(hard, &path.field("hard"), errors);
    let unfit = |scope: &str| {
        hard.keys()
            .filter(|name| amounts::is_of_quotas(name) && !scope_fits(scope, name))
            .count()
    };
    let conflicting = |scopes: &BTreeSet<&str>| {
        [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")]
            .iter()
            .filter(|(a, b)| scopes.contains(a) && scopes.contains(b))
            .count()
    };
    let at = path.field("scopes");
    let shown = || Value::from(spec.list("scopes").to_vec());
    for scope in spec.texts("scopes") {
        if !SCOPES.contains(&scope) {
            errors.invalid(&at, shown(), "unsupported scope");
        }
        for _ in 0..unfit(scope) {
            errors.invalid(&at, shown(), "unsupported scope applied to resource");
        }
    }
    for _ in 0..conflicting(&spec.texts("scopes").collect()) {
        errors.invalid(&at, shown(), "conflicting scopes");
    }
    let Some(selector) = spec.part("scopeSelector") else {
        return;
    };
    let at = path.field("scopeSelector.matchExpressions");
    let mut scopes = BTreeSet::new();
    for requirement in selector.list("matchExpressions") {
        let (scope, operator) = (requirement.text("scopeName"), requirement.text("operator"));
        if !SCOPES.contains(&scope) {
            errors.invalid(&at.field("scopeName"), scope, "unsupported scope");
        }
        for _ in 0..unfit(scope) {
            let shown = go::text("core.ScopeSelector", Some(selector));
            errors.invalid_shown(&at, shown, "unsupported scope applied to resource");
        }
        let exists_only =
            SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if exists_only && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&at.field("operator"), operator, detail);
        }
        let values = requirement.list("values");
        match operator {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let detail =
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    errors.required(&at.field("values"), detail);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail =
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                    errors.invalid(&at.field("values"), values.to_vec(), detail);
                }
            }
            other => errors.invalid(&at.field("operator"), other, "not a valid selector operator"),
        }
        scopes.insert(scope);
    }
    for _ in 0..conflicting(&scopes) {
        let shown = spec.part("scopes").cloned().unwrap_or_default();
        errors.invalid(&at, shown, "conflicting scopes");
    }
}

/// A ResourceQuota.
pub(super) fn quota(object: &Value, errors: &mut Errors) {
    quota_spec(object, errors);
    quota_status(object, &NOTHING, errors);
}

/// A changed ResourceQuota.
pub(super) fn quota_update(new: &Value, old: &Value, errors: &mut Errors) {
    quota_spec(new, errors);
    let scopes = |object: &Value| -> BTreeSet<String> {
        object
            .pointer("/spec/scopes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    if scopes(new) != scopes(old) {
        let shown = new.pointer("/spec/scopes").cloned().unwrap_or_default();
        errors.invalid(&Path::new("spec.scopes"), shown, IMMUTABLE);
    }
}

/// A changed status of a ResourceQuota.
pub(super) fn quota_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = new.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status");
    for field in ["hard", "used"] {
        amounts::quota_amounts(status.map(field), &path.field(field), errors);
    }
}

/// Endpoints.
pub(super) fn endpoints(object: &Value, errors: &mut Errors) {
    let path = Path::new("subsets");
    for (index, subset) in object.list("subsets").iter().enumerate() {
        let at = path.index(index);
        if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
            errors.required(&at, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            let list = at.field(field);
            for (index, address) in subset.list(field).iter().enumerate() {
                let at = list.index(index);
                let (ip, host) = (address.text("ip"), address.text("hostname"));
                addresses::address(&at.field("ip"), ip, &[], errors);
                if !host.is_empty() {
                    errors.problems(&at.field("hostname"), host, names::label_problems(host));
                }
                if let Some(node) = address.text_if_set("nodeName") {
                    errors.problems(&at.field("nodeName"), node, names::subdomain_problems(node));
                }
                addresses::endpoint(&at.field("ip"), ip, errors);
            }
        }
        let ports = subset.list("ports");
        let list = at.field("ports");
        for (index, port) in ports.iter().enumerate() {
            let at = list.index(index);
            let name = port.text("name");
            if !name.is_empty() {
                errors.problems(&at.field("name"), name, names::label_problems(name));
            } else if ports.len() > 1 {
                errors.required(&at.field("name"), "");
            }
            pod::port_number(port.int("port").unwrap_or_default(), &at.field("port"), errors);
            errors.one_of(&at.field("protocol"), port.text("protocol"), &pod::PROTOCOLS);
            if let Some(protocol) = port.text_if_set("appProtocol") {
                let problems = names::qualified_problems(protocol);
                errors.problems(&at.field("appProtocol"), protocol, problems);
            }
        }
    }
}

/// Changed Endpoints: old errors may stay.
pub(super) fn endpoints_update(new: &Value, old: &Value, errors: &mut Errors) {
    if !same(new.part("subsets"), old.part("subsets")) {
        endpoints(new, errors);
    }
}

/// A certificate that no server could use.
pub(super) fn secret_warnings(secret: &Value) -> Vec<String> {
    if secret.text("type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = secret.part("data").unwrap_or(&NOTHING);
    let has_pem = |field: &str, ends_with: &str| {
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = base64::Engine::decode(&engine, data.text(field)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .any(|line| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(ends_with))
    };
    for (field, ends_with, what) in [
        ("tls.crt", "CERTIFICATE-----", "certificate"),
        ("tls.key", "PRIVATE KEY-----", "key"),
    ] {
        if !has_pem(field, ends_with) {
            return vec![format!("tls: failed to find any PEM data in {what} input")];
        }
    }
    Vec::new()
}
