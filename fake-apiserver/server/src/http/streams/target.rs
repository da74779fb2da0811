//! The target of such a request: the pod's container, its node, and the options of the query.

use std::sync::Arc;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use machinery::meta::{ObjectMeta as _, at};
use machinery::status::ApiError;
use node_access::{LogQuery, NodeAccess};
use pod_rules::field_error::FieldError;
use shared_json::{Value, json};
use store::{GroupResource, ObjectKey};

use crate::admission;
use crate::context::Context;
use crate::message::params::unescape;

/// A pod's node.
pub(super) struct Node {
    access: Option<Arc<dyn NodeAccess>>,
    address: Option<String>,
}

impl Node {
    /// The way to the node.
    ///
    /// # Errors
    /// 500 if nothing answers at its address, as from the real server.
    pub(super) fn access(self) -> Result<Arc<dyn NodeAccess>, ApiError> {
        self.access.ok_or_else(|| {
            let message = match self.address {
                Some(address) => {
                    format!("error dialing backend: dial tcp {address}:10250: connect: connection refused")
                }
                None => "no preferred addresses found; known addresses: []".to_owned(),
            };
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
        })
    }
}

/// The node of a pod; none if it has none yet.
///
/// # Errors
/// 404 if there is no such node.
pub(super) fn node(context: &Context, pod: &Value) -> Result<Option<Node>, ApiError> {
    let name = at(pod, "spec.nodeName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() {
        return Ok(None);
    }
    let nodes = GroupResource::new("", "nodes");
    let object = context
        .state()
        .store
        .get(&nodes, &ObjectKey::new("", name))
        .ok_or_else(|| ApiError::not_found(&nodes, name))?;
    let addresses = at(&object.value, "status.addresses").and_then(Value::as_array);
    let address = addresses
        .into_iter()
        .flatten()
        .find(|address| address.get("type").and_then(Value::as_str) == Some("InternalIP"))
        .and_then(|address| address.get("address")?.as_str())
        .map(str::to_owned);
    Ok(Some(Node {
        access: context.state().node_access(name),
        address,
    }))
}

pub(super) fn no_host(pod: &Value) -> ApiError {
    ApiError::bad_request(format!("pod {} does not have a host assigned", pod.name()))
}

/// The container that is meant: the one named, or the only one.
///
/// # Errors
/// 400 if there is none of that name, or several and none is named.
pub(super) fn container(pod: &Value, asked: &str) -> Result<String, ApiError> {
    let names = |field: &str| -> Vec<&str> {
        let list = at(pod, field).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|container| container.get("name")?.as_str())
            .collect()
    };
    let (regular, init, ephemeral) = (
        names("spec.containers"),
        names("spec.initContainers"),
        names("spec.ephemeralContainers"),
    );
    let name = pod.name();
    if !asked.is_empty() {
        let known = [&regular, &init, &ephemeral]
            .into_iter()
            .any(|list| list.contains(&asked));
        return if known {
            Ok(asked.to_owned())
        } else {
            Err(ApiError::bad_request(format!(
                "container {asked} is not valid for pod {name}"
            )))
        };
    }
    if let [only] = regular.as_slice() {
        return Ok((*only).to_owned());
    }
    let mut message = format!("a container name must be specified for pod {name}");
    if !regular.is_empty() {
        message.push_str(&format!(", choose one of: [{}]", regular.join(" ")));
        for (which, list) in [("init", &init), ("ephemeral", &ephemeral)] {
            if !list.is_empty() {
                message.push_str(&format!(
                    " or one of the {which} containers: [{}]",
                    list.join(" ")
                ));
            }
        }
    }
    Err(ApiError::bad_request(message))
}

