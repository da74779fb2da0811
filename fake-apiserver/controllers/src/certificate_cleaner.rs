//! Removes requests for certificates that are over, or that were not answered in time.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use shared_json::Value;

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text, time, until};

/// How long requests stay that have been answered: signed, denied or failed.
const ANSWERED: Duration = Duration::from_secs(3600);
/// How long those stay that have not: pending, or approved and not signed.
const PENDING: Duration = Duration::from_secs(24 * 3600);

/// The controller.
pub(super) struct CertificateCleaner;

/// When a request goes; none if nothing is known of its time.
fn end(request: &Value) -> Option<Timestamp> {
    let conditions = list(request, "status.conditions");
    if conditions.is_empty() {
        let made = time(request, "metadata.creationTimestamp")?;
        return made.saturating_add(PENDING).ok();
    }
    let is_issued = !text(request, "status.certificate").is_empty();
    let ends = conditions.iter().filter_map(|condition| {
        let stay = match text(condition, "type") {
            "Denied" | "Failed" => ANSWERED,
            "Approved" if is_issued => ANSWERED,
            "Approved" => PENDING,
            _ => return None,
        };
        time(condition, "lastUpdateTime")?.saturating_add(stay).ok()
    });
    ends.min()
}

#[async_trait]
impl Controller for CertificateCleaner {
    fn name(&self) -> &'static str {
        "certificate-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::CertificateRequests]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(request) = cx.cache.get(Res::CertificateRequests, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let Some(end) = end(&request) else {
            return Ok(Next::Change);
        };
        if let Some(left) = until(end, cx.now()).filter(|left| !left.is_zero()) {
            return Ok(Next::After(left));
        }
        cx.delete(Res::CertificateRequests, &request, None).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    /// The conditions (`Type@second`, `Type` if it has no time), whether there is a certificate, and the second in which the
    /// request goes that was made in second 1000.
    #[track_caller]
    fn check(conditions: &[&str], is_issued: bool, expected: Option<i64>) {
        let stamp = |second: &str| {
            Timestamp::from_second(second.parse().unwrap())
                .unwrap()
                .to_string()
        };
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|short| match short.split_once('@') {
                Some((kind, second)) => json!({"type": kind, "lastUpdateTime": stamp(second)}),
                None => json!({"type": short}),
            })
            .collect();
        let mut request =
            json!({"metadata": {"creationTimestamp": stamp("1000")}, "status": {"conditions": conditions}});
        if is_issued {
            request["status"]["certificate"] = json!("eA==");
        }
        assert_eq!(end(&request).map(Timestamp::as_second), expected, "{request}");
    }

    #[test]
    fn how_long_requests_stay() {
        let day = 24 * 3600;
        check(&[], false, Some(1000 + day));
        check(&[], true, Some(1000 + day));
        check(&["Approved@2000"], false, Some(2000 + day));
        check(&["Approved@2000"], true, Some(5600));
        check(&["Approved@1000"], true, Some(4600));
        check(&["Denied@2000"], false, Some(5600));
        check(&["Denied@2000"], true, Some(5600));
        check(&["Failed@2000"], false, Some(5600));
        check(&["Failed@2000"], true, Some(5600));
        check(&["Approved@2000", "Failed@2001"], false, Some(5601));
        check(&["Approved@2000", "Failed@9001"], true, Some(5600));
        check(&["Approved@2000", "Failed@200000"], false, Some(2000 + day));
        check(&["Denied@3000", "Failed@2000"], false, Some(5600));
        // One that has been touched is no longer pending, whatever was said of it.
        check(&["Other@2000"], false, None);
        check(&["Other@2000"], true, None);
        check(&["Other@2000", "Denied@3000"], false, Some(6600));
        check(&["Other", "Approved@3000"], true, Some(6600));
        // Without a time nothing is due.
        check(&["Approved"], true, None);
        check(&["Denied"], false, None);
        check(&["Denied", "Failed@2000"], false, Some(5600));
        check(&["Approved", "Failed"], false, None);
    }
}
