//! Pods, and the specs of pods wherever they stand.

mod containers;
mod downward;
mod env;
mod mounts;
mod placement;
mod ports;
mod probes;
mod security;
mod status;
mod template;
mod update;
mod volumes;
mod warnings;
mod windows;

use shared_json::Value;

pub use placement::{taints, tolerations};
pub use ports::{PROTOCOLS, number as port_number, number_or_name as port_number_or_name};
pub use status::update as status_update;
pub use template::{annotations, check as template, pod_template};
pub use update::{ephemeral_containers, resize, update};
pub use volumes::template_metadata;
pub use warnings::{DEPRECATED_VOLUMES, address as address_warning, deprecated_label, of_spec as warnings};

use crate::addresses;
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;
use crate::selectors;

/// A release of Kubernetes whose rules hold. OpenKruise is built with the rules of one release, whichever server it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 1.32, with which OpenKruise 1.9 is built. Names of variables and search domains are strict. Only init containers have a
    /// restart policy of their own, which is `Always`. Hooks cannot sleep for no time, and costs of deletion are not checked.
    V1_32,
    /// 1.36.
    V1_36,
}

/// Whose spec it is.
pub struct Scope<'a> {
    /// Whose rules hold.
    pub release: Release,
    /// The pod's metadata; templates have none that matter here.
    pub meta: Option<&'a Value>,
    /// Whether it is a pod: a template may lack fields that the server fills in.
    pub is_pod: bool,
    /// Names of volumes that will be there although the spec does not say so (a set's claims).
    pub claims: &'a [&'a str],
    /// Whether host name and subdomain are not looked at (a set gives them).
    pub named_by_set: bool,
}

impl Scope<'_> {
    /// A template of pods.
    pub const TEMPLATE: Scope<'static> = Scope {
        release: Release::V1_36,
        meta: None,
        is_pod: false,
        claims: &[],
        named_by_set: false,
    };

    fn name(&self) -> &str {
        self.meta.map_or("", |meta| meta.text("name"))
    }
}

/// The surroundings of a container.
struct Around<'a> {
    release: Release,
    spec: &'a Value,
    volumes: Vec<(&'a str, &'a Value)>,
}

impl<'a> Around<'a> {
    fn volume(&self, name: &str) -> Option<&'a Value> {
        self.volumes
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, volume)| *volume)
    }
}

/// Every container of a spec with its path, in the real server's order.
fn each_container(spec: &Value, path: &Path<'_>, visit: &mut dyn FnMut(&Value, &Path<'_>)) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let list = path.field(field);
        for (index, container) in spec.list(field).iter().enumerate() {
            visit(container, &list.index(index));
        }
    }
}

