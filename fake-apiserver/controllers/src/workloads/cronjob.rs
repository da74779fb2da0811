//! CronJobs: jobs by the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::rfc3339;
use pod_rules::schedule::Schedule;
use pod_rules::zones;
use shared_json::{Value, json};

use super::adoption::concerned;
use super::job_plan::is_finished;
use super::pod_control::{is_namespace_going, refusal};
use super::pods::owner_reference;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, is_true, list, number, text, time, until};

/// So many missed times are too many to catch up with.
const MISSED_MAX: u32 = 100;

/// The controller.
#[derive(Default)]
pub(crate) struct CronJobs {
    /// By which schedule and in which zone each was looked at.
    schedules: BTreeMap<Key, (String, String)>,
}

#[async_trait]
impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::CronJobs, Res::Jobs]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::CronJobs => vec![Key::of(object)],
            _ => concerned(cache, Res::CronJobs, object, old),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(cron) = cx.cache.get(Res::CronJobs, &key.namespace, &key.name).cloned() else {
            self.schedules.remove(key);
            return Ok(Next::Change);
        };
        let (when, zone) = (text(&cron, "spec.schedule"), text(&cron, "spec.timeZone"));
        let before = self
            .schedules
            .insert(key.clone(), (when.to_owned(), zone.to_owned()));
        // One whose schedule has changed waits for the next time by the new one, whatever else has changed.
        if before.is_some_and(|(old, old_zone)| (old.as_str(), old_zone.as_str()) != (when, zone)) {
            let schedule = Schedule::parse(when, zone).ok();
            let next = schedule.and_then(|schedule| schedule.next(cx.now()));
            return Ok(next.and_then(|next| until(next, cx.now())).into());
        }
        let mut status = cron.get("status").cloned().unwrap_or_else(|| json!({}));
        self.account(cx, &cron, &mut status).await?;
        let result = if cron.is_terminating() {
            Ok(Next::Change)
        } else {
            self.launch(cx, &cron, &mut status).await
        };
        let newest = cx
            .cache
            .get(Res::CronJobs, &key.namespace, &key.name)
            .cloned()
            .unwrap_or(cron);
        cx.set_status(Res::CronJobs, &newest, &status).await?;
        result
    }
}

/// The name of the job for a time.
fn job_name(cron: &Value, due: Timestamp) -> String {
    format!("{}-{}", cron.name(), due.as_second() / 60)
}

/// A time in a zone: `2026-01-01T09:00:00+09:00`; in UTC without one, or where the zone is unknown.
fn written(at: Timestamp, zone: &str) -> String {
    match zones::named(zone) {
        Some(zone) if zone.to_offset(at).seconds() != 0 => {
            at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => rfc3339(at),
    }
}

async fn delete(cx: &mut Cx<'_>, cron: &Value, job: &Value) -> Result<(), kube::Error> {
    let done = cx.delete(Res::Jobs, job, Some("Background")).await;
    match &done {
        Ok(()) => cx.normal(
            Res::CronJobs,
            cron,
            "SuccessfulDelete",
            format!("Deleted job {}", job.name()),
        ),
        Err(error) => {
            let text = format!("Deleted job: {}", refusal(error));
            cx.warning(Res::CronJobs, cron, "FailedDelete", text);
        }
    }
    done
}

fn reference(job: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job.name(), "namespace": job.namespace(),
        "resourceVersion": job.resource_version(), "uid": job.uid(),
    })
}

/// The last time before or at `now`, the first after it, and about how many there have been; none if the schedule never comes.
///
/// The distance of the first two stands for all, as in the real one: a schedule of uneven distances may seem never to have been
/// due.
pub(super) fn times(
    schedule: &Schedule,
    since: Timestamp,
    now: Timestamp,
) -> Option<(Option<Timestamp>, Option<Timestamp>, u32)> {
    let first = schedule.next(since)?;
    if first > now {
        return Some((None, Some(first), 0));
    }
    let after = schedule.next(now);
    let second = schedule.next(first)?;
    if second > now {
        return Some((Some(first), after, 1));
    }
    let distance = second.as_second() - first.as_second();
    let missed = (now.as_second() - first.as_second()) / distance + 1;
    let mut last = None;
    let mut at = Timestamp::from_second(first.as_second() + (missed - 2) * distance).unwrap_or(first);
    while let Some(next) = schedule.next(at).filter(|next| *next <= now) {
        last = Some(next);
        at = next;
    }
    Some((last, after, u32::try_from(missed).unwrap_or(u32::MAX)))
}

