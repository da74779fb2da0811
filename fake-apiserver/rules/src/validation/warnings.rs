//! The warnings for a client about a valid object.
//!
//! The rules are those of the real server's strategies (`WarningsOnCreate`, `WarningsOnUpdate`), a function per kind.

use std::net::IpAddr;

use machinery::keys::GroupResource;
use machinery::types::Quantity;
use pod_rules::field_error::go_quote;
use pod_rules::names;
use shared_json::Value;

use super::addresses::{self, Network};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::pod::{self, DEPRECATED_VOLUMES, address_warning, deprecated_label};
use super::{core, service};

const STATIC_SUFFIX: &str = ".static.k8s.io";
const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
                                 prevent possible logging of tokens in volume attributes";
const ENDLESS_HISTORY: &str = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The warnings about a new object, or a changed one, of a built-in resource.
pub fn of(table: &GroupResource, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    match (table.group.as_str(), table.resource.as_str()) {
        ("", "pods") if old.is_none() => out = pod::warnings(object, ""),
        ("", "services") => out = service::warnings(object),
        ("", "secrets") => out = core::secret_warnings(object),
        ("", "nodes") => node(object, &mut out),
        ("", "persistentvolumes") => volume(object, &mut out),
        ("", "persistentvolumeclaims") => claim(object, &mut out),
        ("", "endpoints") => endpoints(object, &mut out),
        ("", "resourcequotas") if old.is_none() => quota(object, &mut out),
        ("discovery.k8s.io", "endpointslices") => slice(object, old.is_none(), &mut out),
        ("networking.k8s.io", "networkpolicies") => network_policy(object, &mut out),
        ("networking.k8s.io", "ingresses") if old.is_none() => ingress(object, &mut out),
        ("storage.k8s.io", "storageclasses") => storage_class(object, &mut out),
        ("storage.k8s.io", "csidrivers") => driver(object, old, &mut out),
        ("storage.k8s.io", "csistoragecapacities") => {
            let selector = object.part("nodeTopology").unwrap_or(&NOTHING);
            node_selector(selector, &Path::new("nodeTopology"), &mut out);
        }
        ("node.k8s.io", "runtimeclasses") => runtime_class(object, &mut out),
        ("resource.k8s.io", "resourceslices") => {
            let driver = object.pointer("/spec/driver").and_then(Value::as_str);
            let driver = driver.unwrap_or_default();
            if driver != driver.to_lowercase() {
                let quoted = go_quote(driver);
                out.push(format!(
                    "spec.driver: driver names should be lowercase; {quoted} contains uppercase characters"
                ));
            }
        }
        ("admissionregistration.k8s.io", _) if name(object).ends_with(STATIC_SUFFIX) => out.push(format!(
            "metadata.name: names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and \
             cannot be managed via the API"
        )),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            out = super::definitions::warnings(object);
        }
        _ => workload(table, object, old, &mut out),
    }
    out
}

fn name(object: &Value) -> &str {
    object.part("metadata").unwrap_or(&NOTHING).text("name")
}

fn spec(object: &Value) -> &Value {
    object.part("spec").unwrap_or(&NOTHING)
}

