//! `/healthz`, `/livez`, `/readyz`.

use http::Response;

use super::body::ResponseBody;
use super::respond::{page_not_found, text};

/// The checks of `/healthz` and its like that are shown; here all of them always pass.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// Answers for all checks, or for one of them.
pub(super) fn health(which: &str, check: Option<&str>, query: &str) -> Response<ResponseBody> {
    if let Some(check) = check {
        return if CHECKS.contains(&check) {
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
    for name in CHECKS {
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
