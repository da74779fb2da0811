//! A probe in the order in which Go writes its fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A probe.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GoProbe {
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_get: Option<HttpGet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_socket: Option<TcpSocket>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success_threshold: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_threshold: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HttpGet {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    port: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_headers: Option<Value>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct TcpSocket {
    port: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

impl GoProbe {
    /// The probe of a JSON object; an empty one of anything else.
    pub(super) fn of(probe: &Value) -> Self {
        Self::deserialize(probe).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_in_the_order_of_go() {
        let probe = json!({ "failureThreshold": 3, "periodSeconds": 2, "httpGet": { "scheme": "HTTP", "port": 80, "path": "/" },
            "tcpSocket": { "host": "h", "port": "http" } });
        let text = serde_json::to_string(&GoProbe::of(&probe)).unwrap();
        assert_eq!(
            text,
            r#"{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"tcpSocket":{"port":"http","host":"h"},"periodSeconds":2,"failureThreshold":3}"#
        );
    }
}
