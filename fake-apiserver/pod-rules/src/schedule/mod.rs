//! Schedules: `*/5 * * * *`, `@hourly`, `@every 90m`, in a time zone. `parse` reads them; here are the times that they name.
//!
//! The CronJobs of Kubernetes and of OpenKruise use the same parser.

mod parse;

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// How far ahead a next time is looked for.
const YEARS_MAX: i16 = 5;
/// How far back a last time is first looked for; twice as far with each step that finds none.
const BACK_FIRST: Duration = Duration::from_secs(60);

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Form);

/// The forms of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// Which minutes, hours, days, months and weekdays.
    Fields {
        minutes: u64,
        hours: u64,
        days: u64,
        months: u64,
        weekdays: u64,
        /// Whether day and weekday were both narrowed: then either is enough.
        either: bool,
        zone: TimeZone,
    },
    /// Again and again after a time of whole seconds.
    Every(Duration),
}

impl Schedule {
    /// Reads a schedule. It holds in the time zone that it names itself (`TZ=Asia/Tokyo 0 3 * * *`), or else in `zone`; in UTC if that
    /// is empty.
    ///
    /// # Errors
    /// The error of Kubernetes' parser.
    ///
    /// ```
    /// use pod_rules::schedule::Schedule;
    ///
    /// let schedule = Schedule::parse("0 3 * * *", "Asia/Shanghai")?;
    /// let next = schedule.next("2026-01-01T00:00:00Z".parse()?);
    /// assert_eq!(next, Some("2026-01-01T19:00:00Z".parse()?));
    /// assert_eq!(Schedule::parse("* * *", ""), Err("expected exactly 5 fields, found 3: [* * *]".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str, zone: &str) -> Result<Self, String> {
        parse::schedule(text, zone).map(Self)
    }

    /// The first time after `after`, if there is one within five years.
    #[must_use]
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let (minutes, hours, days, months, weekdays, either, zone) = match &self.0 {
            Form::Every(every) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                return whole.checked_add(*every).ok();
            }
            Form::Fields {
                minutes,
                hours,
                days,
                months,
                weekdays,
                either,
                zone,
            } => (*minutes, *hours, *days, *months, *weekdays, *either, zone),
        };
        let has = |bits: u64, number: i8| bits & (1_u64 << u32::from(number.unsigned_abs())) != 0;
        // Minute after minute as they pass: hours that a zone leaves out never match, those that it has twice do so twice.
        let mut at = Timestamp::from_second((after.as_second().div_euclid(60) + 1) * 60).ok()?;
        let limit = zone.to_datetime(at).year().saturating_add(YEARS_MAX);
        loop {
            let local: DateTime = zone.to_datetime(at);
            if local.year() > limit {
                return None;
            }
            let day = has(days, local.day());
            let weekday = has(weekdays, local.weekday().to_sunday_zero_offset());
            let fits = if either { day || weekday } else { day && weekday };
            at = if !has(months, local.month()) {
                let next = local.date().first_of_month().checked_add(1.month()).ok()?;
                zone.to_timestamp(next.at(0, 0, 0, 0)).ok()?
            } else if !fits {
                let next = local.date().tomorrow().ok()?;
                zone.to_timestamp(next.at(0, 0, 0, 0)).ok()?
            } else if !has(hours, local.hour()) {
                at.checked_add((60 - i64::from(local.minute())).minutes()).ok()?
            } else if !has(minutes, local.minute()) {
                at.checked_add(1.minute()).ok()?
            } else {
                return Some(at);
            };
        }
    }

    /// The last time after `after` and not after `until`.
    ///
    /// ```
    /// use pod_rules::schedule::Schedule;
    ///
    /// let schedule = Schedule::parse("*/5 * * * *", "")?;
    /// let last = schedule.last("2026-01-01T00:00:00Z".parse()?, "2026-03-01T10:01:00Z".parse()?);
    /// assert_eq!(last, Some("2026-03-01T10:00:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn last(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let due = |from: Timestamp| self.next(from).filter(|next| *next <= until);
        let first = due(after)?;
        if let Form::Every(every) = &self.0 {
            let (passed, step) = (until.as_second() - first.as_second(), every.as_secs());
            let steps = passed / i64::try_from(step).unwrap_or(i64::MAX).max(1);
            let all = every.checked_mul(u32::try_from(steps).unwrap_or(u32::MAX))?;
            return first.checked_add(all).ok();
        }
        // Some time is due after `from`: from a moment at or after `after` from which one is, to the last one.
        let mut from = after;
        let mut back = BACK_FIRST;
        while let Some(near) = until.checked_sub(back).ok().filter(|near| *near > after) {
            if due(near).is_some() {
                from = near;
                break;
            }
            back = back.saturating_mul(2);
        }
        let mut end = until;
        let mut last = due(from)?;
        while let Some(next) = due(last) {
            let middle = Timestamp::from_second(last.as_second().midpoint(end.as_second())).ok()?;
            match due(middle) {
                Some(later) => last = later,
                None => {
                    end = middle;
                    last = next;
                }
            }
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z")]
    #[case("*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z")]
    #[case("0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z")]
    #[case("30 8-10/2 * * *", "2026-01-01T08:31:00Z", "2026-01-01T10:30:00Z")]
    #[case("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z")]
    #[case("0 0 * * mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")]
    #[case("0 0 * * sun", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z")]
    // Day and weekday both hold where one of them names all: a step of two does not.
    #[case("0 0 */2 * mon", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z")]
    #[case("0 0 */1 * mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")]
    #[case("0 0 ? * mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")]
    #[case(
        "CRON_TZ=Asia/Tokyo 0 3 * * *",
        "2026-01-01T00:00:00Z",
        "2026-01-01T18:00:00Z"
    )]
    #[case("TZ=UTC @daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")]
    #[case("@every 1500ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")]
    #[case("@every -1h", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")]
    #[case("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")]
    #[case("0 12 * jan-mar *", "2026-03-31T12:00:00Z", "2027-01-01T12:00:00Z")]
    #[case("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")]
    #[case("@every 1h30m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z")]
    #[case("5,10 * * * *", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z")]
    fn next_times(#[case] schedule: &str, #[case] after: &str, #[case] expected: &str) {
        let schedule = Schedule::parse(schedule, "").expect("a schedule");
        let next = schedule
            .next(after.parse().expect("a time"))
            .expect("a next time");
        assert_eq!(next.to_string(), expected);
    }

    // On the day on which clocks go forward, and on the one on which they go back.
    #[rstest]
    #[case("30 2 * * *", "2026-03-08T00:00:00-05:00", "2026-03-09T02:30:00-04:00")]
    #[case("30 * * * *", "2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00")]
    #[case("0 3 * * *", "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00")]
    #[case("30 1 * * *", "2026-11-01T00:00:00-04:00", "2026-11-01T01:30:00-04:00")]
    #[case("30 1 * * *", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00")]
    #[case("30 1 * * *", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00")]
    #[case("*/20 * * * *", "2026-11-01T01:40:00-04:00", "2026-11-01T01:00:00-05:00")]
    #[case("0 0 1 * *", "2026-03-08T00:00:00-05:00", "2026-04-01T00:00:00-04:00")]
    #[case("0 9 * * mon-fri", "2026-03-06T09:00:00-05:00", "2026-03-09T09:00:00-04:00")]
    fn next_times_in_new_york(#[case] schedule: &str, #[case] after: &str, #[case] expected: &str) {
        let schedule = Schedule::parse(schedule, "America/New_York").expect("a schedule");
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        assert_eq!(schedule.next(at(after)), Some(at(expected)));
    }

    #[rstest]
    #[case("* * * *", "")]
    #[case("60 * * * *", "")]
    #[case("*/0 * * * *", "")]
    #[case("5-1 * * * *", "")]
    #[case("@never", "")]
    #[case("* * * * *", "No/Where")]
    fn what_is_no_schedule(#[case] schedule: &str, #[case] zone: &str) {
        assert!(Schedule::parse(schedule, zone).is_err());
    }

    #[test]
    fn what_never_comes_has_no_next_time() {
        let schedule = Schedule::parse("0 0 31 2 *", "").expect("a schedule");
        assert_eq!(schedule.next(Timestamp::UNIX_EPOCH), None);
    }

    /// A schedule, the time after which and the one until which a time is looked for, and the last there is.
    #[rstest]
    #[case("0 * * * *", "2026-01-01T00:10:00Z", "2026-01-01T00:59:59Z", None)]
    #[case(
        "0 * * * *",
        "2026-01-01T00:10:00Z",
        "2026-01-01T01:00:00Z",
        Some("2026-01-01T01:00:00Z")
    )]
    #[case("0 * * * *", "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z", None)]
    #[case(
        "*/1 * * * *",
        "2020-01-01T00:00:00Z",
        "2026-01-01T10:00:30Z",
        Some("2026-01-01T10:00:00Z")
    )]
    #[case(
        "* 1 * * *",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:30:00Z",
        Some("2026-01-31T01:59:00Z")
    )]
    #[case(
        "* * 1 1 *",
        "2025-06-01T00:00:00Z",
        "2026-12-31T00:00:00Z",
        Some("2026-01-01T23:59:00Z")
    )]
    #[case(
        "0 1,2,20 * * *",
        "2026-01-01T00:00:00Z",
        "2026-01-01T19:00:00Z",
        Some("2026-01-01T02:00:00Z")
    )]
    #[case("0 0 31 2 *", "2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z", None)]
    #[case(
        "@every 90m",
        "2026-01-01T00:10:00Z",
        "2026-01-01T03:30:00Z",
        Some("2026-01-01T03:10:00Z")
    )]
    #[case("@every 90m", "2026-01-01T00:10:00Z", "2026-01-01T01:00:00Z", None)]
    fn last_times(
        #[case] schedule: &str,
        #[case] after: &str,
        #[case] until: &str,
        #[case] expected: Option<&str>,
    ) {
        let schedule = Schedule::parse(schedule, "").expect("a schedule");
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        assert_eq!(schedule.last(at(after), at(until)), expected.map(at));
    }

    proptest::proptest! {
        /// The last time is the one that walking from time to time comes to.
        #[test]
        fn last_is_where_walking_ends(
            which in 0_usize..6, from in 0_i64..1_000_000, minutes in 0_i64..3000,
        ) {
            let texts = ["*/7 * * * *", "5 */3 * * *", "0 0 * * mon", "1,2,50 3 * * *", "@every 17m", "30 2 1-7 * 0"];
            let schedule = Schedule::parse(texts[which], "America/New_York").expect("a schedule");
            let at = |second: i64| Timestamp::from_second(1_770_000_000 + second).expect("a time");
            let (after, until) = (at(from), at(from + minutes * 60));
            let mut walked = None;
            while let Some(next) = schedule.next(walked.unwrap_or(after)).filter(|next| *next <= until) {
                walked = Some(next);
            }
            proptest::prop_assert_eq!(schedule.last(after, until), walked);
        }
    }
}
