//! `/healthz` and `/metrics`.

use std::sync::Arc;

use controller::daemon::Health;
use controller::metrics::Metrics;
use controller::process::endpoints::{Answer, StatusCode};

/// The answer of a path. Nothing for a path that is not served.
pub(crate) fn answer(path: &str, health: &Health, metrics: &Arc<Metrics>) -> Option<Answer> {
    match path {
        "/healthz" => Some(match health.failing() {
            None => Answer::plain(StatusCode::OK, "ok"),
            Some(check) => Answer::plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                &format!("check {check} failed, err: not synced"),
            ),
        }),
        "/metrics" => Some(Answer::metrics(metrics, std::iter::empty())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/healthz", Some((500, "check daemonStarted failed, err: not synced")))]
    #[case("/metrics", Some((200, "controller_runtime_reconcile_total{controller=\"podprobe\",result=\"success\"} 1")))]
    #[case("/readyz", None)]
    fn answers(#[case] path: &str, #[case] expect: Option<(u16, &str)>) {
        let metrics = Arc::new(Metrics::default());
        metrics.reconciled("podprobe", "success", std::time::Duration::ZERO);
        let answer = answer(path, &Health::default(), &metrics);
        assert_eq!(
            answer.as_ref().map(|answer| answer.status.as_u16()),
            expect.map(|(status, _)| status)
        );
        let text = answer.map(|answer| answer.text).unwrap_or_default();
        let expect = expect.map(|(_, text)| text).unwrap_or_default();
        assert!(
            text.lines().any(|line| line == expect) || expect.is_empty(),
            "{text}"
        );
    }
}
