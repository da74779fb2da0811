//! The end of history. Every five minutes the real server has etcd forget what was older at the look before: what is asked for
//! by its revision is there for five to ten minutes.

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
