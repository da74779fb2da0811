//! Requests for certificates: approves those of kubelets, and signs approved ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client_kit::Seed;
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::rfc3339;
use pki::{Request, Terms};
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, is_true, list, number, text};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY: &str = "kubernetes.io/legacy-unknown";
/// How long certificates are good for at most, and at least; and how long before they are made.
const LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
const LIFE_MIN: Duration = Duration::from_secs(10 * 60);
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Those that live as long as this have that time taken off their end.
const LONG: Duration = Duration::from_secs(8 * 3600);

/// Approves kubelets' requests for client certificates, if the requesting user has the right to ask for them.
pub(super) struct CertificateApproval;

/// Signs requests that have been approved.
pub(super) struct CertificateSigning;

fn read(object: &Value) -> Option<Request> {
    let pem = STANDARD.decode(text(object, "spec.request")).ok()?;
    Request::from_pem(std::str::from_utf8(&pem).ok()?)
}

fn usages(object: &Value) -> Vec<&str> {
    let usages = list(object, "spec.usages").iter();
    usages.filter_map(Value::as_str).collect()
}

fn usages_match(usages: &[&str], purpose: &str) -> Result<(), String> {
    let found: BTreeSet<&str> = usages.iter().copied().collect();
    let without = BTreeSet::from(["digital signature", purpose]);
    let mut with = without.clone();
    with.insert("key encipherment");
    if found == with || found == without {
        return Ok(());
    }
    let all: Vec<&str> = with.into_iter().collect();
    Err(format!("usages did not match [{}]", all.join(" ")))
}

fn of_kubelet_client(request: &Request, usages: &[&str]) -> Result<(), String> {
    let names = request.names;
    let why = if request.subject.organizations != ["system:nodes"] {
        "subject organization is not system:nodes"
    } else if names.dns > 0 {
        "DNS subjectAltNames are not allowed"
    } else if names.emails > 0 {
        "Email subjectAltNames are not allowed"
    } else if names.addresses > 0 {
        "IP subjectAltNames are not allowed"
    } else if names.uris > 0 {
        "URI subjectAltNames are not allowed"
    } else if !request.subject.common_name.starts_with("system:node:") {
        "subject common name does not begin with system:node:"
    } else {
        return usages_match(usages, "client auth");
    };
    Err(why.to_owned())
}

fn of_kubelet_serving(request: &Request, usages: &[&str]) -> Result<(), String> {
    let names = request.names;
    if request.subject.organizations != ["system:nodes"] {
        return Err("subject organization is not system:nodes".to_owned());
    }
    if names.dns == 0 && names.addresses == 0 {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    if names.emails > 0 {
        return Err("Email subjectAltNames are not allowed".to_owned());
    }
    if names.uris > 0 {
        return Err("URI subjectAltNames are not allowed".to_owned());
    }
    usages_match(usages, "server auth")?;
    if !request.subject.common_name.starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:".to_owned());
    }
    Ok(())
}

