//! The mailbox from a node to the worker of a pod.
//!
//! (tokio's `watch` would do, and takes a third of a kibibyte for many receivers at once.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared_json::{Text, Value};
use tokio::sync::Notify;

use super::pressure::Eviction;

/// The mailboxes of a node, by the pod's uid.
pub(super) type Mailboxes = Arc<Mutex<BTreeMap<Text, Mailbox>>>;

/// The contents of a pod worker's mailbox.
#[derive(Clone)]
pub(super) struct Mail {
    /// The newest pod.
    pub pod: Arc<Value>,
    /// The pod has to go, for this reason.
    pub eviction: Option<Arc<Eviction>>,
    /// How often the node has asked to look at a resize again.
    pub resize_asked: u32,
    /// How many pods came to the node before.
    pub arrival: u64,
}

/// The node's side. When it is dropped the worker has nothing more to do.
pub(super) struct Mailbox(Arc<Shared>);

/// The reader's side.
pub(super) struct Inbox {
    shared: Arc<Shared>,
    /// The newest version that was read.
    seen: u64,
}

/// The node has no such pod any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed;

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    mail: Mail,
    version: u64,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mailbox {
    /// A mailbox with a pod in it, and its reader.
    pub(super) fn new(pod: Arc<Value>, arrival: u64) -> (Self, Inbox) {
        let state = State {
            mail: Mail {
                pod,
                eviction: None,
                resize_asked: 0,
                arrival,
            },
            version: 0,
            is_closed: false,
        };
        let mailbox = Self(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
        }));
        let inbox = mailbox.subscribe();
        (mailbox, inbox)
    }

    /// Another reader, which has read the present contents.
    pub(super) fn subscribe(&self) -> Inbox {
        Inbox {
            shared: Arc::clone(&self.0),
            seen: self.0.lock().version,
        }
    }

    /// Gives the contents to `look`.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Mail) -> T) -> T {
        look(&self.0.lock().mail)
    }

    pub(super) fn send_modify(&self, change: impl FnOnce(&mut Mail)) {
        let mut state = self.0.lock();
        change(&mut state.mail);
        state.version += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_waiters();
    }
}

impl Inbox {
    /// The newest mail, which counts as read.
    pub(super) fn read(&mut self) -> Mail {
        let state = self.shared.lock();
        self.seen = state.version;
        state.mail.clone()
    }

    /// The newest pod. It does not count as read.
    pub(super) fn pod(&self) -> Arc<Value> {
        Arc::clone(&self.shared.lock().mail.pod)
    }

    /// Whether there is something to read.
    pub(super) fn has_changed(&self) -> Result<bool, Closed> {
        let state = self.shared.lock();
        match state.is_closed {
            true => Err(Closed),
            false => Ok(state.version != self.seen),
        }
    }

    /// Waits until there is something to read, which then counts as read. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            {
                let state = self.shared.lock();
                if std::mem::replace(&mut self.seen, state.version) != state.version {
                    return Ok(());
                }
                if state.is_closed {
                    return Err(Closed);
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use shared_json::json;

    use super::*;

    #[test]
    fn what_is_sent_is_read_once_and_the_end_is_seen() {
        let (mailbox, mut inbox) = Mailbox::new(Arc::new(json!(1)), 0);
        assert_eq!(
            (inbox.has_changed(), inbox.changed().now_or_never()),
            (Ok(false), None)
        );
        mailbox.send_modify(|mail| mail.pod = Arc::new(json!(2)));
        mailbox.send_modify(|mail| mail.resize_asked += 1);
        assert_eq!(inbox.has_changed(), Ok(true));
        assert_eq!(inbox.changed().now_or_never(), Some(Ok(())));
        assert_eq!(inbox.changed().now_or_never(), None);
        let mail = inbox.read();
        assert_eq!((&*mail.pod, mail.resize_asked), (&json!(2), 1));
        mailbox.send_modify(|mail| mail.resize_asked += 1);
        drop(mailbox);
        assert_eq!(inbox.has_changed(), Err(Closed));
        assert_eq!(
            inbox.changed().now_or_never(),
            Some(Ok(())),
            "what was sent is read first"
        );
        assert_eq!(inbox.changed().now_or_never(), Some(Err(Closed)));
    }

    #[tokio::test]
    async fn all_who_wait_are_woken() {
        let (mailbox, mut inbox) = Mailbox::new(Arc::new(json!(1)), 0);
        let mut other = mailbox.subscribe();
        let waiting = tokio::spawn(async move {
            inbox.changed().await.expect("not closed");
            other.changed().await.expect("not closed");
            other.changed().await
        });
        tokio::task::yield_now().await;
        mailbox.send_modify(|mail| mail.resize_asked += 1);
        tokio::task::yield_now().await;
        drop(mailbox);
        assert_eq!(waiting.await.expect("no panic"), Err(Closed));
    }
}
