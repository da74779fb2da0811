//! Pods that wait for a node, and the order in which they are tried: pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared_json::Value;

use super::cluster::PodInfo;
use crate::meta::ObjectMeta as _;

/// How long a pod rests after its first try in vain, and at most (the real ones).
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(10);

/// Those that need no rest come first, of the others those whose rest is over first; then the more important, then those that came
/// first. And the pod's uid.
type Turn = (Option<i64>, Reverse<i64>, u64, String);

struct Waiting {
    pod: Arc<PodInfo>,
    /// How many came before it.
    came: u64,
    /// How often it was tried in vain, and when it was tried last.
    tries: u32,
    tried: Timestamp,
    /// Its turn, if it has one.
    turn: Option<Turn>,
}

/// The second in which a pod has rested enough that was tried so often, the last time then.
fn rested(tries: u32, tried: Timestamp) -> Option<i64> {
    let doubled = 2_u32.saturating_pow(tries.checked_sub(1)?);
    let rest = REST_MIN.saturating_mul(doubled).min(REST_MAX);
    tried.saturating_add(rest).ok().map(Timestamp::as_second)
}

/// The pods that have no node.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<String, Waiting>,
    turns: BTreeSet<Turn>,
    came: u64,
}

impl Queue {
    /// A pod waits, or has changed while it does. It is tried if it is new, or `may_help` of what it was and is says so.
    pub(super) fn put(&mut self, pod: Arc<Value>, now: Timestamp, may_help: impl Fn(&Value, &Value) -> bool) {
        let uid = pod.uid().to_owned();
        let info = Arc::new(PodInfo::new(Arc::clone(&pod)));
        if let Some(known) = self.waiting.get_mut(&uid) {
            let old = std::mem::replace(&mut known.pod, info);
            if may_help(&old.object, &pod) {
                Self::give_turn(&mut self.turns, known, now);
            }
            return;
        }
        self.came += 1;
        let mut waiting = Waiting {
            pod: info,
            came: self.came,
            tries: 0,
            tried: now,
            turn: None,
        };
        Self::give_turn(&mut self.turns, &mut waiting, now);
        self.waiting.insert(uid, waiting);
    }

    fn give_turn(turns: &mut BTreeSet<Turn>, waiting: &mut Waiting, now: Timestamp) {
        if waiting.turn.is_some() {
            return;
        }
        let rests = rested(waiting.tries, waiting.tried).filter(|until| *until >= now.as_second());
        let uid = waiting.pod.object.uid().to_owned();
        let turn = (rests, Reverse(waiting.pod.priority), waiting.came, uid);
        turns.insert(turn.clone());
        waiting.turn = Some(turn);
    }

    /// Whom a change may help is tried again.
    pub(super) fn retry(&mut self, now: Timestamp, may_help: impl Fn(&Value) -> bool) {
        for waiting in self.waiting.values_mut() {
            if may_help(&waiting.pod.object) {
                Self::give_turn(&mut self.turns, waiting, now);
            }
        }
    }

    /// A pod waits no longer.
    pub(super) fn leave(&mut self, uid: &str) {
        if let Some(turn) = self.waiting.remove(uid).and_then(|waiting| waiting.turn) {
            self.turns.remove(&turn);
        }
    }

    /// Those whose turn it is, in order; they have none any more.
    pub(super) fn take(&mut self) -> Vec<Arc<PodInfo>> {
        let turns = std::mem::take(&mut self.turns);
        let mut pods = Vec::with_capacity(turns.len());
        for (_, _, _, uid) in turns {
            if let Some(waiting) = self.waiting.get_mut(&uid) {
                waiting.turn = None;
                pods.push(Arc::clone(&waiting.pod));
            }
        }
        pods
    }

    /// A pod was not tried, and keeps its turn.
    pub(super) fn keep(&mut self, uid: &str, now: Timestamp) {
        if let Some(waiting) = self.waiting.get_mut(uid) {
            Self::give_turn(&mut self.turns, waiting, now);
        }
    }

