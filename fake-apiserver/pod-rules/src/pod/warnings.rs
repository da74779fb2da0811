//! The warnings for a client about a valid pod.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::each_container;
use crate::addresses;
use crate::app_armor;
use crate::field_error::go_quote;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;
use crate::quantity::Quantity;

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sources of volumes that no longer work: the field, its name in warnings, and the warning.
pub const DEPRECATED_VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The label that took the place of this one.
pub fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        _ => return None,
    })
}

/// The warnings about metadata and spec of `holder`, which stands at `prefix` (`""` for a pod itself, `spec.template.`).
pub fn of_spec(holder: &Value, prefix: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (spec, meta) = (
        holder.part("spec").unwrap_or(&NOTHING),
        holder.part("metadata").unwrap_or(&NOTHING),
    );
    if prefix.is_empty() {
        let problems = names::label_problems(meta.text("name"));
        if !problems.is_empty() {
            out.push(format!(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
                 recommended: [{}]",
                problems.join(" ")
            ));
        }
    }
    if !prefix.is_empty() {
        out.extend(app_armor::warnings(holder, prefix));
    }
    let spec_name = format!("{prefix}spec");
    let path = Path::new(&spec_name);
    for key in spec.map("nodeSelector").keys() {
        if let Some(text) = deprecated_label(key) {
            out.push(format!("{}: {text}", path.field("nodeSelector").key(key)));
        }
    }
    for (index, constraint) in spec.list("topologySpreadConstraints").iter().enumerate() {
        let list = path.field("topologySpreadConstraints");
        let at = list.index(index);
        let key = constraint.text("topologyKey");
        if let Some(text) = deprecated_label(key) {
            out.push(format!("{}: {key} is {text}", at.field("topologyKey")));
        }
        if !constraint.has("labelSelector") {
            out.push(format!("{}: {NO_POD}", at.field("labelSelector")));
        }
    }
    annotations(meta, prefix, &mut out);
    for (index, volume) in spec.list("volumes").iter().enumerate() {
        let list = path.field("volumes");
        let at = list.index(index);
        for (field, shown, text) in DEPRECATED_VOLUMES {
            if volume.has(field) {
                out.push(format!("{}: {text}", at.field(shown)));
            }
        }
    }
    overlaps(spec, &mut out);
    repeated(spec, "hostAliases", "ip", &path, &mut out);
    repeated(spec, "imagePullSecrets", "name", &path, &mut out);
    for (index, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        if secret.text("name").is_empty() {
            let list = path.field("imagePullSecrets");
            let at = list.index(index);
            out.push(format!("{}: invalid empty name \"\"", at.field("name")));
        }
    }
    fractions(spec.map("overhead"), &path.field("overhead"), &mut out);
    containers(spec, &path, &mut out);
    if spec
        .int("terminationGracePeriodSeconds")
        .is_some_and(|grace| grace < 0)
    {
        out.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            path.field("terminationGracePeriodSeconds")
        ));
    }
    affinity(spec, &path, &mut out);
    for (index, server) in spec
        .part("dnsConfig")
        .unwrap_or(&NOTHING)
        .texts("nameservers")
        .enumerate()
    {
        let list = path.field("dnsConfig.nameservers");
        out.extend(address(&list.index(index), server));
    }
    for (index, alias) in spec.list("hostAliases").iter().enumerate() {
        let list = path.field("hostAliases");
        let at = list.index(index);
        out.extend(address(&at.field("ip"), alias.text("ip")));
    }
    out
}

const NO_POD: &str = "a null labelSelector results in matching no pod";

/// An address that should be written otherwise.
pub fn address(path: &Path<'_>, text: &str) -> Option<String> {
    let parsed = addresses::parse(text)?;
    let canonical = parsed.to_string();
    match parsed {
        std::net::IpAddr::V4(_) if canonical != text => Some(format!(
            "{path}: non-standard IP address \"{text}\" is invalid: use \"{canonical}\""
        )),
        std::net::IpAddr::V6(_) if canonical != text => Some(format!(
            "{path}: IPv6 address \"{text}\" should be in RFC 5952 canonical format (\"{canonical}\")"
        )),
        _ => None,
    }
}

fn annotations(meta: &Value, prefix: &str, out: &mut Vec<String>) {
    let name = format!("{prefix}metadata.annotations");
    let path = Path::new(&name);
    for (key, text) in DEPRECATED_ANNOTATIONS {
        if meta.map("annotations").contains_key(key) {
            out.push(format!("{}: {text}", path.key(key)));
        }
    }
}

fn repeated(spec: &Value, field: &str, key: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, item) in spec.list(field).iter().enumerate() {
        let value = item.text(key);
        if !seen.insert(value) {
            let list = path.field(field);
            let at = list.index(index);
            out.push(format!("{}: duplicate {key} {}", at.field(key), go_quote(value)));
        }
    }
}

fn fractions(amounts: &shared_json::Map, path: &Path<'_>, out: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        if let Some(amount) = amounts
            .get(name)
            .map(Quantity::of)
            .filter(|amount| !amount.is_whole())
        {
            out.push(format!(
                "{}: fractional byte value \"{}\" is invalid, must be an integer",
                path.key(name),
                amount.canonical()
            ));
        }
    }
}

fn containers(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    each_container(spec, path, &mut |container, path| {
        let resources = container.part("resources").unwrap_or(&NOTHING);
        for name in ["memory", "ephemeral-storage"] {
            for part in ["limits", "requests"] {
                let amounts: shared_json::Map = resources
                    .map(part)
                    .iter()
                    .filter(|(key, _)| *key == name)
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                fractions(&amounts, &path.field("resources").field(part), out);
            }
        }
        variables(container, path, out);
    });
    ports(spec, path, out);
}

