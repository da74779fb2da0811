//! The daemon's endpoints, and its cost while nothing happens.

use std::time::Duration;

use super::{LIMIT, equal};
use crate::cluster::{NODE, cluster_objects};
use crate::{Failure, Proof, until};

/// How long an idle daemon is watched.
const WATCHED: Duration = Duration::from_secs(10);
/// How often its threads may wait in that time.
const WAITS_MAX: u64 = 50;

pub(super) async fn endpoints(proof: &Proof) -> Result<String, Failure> {
    let health = proof.daemon.get("/healthz").await?;
    equal("the body of /healthz", health.rsplit("\r\n").next(), Some("ok"))?;
    let metrics = proof.daemon.get("/metrics").await?;
    let mut shown = String::new();
    for controller in ["containermeta", "containerrecreate", "imagepuller", "podprobe"] {
        let begin = format!("controller_runtime_reconcile_total{{controller=\"{controller}\",result=\"");
        let line = metrics.lines().find(|line| line.starts_with(&begin));
        shown.push_str(line.ok_or_else(|| format!("/metrics does not count {controller}"))?);
        shown.push('\n');
    }
    let missing = proof.daemon.get("/readyz").await?;
    equal(
        "whether /readyz is missing",
        missing.starts_with("HTTP/1.1 404"),
        true,
    )?;
    Ok(shown)
}

pub(super) async fn sleeps(proof: &Proof) -> Result<String, Failure> {
    let lists = cluster_objects(&proof.place.client, "v1alpha1", "NodePodProbe");
    until("the probes to go", LIMIT, async || {
        let list = lists.get(NODE).await?;
        let pods = list.data["spec"]["podProbes"].as_array();
        Ok(pods.is_none_or(Vec::is_empty).then_some(()))
    })
    .await?;
    // What has been asked for is answered by then.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let before = proof.daemon.waits()?;
    tokio::time::sleep(WATCHED).await;
    let waits = proof.daemon.waits()? - before;
    let resident_kb = proof.daemon.status("VmRSS")?;
    let threads = proof.daemon.status("Threads")?;
    let shown = format!(
        "{resident_kb} kB resident, {threads} threads, {waits} waits in {} s",
        WATCHED.as_secs()
    );
    if waits > WAITS_MAX {
        return Err(format!("{shown}, and may have {WAITS_MAX}").into());
    }
    Ok(shown)
}
