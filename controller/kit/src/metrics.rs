//! The metrics, in Prometheus' text, under the names of controller-runtime and OpenKruise.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The bounds of the histogram of reconcile times, in seconds (controller-runtime's).
const TIME_BOUNDS_S: [f64; 32] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 60.0,
];

/// A name, the type of metric in Prometheus' words, and the help text.
pub type Family = (&'static str, &'static str, &'static str);

/// OpenKruise's own gauge of the leader: 1 while this process leads.
pub const IS_LEADER: &str = "kruise_manager_is_leader";

/// The metrics of all controllers.
const FAMILIES: [Family; 8] = [
    (
        "controller_runtime_active_workers",
        "gauge",
        "Number of currently used workers per controller",
    ),
    (
        "controller_runtime_max_concurrent_reconciles",
        "gauge",
        "Maximum number of concurrent reconciles per controller",
    ),
    (
        "controller_runtime_reconcile_errors_total",
        "counter",
        "Total number of reconciliation errors per controller",
    ),
    (
        "controller_runtime_reconcile_total",
        "counter",
        "Total number of reconciliations per controller",
    ),
    (IS_LEADER, "gauge", "Gauge the leader of kruise-manager"),
    (
        "leader_election_master_status",
        "gauge",
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master",
    ),
    ("workqueue_depth", "gauge", "Current depth of workqueue"),
    (
        "workqueue_retries_total",
        "counter",
        "Total number of retries handled by workqueue",
    ),
];

/// The family of the histogram.
const TIME: Family = (
    "controller_runtime_reconcile_time_seconds",
    "histogram",
    "Length of time per reconciliation per controller",
);

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; TIME_BOUNDS_S.len()],
    count: u64,
    sum_s: f64,
}

#[derive(Debug, Default)]
struct Values {
    numbers: BTreeMap<(&'static str, String), f64>,
    times: BTreeMap<String, Histogram>,
}

/// The counters of a process.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Values>);

fn labels(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    };
    let list: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}=\"{}\"", escape(value)))
        .collect();
    list.join(",")
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to a counter or a gauge.
    pub fn add(&self, name: &'static str, pairs: &[(&str, &str)], amount: f64) {
        *self.lock().numbers.entry((name, labels(pairs))).or_default() += amount;
    }

    /// Sets a gauge.
    pub fn set(&self, name: &'static str, pairs: &[(&str, &str)], value: f64) {
        self.lock().numbers.insert((name, labels(pairs)), value);
    }

    /// The sum of a counter of one controller over all its other labels.
    #[must_use]
    pub fn total(&self, name: &str, controller: &str) -> f64 {
        let values = self.lock();
        let label = labels(&[("controller", controller)]);
        let of_name = values
            .numbers
            .iter()
            .filter(|((of, pairs), _)| *of == name && pairs.starts_with(&label));
        of_name.map(|(_, value)| value).sum()
    }

    /// Counts a reconcile that ended as `result` (`success`, `error`, `requeue_after`) after `time`.
    pub fn reconciled(&self, controller: &str, result: &str, time: Duration) {
        self.add(
            "controller_runtime_reconcile_total",
            &[("controller", controller), ("result", result)],
            1.0,
        );
        if result == "error" {
            self.add(
                "controller_runtime_reconcile_errors_total",
                &[("controller", controller)],
                1.0,
            );
        }
        let mut values = self.lock();
        let histogram = values
            .times
            .entry(labels(&[("controller", controller)]))
            .or_default();
        let seconds = time.as_secs_f64();
        histogram.count += 1;
        histogram.sum_s += seconds;
        for (bucket, bound) in histogram.buckets.iter_mut().zip(TIME_BOUNDS_S) {
            *bucket += u64::from(seconds <= bound);
        }
    }

    /// Everything in Prometheus' text format: the metrics of single kinds, then those of all controllers.
    #[must_use]
    pub fn text<'a>(&self, of_kinds: impl IntoIterator<Item = &'a Family>) -> String {
        let values = self.lock();
        let mut out = String::new();
        for (name, kind, help) in of_kinds.into_iter().chain(&FAMILIES) {
            let mut head = true;
            for ((_, pairs), value) in values.numbers.iter().filter(|((of, _), _)| of == name) {
                if std::mem::take(&mut head) {
                    let _infallible = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
                }
                let _infallible = match pairs.as_str() {
                    "" => writeln!(out, "{name} {value}"),
                    pairs => writeln!(out, "{name}{{{pairs}}} {value}"),
                };
            }
        }
        let (name, kind, help) = TIME;
        if !values.times.is_empty() {
            let _infallible = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        for (pairs, histogram) in &values.times {
            for (count, bound) in histogram.buckets.iter().zip(TIME_BOUNDS_S) {
                let _infallible = writeln!(out, "{name}_bucket{{{pairs},le=\"{bound}\"}} {count}");
            }
            let Histogram { count, sum_s, .. } = histogram;
            let _infallible = writeln!(out, "{name}_bucket{{{pairs},le=\"+Inf\"}} {count}");
            let _infallible = writeln!(
                out,
                "{name}_sum{{{pairs}}} {sum_s}\n{name}_count{{{pairs}}} {count}"
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_prometheus() {
        let metrics = Metrics::default();
        assert_eq!(metrics.text([]), "");
        metrics.set("workqueue_depth", &[("name", "a\"b")], 2.0);
        metrics.set(IS_LEADER, &[], 1.0);
        metrics.reconciled("cloneset-controller", "success", Duration::from_millis(30));
        metrics.reconciled("cloneset-controller", "error", Duration::from_millis(70));
        assert_eq!(
            metrics.total("controller_runtime_reconcile_total", "cloneset-controller"),
            2.0
        );
        let text = metrics.text([]);
        for line in [
            "# TYPE workqueue_depth gauge",
            "workqueue_depth{name=\"a\\\"b\"} 2",
            "# TYPE kruise_manager_is_leader gauge",
            "kruise_manager_is_leader 1",
            "controller_runtime_reconcile_total{controller=\"cloneset-controller\",result=\"success\"} 1",
            "controller_runtime_reconcile_errors_total{controller=\"cloneset-controller\"} 1",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"cloneset-controller\",le=\"0.025\"} 0",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"cloneset-controller\",le=\"0.05\"} 1",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"cloneset-controller\",le=\"+Inf\"} 2",
            "controller_runtime_reconcile_time_seconds_count{controller=\"cloneset-controller\"} 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
