//! Errors as the API speaks of them: `metav1.Status`.

use http::StatusCode;
use pod_rules::field_error::{FieldError, go_quote};
use shared_json::{Map, Value, json};

use crate::keys::{Compacted, GroupResource};

/// A failed request. Its text, reason, code and details are those of a real API server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// Kind, name, group, uid and causes, where there are any.
    pub details: Option<Value>,
    /// The further fields of a webhook's refusal: `reason` and `metadata` in its own words.
    pub said: Option<Box<Map>>,
}

impl ApiError {
    /// An error without details.
    #[must_use]
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            said: None,
        }
    }

    fn of(
        code: StatusCode,
        reason: &'static str,
        resource: &GroupResource,
        name: &str,
        message: String,
    ) -> Self {
        Self {
            details: Some(details(&resource.group, &resource.resource, name, &[])),
            ..Self::new(code, reason, message)
        }
    }

    /// `pods "x" not found`
    #[must_use]
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::of(
            StatusCode::NOT_FOUND,
            "NotFound",
            resource,
            name,
            format!("{resource} {} not found", go_quote(name)),
        )
    }

    /// The path names nothing that is served.
    #[must_use]
    pub fn no_such_resource() -> Self {
        let mut error = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// `pods "x" already exists`
    #[must_use]
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} \"{name}\" already exists");
        Self::of(StatusCode::CONFLICT, "AlreadyExists", resource, name, message)
    }

    /// The same error where the name may have been a generated one: another try may do better.
    #[must_use]
    pub fn could_not_generate(mut self) -> Self {
        self.message
            .push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut self.details {
            details["retryAfterSeconds"] = json!(1);
        }
        self
    }

    /// `Operation cannot be fulfilled on pods "x": …`
    #[must_use]
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::of(StatusCode::CONFLICT, "Conflict", resource, name, message)
    }

    /// The write was based on another version than the newest.
    #[must_use]
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// `pods "x" is forbidden: …`
    #[must_use]
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::of(StatusCode::FORBIDDEN, "Forbidden", resource, name, message)
    }

    /// 422: the object's fields are wrong. `group` and `kind` name its type.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut seen = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let text = match seen.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let causes: Vec<Value> = errors.iter().map(FieldError::to_cause).collect();
        Self {
            details: Some(details(group, kind, name, &causes)),
            ..Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                format!("{qualified} \"{name}\" is invalid: {text}"),
            )
        }
    }

    /// 400
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The object says that it is in another namespace than the one it is sent to.
    #[must_use]
    pub fn other_namespace() -> Self {
        Self::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )
    }

    /// 405
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// 405, in the words of the handler of custom resources.
    #[must_use]
    pub fn not_supported(verb: &str, resource: &GroupResource) -> Self {
        let mut error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            format!("{verb} is not supported on resources of kind \"{resource}\""),
        );
        error.details = Some(details(&resource.group, &resource.resource, "", &[]));
        error
    }

    /// 500: the object is larger than the real server's store takes.
    #[must_use]
    pub fn too_large_to_store() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "etcdserver: request is too large",
        )
    }

    /// 500: the disk below the store is full.
    #[must_use]
    pub fn no_space() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "etcdserver: mvcc: database space exceeded",
        )
    }

    /// 410: the revision of the watch or the list has been compacted.
    #[must_use]
    pub fn expired(compacted: Compacted) -> Self {
        let message = format!(
            "too old resource version: {} ({})",
            compacted.requested, compacted.compacted
        );
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 504: the request may have been carried out, or not.
    #[must_use]
    pub fn timed_out() -> Self {
        Self::timeout(
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        )
    }

    /// 504 for a request that was not read in time.
    #[must_use]
    pub fn unread_in_time() -> Self {
        Self::timeout("Timeout: request did not complete within the allotted timeout")
    }

    fn timeout(message: &str) -> Self {
        let mut error = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        error.details = Some(json!({}));
        error
    }

    /// 413
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 500
    #[must_use]
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut error = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        error.details = Some(json!({"causes": [{"message": message.to_string()}]}));
        error
    }

    /// The error as a `Status` object.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if self.reason.is_empty() {
            status.as_object_mut().map(|status| status.remove("reason"));
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        for (field, value) in self.said.iter().flat_map(|said| said.iter()) {
            status[field] = value.clone();
        }
        status
    }
}

/// `details` of a Status; empty parts are left out.
pub fn details(group: &str, kind: &str, name: &str, causes: &[Value]) -> Value {
    let mut out = Map::new();
    for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            out.insert(field.to_owned(), Value::from(value));
        }
    }
    if !causes.is_empty() {
        out.insert("causes".to_owned(), Value::from(causes.to_vec()));
    }
    Value::Object(out)
}
