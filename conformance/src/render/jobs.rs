//! Jobs: BroadcastJobs, EphemeralJobs, AdvancedCronJobs and the Jobs that these make.

use shared_json::Value;

use super::tables::{align, rows};
use crate::history::{State, list, text};

/// The BroadcastJobs with the columns that `kubectl get` prints, their phases and conditions.
pub(super) fn broadcast_jobs(state: &State) -> String {
    let jobs: Vec<&Value> = state.of("broadcastjobs").collect();
    if jobs.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/desired",
        "/status/active",
        "/status/succeeded",
        "/status/failed",
    ];
    let mut rows = rows(&jobs, &columns);
    for (row, job) in rows.iter_mut().zip(&jobs) {
        row.push(text(job, "/status/phase"));
    }
    let header = ["NAME", "DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "PHASE"];
    let mut out = align(&header, &rows);
    jobs.iter().for_each(|job| out.push_str(&conditions(job)));
    out
}

/// The AdvancedCronJobs with the columns that `kubectl get` prints and their active jobs, and the Jobs that they made.
pub(super) fn cron_jobs(state: &State) -> String {
    let crons: Vec<&Value> = state.of("advancedcronjobs").collect();
    if crons.is_empty() {
        return String::new();
    }
    let row = |cron: &&Value| {
        let active = list(cron, "/status/active");
        let active: Vec<String> = active.iter().map(|job| text(job, "/name")).collect();
        vec![
            text(cron, "/metadata/name"),
            text(cron, "/spec/schedule"),
            text(cron, "/status/type"),
            text(cron, "/status/lastScheduleTime"),
            active.join(","),
        ]
    };
    let rows: Vec<Vec<String>> = crons.iter().map(row).collect();
    let mut out = align(&["NAME", "SCHEDULE", "TYPE", "LAST", "ACTIVE"], &rows);
    for job in state.of("jobs").filter(|job| is_of_cron(job)) {
        let scheduled = text(job, "/metadata/annotations/apps.kruise.io~1scheduled-at");
        let name = text(job, "/metadata/name");
        out.push_str(&format!("job {name} for {scheduled}\n{}", conditions(job)));
    }
    out
}

/// The EphemeralJobs with the columns that `kubectl get` prints, and their conditions.
pub(super) fn ephemeral_jobs(state: &State) -> String {
    let jobs: Vec<&Value> = state.of("ephemeraljobs").collect();
    if jobs.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/match",
        "/status/succeeded",
        "/status/failed",
        "/status/running",
        "/status/waiting",
    ];
    let mut rows = rows(&jobs, &columns);
    for (row, job) in rows.iter_mut().zip(&jobs) {
        row.insert(1, text(job, "/status/phase"));
    }
    let header = [
        "NAME", "STATUS", "MATCH", "SUCCEED", "FAILED", "RUNNING", "WAITING",
    ];
    let mut out = align(&header, &rows);
    jobs.iter().for_each(|job| out.push_str(&conditions(job)));
    out
}

fn is_of_cron(job: &Value) -> bool {
    let owners = list(job, "/metadata/ownerReferences");
    owners
        .iter()
        .any(|owner| text(owner, "/kind") == "AdvancedCronJob")
}

/// The conditions of a job, a line each.
fn conditions(job: &Value) -> String {
    let name = text(job, "/metadata/name");
    list(job, "/status/conditions")
        .iter()
        .map(|condition| {
            format!(
                "{name}: {}={} {}: {}\n",
                text(condition, "/type"),
                text(condition, "/status"),
                text(condition, "/reason"),
                text(condition, "/message")
            )
        })
        .collect()
}
