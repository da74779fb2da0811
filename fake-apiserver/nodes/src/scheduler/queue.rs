//! Pods that wait for a node, and the order in which they are tried: pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::ObjectMeta as _;
use shared_json::Value;

use super::cluster::PodInfo;
use super::filters::Filter;

/// How long a pod rests after its first try in vain, and at most (the real ones).
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(10);
/// A pod that has been refused is tried again after this time, whether anything has changed or not (the real one looks every
/// half minute).
const REFUSED_MAX: Duration = Duration::from_secs(5 * 60);

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
    /// The filters that refused it.
    refused_by: Vec<Filter>,
    /// When it is tried again by itself.
    due: Option<Timestamp>,
    /// Its turn, if it has one.
    turn: Option<Turn>,
}

/// When a pod has rested enough that was tried so often, the last time then.
fn rested(tries: u32, tried: Timestamp) -> Option<Timestamp> {
    let doubled = 2_u32.saturating_pow(tries.checked_sub(1)?);
    let rest = REST_MIN.saturating_mul(doubled).min(REST_MAX);
    tried.saturating_add(rest).ok()
}

/// The pods that have no node.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<String, Waiting>,
    turns: BTreeSet<Turn>,
    /// By filter, the pods that it has refused and that are not due.
    refused: BTreeMap<Filter, BTreeSet<String>>,
    /// When each of the pods that are not due is tried again by itself.
    due: BTreeSet<(Timestamp, String)>,
    came: u64,
}

impl Queue {
    /// A pod waits, or has changed while it does. It is tried if it is new, or `may_help`, asked for a filter that has refused
    /// the pod with its old and new version, says so.
    pub(super) fn put(
        &mut self,
        pod: Arc<Value>,
        now: Timestamp,
        may_help: impl Fn(Filter, &PodInfo, &PodInfo) -> bool,
    ) {
        let uid = pod.uid().to_owned();
        let info = Arc::new(PodInfo::new(pod));
        if let Some(known) = self.waiting.get_mut(&uid) {
            let old = std::mem::replace(&mut known.pod, Arc::clone(&info));
            let mut refused_by = known.refused_by.iter();
            if known.turn.is_none() && refused_by.any(|filter| may_help(*filter, &old, &info)) {
                self.give_turn(&uid, now);
            }
            return;
        }
        self.came += 1;
        let waiting = Waiting {
            pod: info,
            came: self.came,
            tries: 0,
            tried: now,
            refused_by: Vec::new(),
            due: None,
            turn: None,
        };
        self.waiting.insert(uid.clone(), waiting);
        self.give_turn(&uid, now);
    }

    fn give_turn(&mut self, uid: &str, now: Timestamp) {
        let Some(waiting) = self.waiting.get_mut(uid) else {
            return;
        };
        if waiting.turn.is_some() {
            return;
        }
        let rests = rested(waiting.tries, waiting.tried).map(Timestamp::as_second);
        let rests = rests.filter(|until| *until >= now.as_second());
        let turn = (rests, Reverse(waiting.pod.priority), waiting.came, uid.to_owned());
        self.turns.insert(turn.clone());
        waiting.turn = Some(turn);
        self.rest_no_more(uid);
    }

    fn rest_no_more(&mut self, uid: &str) {
        let Some(waiting) = self.waiting.get_mut(uid) else {
            return;
        };
        if let Some(due) = waiting.due.take() {
            self.due.remove(&(due, uid.to_owned()));
        }
        for filter in waiting.refused_by.drain(..) {
            if let Some(refused) = self.refused.get_mut(&filter) {
                refused.remove(uid);
                if refused.is_empty() {
                    self.refused.remove(&filter);
                }
            }
        }
    }

    /// One of those that wait.
    pub(super) fn pod(&self, uid: &str) -> Option<&Arc<PodInfo>> {
        self.waiting.get(uid).map(|waiting| &waiting.pod)
    }