fn of_client(usages: &[&str]) -> Result<(), String> {
    for usage in usages {
        if !matches!(*usage, "digital signature" | "key encipherment" | "client auth") {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
    }
    if usages.contains(&"client auth") {
        Ok(())
    } else {
        Err("missing required usage for client certificate: client auth".to_owned())
    }
}

/// Whether the signer signs such requests; none if it is not one of ours.
fn verdict(signer: &str, request: &Request, usages: &[&str]) -> Option<Result<(), String>> {
    Some(match signer {
        CLIENT => of_client(usages),
        KUBELET_CLIENT => of_kubelet_client(request, usages),
        KUBELET_SERVING => of_kubelet_serving(request, usages),
        LEGACY => Ok(()),
        _ => return None,
    })
}

/// How long a certificate is good for that was asked for so many seconds.
fn life(asked: Option<u64>) -> Duration {
    asked.map_or(LIFE_MAX, |seconds| {
        Duration::from_secs(seconds).clamp(LIFE_MIN, LIFE_MAX)
    })
}

fn path(object: &Value, subresource: &str) -> String {
    format!(
        "{}/{}/{subresource}",
        Res::CertificateRequests.path(""),
        object.name()
    )
}

/// The request with one more condition.
fn with_condition(object: &Value, kind: &str, reason: &str, message: &str, stamp: Option<String>) -> Value {
    let mut condition = json!({"type": kind, "status": "True", "reason": reason, "message": message});
    if let Some(stamp) = stamp {
        condition["lastUpdateTime"] = Value::from(stamp);
    }
    let mut conditions = list(object, "status.conditions").to_vec();
    conditions.push(condition);
    let mut changed = object.clone();
    changed["apiVersion"] = Value::from(Res::CertificateRequests.api_version());
    changed["kind"] = Value::from(Res::CertificateRequests.kind());
    changed["status"]["conditions"] = Value::from(conditions);
    changed
}

#[async_trait]
impl Controller for CertificateApproval {
    fn name(&self) -> &'static str {
        "certificate-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::CertificateRequests]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        let is_decided = is_true(object, "Approved") || is_true(object, "Denied");
        if is_decided || text(object, "spec.signerName") != KUBELET_CLIENT {
            return Vec::new();
        }
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(object) = cx.cache.get(Res::CertificateRequests, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        if self
            .affected(cx.cache, Res::CertificateRequests, &object, None)
            .is_empty()
        {
            return Ok(Next::Change);
        }
        let Some(request) =
            read(&object).filter(|request| of_kubelet_client(request, &usages(&object)).is_ok())
        else {
            return Ok(Next::Change);
        };
        let is_own = text(&object, "spec.username") == request.subject.common_name;
        let own = (
            "selfnodeclient",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        );
        let any = (
            "nodeclient",
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        );
        for (subresource, message) in [own, any].into_iter().skip(usize::from(!is_own)) {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": object.pointer("/spec/username"), "uid": object.pointer("/spec/uid"),
                    "groups": object.pointer("/spec/groups"), "extra": object.pointer("/spec/extra"),
                    "resourceAttributes": {
                        "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
                        "subresource": subresource, "version": "*",
                    },
                },
            });
            let answer = cx
                .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
                .await?;
            if at(&answer, "status.allowed") == Some(&json!(true)) {
                let approved = with_condition(&object, "Approved", "AutoApproved", message, None);
                cx.write(&path(&object, "approval"), &approved).await?;
                return Ok(Next::Change);
            }
        }
        // Whoever asks may be allowed to later: it is tried again, later each time.
        let why = "the request was recognized, but the subject access review was not approved";
        Err(kube::Error::Service(why.into()))
    }
}

#[async_trait]
impl Controller for CertificateSigning {
    fn name(&self) -> &'static str {
        "certificate-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::CertificateRequests]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        let waits = is_true(object, "Approved")
            && !is_true(object, "Failed")
            && text(object, "status.certificate").is_empty();
        if waits { vec![Key::of(object)] } else { Vec::new() }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let object: Option<Arc<Value>> = cx.cache.get(Res::CertificateRequests, "", &key.name).cloned();
        let Some(object) = object.filter(|object| {
            !self
                .affected(cx.cache, Res::CertificateRequests, object, None)
                .is_empty()
        }) else {
            return Ok(Next::Change);
        };
        let (Some(request), Some(authority)) = (read(&object), cx.authority) else {
            return Ok(Next::Change);
        };
        let usages = usages(&object);
        match verdict(text(&object, "spec.signerName"), &request, &usages) {
            None => return Ok(Next::Change),
            Some(Err(why)) => {
                let reason = "SignerValidationFailure";
                let failed = with_condition(&object, "Failed", reason, &why, Some(cx.stamp()));
                cx.write(&path(&object, "status"), &failed).await?;
                return Ok(Next::Change);
            }
            Some(Ok(())) => {}
        }
        if !request.is_signed() {
            let why = "unable to verify certificate request signature";
            return Err(kube::Error::Service(why.into()));
        }
        let asked = number(&object, "spec.expirationSeconds", -1);
        let life = life(u64::try_from(asked).ok());
        let end = if life < LONG { life } else { life - BACKDATE };
        let mut serial = [0; 16];
        Seed(0).fork(object.uid()).random().fill(&mut serial);
        let now = cx.now();
        let terms = Terms {
            usages: &usages,
            not_before: now.saturating_sub(BACKDATE).unwrap_or(now),
            not_after: now.saturating_add(end).unwrap_or(now),
            serial,
        };
        let Some(certificate) = authority.issue(&request, &terms) else {
            return Ok(Next::Change);
        };
        let mut signed = Value::clone(&object);
        signed["apiVersion"] = Value::from(Res::CertificateRequests.api_version());
        signed["kind"] = Value::from(Res::CertificateRequests.kind());
        signed["status"]["certificate"] = Value::from(STANDARD.encode(certificate));
        cx.write(&path(&object, "status"), &signed).await?;
        tracing::debug!(
            name = key.name.as_str(),
            at = rfc3339(now),
            "signed a certificate"
        );
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use pki::{Names, Subject};

    use super::*;

