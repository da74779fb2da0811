//! Reads schedules, with the errors of Kubernetes' parser.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::Form;
use crate::durations::nanoseconds;
use crate::field_error::go_quote;
use crate::zones;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The least and most of each field, and the names its numbers have.
const FIELDS: [(i64, i64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &MONTHS),
    (0, 6, &DAYS),
];

/// Schedules that have names.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The numbers of a field, as bits, and whether one of its parts names all.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    bits: u64,
    all: bool,
}

/// Reads a schedule that holds in `zone` unless it names another.
pub(super) fn schedule(text: &str, zone: &str) -> Result<Form, String> {
    let mut spec = text;
    if spec.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut zone = time_zone(zone)?;
    if let Some(rest) = spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ=")) {
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        zone = time_zone(name).map_err(|error| format!("provided bad location {name}: {error}"))?;
        spec = rest.trim();
    }
    if spec.starts_with('@') {
        return descriptor(spec, zone);
    }
    fields(spec, zone)
}

/// The zone of that name. The machine's own is UTC.
fn time_zone(name: &str) -> Result<TimeZone, String> {
    zones::exists(name)?;
    Ok(zones::named(name).unwrap_or(TimeZone::UTC))
}

fn descriptor(spec: &str, zone: TimeZone) -> Result<Form, String> {
    if let Some((_, fields)) = NAMED.iter().find(|(name, _)| *name == spec) {
        return self::fields(fields, zone);
    }
    let Some(duration) = spec.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {spec}"));
    };
    let nanos = nanoseconds(duration).map_err(|why| format!("failed to parse duration {spec}: {why}"))?;
    let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(0).max(1);
    Ok(Form::Every(Duration::from_secs(seconds)))
}

fn fields(spec: &str, zone: TimeZone) -> Result<Form, String> {
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    let mut numbers = [Numbers::default(); FIELDS.len()];
    for ((out, field), (least, most, names)) in numbers.iter_mut().zip(fields).zip(FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            let found = range(part, least, most, names)?;
            out.bits |= found.bits;
            out.all |= found.all;
        }
    }
    let [minutes, hours, days, months, weekdays] = numbers;
    Ok(Form::Fields {
        minutes: minutes.bits,
        hours: hours.bits,
        days: days.bits,
        months: months.bits,
        weekdays: weekdays.bits,
        either: !days.all && !weekdays.all,
        zone,
    })
}

fn number(text: &str, names: &[&str]) -> Result<i64, String> {
    if let Some(index) = names.iter().position(|name| *name == text.to_lowercase()) {
        // Months are counted from one.
        let first = i64::from(names.len() == MONTHS.len());
        return Ok(i64::try_from(index).unwrap_or(0) + first);
    }
    let number: i64 = text.parse().map_err(|_| {
        format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            go_quote(text)
        )
    })?;
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(number)
}

/// Reads `5`, `5-10`, `5-10/2`, `*`, `*/3`.
fn range(part: &str, least: i64, most: i64, names: &[&str]) -> Result<Numbers, String> {
    let pieces: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = pieces.first().copied().unwrap_or_default().split('-').collect();
    let mut all = false;
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => {
            all = true;
            (least, most)
        }
        [one] => {
            let one = number(one, names)?;
            (one, one)
        }
        [start, end] => (number(start, names)?, number(end, names)?),
        _ => return Err(format!("too many hyphens: {part}")),
    };
    let step = match pieces.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = most;
            }
            number(step, &[])?
        }
        _ => return Err(format!("too many slashes: {part}")),
    };
    if start < least {
        return Err(format!(
            "beginning of range ({start}) below minimum ({least}): {part}"
        ));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {part}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    let step_by = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (start..=end)
        .step_by(step_by)
        .fold(0, |bits, value| bits | 1_u64 << value);
    // A step of two or more does not name all.
    Ok(Numbers {
        bits,
        all: all && step == 1,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    #[rstest]
    #[case("0 0 1 1 *", None)]
    #[case("*/5 0-3 ? jan mon-fri", None)]
    #[case("@hourly", None)]
    #[case("@every 1h30m", None)]
    #[case("@never", Some("unrecognized descriptor: @never"))]
    #[case("bad", Some("expected exactly 5 fields, found 1: [bad]"))]
    #[case("61 * * * *", Some("end of range (61) above maximum (59): 61"))]
    #[case("* * 0 * *", Some("beginning of range (0) below minimum (1): 0"))]
    #[case("5-1 * * * *", Some("beginning of range (5) beyond end of range (1): 5-1"))]
    #[case("*/0 * * * *", Some("step of range should be a positive number: */0"))]
    #[case(
        "x * * * *",
        Some("failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax")
    )]
    #[case("* * * * 7", Some("end of range (7) above maximum (6): 7"))]
    #[case(
        "TZ=Mars/Base * * * * *",
        Some("provided bad location Mars/Base: unknown time zone Mars/Base")
    )]
    #[case("TZ=UTC", Some("expected exactly 5 fields, found 0: []"))]
    #[case("1-2-3 * * * *", Some("too many hyphens: 1-2-3"))]
    #[case("1/2/3 * * * *", Some("too many slashes: 1/2/3"))]
    #[case(
        "-1 * * * *",
        Some("failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax")
    )]
    #[case(
        "@every 5",
        Some("failed to parse duration @every 5: time: missing unit in duration \"5\"")
    )]
    fn schedules(#[case] schedule: &str, #[case] expected: Option<&str>) {
        assert_eq!(super::schedule(schedule, "").err().as_deref(), expected);
    }
}
