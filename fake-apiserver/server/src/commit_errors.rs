//! The refusals of writes that the store does not take.

use machinery::status::ApiError;
use store::CommitError;

/// The refusal of a commit; none if the commit is based on another version than the newest.
pub(crate) fn refusal(error: CommitError) -> Option<ApiError> {
    match error {
        CommitError::Stale => None,
        CommitError::TooLarge => Some(ApiError::too_large_to_store()),
        CommitError::NoSpace => Some(ApiError::no_space()),
        CommitError::Unwritten => Some(ApiError::internal("the data directory cannot be written")),
    }
}
