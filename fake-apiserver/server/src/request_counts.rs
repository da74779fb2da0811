//! Counts of the requests over sockets, for `/metrics`: under the real server's names and labels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::message::request::{ResourceRequest, Verb};

/// The upper bounds of the durations' buckets, in seconds: the real server's.
const BOUNDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// The request as the metrics have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    dry_run: &'static str,
}

impl Labels {
    /// Those of a request for a resource. `apply`: the patch is a server-side apply; `stream`: it goes on to a node.
    pub(crate) fn of_resource(request: &ResourceRequest, apply: bool, stream: bool, dry_run: bool) -> Self {
        let verb = match request.verb {
            _ if stream => "CONNECT",
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create => "POST",
            Verb::Update => "PUT",
            Verb::Patch if apply => "APPLY",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::DeleteCollection => "DELETECOLLECTION",
        };
        // A creation has a name only in its body, and is of its namespace or its cluster all the same.
        let scope = if !request.name.is_empty() || request.verb == Verb::Create {
            "resource"
        } else if !request.namespace.is_empty() {
            "namespace"
        } else {
            "cluster"
        };
        Self {
            verb,
            group: request.group.clone(),
            version: request.version.clone(),
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            scope,
            dry_run: if dry_run { "All" } else { "" },
        }
    }

    /// Those of a request for a path that is no resource.
    pub(crate) fn of_path(method: &http::Method, path: &str) -> Self {
        Self {
            verb: match method.as_str() {
                "POST" => "POST",
                "PUT" => "PUT",
                "PATCH" => "PATCH",
                "DELETE" => "DELETE",
                _ => "GET",
            },
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: path.to_owned(),
            scope: "",
            dry_run: "",
        }
    }

    /// The labels of a duration, which lack the code.
    fn text(&self) -> String {
        let Self {
            verb,
            group,
            version,
            resource,
            subresource,
            scope,
            dry_run,
        } = self;
        format!(
            "component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",\
             subresource=\"{}\",verb=\"{verb}\",version=\"{version}\"",
            escaped(subresource)
        )
    }

    /// Whether a request of this kind lasts as long as its client wants.
    fn is_long_running(&self) -> bool {
        matches!(self.verb, "WATCH" | "CONNECT")
    }
}

/// A label's value: backslashes, quotes and ends of lines are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[derive(Debug, Clone, Default)]
struct Durations {
    /// How many were at most as long as each bound.
    within: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<(Labels, u16), u64>,
    durations: BTreeMap<Labels, Durations>,
    long_running: BTreeMap<Labels, u64>,
}

/// How many kinds of requests are distinguished at most: a client that asks for ever new paths must not fill the memory.
const KINDS_MAX: usize = 10_000;

/// The counts of a server.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts(Mutex<Counts>);

impl RequestCounts {
    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered.
    pub(crate) fn note(&self, labels: &Labels, code: u16, took: Duration) {
        let mut counts = self.lock();
        let key = (labels.clone(), code);
        if counts.requests.len() >= KINDS_MAX && !counts.requests.contains_key(&key) {
            return;
        }
        *counts.requests.entry(key).or_default() += 1;
        if labels.is_long_running() {
            return;
        }
        let durations = counts.durations.entry(labels.clone()).or_default();
        let seconds = took.as_secs_f64();
        for (within, bound) in durations.within.iter_mut().zip(BOUNDS) {
            *within += u64::from(seconds <= bound);
        }
        durations.count += 1;
        durations.sum += seconds;
    }

    /// A watch or a stream begins.
    pub(crate) fn begin(&self, labels: &Labels) {
        *self.lock().long_running.entry(labels.clone()).or_default() += 1;
    }

    /// It ends.
    pub(crate) fn end(&self, labels: &Labels) {
        if let Some(count) = self.lock().long_running.get_mut(labels) {
            *count = count.saturating_sub(1);
        }
    }