    /// A pod was tried in vain.
    pub(super) fn failed(&mut self, uid: &str, now: Timestamp) {
        if let Some(waiting) = self.waiting.get_mut(uid) {
            waiting.tries += 1;
            waiting.tried = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(0, None)]
    #[case(1, Some(101))]
    #[case(2, Some(102))]
    #[case(3, Some(104))]
    #[case(4, Some(108))]
    #[case(5, Some(110))]
    #[case(6, Some(110))]
    #[case(99, Some(110))]
    fn rests(#[case] tries: u32, #[case] expected: Option<i64>) {
        assert_eq!(rested(tries, Timestamp::from_second(100).unwrap()), expected);
    }

    /// Steps, each with the second in which it happens: `+a` comes (`+a!5`: with that priority), `-a` goes, `*` all are tried again, and
    /// with `?` those whose turn it is are tried, in vain.
    #[rstest]
    #[case::as_they_came(&["0 +b", "0 +a", "0 ?"], &["b a"])]
    #[case::the_more_important_first(&["0 +a", "0 +b!5", "0 +c!9", "0 ?"], &["c b a"])]
    #[case::once(&["0 +a", "0 ?", "0 ?"], &["a", ""])]
    #[case::again(&["0 +a", "0 ?", "5 *", "5 ?"], &["a", "a"])]
    #[case::gone(&["0 +a", "0 +b", "0 -a", "0 ?"], &["b"])]
    #[case::gone_for_good(&["0 +a", "0 ?", "0 -a", "0 *", "0 ?"], &["a", ""])]
    #[case::back_again(&["0 +a", "0 +b", "0 -a", "0 +a", "0 ?"], &["b a"])]
    #[case::the_tired_let_others_pass(&["0 +a", "0 ?", "0 *", "0 +b", "0 ?"], &["a", "b a"])]
    #[case::however_important(&["0 +a!9", "0 ?", "0 *", "0 +b", "0 ?"], &["a", "b a"])]
    #[case::until_they_have_rested(&["0 +a", "0 ?", "1 *", "1 +b", "1 ?"], &["a", "b a"])]
    #[case::rested(&["0 +a", "0 ?", "2 *", "2 +b", "2 ?"], &["a", "a b"])]
    #[case::less_tired_first(&["0 +a", "0 ?", "2 *", "2 ?", "3 +b", "3 ?", "4 *", "4 ?"], &["a", "a", "b", "a b"])]
    #[case::more_tired_last(&["0 +a", "0 ?", "2 *", "2 ?", "2 +b", "2 ?", "2 *", "2 ?"], &["a", "a", "b", "b a"])]
    #[case::equally_tired(&["0 +a", "0 +b!5", "0 ?", "0 *", "0 ?"], &["b a", "b a"])]
    #[case::twice_is_once(&["0 +a", "0 ?", "0 *", "0 *", "0 ?"], &["a", "a"])]
    fn turns(#[case] steps: &[&str], #[case] expected: &[&str]) {
        let mut queue = Queue::default();
        let mut tried = Vec::new();
        for step in steps {
            let (second, what) = step.split_once(' ').unwrap();
            let now = Timestamp::from_second(second.parse().unwrap()).unwrap();
            if let Some(name) = what.strip_prefix('+') {
                let (name, priority) = name.split_once('!').unwrap_or((name, "0"));
                let priority: i64 = priority.parse().unwrap();
                let pod = json!({"metadata": {"name": name, "uid": name}, "spec": {"priority": priority}});
                queue.put(Arc::new(pod), now, |_, _| false);
            } else if let Some(name) = what.strip_prefix('-') {
                queue.leave(name);
            } else if what == "*" {
                queue.retry(now, |_| true);
            } else {
                let pods = queue.take();
                let names: Vec<&str> = pods.iter().map(|pod| pod.object.uid()).collect();
                tried.push(names.join(" "));
                for name in names {
                    queue.failed(name, now);
                }
            }
        }
        assert_eq!(tried, expected);
    }
}