    /// Whether any pod waits for a change.
    pub(super) fn waits_for_changes(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Of the pods that these filters have refused, tries those again that a change may help.
    pub(super) fn retry(
        &mut self,
        now: Timestamp,
        filters: &[Filter],
        may_help: impl Fn(Filter, &PodInfo) -> bool,
    ) {
        let mut helped = Vec::new();
        for filter in filters {
            for uid in self.refused.get(filter).into_iter().flatten() {
                let waiting = self.waiting.get(uid);
                if waiting.is_some_and(|waiting| may_help(*filter, &waiting.pod)) {
                    helped.push(uid.clone());
                }
            }
        }
        for uid in helped {
            self.give_turn(&uid, now);
        }
    }

    /// When the next pod is tried again by itself.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Those that are due are tried again.
    pub(super) fn retry_due(&mut self, now: Timestamp) {
        while let Some((due, uid)) = self.due.first().cloned().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, uid.clone()));
            self.give_turn(&uid, now);
        }
    }

    /// A pod waits no longer.
    pub(super) fn leave(&mut self, uid: &str) {
        self.rest_no_more(uid);
        if let Some(turn) = self.waiting.remove(uid).and_then(|waiting| waiting.turn) {
            self.turns.remove(&turn);
        }
    }

    /// The due pods, in order; removes them from the queue.
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
        self.give_turn(uid, now);
    }

    /// A pod was tried in vain: these filters have refused it. Without any, something was wrong, and it is tried again when it
    /// has rested.
    pub(super) fn failed(&mut self, uid: &str, now: Timestamp, refused_by: Vec<Filter>) {
        let Some(waiting) = self.waiting.get_mut(uid) else {
            return;
        };
        waiting.tries += 1;
        waiting.tried = now;
        waiting.due = if refused_by.is_empty() {
            rested(waiting.tries, now)
        } else {
            now.saturating_add(REFUSED_MAX).ok()
        };
        self.due.extend(waiting.due.map(|due| (due, uid.to_owned())));
        for filter in &refused_by {
            self.refused.entry(*filter).or_default().insert(uid.to_owned());
        }
        waiting.refused_by = refused_by;
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
        let rested = rested(tries, Timestamp::from_second(100).unwrap());
        assert_eq!(rested.map(Timestamp::as_second), expected);
    }

    /// Steps, each with the second in which it happens: `+a` comes (`+a!5`: with that priority), `-a` goes, `*` all are tried again, `~` is a
    /// change that concerns another filter, and with `?` those whose turn it is are tried, in vain (`?!`: something was wrong).
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
    #[case::of_no_concern(&["0 +a", "0 ?", "5 ~", "5 ?"], &["a", ""])]
    #[case::long_enough(&["0 +a", "0 ?", "299 ?", "300 ?", "599 ?", "600 ?"], &["a", "", "a", "", "a"])]
    #[case::long_enough_since_the_last_try(&["0 +a", "0 ?", "5 *", "5 ?", "300 ?", "305 ?"], &["a", "a", "", "a"])]
    #[case::wrong(&["0 +a", "0 ?!", "0 ?", "1 ?!", "2 ?", "3 ?!", "7 ?"], &["a", "", "a", "", "a", "a"])]
    #[case::wrong_whatever_changes(&["0 +a", "0 ?!", "0 *", "0 ?"], &["a", ""])]
    #[case::wrong_and_gone(&["0 +a", "0 ?!", "0 -a", "1 ?"], &["a", ""])]
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
                queue.put(Arc::new(pod), now, |_, _, _| false);
            } else if let Some(name) = what.strip_prefix('-') {
                queue.leave(name);
            } else if what == "*" {
                queue.retry(now, &[Filter::Resources], |_, _| true);
            } else if what == "~" {
                queue.retry(now, &[Filter::Spread], |_, _| true);
            } else {
                queue.retry_due(now);
                let pods = queue.take();
                let names: Vec<&str> = pods.iter().map(|pod| pod.object.uid()).collect();
                tried.push(names.join(" "));
                for name in names {
                    let filters = if what == "?!" {
                        vec![]
                    } else {
                        vec![Filter::Resources]
                    };
                    queue.failed(name, now, filters);
                }
            }
        }
        assert_eq!(tried, expected);
    }
}
