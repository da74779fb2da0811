//! `/metrics`, in Prometheus' text format: the most used of the real server's some 300 metrics, under the same names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use http::Response;

use crate::message::body::ResponseBody;
use crate::message::respond::whole;
use crate::server::Server;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// The number of objects by resource, and the memory of the process.
pub(super) fn metrics(server: &Server) -> Response<ResponseBody> {
    let state = &server.state;
    let mut counts = BTreeMap::new();
    let all = state.registry.all();
    let stored = all
        .iter()
        .filter(|resource| resource.verbs.iter().any(|verb| verb == "delete"));
    for table in stored.map(|resource| &resource.table) {
        // Several groups and versions may share a table.
        counts.insert((&table.group, &table.resource), state.store.count(table));
    }
    let mut out = family(
        "apiserver_resource_objects",
        "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    );
    for ((group, resource), count) in counts {
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "apiserver_resource_objects{{group=\"{group}\",resource=\"{resource}\"}} {count}"
        );
    }
    out.push_str(&state.request_counts.text());
    if let Some(bytes) = resident_bytes() {
        const NAME: &str = "process_resident_memory_bytes";
        out.push_str(&family(NAME, "Resident memory size in bytes."));
        let _ = writeln!(out, "{NAME} {bytes}");
    }
    whole(Bytes::from(out), CONTENT_TYPE)
}

/// How the values of one name are introduced.
fn family(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// The resident memory of this process; none where the system does not report it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
