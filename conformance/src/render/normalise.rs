//! What cannot be equal between two runs, made equal: the one place for it.
//!
//! * Node names: which node a pod goes to depends on how many there are. They become `<node>`.
//! * How long an image took to pull, and its size.
//! * The count of `ScaleUpLimited`: it says how often the controller happened to look (5 in the tutorial, 11 and 9 in
//!   the recordings). That of `FailedScheduling`, likewise, says how often the scheduler tried (1 to 3 for pods of one set).
//! * The order of pods that are created in one burst: OpenKruise creates them in parallel.
//! * Container ids, addresses, uids and times are not rendered at all.

use std::borrow::Cow;

/// Events whose count depends on how often the controller, or the scheduler, looked.
const COUNT_VARIES: [&str; 2] = ["ScaleUpLimited", "FailedScheduling"];

/// Events that come in any order when several come at once.
const ORDER_VARIES: [&str; 1] = ["SuccessfulCreate"];

/// An event's message without what differs from run to run.
pub(super) fn message<'a>(reason: &str, message: &'a str) -> Cow<'a, str> {
    match reason {
        "Scheduled" => match message.rsplit_once(" to ") {
            Some((head, _)) => format!("{head} to <node>").into(),
            None => message.into(),
        },
        "Pulled" => match message.split_once(" in ") {
            Some((head, _)) if message.starts_with("Successfully pulled") => {
                format!("{head} in <time>").into()
            }
            _ => message.into(),
        },
        _ => message.into(),
    }
}

/// How often an event was seen, as far as that is the same in every run.
pub(super) fn count(reason: &str, count: i64) -> String {
    match (count, COUNT_VARIES.contains(&reason)) {
        (_, true) => " (xN)".to_owned(),
        (0 | 1, false) => String::new(),
        (count, false) => format!(" (x{count})"),
    }
}

/// Whether neighbouring events of this reason have no order.
pub(super) fn is_unordered(reason: &str) -> bool {
    ORDER_VARIES.contains(&reason)
}