/// Workloads: their names become names of hosts, and new templates are checked like pods.
fn workload(table: &GroupResource, object: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let kind = (table.group.as_str(), table.resource.as_str());
    let named = matches!(
        kind,
        ("apps", "deployments" | "replicasets")
            | ("batch", "jobs" | "cronjobs")
            | ("", "replicationcontrollers")
    );
    if named && old.is_none() {
        let problems = names::label_problems(name(object));
        if !problems.is_empty() {
            out.push(format!(
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
                 recommended: [{}]",
                problems.join(" ")
            ));
        }
    }
    let generation = |object: &Value| object.part("metadata").and_then(|meta| meta.int("generation"));
    let asks_for_more = old.is_none_or(|old| generation(old) != generation(object));
    match kind {
        ("", "podtemplates") => template_of(object, "template.", asks_for_more, out),
        ("batch", "cronjobs") => {
            let job = spec(object).part("jobTemplate").unwrap_or(&NOTHING);
            if asks_for_more {
                many_indexes(spec(job), "spec.jobTemplate.spec", out);
            }
            template_of(spec(job), "spec.jobTemplate.spec.template.", asks_for_more, out);
            if old.is_some() && spec(object).text("schedule").contains("TZ") {
                out.push(
                    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                     https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                        .to_owned(),
                );
            }
        }
        ("apps", "deployments" | "replicasets") => {
            template_of(spec(object), "spec.template.", asks_for_more, out);
        }
        ("apps", "daemonsets") => {
            let template = |object| spec(object).part("template");
            let is_new = old.is_none_or(|old| !same(template(object), template(old)));
            template_of(spec(object), "spec.template.", is_new, out);
        }
        ("", "replicationcontrollers") => {
            // The real server takes one for the other, and warns of what was there.
            template_of(spec(old.unwrap_or(object)), "spec.template.", asks_for_more, out);
        }
        ("batch", "jobs") => {
            if asks_for_more {
                many_indexes(spec(object), "spec", out);
            }
            template_of(spec(object), "spec.template.", asks_for_more, out);
        }
        ("apps", "statefulsets") => {
            template_of(spec(object), "spec.template.", asks_for_more, out);
            for (index, claim) in spec(object).list("volumeClaimTemplates").iter().enumerate() {
                let path = format!("spec.volumeClaimTemplates[{index}]");
                let path = Path::new(&path);
                // The real server's paths differ between the two.
                let place = if old.is_some() { path.field("Spec") } else { path };
                whole_bytes(spec(claim), &place, out);
            }
            if spec(object)
                .int("revisionHistoryLimit")
                .is_some_and(|limit| limit < 0)
            {
                out.push(ENDLESS_HISTORY.to_owned());
            }
        }
        _ => {}
    }
}

fn template_of(holder: &Value, prefix: &str, wanted: bool, out: &mut Vec<String>) {
    if let Some(template) = holder.part("template").filter(|_| wanted) {
        out.extend(pod::warnings(template, prefix));
    }
}