/// A pod that is to be created.
pub fn create(pod: &Value, errors: &mut Errors) {
    whole(pod, errors);
    let spec = pod.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    if !spec.list("ephemeralContainers").is_empty() {
        errors.forbidden(&path.field("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.field("nodeName"), detail);
    }
}

/// The rules for a pod at any time, besides its name and the like.
fn whole(pod: &Value, errors: &mut Errors) {
    let meta = pod.part("metadata").unwrap_or(&NOTHING);
    let spec_value = pod.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    template::pod_annotations(
        Release::V1_36,
        meta.map("annotations"),
        spec_value,
        &Path::new("metadata.annotations"),
        errors,
    );
    let scope = Scope {
        release: Release::V1_36,
        meta: Some(meta),
        is_pod: true,
        claims: &[],
        named_by_set: false,
    };
    spec(&scope, spec_value, &path, errors);
    if spec_value.text("serviceAccountName").is_empty() {
        let volumes = path.field("volumes");
        for (index, volume) in spec_value.list("volumes").iter().enumerate() {
            let at = volumes.index(index);
            let sources = at.field("projected.sources");
            let projected = volume.part("projected").unwrap_or(&NOTHING);
            for (index, source) in projected.list("sources").iter().enumerate() {
                if source.has("serviceAccountToken") {
                    let at = sources.index(index);
                    let detail = "must not be specified when serviceAccountName is not set";
                    errors.forbidden(&at.field("serviceAccountToken"), detail);
                }
            }
        }
    }
    for field in ["containers", "initContainers"] {
        let list = path.field(field);
        for (index, container) in spec_value.list(field).iter().enumerate() {
            containers::trimmed_image(container, &list.index(index), errors);
        }
    }
}

/// The spec of a pod.
pub fn spec<'a>(scope: &Scope<'a>, spec: &'a Value, path: &Path<'_>, errors: &mut Errors) {
    if !spec.has("terminationGracePeriodSeconds") {
        errors.required(&path.field("terminationGracePeriodSeconds"), "");
    }
    for (index, name) in scope.claims.iter().enumerate() {
        let list = path.field("volumes");
        let at = list.index(index);
        if name.is_empty() {
            errors.required(&at.field("persistentVolumeClaim.claimName"), "");
            errors.required(&at.field("name"), "");
        } else {
            errors.problems(&at.field("name"), name, crate::names::label_problems(name));
        }
    }
    let mut known = volumes::check(scope, spec.list("volumes"), &path.field("volumes"), errors);
    for claim in scope.claims {
        known.retain(|(name, _)| name != claim);
        known.push((claim, &CLAIMED));
    }
    let around = Around {
        release: scope.release,
        spec,
        volumes: known,
    };
    resource_claims(scope, spec, &path.field("resourceClaims"), errors);
    containers::main(&around, &path.field("containers"), errors);
    containers::init(&around, &path.field("initContainers"), errors);
    containers::ephemeral(&around, &path.field("ephemeralContainers"), errors);
    containers::of_pod(spec, path, errors);
    host_network_ports(scope, spec, path, errors);
    errors.one_of(
        &path.field("restartPolicy"),
        spec.text("restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    errors.one_of(
        &path.field("dnsPolicy"),
        spec.text("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    selectors::labels(spec.map("nodeSelector"), &path.field("nodeSelector"), errors);
    security::of_pod(spec, &path.field("securityContext"), errors);
    placement::affinity(spec, path, errors);
    dns(scope.release, spec, &path.field("dnsConfig"), errors);
    let gates = path.field("readinessGates");
    for (index, gate) in spec.list("readinessGates").iter().enumerate() {
        let kind = gate.text("conditionType");
        errors.problems(
            &gates.index(index).field("conditionType"),
            kind,
            names::qualified_problems(kind),
        );
    }
    scheduling_gates(spec, &path.field("schedulingGates"), errors);
    placement::spread(
        spec.list("topologySpreadConstraints"),
        &path.field("topologySpreadConstraints"),
        errors,
    );
    windows::host_process(spec, path, errors);
    host_users(spec, path, errors);
    named(scope, spec, path, errors);
    if let Some(seconds) = spec.int("activeDeadlineSeconds") {
        errors.in_range(
            &path.field("activeDeadlineSeconds"),
            seconds,
            1,
            i64::from(i32::MAX),
        );
    }
    placement::tolerations(spec.list("tolerations"), &path.field("tolerations"), errors);
    let aliases = path.field("hostAliases");
    for (index, alias) in spec.list("hostAliases").iter().enumerate() {
        let at = aliases.index(index);
        addresses::address(&at.field("ip"), alias.text("ip"), &[], errors);
        let hosts = at.field("hostnames");
        for (index, host) in alias.texts("hostnames").enumerate() {
            errors.problems(&hosts.index(index), host, names::subdomain_problems(host));
        }
    }
    for field in ["priorityClassName", "runtimeClassName"] {
        if let Some(name) = spec
            .text_if_set(field)
            .filter(|name| !name.is_empty() || field == "runtimeClassName")
        {
            errors.problems(&path.field(field), name, names::subdomain_problems(name));
        }
    }
    if let Some(policy) = spec.text_if_set("preemptionPolicy") {
        errors.one_of(
            &path.field("preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }
    volumes::overhead(spec, path, errors);
    windows::system(spec, path, errors);
    file_keys(spec, path, errors);
}

/// The source of the volume for a claim of a set.
static CLAIMED: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| shared_json::json!({"persistentVolumeClaim": {"claimName": "claim"}}));

fn resource_claims(scope: &Scope<'_>, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    let mirrored = scope
        .meta
        .is_some_and(|meta| meta.map("annotations").has("kubernetes.io/config.mirror"));
    for (index, claim) in spec.list("resourceClaims").iter().enumerate() {
        if mirrored {
            errors.forbidden(&Path::new(""), "static pods do not support resource claims");
            continue;
        }
        let at = path.index(index);
        let name = claim.text("name");
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        } else if seen.insert(name) {
            errors.problems(&at.field("name"), name, names::label_problems(name));
        } else {
            errors.duplicate(&at.field("name"), name);
        }
        let shown = || crate::go::text("core.PodResourceClaim", Some(claim));
        match (
            claim.has("resourceClaimName"),
            claim.has("resourceClaimTemplateName"),
        ) {
            (true, true) => errors.invalid_shown(
                &at,
                shown(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => errors.invalid_shown(
                &at,
                shown(),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
            _ => {}
        }
        for field in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = claim.text_if_set(field) {
                errors.problems(&at.field(field), name, names::subdomain_problems(name));
            }
        }
    }
}

fn host_network_ports(scope: &Scope<'_>, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !spec.is_true("hostNetwork") {
        return;
    }
    let list = path.field("containers");
    for (index, container) in spec.list("containers").iter().enumerate() {
        let at = list.index(index);
        let ports = at.field("ports");
        for (index, port) in container.list("ports").iter().enumerate() {
            let (host, own) = (
                port.int("hostPort").unwrap_or_default(),
                port.int("containerPort").unwrap_or_default(),
            );
            if (scope.is_pod || host != 0) && host != own {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&ports.index(index).field("hostPort"), host, detail);
            }
        }
    }
}

fn dns(release: Release, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = spec.part("dnsConfig");
    let servers = config.map_or(&[][..], |config| config.list("nameservers"));
    if spec.text("dnsPolicy") == "None" {
        if config.is_none() {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&path.field("nameservers"), detail);
        }
    }
    let Some(config) = config else { return };
    let at = path.field("nameservers");
    if servers.len() > 3 {
        errors.invalid(&at, servers.to_vec(), "must not have more than 3 nameservers");
    }
    for (index, server) in config.texts("nameservers").enumerate() {
        addresses::address(&at.index(index), server, &[], errors);
    }
    let at = path.field("searches");
    let searches = config.list("searches");
    if searches.len() > 32 {
        errors.invalid(&at, searches.to_vec(), "must not have more than 32 search paths");
    }
    let characters: usize = config.texts("searches").map(|search| search.len() + 1).sum();
    if characters > 2049 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.invalid(&at, searches.to_vec(), detail);
    }
    let problems = match release {
        Release::V1_32 => names::subdomain_problems,
        Release::V1_36 => names::subdomain_with_underscore_problems,
    };
    for (index, search) in config.texts("searches").enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            errors.problems(&at.index(index), search, problems(search));
        }
    }
    let at = path.field("options");
    for (index, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            errors.required(&at.index(index), "must not be empty");
        }
    }
}

