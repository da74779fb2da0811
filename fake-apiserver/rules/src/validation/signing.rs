//! CertificateSigningRequests, and the allowed changes of their approval and status.

use pod_rules::names;
use shared_json::Value;

use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;

const EXPIRATION_SECONDS_MIN: i64 = 600;
const SUBDOMAIN_BYTES_MAX: usize = 253;
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Conditions that are there or not, but never false.
const VERDICTS: [&str; 3] = ["Approved", "Denied", "Failed"];

fn decoded(text: &str) -> String {
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = base64::Engine::decode(&engine, text).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A new one.
pub(super) fn create(object: &Value, errors: &mut Errors) {
    request(object, None, errors);
}

/// The error in the PKCS #10 request of an object.
pub fn request_problem(object: &Value) -> Option<&'static str> {
    let request = object.part("spec").unwrap_or(&NOTHING).text("request");
    let is_pem = decoded(request).contains("-----BEGIN CERTIFICATE REQUEST-----");
    (!is_pem).then_some("PEM block type must be CERTIFICATE REQUEST")
}

fn request(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    if let Some(detail) = request_problem(object) {
        let shown = spec.part("request").cloned().unwrap_or_default();
        errors.invalid(&path.field("request"), shown, detail);
    }
    let at = path.field("usages");
    let usages: Vec<&str> = spec.texts("usages").collect();
    if usages.is_empty() {
        errors.required(&at, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            errors.not_supported(&at.index(index), *usage, &USAGES);
        }
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages.iter().take(index).any(|before| before == usage) {
            errors.duplicate(&at.index(index), *usage);
        }
    }
    let (at, name) = (path.field("signerName"), spec.text("signerName"));
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.invalid(&at, name, detail);
    } else {
        signer_name(name, &at, errors);
    }
    if let Some(seconds) = spec
        .int("expirationSeconds")
        .filter(|seconds| *seconds < EXPIRATION_SECONDS_MIN)
    {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.field("expirationSeconds"), seconds, detail);
    }
    conditions(object, errors);
    let status = |object: &Value| {
        let certificate = object.part("status").map(|status| status.text("certificate"));
        certificate.unwrap_or_default().to_owned()
    };
    let certificate = status(object);
    if old.is_none_or(|old| status(old) != certificate)
        && !certificate.is_empty()
        && let Some(problem) = certificate_problem(&decoded(&certificate))
    {
        let at = Path::new("status.certificate");
        errors.invalid(&at, "<certificate data>", problem);
    }
}

fn certificate_problem(pem: &str) -> Option<String> {
    let kind = |line: &str| {
        let kind = line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
        Some(kind.to_owned())
    };
    let mut kinds = pem.lines().filter_map(kind).peekable();
    if kinds.peek().is_none() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    if let Some(other) = kinds.find(|kind| kind != "CERTIFICATE") {
        return Some(format!(
            "only CERTIFICATE PEM blocks are allowed, found \"{other}\""
        ));
    }
    let der = pki::of_pem("CERTIFICATE", pem).unwrap_or_default();
    (!pki::is_sequence(&der)).then(|| "x509: malformed certificate".to_owned())
}

/// `example.com/signer-name`
pub(super) fn signer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, signer] = *parts.as_slice() else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(path, name, detail);
    };
    if domain.len() > SUBDOMAIN_BYTES_MAX {
        errors.too_long(path, SUBDOMAIN_BYTES_MAX);
    }
    let labels: Vec<&str> = domain.split('.').collect();
    let wrong = labels
        .iter()
        .find(|label| !names::label_problems(label).is_empty());
    for problem in wrong
        .map(|label| (label, names::label_problems(label)))
        .into_iter()
    {
        for text in problem.1 {
            let detail = format!("validating label \"{}\": {text}", problem.0);
            errors.invalid(path, domain, detail);
        }
    }
    if labels.len() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, domain, detail);
    }
    for label in signer.split('.') {
        let problems = names::subdomain_problems(label);
        for text in &problems {
            let detail = format!("validating label \"{label}\": {text}");
            errors.invalid(path, signer, detail);
        }
        if !problems.is_empty() {
            break;
        }
    }
}

fn all_conditions(object: &Value) -> &[Value] {
    object
        .part("status")
        .map(|status| status.list("conditions"))
        .unwrap_or_default()
}

fn of_kind<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    let all = all_conditions(object).iter();
    all.filter(|condition| condition.text("type") == kind).collect()
}