/// So many indexes at once may be more than a status can hold.
fn many_indexes(job: &Value, path: &str, out: &mut Vec<String>) {
    let more = |field: &str, than: i64| job.int(field).is_some_and(|number| number > than);
    if job.text("completionMode") == "Indexed" && more("completions", 100_000) && more("parallelism", 10_000)
    {
        out.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes \
             might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
}

fn node(object: &Value, out: &mut Vec<String>) {
    if spec(object).has("configSource") {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec(object).text("externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    let path = Path::new("spec.podCIDRs");
    for (index, network) in spec(object).texts("podCIDRs").enumerate() {
        network_warnings(&path.index(index), network, out);
    }
}

fn volume(object: &Value, out: &mut Vec<String>) {
    let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
    for (key, detail) in [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ] {
        if annotations.contains_key(key) {
            out.push(format!("metadata.annotations[{key}]: {detail}"));
        }
    }
    let spec = spec(object);
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is \
             to use dynamic provisioning."
                .to_owned(),
        );
    }
    let required = spec
        .part("nodeAffinity")
        .and_then(|affinity| affinity.part("required"));
    let path = Path::new("spec.nodeAffinity.required.nodeSelectorTerms");
    let terms = required.unwrap_or(&NOTHING).list("nodeSelectorTerms");
    for (index, term) in terms.iter().enumerate() {
        label_expressions(term, &path.index(index), out);
    }
    for field in [
        "cephfs",
        "photonPersistentDisk",
        "scaleIO",
        "storageos",
        "glusterfs",
        "rbd",
    ] {
        let known = DEPRECATED_VOLUMES.iter().find(|(source, ..)| *source == field);
        if let Some((_, shown, detail)) = known.filter(|_| spec.has(field)) {
            out.push(format!("spec.{shown}: {detail}"));
        }
    }
}

fn claim(object: &Value, out: &mut Vec<String>) {
    const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
    if annotations.contains_key(CLASS) {
        out.push(format!(
            "metadata.annotations[{CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    whole_bytes(spec(object), &Path::new("spec"), out);
}

/// A part of a byte is no amount of storage.
fn whole_bytes(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    for part in ["requests", "limits"] {
        let amounts = spec.part("resources").unwrap_or(&NOTHING).map(part);
        let Some(amount) = amounts.get("storage") else {
            continue;
        };
        if !Quantity::of(amount).is_whole() {
            let shown = go_quote(amount.as_str().unwrap_or_default());
            out.push(format!(
                "{}[storage]: fractional byte value {shown} is invalid, must be an integer",
                path.field("resources").field(part)
            ));
        }
    }
}

fn endpoints(object: &Value, out: &mut Vec<String>) {
    let labels = object.part("metadata").unwrap_or(&NOTHING).map("labels");
    if labels.text("endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return;
    }
    let path = Path::new("subsets");
    for (index, subset) in object.list("subsets").iter().enumerate() {
        let path = path.index(index);
        for field in ["addresses", "notReadyAddresses"] {
            let path = path.field(field);
            for (index, address) in subset.list(field).iter().enumerate() {
                out.extend(address_warning(
                    &path.index(index).field("ip"),
                    address.text("ip"),
                ));
            }
        }
    }
}

fn slice(object: &Value, new: bool, out: &mut Vec<String>) {
    if new && object.text("addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let labels = object.part("metadata").unwrap_or(&NOTHING).map("labels");
    if labels.text(MANAGED_BY).ends_with("-controller.k8s.io") {
        return;
    }
    let path = Path::new("endpoints");
    for (index, endpoint) in object.list("endpoints").iter().enumerate() {
        let path = path.index(index);
        let path = path.field("addresses");
        for (index, address) in endpoint.texts("addresses").enumerate() {
            out.extend(address_warning(&path.index(index), address));
        }
    }
}

fn network_policy(object: &Value, out: &mut Vec<String>) {
    let path = Path::new("spec");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = path.field(rules);
        for (index, rule) in spec(object).list(rules).iter().enumerate() {
            let path = path.index(index);
            let path = path.field(peers);
            for (index, peer) in rule.list(peers).iter().enumerate() {
                let Some(block) = peer.part("ipBlock") else {
                    continue;
                };
                let path = path.index(index);
                let path = path.field("ipBlock");
                network_warnings(&path.field("cidr"), block.text("cidr"), out);
                let path = path.field("except");
                for (index, except) in block.texts("except").enumerate() {
                    network_warnings(&path.index(index), except, out);
                }
            }
        }
    }
}

fn ingress(object: &Value, out: &mut Vec<String>) {
    let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
    if annotations.contains_key(INGRESS_CLASS) && !spec(object).has("ingressClassName") {
        out.push(format!(
            "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
}

/// A request quota above the limit quota cannot be used up.
fn quota(object: &Value, out: &mut Vec<String>) {
    let hard = spec(object).part("hard").unwrap_or(&NOTHING);
    let amount = |name: &str| Some((hard.text_if_set(name)?.to_owned(), Quantity::of(hard.part(name)?)));
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (mut asked_name, limit_name) = (format!("requests.{resource}"), format!("limits.{resource}"));
        let mut asked = amount(&asked_name);
        if asked.is_none() && matches!(resource, "cpu" | "memory") {
            asked = amount(resource);
            asked_name = resource.to_owned();
        }
        if let (Some((asked, more)), Some((limit, less))) = (asked, amount(&limit_name))
            && more.nanos() > less.nanos()
        {
            out.push(format!(
                "ResourceQuota {asked_name} ({asked}) should be less than {limit_name} ({limit})"
            ));
        }
    }
}

fn storage_class(object: &Value, out: &mut Vec<String>) {
    let path = Path::new("allowedTopologies");
    for (index, topology) in object.list("allowedTopologies").iter().enumerate() {
        let path = path.index(index);
        let path = path.field("matchLabelExpressions");
        for (index, expression) in topology.list("matchLabelExpressions").iter().enumerate() {
            if let Some(detail) = deprecated_label(expression.text("key")) {
                out.push(format!("{}: {detail}", path.index(index).field("key")));
            }
        }
    }
}

fn driver(object: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    let requests = |object| spec(object).part("tokenRequests");
    let changed = old.is_none_or(|old| !same(requests(object), requests(old)));
    let any = !spec(object).list("tokenRequests").is_empty();
    if changed && any && !spec(object).has("serviceAccountTokenInSecrets") {
        out.push(TOKENS_IN_SECRETS.to_owned());
    }
}

fn runtime_class(object: &Value, out: &mut Vec<String>) {
    let scheduling = object.part("scheduling").unwrap_or(&NOTHING);
    for key in scheduling.map("nodeSelector").keys() {
        if let Some(detail) = deprecated_label(key) {
            out.push(format!("scheduling.nodeSelector: {detail}"));
        }
    }
}

fn node_selector(selector: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    label_expressions(selector, path, out);
    for key in selector.map("matchLabels").keys() {
        if let Some(detail) = deprecated_label(key) {
            out.push(format!("{}.{key}: {detail}", path.field("matchLabels")));
        }
    }
}

fn label_expressions(term: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let path = path.field("matchExpressions");
    for (index, expression) in term.list("matchExpressions").iter().enumerate() {
        let key = expression.text("key");
        if let Some(detail) = deprecated_label(key) {
            out.push(format!("{}: {key} is {detail}", path.index(index).field("key")));
        }
    }
}

/// The warnings about a network that was valid once.
pub(super) fn network_warnings(path: &Path<'_>, text: &str, out: &mut Vec<String>) {
    let Some(network) = Network::parse(text) else {
        return;
    };
    let whole = format!("{}/{}", network.first(), network.prefix);
    let shown = go_quote(text);
    let found = out.len();
    if network.first() != network.address {
        let width = if network.address.is_ipv4() { 32 } else { 128 };
        out.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be \"{whole}\" or \"{}/{width}\"?)",
            network.address
        ));
    }
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    let strict = address
        .parse::<IpAddr>()
        .ok()
        .filter(|_| prefix.len() < 2 || !prefix.starts_with('0'));
    let mapped = matches!(strict, Some(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some());
    if strict.is_none() || mapped {
        out.push(format!(
            "{path}: non-standard CIDR value {shown} is invalid: use \"{whole}\""
        ));
    }
    let canonical = addresses::parse(address).map(|address| format!("{address}/{prefix}"));
    if let Some(canonical) = canonical.filter(|canonical| canonical != text)
        && out.len() == found
        && network.address.is_ipv6()
    {
        out.push(format!(
            "{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format (\"{canonical}\")"
        ));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case("", "nodes", json!({"spec": {"externalID": "x"}}), &["spec.externalID: this field is deprecated, and is unused by Kubernetes"])]
    #[case("", "persistentvolumes", json!({"spec": {"rbd": {}}}), &["spec.rbd: deprecated in v1.28, non-functional in v1.31+"])]
    #[case("", "persistentvolumeclaims", json!({"spec": {"resources": {"requests": {"storage": "1500m"}}}}),
        &["spec.resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be an integer"])]
    #[case("networking.k8s.io", "networkpolicies", json!({"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]}}),
        &["spec.egress[0].to[0].ipBlock.cidr: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"])]
    #[case("storage.k8s.io", "csidrivers", json!({"spec": {"tokenRequests": [{"audience": "a"}]}}), &[TOKENS_IN_SECRETS])]
    #[case("apps", "statefulsets", json!({"spec": {"revisionHistoryLimit": -1}}), &[ENDLESS_HISTORY])]
    #[case("", "resourcequotas", json!({"spec": {"hard": {"requests.cpu": "6", "limits.cpu": "4", "memory": "2Gi", "limits.memory": "1Gi"}}}),
        &["ResourceQuota requests.cpu (6) should be less than limits.cpu (4)",
          "ResourceQuota memory (2Gi) should be less than limits.memory (1Gi)"])]
    #[case("", "resourcequotas", json!({"spec": {"hard": {"requests.cpu": "4", "cpu": "9", "limits.cpu": "4"}}}), &[])]
    #[case("apps", "daemonsets", json!({"metadata": {"name": "a.b"}}), &[])]
    fn new_objects(
        #[case] group: &str,
        #[case] resource: &str,
        #[case] object: Value,
        #[case] expected: &[&str],
    ) {
        assert_eq!(of(&GroupResource::new(group, resource), &object, None), expected);
    }
}
