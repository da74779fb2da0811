//! `/healthz`, `/livez`, `/readyz`.

use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, Response};

use crate::message::body::ResponseBody;
use crate::message::params::unescape;
use crate::message::respond::{page_not_found, text};

/// The checks that Kubernetes 1.36 answers for with its default feature gates, in its order. Each passes here: a server that
/// answers has started.
const CHECKS: [&str; 36] = [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
];
/// The checks that only `/readyz` has.
const OF_READYZ: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

/// The checks of `/healthz`, `/livez` or `/readyz`, in their order. The server that was recorded does not list `etcd` at `/readyz`.
fn checks(which: &str) -> impl Iterator<Item = &'static str> {
    let ready = which == "readyz";
    let has = move |check: &&str| {
        if ready {
            *check != "etcd"
        } else {
            !OF_READYZ.contains(check)
        }
    };
    CHECKS.into_iter().filter(has)
}

/// The paths of all checks below `/healthz`, `/livez` or `/readyz`, sorted.
pub(crate) fn check_paths(which: &str) -> Vec<String> {
    let mut paths: Vec<String> = checks(which).map(|check| format!("/{which}/{check}")).collect();
    paths.sort();
    paths
}

/// Answers for all checks, or for one of them.
pub(crate) fn health(which: &str, check: Option<&str>, query: &str) -> Response<ResponseBody> {
    if let Some(check) = check {
        return if check == "etcd" || checks(which).any(|known| known == check) {
            text("ok".to_owned())
        } else {
            page_not_found()
        };
    }
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(name), unescape(value))
    };
    let pairs: Vec<(String, String)> = query.split('&').map(pair).collect();
    let out = if pairs.iter().any(|(name, _)| name == "verbose") {
        let excluded = pairs
            .iter()
            .filter(|(name, _)| name == "exclude")
            .map(|(_, check)| check.as_str());
        verbose(which, &excluded.collect::<Vec<_>>())
    } else {
        "ok".to_owned()
    };
    let mut response = text(out);
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A line for each check, in the words of the real server.
fn verbose(which: &str, excluded: &[&str]) -> String {
    let mut out = String::new();
    for name in checks(which) {
        let excluded = if excluded.contains(&name) {
            "excluded: "
        } else {
            ""
        };
        out.push_str(&format!("[+]{name} {excluded}ok\n"));
    }
    let mut unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks(which).any(|known| known == **name))
        .map(|name| format!("{name:?}"))
        .collect();
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        out.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            unknown.join(",")
        ));
    }
    out + &format!("{which} check passed\n")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first("healthz", &[], "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]poststarthook/start-apiserver-admission-initializer ok\n")]
    #[case::of_readyz_alone("readyz", &[], "[+]log ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n[+]poststarthook/start-api")]
    #[case::last("livez", &[], "[+]poststarthook/apiservice-openapiv3-controller ok\nlivez check passed\n")]
    #[case::last_of_readyz("readyz", &[], "[+]poststarthook/apiservice-openapiv3-controller ok\n[+]shutdown ok\nreadyz check passed\n")]
    #[case::excluded("livez", &["log"], "[+]ping ok\n[+]log excluded: ok\n[+]etcd ok\n")]
    #[case::unknown("livez", &["z", "a", "z"], "ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nlivez check passed\n")]
    fn a_verbose_answer_lists_the_checks(#[case] which: &str, #[case] excluded: &[&str], #[case] part: &str) {
        let out = verbose(which, excluded);
        assert!(out.contains(part), "{out}");
    }

    #[rstest]
    #[case("healthz", Some("poststarthook/rbac/bootstrap-roles"), 200)]
    #[case("readyz", Some("informer-sync"), 200)]
    #[case("livez", Some("informer-sync"), 404)]
    #[case("livez", Some("none"), 404)]
    #[case("livez", None, 200)]
    fn a_check_has_a_path(#[case] which: &str, #[case] check: Option<&str>, #[case] status: u16) {
        assert_eq!(health(which, check, "").status(), status);
    }
}