impl CronJobs {
    /// Brings the list of active jobs up to date, records events of ended ones, and removes old ones.
    async fn account(&self, cx: &mut Cx<'_>, cron: &Value, status: &mut Value) -> Result<(), kube::Error> {
        let jobs = cx.cache.owned(Res::Jobs, cron.uid());
        let mut active: Vec<Value> = list(status, "active").to_vec();
        for job in &jobs {
            let listed = active.iter().any(|entry| text(entry, "uid") == job.uid());
            if listed && is_finished(job) {
                active.retain(|entry| text(entry, "uid") != job.uid());
                let how = if is_true(job, "Complete") {
                    "Complete"
                } else {
                    "Failed"
                };
                let text = format!("Saw completed job: {}, condition: {how}", job.name());
                cx.normal(Res::CronJobs, cron, "SawCompletedJob", text);
            } else if !listed && !is_finished(job) {
                let text = format!(
                    "Saw a job that the controller did not create or forgot: {}",
                    job.name()
                );
                cx.warning(Res::CronJobs, cron, "UnexpectedJob", text);
            }
        }
        // A job counts as a success whoever made it.
        let succeeded = jobs.iter().filter(|job| is_true(job, "Complete"));
        let last = succeeded
            .filter_map(|job| time(job, "status.completionTime"))
            .max();
        if let Some(at) = last
            && time(status, "lastSuccessfulTime").is_none_or(|before| before < at)
        {
            status["lastSuccessfulTime"] = Value::from(rfc3339(at));
        }
        active.retain(|entry| {
            let there = jobs.iter().any(|job| job.uid() == text(entry, "uid"));
            if !there {
                let text = format!("Active job went missing: {}", text(entry, "name"));
                cx.normal(Res::CronJobs, cron, "MissingJob", text);
            }
            there
        });
        match status.as_object_mut() {
            Some(map) if active.is_empty() => {
                map.remove("active");
            }
            _ => status["active"] = Value::from(active),
        }
        for (kind, field, default) in [
            ("Complete", "spec.successfulJobsHistoryLimit", 3),
            ("Failed", "spec.failedJobsHistoryLimit", 1),
        ] {
            let mut done: Vec<&Arc<Value>> = jobs.iter().filter(|job| is_true(job, kind)).collect();
            // Those that have not begun are the youngest.
            done.sort_by_key(|job| {
                let begun = text(job, "status.startTime");
                (begun.is_empty(), begun.to_owned(), job.name().to_owned())
            });
            let limit = usize::try_from(number(cron, field, default)).unwrap_or_default();
            for job in done.iter().take(done.len().saturating_sub(limit)) {
                // One that stays is tried again with the next look.
                let _stays = delete(cx, cron, job).await;
            }
        }
        Ok(())
    }

    async fn launch(&self, cx: &mut Cx<'_>, cron: &Value, status: &mut Value) -> Result<Next, kube::Error> {
        if at(cron, "spec.suspend").and_then(Value::as_bool) == Some(true) {
            return Ok(Next::Change);
        }
        let schedule = Schedule::parse(text(cron, "spec.schedule"), text(cron, "spec.timeZone"));
        let Ok(schedule) = schedule else {
            let message = format!("unparseable schedule: \"{}\"", text(cron, "spec.schedule"));
            cx.warning(Res::CronJobs, cron, "UnparseableSchedule", message);
            return Ok(Next::Change);
        };
        let now = cx.now();
        let deadline = at(cron, "spec.startingDeadlineSeconds")
            .and_then(Value::as_u64)
            .map(Duration::from_secs);
        let mut since = time(status, "lastScheduleTime")
            .or_else(|| time(cron, "metadata.creationTimestamp"))
            .unwrap_or(now);
        if let Some(oldest) = deadline.and_then(|deadline| now.saturating_sub(deadline).ok()) {
            since = since.max(oldest);
        }
        let Some((due, next, missed)) = times(&schedule, since, now) else {
            let message = format!(
                "invalid schedule: {} : time difference between two schedules is less than 1 second",
                text(cron, "spec.schedule")
            );
            cx.warning(Res::CronJobs, cron, "InvalidSchedule", message);
            return Ok(Next::Change);
        };
        let next = next.and_then(|next| until(next, now));
        let Some(due) = due else {
            return Ok(next.into());
        };
        if missed > MISSED_MAX {
            cx.warning(
                Res::CronJobs,
                cron,
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew".to_owned(),
            );
        }
        let active = list(status, "active").to_vec();
        let name = job_name(cron, due);
        // It runs, whatever the status says of when the last one began.
        if active.iter().any(|entry| text(entry, "name") == name) {
            return Ok(next.into());
        }
        match text(cron, "spec.concurrencyPolicy") {
            "Forbid" if !active.is_empty() => {
                let text =
                    "Not starting job because prior execution is running and concurrency policy is Forbid"
                        .to_owned();
                cx.normal(Res::CronJobs, cron, "JobAlreadyActive", text);
                return Ok(next.into());
            }
            "Replace" => {
                for entry in &active {
                    if let Some(job) = cx
                        .cache
                        .get(Res::Jobs, cron.namespace(), text(entry, "name"))
                        .cloned()
                    {
                        delete(cx, cron, &job).await?;
                    }
                }
                if let Some(map) = status.as_object_mut() {
                    map.remove("active");
                }
            }
            _ => {}
        }
        self.create(cx, cron, status, due).await?;
        Ok(next.into())
    }