    /// The counts in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let counts = self.lock();
        let mut out = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &dyn Fn(&mut String)| {
            // Writing to a text cannot fail.
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            lines(&mut out);
        };
        family(
            "apiserver_longrunning_requests",
            "gauge",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope \
             and component. Not all requests are tracked this way.",
            &|out| {
                for (labels, count) in &counts.long_running {
                    let _ = writeln!(out, "apiserver_longrunning_requests{{{}}} {count}", labels.text());
                }
            },
        );
        family(
            "apiserver_request_duration_seconds",
            "histogram",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, \
             subresource, scope and component.",
            &|out| {
                for (labels, durations) in &counts.durations {
                    durations.write(out, &labels.text());
                }
            },
        );
        family(
            "apiserver_request_total",
            "counter",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, \
             component, and HTTP response code.",
            &|out| {
                for ((labels, code), count) in &counts.requests {
                    let _ = writeln!(
                        out,
                        "apiserver_request_total{{code=\"{code}\",{}}} {count}",
                        labels.text()
                    );
                }
            },
        );
        out
    }
}

impl Durations {
    fn write(&self, out: &mut String, labels: &str) {
        const NAME: &str = "apiserver_request_duration_seconds";
        for (within, bound) in self.within.iter().zip(BOUNDS) {
            let _ = writeln!(out, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {within}");
        }
        let _ = writeln!(out, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{NAME}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{NAME}_count{{{labels}}} {}", self.count);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn labels(verb: Verb, namespace: &str, name: &str) -> Labels {
        let request = ResourceRequest {
            verb,
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            namespace: namespace.to_owned(),
            resource: "deployments".to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        };
        Labels::of_resource(&request, false, false, false)
    }

    #[rstest]
    #[case::list(Verb::List, "", "", "LIST", "cluster")]
    #[case::list_of_namespace(Verb::List, "n", "", "LIST", "namespace")]
    #[case::get(Verb::Get, "n", "a", "GET", "resource")]
    #[case::creation(Verb::Create, "n", "", "POST", "resource")]
    #[case::collection(Verb::DeleteCollection, "n", "", "DELETECOLLECTION", "namespace")]
    fn verbs_and_scopes(
        #[case] verb: Verb,
        #[case] namespace: &str,
        #[case] name: &str,
        #[case] expected: &str,
        #[case] scope: &str,
    ) {
        let labels = labels(verb, namespace, name);
        assert_eq!((labels.verb, labels.scope), (expected, scope));
    }

    #[test]
    fn requests_are_counted_by_code_and_duration() {
        let counts = RequestCounts::default();
        let get = labels(Verb::Get, "n", "a");
        counts.note(&get, 200, Duration::from_millis(10));
        counts.note(&get, 200, Duration::from_millis(300));
        counts.note(&get, 404, Duration::ZERO);
        let watch = labels(Verb::Watch, "", "");
        counts.note(&watch, 200, Duration::from_secs(60));
        counts.begin(&watch);
        let text = counts.text();
        let of_get = "component=\"apiserver\",dry_run=\"\",group=\"apps\",resource=\"deployments\",scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"";
        for line in [
            format!("apiserver_request_total{{code=\"200\",{of_get}}} 2"),
            format!("apiserver_request_total{{code=\"404\",{of_get}}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{of_get},le=\"0.005\"}} 1"),
            format!("apiserver_request_duration_seconds_bucket{{{of_get},le=\"0.4\"}} 3"),
            format!("apiserver_request_duration_seconds_sum{{{of_get}}} 0.31"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("verb=\"WATCH\",version=\"v1\",le="), "{text}");
        let open = |count: u64| format!("verb=\"WATCH\",version=\"v1\"}} {count}");
        assert!(text.contains(&open(1)), "{text}");
        counts.end(&watch);
        assert!(counts.text().contains(&open(0)));
    }

    #[test]
    fn paths_are_escaped() {
        let labels = Labels::of_path(&http::Method::GET, "/a\"b\\");
        assert!(labels.text().contains(r#"subresource="/a\"b\\""#));
    }
}