fn variables(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in container.list("env").iter().enumerate() {
        let name = variable.text("name");
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.text("value");
        if variable.has("valueFrom") || value == reference || !value.contains(&reference) {
            let list = path.field("env");
            out.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                list.index(index),
                go_quote(name)
            ));
        }
    }
}

fn ports(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen: BTreeMap<String, Vec<(String, String, i64)>> = BTreeMap::new();
    each_container(spec, path, &mut |container, path| {
        let list = path.field("ports");
        for (index, port) in container.list("ports").iter().enumerate() {
            let at = list.index(index);
            let (ip, host) = (port.text("hostIP"), port.int("hostPort").unwrap_or_default());
            if !ip.is_empty() && host == 0 {
                out.push(format!(
                    "{at}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{ip}}}",
                    port.text("name"),
                    port.int("containerPort").unwrap_or_default(),
                    port.text("protocol")
                ));
            }
            let key = format!(
                "{}/{}",
                port.int("containerPort").unwrap_or_default(),
                port.text("protocol")
            );
            let others = seen.entry(key).or_default();
            for (other, other_ip, other_host) in others.iter() {
                if ip == other_ip && host == *other_host {
                    out.push(format!("{at}: duplicate port definition with {other}"));
                } else if host == 0 || *other_host == 0 {
                    out.push(format!("{at}: overlapping port definition with {other}"));
                } else if host == *other_host && ip.is_empty() != other_ip.is_empty() {
                    out.push(format!(
                        "{at}: dangerously ambiguous port definition with {other}"
                    ));
                }
            }
            others.push((at.to_string(), ip.to_owned(), host));
        }
    });
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    each_container(spec, path, &mut |container, path| {
        let list = path.field("ports");
        for (index, port) in container.list("ports").iter().enumerate() {
            let name = port.text("name");
            if name.is_empty() {
                continue;
            }
            let at = list.index(index);
            match names.get(name) {
                Some(other) => out.push(format!(
                    "{at}: duplicate port name {} with {other}, services and probes that select ports by name will \
                     use {other}",
                    go_quote(name)
                )),
                None => {
                    names.insert(name.to_owned(), at.to_string());
                }
            }
        }
    });
}

fn affinity(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let affinity = spec.part("affinity").unwrap_or(&NOTHING);
    let path = path.field("affinity");
    for field in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.part(field).unwrap_or(&NOTHING);
        let path = path.field(field);
        let list = path.field("requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in pods
            .list("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .enumerate()
        {
            if !term.has("labelSelector") {
                out.push(format!("{}: {NO_POD}", list.index(index).field("labelSelector")));
            }
        }
        let list = path.field("preferredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in pods
            .list("preferredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .enumerate()
        {
            if !term
                .part("podAffinityTerm")
                .unwrap_or(&NOTHING)
                .has("labelSelector")
            {
                let at = list.index(index);
                out.push(format!("{}: {NO_POD}", at.field("podAffinityTerm.labelSelector")));
            }
        }
    }
}

/// Files of one volume of which one hides another.
fn overlaps(spec: &Value, out: &mut Vec<String>) {
    for volume in spec.list("volumes") {
        let name = go_quote(volume.text("name"));
        for (field, named, kind) in [
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("downwardAPI", "", "DownwardAPI"),
        ] {
            let Some(source) = volume.part(field) else {
                continue;
            };
            let kind = match named {
                "" => kind.to_owned(),
                named => format!("{kind} {}", go_quote(source.text(named))),
            };
            let files = source
                .list("items")
                .iter()
                .map(|item| (item.text("path").to_owned(), String::new()));
            for text in collisions(files.collect()) {
                out.push(format!("volume {name} ({kind}): overlapping paths: {text}"));
            }
        }
        let Some(projected) = volume.part("projected") else {
            continue;
        };
        let mut files = Vec::new();
        for source in projected.list("sources") {
            if source.as_object().is_none_or(shared_json::Map::is_empty) {
                out.push(format!("volume {name} (Projected) has no sources provided"));
                continue;
            }
            for (field, kind) in [
                ("configMap", "ConfigMap"),
                ("secret", "Secret"),
                ("downwardAPI", "DownwardAPI"),
            ] {
                let Some(source) = source.part(field) else {
                    continue;
                };
                let kind = match source.text("name") {
                    "" => kind.to_owned(),
                    name => format!("{kind} {}", go_quote(name)),
                };
                files.extend(
                    source
                        .list("items")
                        .iter()
                        .map(|item| (item.text("path").to_owned(), kind.clone())),
                );
            }
            if let Some(token) = source.part("serviceAccountToken") {
                files.push((token.text("path").to_owned(), "ServiceAccountToken".to_owned()));
            }
        }
        for text in collisions(files) {
            out.push(format!("volume {name} (Projected): overlapping paths: {text}"));
        }
    }
}

fn collisions(files: Vec<(String, String)>) -> Vec<String> {
    let show = |(path, source): &(String, String)| match source.as_str() {
        "" => go_quote(path),
        source => format!("{} ({source})", go_quote(path)),
    };
    let mut out = Vec::new();
    let mut known: Vec<(String, String)> = Vec::new();
    for (path, source) in files {
        let file = (path.trim_end_matches('/').to_owned(), source);
        if !file.0.is_empty() {
            for other in known.iter().filter(|other| !other.0.is_empty()) {
                let (a, b) = (format!("{}/", file.0), format!("{}/", other.0));
                if a.starts_with(&b) || b.starts_with(&a) {
                    out.push(format!("{} with {}", show(&file), show(other)));
                }
            }
        }
        known.push(file);
    }
    out
}
