//! The result of a call that failed.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};
use thiserror::Error;

/// The trailer with the code.
const STATUS: &str = "grpc-status";
/// The trailer with the message, percent-encoded.
const MESSAGE: &str = "grpc-message";
/// The characters that are encoded in a message: everything but printable ASCII, and `%`.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// A status code of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u32);

impl Code {
    /// The call succeeded.
    pub const OK: Self = Self(0);
    /// A failure without a code of its own.
    pub const UNKNOWN: Self = Self(2);
    /// The time of the call is over.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// The object of the call does not exist.
    pub const NOT_FOUND: Self = Self(5);
    /// A limit is exceeded.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The server does not have the method.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// One side broke the protocol.
    pub const INTERNAL: Self = Self(13);
    /// The server cannot be reached.
    pub const UNAVAILABLE: Self = Self(14);

    /// The names of codes in Go's errors, by number.
    const NAMES: [&'static str; 17] = [
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = usize::try_from(self.0).unwrap_or(usize::MAX);
        match Self::NAMES.get(index) {
            Some(name) => f.write_str(name),
            None => write!(f, "Code({})", self.0),
        }
    }
}

/// Why a call failed. Its text is that of Go's gRPC library, which events and statuses of Kubernetes carry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("rpc error: code = {code} desc = {message}")]
pub struct Status {
    /// The code.
    pub code: Code,
    /// The message of the runtime.
    pub message: String,
}

impl Status {
    /// A failure.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The result of a call by its trailers. None if they have no status.
    pub(crate) fn read(trailers: &HeaderMap) -> Option<Result<(), Self>> {
        let code = trailers.get(STATUS)?.to_str().ok();
        let code = code
            .and_then(|code| code.parse().ok())
            .map_or(Code::UNKNOWN, Code);
        if code == Code::OK {
            return Some(Ok(()));
        }
        let message = trailers
            .get(MESSAGE)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        let message = percent_decode(message).decode_utf8_lossy().into_owned();
        Some(Err(Self { code, message }))
    }

    /// The trailers of a call.
    pub(crate) fn write(result: Result<(), &Self>) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        let code = result.map_or_else(|status| status.code, |()| Code::OK);
        trailers.insert(STATUS, HeaderValue::from(code.0));
        if let Err(status) = result {
            let message = utf8_percent_encode(&status.message, ENCODED).to_string();
            // Encoded text has printable ASCII alone, which every header may have.
            if let Ok(message) = HeaderValue::from_str(&message) {
                trailers.insert(MESSAGE, message);
            }
        }
        trailers
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(5, "\"a\": not found", "rpc error: code = NotFound desc = \"a\": not found")]
    #[case(2, "100 %\nän", "rpc error: code = Unknown desc = 100 %\nän")]
    #[case(99, "", "rpc error: code = Code(99) desc = ")]
    fn failures_survive_the_way(#[case] code: u32, #[case] message: &str, #[case] text: &str) {
        let status = Status::new(Code(code), message);
        assert_eq!(
            Status::read(&Status::write(Err(&status))),
            Some(Err(status.clone()))
        );
        assert_eq!(status.to_string(), text);
    }

    #[rstest]
    #[case(&[], None)]
    #[case(&[("grpc-status", "0")], Some(None))]
    #[case(&[("grpc-status", "5"), ("grpc-message", "no%20%zz")], Some(Some((5, "no %zz"))))]
    #[case(&[("grpc-status", "-1")], Some(Some((2, ""))))]
    fn reads_trailers(
        #[case] trailers: &[(&'static str, &'static str)],
        #[case] expect: Option<Option<(u32, &str)>>,
    ) {
        let pairs = trailers.iter().map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let read = Status::read(&pairs.collect());
        let shown = read.as_ref().map(|result| {
            let status = result.as_ref().err();
            status.map(|status| (status.code.0, &*status.message))
        });
        assert_eq!(shown, expect);
    }
}
