//! `/metrics`, in Prometheus' text format: the most used of the real server's some 300 metrics, under the same names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use http::Response;

use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;
use store::GroupResource;

use crate::message::body::ResponseBody;
use crate::message::respond::whole;
use crate::server::Server;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// The requests that the real server carries out at once (`--max-requests-inflight` and `--max-mutating-requests-inflight`).
const SEATS: u64 = 600;

/// The number of objects by resource, the seats of priority levels, the counts of requests, and the memory of the process.
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
    out.push_str(&seats(server));
    out.push_str(&state.request_counts.text());
    if let Some(bytes) = resident_bytes() {
        const NAME: &str = "process_resident_memory_bytes";
        out.push_str(&family(NAME, "Resident memory size in bytes."));
        let _ = writeln!(out, "{NAME} {bytes}");
    }
    whole(Bytes::from(out), CONTENT_TYPE)
}

/// The seats of priority levels: each has a part of all by its shares, rounded up.
fn seats(server: &Server) -> String {
    const NAME: &str = "apiserver_flowcontrol_nominal_limit_seats";
    let table = GroupResource::new("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations");
    let levels = server.state.store.list(&table, None, None, None);
    let levels = levels.map(|list| list.items).unwrap_or_default();
    let shares: BTreeMap<String, u64> = levels
        .iter()
        .map(|level| (level.value.name().to_owned(), shares_of(&level.value)))
        .collect();
    let all: u64 = shares.values().sum();
    if levels.is_empty() {
        return String::new();
    }
    let mut out = family(
        NAME,
        "[BETA] Nominal number of execution seats configured for each priority level",
    );
    for (name, shares) in shares {
        let seats = (SEATS * shares).div_ceil(all.max(1));
        let _ = writeln!(out, "{NAME}{{priority_level=\"{name}\"}} {seats}");
    }
    out
}

/// The shares of a priority level in all seats.
fn shares_of(level: &Value) -> u64 {
    let said = |field: &str| at(level, field).and_then(Value::as_u64);
    let exempt = said("spec.exempt.nominalConcurrencyShares");
    exempt
        .or_else(|| said("spec.limited.nominalConcurrencyShares"))
        .unwrap_or_default()
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