fn conditions(object: &Value, errors: &mut Errors) {
    let path = Path::new("status.conditions");
    let all = all_conditions(object);
    for (index, condition) in all.iter().enumerate() {
        let at = path.index(index);
        let kind = condition.text("type");
        if kind.is_empty() {
            errors.required(&at.field("type"), "");
        }
        let allowed: &[&str] = if VERDICTS.contains(&kind) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        errors.one_of(&at.field("status"), condition.text("status"), allowed);
        let before = |other: &str| all.iter().take(index).any(|each| each.text("type") == other);
        if (kind == "Approved" && before("Denied")) || (kind == "Denied" && before("Approved")) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(&path, kind, detail);
        }
        if before(kind) {
            errors.duplicate(&at.field("type"), kind);
        }
    }
}

/// The changes of the object itself: neither the request nor the answer may change.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    change(new, old, false, false, errors);
}

/// A change through `approval`.
pub(super) fn approval(new: &Value, old: &Value, errors: &mut Errors) {
    change(new, old, true, false, errors);
}

/// A change through `status`.
pub(super) fn status(new: &Value, old: &Value, errors: &mut Errors) {
    change(new, old, false, true, errors);
}

fn change(new: &Value, old: &Value, may_approve: bool, may_issue: bool, errors: &mut Errors) {
    request(new, Some(old), errors);
    let path = Path::new("status.conditions");
    for kind in VERDICTS {
        if of_kind(new, kind).len() < of_kind(old, kind).len() {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            errors.forbidden(&path, &detail);
        }
    }
    for kind in VERDICTS.iter().take(2).filter(|_| !may_approve) {
        let (now, before) = (of_kind(new, kind), of_kind(old, kind));
        let verb = match now.len().cmp(&before.len()) {
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if now != before => "modify",
            _ => continue,
        };
        let detail = format!("updates may not {verb} a condition of type \"{kind}\"");
        errors.forbidden(&path, &detail);
    }
    let certificate = |object: &Value| {
        let status = object.part("status");
        status.map_or("", |status| status.text("certificate")).to_owned()
    };
    let (now, before) = (certificate(new), certificate(old));
    let path = Path::new("status.certificate");
    if now != before && !may_issue {
        errors.forbidden(&path, "updates may not set certificate content");
    } else if now != before && !before.is_empty() {
        errors.forbidden(&path, "updates may not modify existing certificate content");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    /// `-----BEGIN CERTIFICATE REQUEST-----`, and no more: all that is looked at.
    const PEM: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0=";

    fn made(signer: &str, usages: Value, conditions: Value) -> Value {
        json!({"spec": {"request": PEM, "signerName": signer, "usages": usages}, "status": {"conditions": conditions}})
    }

    fn said(errors: Errors) -> Vec<String> {
        errors.into_vec().iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case("e.com/s", json!(["client auth"]), None)]
    #[case("", json!(["any"]), Some("spec.signerName: Required value"))]
    #[case("e.com", json!(["any"]), Some("spec.signerName: Invalid value: \"e.com\": must be a fully qualified domain and path of the form 'example.com/signer-name'"))]
    #[case("e/s", json!(["any"]), Some("spec.signerName: Invalid value: \"e\": should be a domain with at least two segments separated by dots"))]
    #[case("e.com/s", json!([]), Some("spec.usages: Required value"))]
    #[case("e.com/s", json!(["any", "any"]), Some("spec.usages[1]: Duplicate value: \"any\""))]
    fn requests(#[case] signer: &str, #[case] usages: Value, #[case] expect: Option<&str>) {
        let mut errors = Errors::default();
        create(&made(signer, usages, json!([])), &mut errors);
        assert_eq!(said(errors), expect.into_iter().collect::<Vec<_>>());
    }

    #[rstest]
    #[case(approval, json!([]), json!([{"type": "Approved", "status": "True"}]), None)]
    #[case(approval, json!([{"type": "Approved", "status": "True"}]), json!([]), Some("status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""))]
    #[case(approval, json!([]), json!([{"type": "Approved", "status": "False"}]), Some("status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\""))]
    #[case(approval, json!([{"type": "Approved", "status": "True"}]), json!([{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]), Some("status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive"))]
    #[case(status, json!([]), json!([{"type": "Approved", "status": "True"}]), Some("status.conditions: Forbidden: updates may not add a condition of type \"Approved\""))]
    #[case(status, json!([]), json!([{"type": "Failed", "status": "True"}]), None)]
    fn verdicts(
        #[case] check: fn(&Value, &Value, &mut Errors),
        #[case] old: Value,
        #[case] new: Value,
        #[case] expect: Option<&str>,
    ) {
        let of = |conditions| made("e.com/s", json!(["any"]), conditions);
        let mut errors = Errors::default();
        check(&of(new), &of(old), &mut errors);
        assert_eq!(said(errors), expect.into_iter().collect::<Vec<_>>());
    }
}
