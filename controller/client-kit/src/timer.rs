//! Waiting until a time that may never come.

use tokio::time::Instant;

/// Waits until `due`; for ever if nothing is.
pub async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