    /// A request by its subject (`CN/O,O`) and its names (`dns`, `ip`, `email`, `uri`).
    fn request(subject: &str, names: &str) -> Request {
        let (name, organizations) = subject.split_once('/').unwrap_or((subject, ""));
        let has = |kind: &str| usize::from(names.split(' ').any(|name| name == kind));
        Request::of(
            Subject {
                common_name: name.to_owned(),
                organizations: organizations
                    .split(',')
                    .filter(|one| !one.is_empty())
                    .map(str::to_owned)
                    .collect(),
            },
            Names {
                dns: has("dns"),
                emails: has("email"),
                addresses: has("ip"),
                uris: has("uri"),
            },
        )
    }

    #[track_caller]
    fn check(signer: &str, subject: &str, names: &str, usages: &[&str], expected: &str) {
        let found = match verdict(signer, &request(subject, names), usages) {
            None => "-".to_owned(),
            Some(Ok(())) => String::new(),
            Some(Err(why)) => why,
        };
        assert_eq!(found, expected, "{signer} {subject} {names} {usages:?}");
    }

    #[test]
    fn what_signers_sign() {
        let client = &["client auth", "digital signature"][..];
        let server = &["server auth", "digital signature"][..];
        let (node, ds) = ("system:node:n/system:nodes", "digital signature");
        let organization = "subject organization is not system:nodes";
        let name = "subject common name does not begin with system:node:";
        let of_client = "usages did not match [client auth digital signature key encipherment]";
        let of_server = "usages did not match [digital signature key encipherment server auth]";
        check("e.com/signer", node, "", client, "-");
        check(
            LEGACY,
            "x",
            "dns email ip uri",
            &["server auth", "client auth"],
            "",
        );
        check(LEGACY, "", "", &[], "");
        check(CLIENT, "jane/devs", "", client, "");
        check(CLIENT, "jane", "dns", &["client auth"], "");
        check(CLIENT, "jane", "", &["client auth", "key encipherment"], "");
        check(
            CLIENT,
            "jane",
            "",
            &[ds],
            "missing required usage for client certificate: client auth",
        );
        check(
            CLIENT,
            "jane",
            "",
            server,
            "invalid usage for client certificate: server auth",
        );
        check(
            CLIENT,
            "jane",
            "",
            &[ds, "any"],
            "invalid usage for client certificate: any",
        );
        check(KUBELET_CLIENT, node, "", client, "");
        check(
            KUBELET_CLIENT,
            node,
            "",
            &["key encipherment", ds, "client auth"],
            "",
        );
        check(KUBELET_CLIENT, node, "", &["client auth"], of_client);
        check(KUBELET_CLIENT, node, "", server, of_client);
        check(KUBELET_CLIENT, "system:node:n", "", client, organization);
        check(
            KUBELET_CLIENT,
            "system:node:n/system:nodes,devs",
            "",
            client,
            organization,
        );
        check(KUBELET_CLIENT, "n/system:nodes", "", client, name);
        check(
            KUBELET_CLIENT,
            node,
            "dns ip",
            client,
            "DNS subjectAltNames are not allowed",
        );
        check(
            KUBELET_CLIENT,
            node,
            "ip email",
            client,
            "Email subjectAltNames are not allowed",
        );
        check(
            KUBELET_CLIENT,
            node,
            "ip uri",
            client,
            "IP subjectAltNames are not allowed",
        );
        check(
            KUBELET_CLIENT,
            node,
            "uri",
            client,
            "URI subjectAltNames are not allowed",
        );
        check(KUBELET_SERVING, node, "dns", server, "");
        check(
            KUBELET_SERVING,
            node,
            "ip",
            &["key encipherment", ds, "server auth"],
            "",
        );
        check(
            KUBELET_SERVING,
            node,
            "",
            server,
            "DNS or IP subjectAltName is required",
        );
        check(
            KUBELET_SERVING,
            node,
            "email",
            server,
            "DNS or IP subjectAltName is required",
        );
        check(
            KUBELET_SERVING,
            node,
            "dns email",
            server,
            "Email subjectAltNames are not allowed",
        );
        check(
            KUBELET_SERVING,
            node,
            "ip uri",
            server,
            "URI subjectAltNames are not allowed",
        );
        check(KUBELET_SERVING, node, "dns", client, of_server);
        check(KUBELET_SERVING, "n/system:nodes", "dns", server, name);
        check(KUBELET_SERVING, "system:node:n/devs", "dns", server, organization);
    }

    #[test]
    fn how_long_certificates_last() {
        let day = 24 * 3600;
        for (asked, expected) in [
            (None, 365 * day),
            (Some(600), 600),
            (Some(60), 600),
            (Some(day), day),
            (Some(365 * day), 365 * day),
            (Some(1000 * day), 365 * day),
        ] {
            assert_eq!(life(asked), Duration::from_secs(expected), "{asked:?}");
        }
    }
}
