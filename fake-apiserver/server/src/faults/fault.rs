//! A fault, as a test writes it down.

use std::time::Duration;

use client_kit::{Frequency, Strikes};
use http::StatusCode;
use jiff::SignedDuration;
use machinery::status::ApiError;
use serde::Deserialize;
use shared_json::json;

use super::Requests;
use crate::message::request::ResourceRequest;

/// A fault: the requests that it concerns, how often, and its effect.
///
/// ```
/// use server::faults::{Effect, Fault, Requests};
///
/// // The first two status updates of the kubelets meet a conflict.
/// let fault = Fault::new(Effect::refuse(409, "Conflict"))
///     .on(Requests::all().verbs(["patch"]).resources(["pods/status"]).user_agents(["kubelet"]))
///     .times(2);
/// // The same from a file:
/// let read = Fault::from_yaml("
/// - on: {verbs: [patch], resources: [pods/status], userAgents: [kubelet]}
///   times: 2
///   do: {refuse: {code: 409, reason: Conflict}}
/// ")?;
/// assert_eq!(read, [fault]);
/// # Ok::<(), server::faults::FaultFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Fault {
    /// The fault's name in logs.
    pub name: String,
    /// The requests that it concerns.
    pub requests: Requests,
    frequency: Frequency,
    /// The effect.
    pub effect: Effect,
}

impl Strikes for Fault {
    fn frequency(&self) -> Frequency {
        self.frequency
    }
}

/// The effect on a request, or on an event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The request is refused, and nothing has happened.
    Refuse(Refusal),
    /// The request is carried out, and its client gets `504 Timeout`, as from a server that was too slow.
    LoseAnswer,
    /// The request waits so long before it is looked at.
    Delay(Duration),
    /// A watch never sends the event.
    DropEvents,
    /// A watch sends the event, and all after it, so much later: its client sees the past.
    DelayEvents(Duration),
    /// A watch ends before the event; its client may go on where it was.
    EndWatch,
    /// A watch ends with `410 Gone` before the event: its client has to list again.
    ExpireWatch,
}

/// An answer that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// After how many seconds the client may ask again.
    pub retry_after_seconds: Option<u32>,
}

/// The reasons that `metav1.Status` knows, with the code that goes with each.
const REASONS: [(&str, u16); 16] = [
    ("BadRequest", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("NotFound", 404),
    ("MethodNotAllowed", 405),
    ("NotAcceptable", 406),
    ("Conflict", 409),
    ("AlreadyExists", 409),
    ("Gone", 410),
    ("Expired", 410),
    ("RequestEntityTooLarge", 413),
    ("Invalid", 422),
    ("TooManyRequests", 429),
    ("InternalError", 500),
    ("ServiceUnavailable", 503),
    ("Timeout", 504),
];

/// The reason that goes with a code, if none is given.
fn reason_of(code: u16) -> &'static str {
    let known = REASONS.iter().find(|(_, of)| *of == code);
    known.map_or("Unknown", |(reason, _)| reason)
}

impl Refusal {
    fn new(code: u16, reason: &str) -> Result<Self, String> {
        let status = StatusCode::from_u16(code)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error())
            .ok_or_else(|| format!("do.refuse.code: {code} is no code of a refusal: 400 to 599"))?;
        let reason = match reason {
            "" => reason_of(code),
            given => REASONS
                .iter()
                .map(|(known, _)| *known)
                .find(|known| *known == given)
                .ok_or_else(|| {
                    let known: Vec<&str> = REASONS.iter().map(|(known, _)| *known).collect();
                    format!("do.refuse.reason: \"{given}\" is none of {}", known.join(", "))
                })?,
        };
        Ok(Self {
            code: status,
            reason,
            message: String::new(),
            retry_after_seconds: None,
        })
    }

    /// The answer to a request.
    pub(super) fn error(&self, request: &ResourceRequest) -> ApiError {
        let resource = if request.group.is_empty() {
            request.resource.clone()
        } else {
            format!("{}.{}", request.resource, request.group)
        };
        let message = match (self.message.as_str(), self.reason) {
            ("", "Conflict") => format!(
                "Operation cannot be fulfilled on {resource} \"{}\": the object has been modified; please apply your changes \
                 to the latest version and try again",
                request.name
            ),
            ("", _) => format!(
                "a fault of the test: {} {resource} {}",
                request.verb.as_str(),
                request.name
            )
            .trim_end()
            .to_owned(),
            (message, _) => message.to_owned(),
        };
        let mut error = ApiError::new(self.code, self.reason, message);
        let mut details = json!({"kind": request.resource});
        for (field, text) in [("name", &request.name), ("group", &request.group)] {
            if !text.is_empty() {
                details[field] = json!(text);
            }
        }
        if let Some(seconds) = self.retry_after_seconds {
            details["retryAfterSeconds"] = json!(seconds);
        }
        error.details = Some(details);
        error
    }
}

