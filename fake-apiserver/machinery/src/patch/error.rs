//! Why a patch did not work, with the answer the server gives.

/// Why a patch could not be applied.
///
/// `Display` is the `message` of the status, or for [`PatchError::Invalid`] the detail of its one cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself makes no sense: 400, reason `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object: 422, reason `Invalid`; the real server hides the text from clients and says
    /// [`PatchError::HIDDEN`] instead. Admission webhooks' patches show it.
    #[error("{0}")]
    DoesNotApply(String),
    /// The patched object cannot be decoded: 422, reason `Invalid`, with one cause at field `patch`, where `patch` is the
    /// value complained about.
    #[error("{detail}")]
    Invalid {
        /// The patch as Go prints it: `map[data:s]`.
        patch: String,
        /// The error: `cannot restore map from string`.
        detail: String,
    },
    /// Too many operations: 413, reason `RequestEntityTooLarge`.
    #[error("{0}")]
    TooLarge(String),
    /// A bad directive or a missing merge key, for which the real server answers 500 without a reason.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The client's message when a patch does not fit the object.
    pub const HIDDEN: &'static str = "the server rejected our request due to an error in our request";

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            PatchError::Malformed(_) => 400,
            PatchError::DoesNotApply(_) | PatchError::Invalid { .. } => 422,
            PatchError::TooLarge(_) => 413,
            PatchError::Internal(_) => 500,
        }
    }
}
