//! `/healthz`, `/livez`, `/readyz`.

use http::Response;

use crate::message::body::ResponseBody;
use crate::message::respond::{page_not_found, text};

/// The checks of `/healthz` and its like that are shown; here all of them always pass.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];
/// There is no store elsewhere that could be out of reach.
const READY_CHECKS: [&str; 3] = ["ping", "log", "informer-sync"];

/// Answers for all checks, or for one of them.
pub(super) fn health(which: &str, check: Option<&str>, query: &str) -> Response<ResponseBody> {
    let checks = if which == "readyz" { READY_CHECKS } else { CHECKS };
    if let Some(check) = check {
        return if checks.contains(&check) || check == "etcd" {
            text("ok".to_owned())
        } else {
            page_not_found()
        };
    }
    let asked = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    if !asked("verbose") {
        return text("ok".to_owned());
    }
    let mut out = String::new();
    for name in checks {
        let excluded = query
            .split('&')
            .any(|pair| pair.strip_prefix("exclude=") == Some(name));
        out.push_str(&format!(
            "[+]{name} {}ok\n",
            if excluded { "excluded: " } else { "" }
        ));
    }
    out.push_str(&format!("{which} check passed\n"));
    text(out)
}
