//! The cells of all other kinds.

use shared_json::Value;

use super::age::human_duration;
use super::core::load_balancers;
use super::fields::{Fields, first, or};
use super::selector::selector;
use super::{NONE, UNSET};

/// How many hosts, ports or endpoints are listed.
const SHOWN_MAX: usize = 3;

pub(super) fn cell(kind: &str, column: &str, object: Fields<'_>) -> Value {
    let text = |path: &str| Value::from(object.text(path));
    match (kind, column) {
        ("Lease", "Holder") => text("spec.holderIdentity"),
        ("RuntimeClass", "Handler") => text("handler"),
        ("PriorityClass", "Value") => Value::from(object.number("value")),
        ("PriorityClass", "Global-Default") => Value::from(object.flag("globalDefault")),
        ("PriorityClass", "PreemptionPolicy") => text("preemptionPolicy"),
        ("Ingress", _) => ingress(column, object),
        ("IngressClass", "Controller") => text("spec.controller"),
        ("IngressClass", "Parameters") => Value::from(parameters(object)),
        ("NetworkPolicy", "Pod-Selector") => Value::from(selector(object, "spec.podSelector")),
        ("IPAddress", "ParentRef") => Value::from(parent(object)),
        ("ServiceCIDR", "CIDRs") => Value::from(words(object, "spec.cidrs").join(",")),
        ("RoleBinding" | "ClusterRoleBinding", _) => binding(column, object),
        ("CertificateSigningRequest", _) => signing_request(column, object),
        ("EndpointSlice", "AddressType") => text("addressType"),
        ("EndpointSlice", "Ports") => slice_ports(object),
        ("EndpointSlice", "Endpoints") => {
            let all: Vec<String> = object
                .parts("endpoints")
                .flat_map(|endpoint| words(endpoint, "addresses"))
                .collect();
            or(&first(&all, SHOWN_MAX, ","), UNSET)
        }
        ("APIService", "Service") if object.has("spec.service") => Value::from(format!(
            "{}/{}",
            object.text("spec.service.namespace"),
            object.text("spec.service.name")
        )),
        ("APIService", "Service") => Value::from("Local"),
        ("APIService", "Available") => Value::from(available(object)),
        ("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration", "Webhooks") => {
            Value::from(object.list("webhooks").len())
        }
        ("MutatingAdmissionPolicy", "Mutations") => Value::from(object.list("spec.mutations").len()),
        ("ValidatingAdmissionPolicy", "Validations") => Value::from(object.list("spec.validations").len()),
        (_, "ParamKind") if object.has("spec.paramKind") => Value::from(format!(
            "{}/{}",
            object.text("spec.paramKind.apiVersion"),
            object.text("spec.paramKind.kind")
        )),
        (_, "PolicyName") => text("spec.policyName"),
        (_, "ParamRef") if object.has("spec.paramRef") => {
            let name = object.text("spec.paramRef.name");
            Value::from(match object.text("spec.paramRef.namespace") {
                "" => format!("*/{name}"),
                namespace => format!("{namespace}/{name}"),
            })
        }
        (_, "ParamKind" | "ParamRef") => Value::from(UNSET),
        ("ResourceClaim", "State") => Value::from(claim_state(object)),
        ("ResourceSlice", "Node") => object.or_unset("spec.nodeName"),
        ("ResourceSlice", "Driver") => text("spec.driver"),
        ("ResourceSlice", "Pool") => text("spec.pool.name"),
        ("FlowSchema", _) => flow_schema(column, object),
        ("PriorityLevelConfiguration", "Type") => text("spec.type"),
        ("PriorityLevelConfiguration", _) => priority_level(column, object),
        _ => Value::from(""),
    }
}