/// The options of a query, in order.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescape(key), unescape(value))
        });
        Self(pairs.collect())
    }

    /// The first value of an option; empty without it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    pub(super) fn all(&self, name: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// As Go reads flags of a query: whatever does not say no is a yes.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// The options of a stream, as the object that admission judges; `None` where it judges none.
    pub(super) fn options(&self, resource: &str, subresource: &str) -> Option<Value> {
        let (part, path) = subresource.split_once('/').unwrap_or((subresource, ""));
        let (_, version, kind) = admission::own_kind(resource, part)?;
        let mut options = json!({"apiVersion": version, "kind": kind});
        if part == "proxy" && !path.is_empty() {
            options["path"] = Value::from(path);
        }
        if part == "portforward" {
            let ports = self.ports().unwrap_or_default();
            if !ports.is_empty() {
                options["ports"] = json!(ports);
            }
        }
        if matches!(part, "exec" | "attach") {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                if self.flag(name) {
                    options[name] = Value::Bool(true);
                }
            }
            if !self.text("container").is_empty() {
                options["container"] = Value::from(self.text("container"));
            }
            let command = self.all("command");
            if !command.is_empty() {
                options["command"] = json!(command);
            }
        }
        Some(options)
    }

    /// The ports of a WebSocket that forwards them: each value may be a list.
    ///
    /// # Errors
    /// 400 for an invalid port.
    pub(super) fn ports(&self) -> Result<Vec<u16>, ApiError> {
        let values = self.all("ports");
        let texts = values.iter().flat_map(|value| value.split(','));
        texts
            .map(|text| match text.parse() {
                Ok(port) if port != 0 => Ok(port),
                _ => Err(ApiError::bad_request(format!(
                    "unable to parse \"{text}\" as a port"
                ))),
            })
            .collect()
    }

    /// The options of a log.
    ///
    /// # Errors
    /// 400 for an invalid number, 422 for one out of range.
    pub(super) fn log(&self, pod: &str, now: Timestamp) -> Result<LogQuery, ApiError> {
        let number = |name: &str| match self.text(name) {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
            }),
        };
        let (tail, since_seconds, limit) = (
            number("tailLines")?,
            number("sinceSeconds")?,
            number("limitBytes")?,
        );
        let since_time = match self.text("sinceTime") {
            "" => None,
            text => Some(text.parse::<Timestamp>().map_err(|_| {
                ApiError::bad_request(format!(
                    "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
                ))
            })?),
        };
        let mut errors = Vec::new();
        if tail.is_some_and(|tail| tail < 0) {
            let value = tail.unwrap_or_default();
            errors.push(FieldError::invalid(
                "tailLines",
                value,
                "must be greater than or equal to 0",
            ));
        }
        if limit.is_some_and(|limit| limit < 1) {
            let value = limit.unwrap_or_default();
            errors.push(FieldError::invalid("limitBytes", value, "must be greater than 0"));
        }
        match (since_seconds, since_time) {
            (Some(_), Some(_)) => errors.push(FieldError::forbidden(
                "[]",
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            )),
            (Some(seconds), None) if seconds < 1 => {
                errors.push(FieldError::invalid(
                    "sinceSeconds",
                    seconds,
                    "must be greater than 0",
                ));
            }
            _ => {}
        }
        if !self.text("stream").is_empty() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "PodLogOptions", pod, &errors));
        }
        let count = |number: Option<i64>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let ago = since_seconds.map(|seconds| {
            now.saturating_sub(SignedDuration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        });
        Ok(LogQuery {
            follow: self.flag("follow"),
            previous: self.flag("previous"),
            timestamps: self.flag("timestamps"),
            since: since_time.or(ago),
            tail: count(tail),
            limit_bytes: count(limit),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"containers": [{"name": "a"}]}), "", Ok("a"))]
    #[case(json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}), "i", Ok("i"))]
    #[case(json!({"containers": [{"name": "a"}]}), "z", Err("container z is not valid for pod p"))]
    #[case(json!({"containers": [{"name": "a"}, {"name": "b"}]}), "", Err("a container name must be specified for pod p, choose one of: [a b]"))]
    #[case(
        json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "ephemeralContainers": [{"name": "e"}]}),
        "",
        Err("a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i] or one of the \
             ephemeral containers: [e]")
    )]
    fn which_container(#[case] spec: Value, #[case] asked: &str, #[case] expected: Result<&str, &str>) {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let found = container(&pod, asked).map_err(|error| error.message);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[rstest]
    #[case("tailLines=5&follow=true&timestamps=1", "")]
    #[case(
        "tailLines=-5",
        "tailLines: Invalid value: -5: must be greater than or equal to 0"
    )]
    #[case("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0")]
    #[case("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0")]
    #[case(
        "sinceSeconds=3&sinceTime=2020-01-01T00:00:00Z",
        "at most one of `sinceTime` or `sinceSeconds` may be specified"
    )]
    #[case("stream=Stdout", "stream: Forbidden: may not be specified")]
    #[case("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax")]
    fn log_options(#[case] query: &str, #[case] problem: &str) {
        match Query::parse(query).log("p", Timestamp::UNIX_EPOCH) {
            Ok(asked) => assert_eq!((asked.tail, asked.follow, problem), (Some(5), true, "")),
            Err(error) => assert!(error.message.contains(problem) && !problem.is_empty(), "{error}"),
        }
    }
}
