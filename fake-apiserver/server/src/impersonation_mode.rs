//! The modes of impersonation, and the mode that worked last for each user: the server's state has it, `authz` uses it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use machinery::user::User;

/// How many users' modes are remembered, as many as in the real server.
const REMEMBERED_MAX: usize = 10_000;

/// A way in which a user may act as another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// All modes, in the order in which they are tried.
pub(crate) const MODES: [Mode; 4] = [
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

/// The mode that worked last, by the name of the requesting user.
#[derive(Debug, Default)]
pub(crate) struct LastModes(Mutex<BTreeMap<String, Mode>>);

impl LastModes {
    /// The mode that worked last for this user.
    pub(crate) fn last(&self, user: &User) -> Option<Mode> {
        let modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        modes.get(&user.name).copied()
    }

    /// Keeps the mode that has worked for this user.
    pub(crate) fn remember(&self, user: &User, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.len() >= REMEMBERED_MAX {
            modes.clear();
        }
        modes.insert(user.name.clone(), mode);
    }
}
