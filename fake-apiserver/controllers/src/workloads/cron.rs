//! Schedules: `*/5 * * * *`, `@hourly`, in a time zone.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use machinery::types::rfc3339;
use machinery::zones;

/// How far ahead a next time is looked for.
const YEARS_MAX: i16 = 5;

/// A schedule: which minutes, hours, days, months and weekdays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Schedule {
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
    Every(Duration),
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a schedule; none for an invalid one.
    pub(super) fn parse(text: &str, zone: &str) -> Option<Self> {
        let zone = if zone.is_empty() {
            TimeZone::UTC
        } else {
            zones::named(zone)?
        };
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text => match text.strip_prefix("@every ") {
                Some(every) => return duration(every).map(Self::Every),
                None => text,
            },
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return None;
        };
        let narrowed = |field: &str| !field.starts_with('*') && field != "?";
        let weekday_bits = bits(weekdays, 0, 7, &WEEKDAYS, 0)?;
        Some(Self::Fields {
            minutes: bits(minutes, 0, 59, &[], 0)?,
            hours: bits(hours, 0, 23, &[], 0)?,
            days: bits(days, 1, 31, &[], 0)?,
            months: bits(months, 1, 12, &MONTHS, 1)?,
            // Sunday is 0, and 7 too.
            weekdays: (weekday_bits | (weekday_bits >> 7)) & 0x7f,
            either: narrowed(days) && narrowed(weekdays),
            zone,
        })
    }

    /// The first time after `after`.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let (minutes, hours, days, months, weekdays, either, zone) = match self {
            Self::Every(every) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                return whole.saturating_add(*every).ok();
            }
            Self::Fields {
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
}

/// A time in a zone: `2026-01-01T09:00:00+09:00`; in UTC without one, or where the zone is unknown.
pub(super) fn written(at: Timestamp, zone: &str) -> String {
    match zones::named(zone) {
        Some(zone) if zone.to_offset(at).seconds() != 0 => {
            at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => rfc3339(at),
    }
}

/// `1,5-10/2,*/3` as bits.
fn bits(field: &str, low: u32, high: u32, names: &[&str], first_name: u32) -> Option<u64> {
    let number = |text: &str| -> Option<u32> {
        let lower = text.to_lowercase();
        if let Some(at) = names.iter().position(|name| *name == lower) {
            return Some(first_name + u32::try_from(at).ok()?);
        }
        text.parse().ok().filter(|number| (low..=high).contains(number))
    };
    let mut out = 0;
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None if range == "*" || range == "?" => (low, high),
            None => {
                let one = number(range)?;
                (one, if step.is_some() { high } else { one })
            }
        };
        if from > to {
            return None;
        }
        for value in (from..=to).step_by(usize::try_from(step.unwrap_or(1)).ok()?) {
            out |= 1_u64 << value;
        }
    }
    Some(out)
}

/// `1h30m`, as Go writes durations.
fn duration(text: &str) -> Option<Duration> {
    let (mut total, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(end);
        let factor = match tail.chars().next()? {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        rest = tail.get(1..)?;
    }
    (total > 0).then(|| Duration::from_secs(total))
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
    #[case("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z")]
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
        assert_eq!(Schedule::parse(schedule, zone), None);
    }

    #[test]
    fn what_never_comes_has_no_next_time() {
        let schedule = Schedule::parse("0 0 31 2 *", "").expect("a schedule");
        assert_eq!(schedule.next(Timestamp::UNIX_EPOCH), None);
    }
}