fn scheduling_gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, gate) in spec.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        errors.problems(&path.index(index), name, names::qualified_problems(name));
        if !seen.insert(name) {
            errors.duplicate(&path.index(index), name);
        }
    }
}

fn host_users(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.flag("hostUsers") != Some(false) {
        return;
    }
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.is_true(field) {
            errors.forbidden(&path.field(shown), "when `hostUsers` is false");
        }
    }
    each_container(spec, path, &mut |container, path| {
        if !container.list("volumeDevices").is_empty() {
            errors.forbidden(&path.field("volumeDevices"), "when `hostUsers` is false");
        }
    });
}

/// Names of the pod itself and of the objects that it refers to.
fn named(scope: &Scope<'_>, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = spec.text_if_set("hostnameOverride") {
        let at = path.field("hostnameOverride");
        if spec.is_true("setHostnameAsFQDN") {
            errors.forbidden(&at, "may not be specified when setHostnameAsFQDN is true");
        }
        if spec.is_true("hostNetwork") {
            errors.forbidden(&at, "may not be specified when hostNetwork is true");
        }
        if name.len() > 64 {
            errors.too_long(&at, 64);
        }
        errors.problems(&at, name, names::subdomain_problems(name));
    }
    for field in ["serviceAccountName", "nodeName"] {
        let name = spec.text(field);
        if !name.is_empty() {
            errors.problems(&path.field(field), name, names::subdomain_problems(name));
        }
    }
    if scope.named_by_set {
        return;
    }
    for field in ["hostname", "subdomain"] {
        let name = spec.text(field);
        if !name.is_empty() {
            errors.problems(&path.field(field), name, names::label_problems(name));
        }
    }
}

/// Files that hold variables stand in empty directories of the pod.
fn file_keys(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    each_container(spec, path, &mut |container, path| {
        let list = path.field("env");
        for (index, variable) in container.list("env").iter().enumerate() {
            let Some(reference) = variable
                .part("valueFrom")
                .and_then(|from| from.part("fileKeyRef"))
            else {
                continue;
            };
            let at = list.index(index);
            let at = at.field("valueFrom.fileKeyRef.volumeName");
            let name = reference.text("volumeName");
            match spec
                .list("volumes")
                .iter()
                .find(|volume| volume.text("name") == name)
            {
                None => errors.not_found(&at, name),
                Some(volume) if !volume.has("emptyDir") => {
                    errors.invalid(&at, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