    async fn create(
        &self,
        cx: &mut Cx<'_>,
        cron: &Value,
        status: &mut Value,
        due: Timestamp,
    ) -> Result<(), kube::Error> {
        let template = at(cron, "spec.jobTemplate").cloned().unwrap_or_else(|| json!({}));
        let mut metadata = json!({
            "name": job_name(cron, due), "namespace": cron.namespace(),
            "ownerReferences": [owner_reference("batch/v1", "CronJob", cron)],
        });
        for field in ["labels", "annotations"] {
            if let Some(value) = at(&template, &format!("metadata.{field}")).filter(|value| !value.is_null())
            {
                metadata[field] = value.clone();
            }
        }
        metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] =
            Value::from(written(due, text(cron, "spec.timeZone")));
        let job =
            json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))});
        match cx.create(Res::Jobs, cron.namespace(), job).await {
            Ok(job) => {
                cx.normal(
                    Res::CronJobs,
                    cron,
                    "SuccessfulCreate",
                    format!("Created job {}", job.name()),
                );
                let mut active = list(status, "active").to_vec();
                active.push(reference(&job));
                status["active"] = Value::from(active);
            }
            Err(kube::Error::Api(refused)) if refused.reason == "AlreadyExists" => {
                let name = job_name(cron, due);
                let own = cx.cache.owned(Res::Jobs, cron.uid());
                // Of a job that is somebody else's nothing is said.
                let Some(job) = own.iter().find(|job| job.name() == name) else {
                    return Ok(());
                };
                let mut active = list(status, "active").to_vec();
                active.push(reference(job));
                status["active"] = Value::from(active);
            }
            Err(error) if is_namespace_going(&error) => return Err(error),
            Err(error) => {
                cx.warning(
                    Res::CronJobs,
                    cron,
                    "FailedCreate",
                    format!("Error creating job: {}", refusal(&error)),
                );
                return Err(error);
            }
        }
        status["lastScheduleTime"] = Value::from(rfc3339(due));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A schedule, its start and the present time; the last time that was due, the next, and how many there were.
    #[rstest]
    #[case::not_yet("0 * * * *", "00:10:00", "00:59:59", Some("- 01:00:00 0"))]
    #[case::just_now("0 * * * *", "00:10:00", "01:00:00", Some("01:00:00 02:00:00 1"))]
    #[case::a_while_ago("0 * * * *", "00:10:00", "01:30:00", Some("01:00:00 02:00:00 1"))]
    #[case::of_two_the_last("0 * * * *", "00:10:00", "02:30:00", Some("02:00:00 03:00:00 2"))]
    #[case::of_many_the_last("*/5 * * * *", "00:00:00", "10:01:00", Some("10:00:00 10:05:00 120"))]
    #[case::a_hundred("*/5 * * * *", "00:00:00", "08:20:00", Some("08:20:00 08:25:00 100"))]
    #[case::a_hundred_and_one("*/5 * * * *", "00:00:00", "08:25:00", Some("08:25:00 08:30:00 101"))]
    #[case::every_so_often("@every 90m", "00:10:00", "03:30:00", Some("03:10:00 05:00:00 2"))]
    #[case::uneven("0 1,2,20 * * *", "00:00:00", "19:00:00", Some("- 20:00:00 19"))]
    #[case::uneven_and_soon_enough("0 1,2,20 * * *", "00:00:00", "02:30:00", Some("02:00:00 20:00:00 2"))]
    #[case::never("0 0 31 2 *", "00:00:00", "19:00:00", None)]
    fn what_is_due(
        #[case] schedule: &str,
        #[case] since: &str,
        #[case] now: &str,
        #[case] expected: Option<&str>,
    ) {
        let at = |text: &str| -> Timestamp { format!("2026-01-01T{text}Z").parse().expect("a time") };
        let schedule = Schedule::parse(schedule, "").expect("a schedule");
        let short = |at: Option<Timestamp>| {
            at.map_or_else(|| "-".to_owned(), |at| at.strftime("%H:%M:%S").to_string())
        };
        let found = times(&schedule, at(since), at(now))
            .map(|(due, next, missed)| format!("{} {} {missed}", short(due), short(next)));
        assert_eq!(found.as_deref(), expected);
    }
}
