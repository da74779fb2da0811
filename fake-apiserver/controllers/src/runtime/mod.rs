//! The runtime of the built-in controllers: one set of watches and one cache for all of them, and a queue.
//!
//! A [`Controller`] has its watched kinds, the keys that a change concerns, and a pass over one key. The
//! [`ControllerManager`] runs any set of them: each is switched off by leaving it out.
//!
//! **Invariant:** a controller's plan is a pure function of the cache and the time; only [`Cx`] writes. Every object that it
//! writes is in the cache at once, so that a pass never acts twice before the watch delivers the first write.

mod cache;
mod context;
mod manager;
mod pods;
mod queue;
mod resource;
mod tally;

pub(super) use cache::Cache;
pub(super) use context::{Cx, involved, is_not_found};
pub(super) use machinery::meta::{list, text};
pub use manager::{BuiltIn, ControllerManager};
pub(super) use manager::{Controller, Next};
pub(super) use pods::{claim_name, claim_object, is_active, is_over, is_ready};
pub(super) use queue::Queue;
pub(super) use resource::{Key, Res};
pub(super) use tally::{Alike, Numbers};

use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::at;
use shared_json::Value;

/// The reference to the object's controller, if it has one.
pub(super) fn controller_of(object: &Value) -> Option<&Value> {
    let owners = object.get("metadata")?.get("ownerReferences")?.as_array()?;
    owners
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

/// A number in an object.
pub(super) fn number(object: &Value, path: &str, default: i64) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(default)
}

/// A time in an object.
pub(super) fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// How long after `now` the time `at` is; none if it is not.
pub(super) fn until(at: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(at.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
}

/// The status of a condition, and the condition.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "status.conditions")
        .iter()
        .find(|condition| text(condition, "type") == kind)
}

/// Whether a condition is `True`.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "status") == "True")
}