impl Effect {
    /// A refusal with this code (of 400 to 599; 500 for any other) and reason (such as `Conflict`; an unknown one, or none,
    /// is that of the code).
    #[must_use]
    pub fn refuse(code: u16, reason: &str) -> Self {
        let exact = Refusal::new(code, reason).or_else(|_| Refusal::new(code, ""));
        Self::Refuse(exact.unwrap_or_else(|_| Refusal {
            code: StatusCode::INTERNAL_SERVER_ERROR,
            reason: reason_of(500),
            message: String::new(),
            retry_after_seconds: None,
        }))
    }

    /// Whether it happens to events of watches, not to requests.
    pub(super) fn is_of_events(&self) -> bool {
        match self {
            Self::Refuse(_) | Self::LoseAnswer | Self::Delay(_) => false,
            Self::DropEvents | Self::DelayEvents(_) | Self::EndWatch | Self::ExpireWatch => true,
        }
    }
}

impl Fault {
    /// It strikes every request (or every event of every watch), until a method narrows it.
    #[must_use]
    pub fn new(effect: Effect) -> Self {
        Self {
            name: String::new(),
            requests: Requests::all(),
            frequency: Frequency::default(),
            effect,
        }
    }

    /// It concerns these only.
    #[must_use]
    pub fn on(mut self, requests: Requests) -> Self {
        self.requests = requests;
        self
    }

    /// Sets the fault's name in logs.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The first `count` that it concerns go well.
    #[must_use]
    pub fn after(mut self, count: u32) -> Self {
        self.frequency.skip = count;
        self
    }

    /// It strikes no more often than this.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.frequency.times = Some(count);
        self
    }

    /// It strikes with this chance, from 0 to 1, drawn from the server's seed.
    #[must_use]
    pub fn chance(mut self, chance: f64) -> Self {
        self.frequency.set_chance(chance);
        self
    }

    /// Reads a list of faults in YAML.
    ///
    /// # Errors
    /// If it is no such list, or a fault in it could never strike: the place and the problem.
    pub fn from_yaml(text: &str) -> Result<Vec<Self>, FaultFileError> {
        serde_saphyr::from_str(text).map_err(|error| FaultFileError(error.to_string()))
    }
}

/// An invalid list of faults: the place and the problem.
#[derive(Debug, thiserror::Error)]
#[error("read the faults: {0}")]
pub struct FaultFileError(pub(super) String);

/// A fault as files have it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    name: String,
    #[serde(default)]
    on: Requests,
    #[serde(default)]
    skip: u32,
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    chance: Option<f64>,
    #[serde(rename = "do")]
    effect: WrittenEffect,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WrittenEffect {
    Refuse(WrittenRefusal),
    LoseAnswer,
    Delay(SignedDuration),
    DropEvents,
    DelayEvents(SignedDuration),
    EndWatch,
    ExpireWatch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRefusal {
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retry_after_seconds: Option<u32>,
}

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if let Some(mistake) = written.on.mistake() {
            return Err(mistake);
        }
        let effect = written.effect.effect()?;
        if !effect.is_of_events() && !written.on.events.is_empty() {
            return Err("on.events: what happens to a request has no events".to_owned());
        }
        Ok(Self {
            name: written.name,
            requests: written.on,
            frequency: Frequency::written(written.skip, written.times, written.chance)?,
            effect,
        })
    }
}

impl WrittenEffect {
    fn effect(self) -> Result<Effect, String> {
        let long = |field: &str, duration: SignedDuration| {
            Duration::try_from(duration).map_err(|_| format!("do.{field}: must not be negative"))
        };
        Ok(match self {
            Self::Refuse(written) => {
                let mut refusal = Refusal::new(written.code, &written.reason)?;
                refusal.message = written.message;
                refusal.retry_after_seconds = written.retry_after_seconds;
                Effect::Refuse(refusal)
            }
            Self::LoseAnswer => Effect::LoseAnswer,
            Self::Delay(duration) => Effect::Delay(long("delay", duration)?),
            Self::DropEvents => Effect::DropEvents,
            Self::DelayEvents(duration) => Effect::DelayEvents(long("delayEvents", duration)?),
            Self::EndWatch => Effect::EndWatch,
            Self::ExpireWatch => Effect::ExpireWatch,
        })
    }
}