fn words(object: Fields<'_>, path: &str) -> Vec<String> {
    object
        .list(path)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn ingress(column: &str, ingress: Fields<'_>) -> Value {
    match column {
        "Class" => ingress.or_none("spec.ingressClassName"),
        "Hosts" => {
            let hosts: Vec<String> = ingress
                .parts("spec.rules")
                .map(|rule| rule.text("host").to_owned())
                .filter(|host| !host.is_empty())
                .collect();
            or(&first(&hosts, SHOWN_MAX, ","), "*")
        }
        "Address" => Value::from(load_balancers(ingress).into_iter().collect::<Vec<_>>().join(",")),
        "Ports" => Value::from(if ingress.list("spec.tls").is_empty() {
            "80"
        } else {
            "80, 443"
        }),
        _ => Value::from(""),
    }
}

/// `IngressParameters.k8s.example.com/external`: the parameters of an ingress class.
fn parameters(class: Fields<'_>) -> String {
    if !class.has("spec.parameters") {
        return NONE.to_owned();
    }
    let field = |name: &str| class.text(&format!("spec.parameters.{name}"));
    match field("apiGroup") {
        "" => format!("{}/{}", field("kind"), field("name")),
        group => format!("{}.{group}/{}", field("kind"), field("name")),
    }
}

/// `services/default/kubernetes`: the parent of an address.
fn parent(address: Fields<'_>) -> String {
    if !address.has("spec.parentRef") {
        return NONE.to_owned();
    }
    let field = |name: &str| address.text(&format!("spec.parentRef.{name}"));
    let mut resource = field("resource").to_lowercase();
    if !field("group").is_empty() {
        resource = format!("{resource}.{}", field("group").to_lowercase());
    }
    let parts = [resource.as_str(), field("namespace"), field("name")];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("/")
}

fn binding(column: &str, binding: Fields<'_>) -> Value {
    let kind = match column {
        "Role" => {
            let role = format!(
                "{}/{}",
                binding.text("roleRef.kind"),
                binding.text("roleRef.name")
            );
            return Value::from(role);
        }
        "Users" => "User",
        "Groups" => "Group",
        _ => "ServiceAccount",
    };
    let subjects = binding
        .parts("subjects")
        .filter(|subject| subject.text("kind") == kind);
    let names: Vec<String> = subjects
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
            _ => subject.text("name").to_owned(),
        })
        .collect();
    Value::from(names.join(", "))
}

fn signing_request(column: &str, request: Fields<'_>) -> Value {
    match column {
        "SignerName" => request.or_none("spec.signerName"),
        "Requestor" => Value::from(request.text("spec.username")),
        "RequestedDuration" => match request.get("spec.expirationSeconds").and_then(Value::as_i64) {
            Some(seconds) => Value::from(human_duration(seconds)),
            None => Value::from(NONE),
        },
        _ => {
            let is = |kind: &str| {
                request
                    .parts("status.conditions")
                    .any(|condition| condition.text("type") == kind)
            };
            let mut status = match (is("Denied"), is("Approved")) {
                (true, _) => "Denied",
                (false, true) => "Approved",
                _ => "Pending",
            }
            .to_owned();
            if is("Failed") {
                status.push_str(",Failed");
            }
            if !request.text("status.certificate").is_empty() {
                status.push_str(",Issued");
            }
            Value::from(status)
        }
    }
}

fn slice_ports(slice: Fields<'_>) -> Value {
    let ports: Vec<String> = slice
        .parts("ports")
        .map(|port| {
            let name = Some(port.text("name")).filter(|name| !name.is_empty());
            port.plain("port")
                .or_else(|| name.map(str::to_owned))
                .unwrap_or_else(|| "*".to_owned())
        })
        .collect();
    or(&first(&ports, SHOWN_MAX, ","), UNSET)
}

/// `True`, or `False (MissingEndpoints)`.
fn available(service: Fields<'_>) -> String {
    match service
        .parts("status.conditions")
        .find(|condition| condition.text("type") == "Available")
    {
        Some(condition) if condition.text("status") == "True" => "True".to_owned(),
        Some(condition) => format!("{} ({})", condition.text("status"), condition.text("reason")),
        None => "Unknown".to_owned(),
    }
}

fn claim_state(claim: Fields<'_>) -> String {
    let deleted = claim.has("metadata.deletionTimestamp");
    let allocated = claim.has("status.allocation");
    let reserved = allocated && !claim.list("status.reservedFor").is_empty();
    let states = [
        (deleted, "deleted"),
        (!deleted && !allocated, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    states
        .into_iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, word)| word)
        .collect::<Vec<_>>()
        .join(",")
}

fn flow_schema(column: &str, schema: Fields<'_>) -> Value {
    match column {
        "PriorityLevel" => Value::from(schema.text("spec.priorityLevelConfiguration.name")),
        "MatchingPrecedence" => Value::from(schema.number("spec.matchingPrecedence")),
        "DistinguisherMethod" => schema.or_none("spec.distinguisherMethod.type"),
        _ => {
            let dangling = schema
                .parts("status.conditions")
                .find(|condition| condition.text("type") == "Dangling");
            or(
                dangling
                    .map(|condition| condition.text("status"))
                    .unwrap_or_default(),
                "?",
            )
        }
    }
}

fn priority_level(column: &str, level: Fields<'_>) -> Value {
    let path = match column {
        "NominalConcurrencyShares" => "spec.limited.nominalConcurrencyShares",
        "Queues" => "spec.limited.limitResponse.queuing.queues",
        "HandSize" => "spec.limited.limitResponse.queuing.handSize",
        _ => "spec.limited.limitResponse.queuing.queueLengthLimit",
    };
    level.get(path).cloned().unwrap_or_else(|| Value::from(NONE))
}
