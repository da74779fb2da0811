//! The end of history. Every five minutes the real server has etcd forget the revisions older than the newest one at the look before:
//! an object can be read at its revision for five to ten minutes.

use std::sync::Arc;
use std::time::Duration;

use store::Store;

/// The time between two looks (the real server's `--etcd-compaction-interval`).
const PERIOD: Duration = Duration::from_secs(300);

/// Retires old revisions, until dropped.
pub(crate) async fn retire_history(store: Arc<Store>) {
    let mut before = store.revision();
    loop {
        tokio::time::sleep(PERIOD).await;
        store.retire(before);
        before = store.revision();
    }
}
