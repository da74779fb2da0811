//! Why something could not be done.

use thiserror::Error;

/// A failure, with the text that events and conditions carry.
#[derive(Debug, Clone, Error)]
#[error("{message}")]
pub struct ActError {
    /// The server's words, or the transport's.
    pub message: String,
    /// The kind of failure.
    pub kind: Kind,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There is no such object.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// Somebody else wrote it meanwhile, or it is another object by now.
    Conflict,
    /// The namespace is being deleted: nothing can be made in it.
    NamespaceEnds,
    /// The server answered something else.
    Refused,
    /// There was no answer, or one that leaves it open: it may have been done or not.
    Unknown,
    /// It was not tried.
    Planned,
    /// It was not tried, because a pod must stay in service for now.
    Withheld,
}

impl ActError {
    /// A failure that the plan foresaw.
    pub fn planned(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            kind: Kind::Planned,
        }
    }

    /// A pod must stay in service for now.
    pub fn withheld(pod: &str) -> Self {
        Self {
            message: format!("pod {pod} stays in service for now"),
            kind: Kind::Withheld,
        }
    }

    /// The failures as one, with the text that Go gives several: `[a, b]`.
    pub fn joined(errors: Vec<Self>) -> Result<(), Self> {
        let Some(first) = errors.first() else {
            return Ok(());
        };
        let kind = first.kind;
        let mut messages: Vec<&str> = Vec::with_capacity(errors.len());
        for error in &errors {
            if !messages.contains(&&*error.message) {
                messages.push(&error.message);
            }
        }
        let message = match messages[..] {
            [one] => one.to_owned(),
            _ => format!("[{}]", messages.join(", ")),
        };
        Err(Self { message, kind })
    }

    /// Whether the object has gone, or another has its name: the writer has nothing more to do. A conflict does not say that: the write
    /// is tried again, with the object that the cache has by then.
    pub fn is_about_another(&self) -> bool {
        matches!(self.kind, Kind::NotFound | Kind::AlreadyExists)
    }
}

/// The result of a write whose object may be gone, or another one, by now: then there is nothing more to do.
///
/// # Errors
/// Any other failure, a conflict included: nothing else would bring the next pass.
pub fn settled<T>(written: Result<T, kube::Error>) -> Result<(), ActError> {
    match written.map_err(ActError::from) {
        Err(error) if !error.is_about_another() => Err(error),
        _ => Ok(()),
    }
}

fn has_cause(status: &kube::core::Status, reason: &str) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == reason)
}

impl From<kube::Error> for ActError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) => {
                let kind = match (status.code, status.reason.as_str()) {
                    (404, _) => Kind::NotFound,
                    (409, "AlreadyExists") => Kind::AlreadyExists,
                    (409, _) => Kind::Conflict,
                    (403, _) if has_cause(status, "NamespaceTerminating") => Kind::NamespaceEnds,
                    // A gateway that waited too long, or a server whose storage did: neither knows.
                    (500 | 502 | 504, _) => Kind::Unknown,
                    _ => Kind::Refused,
                };
                Self {
                    message: status.message.clone(),
                    kind,
                }
            }
            kube::Error::BuildRequest(_) => Self {
                message: error.to_string(),
                kind: Kind::Refused,
            },
            _ => Self {
                message: error.to_string(),
                kind: Kind::Unknown,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::gone(404, "NotFound", true)]
    #[case::another(409, "AlreadyExists", true)]
    #[case::conflict(409, "Conflict", false)]
    #[case::refused(500, "InternalError", false)]
    fn failed_writes(#[case] code: u16, #[case] reason: &str, #[case] done: bool) {
        let status = json!({ "status": "Failure", "message": "", "reason": reason, "code": code });
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let written: Result<(), _> = Err(kube::Error::Api(status.into()));
        assert_eq!(settled(written).is_ok(), done);
    }
}
