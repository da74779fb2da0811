//! Schedules in cron's form, and the errors of Kubernetes' parser.

use machinery::types::check_duration;
use machinery::zones;

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

/// Reads a schedule; the error is the parser's.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut spec = schedule;
    if spec.is_empty() {
        return Err("empty spec string".to_owned());
    }
    if let Some(rest) = spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ=")) {
        let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Err(error) = zone_exists(zone) {
            return Err(format!("provided bad location {zone}: {error}"));
        }
        spec = rest.trim();
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, (least, most, names)) in fields.iter().zip(FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, least, most, names)?;
        }
    }
    Ok(())
}

fn descriptor(spec: &str) -> Result<(), String> {
    const KNOWN: [&str; 7] = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if KNOWN.contains(&spec) {
        return Ok(());
    }
    let Some(duration) = spec.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {spec}"));
    };
    check_duration(duration).map_err(|why| format!("failed to parse duration {spec}: {why}"))
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
            pod_rules::field_error::go_quote(text)
        )
    })?;
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(number)
}

fn range(part: &str, least: i64, most: i64, names: &[&str]) -> Result<(), String> {
    let pieces: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = pieces.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (least, most),
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
    Ok(())
}

/// Whether there is such a time zone; Go's error if not.
pub(super) fn zone_exists(name: &str) -> Result<(), String> {
    if matches!(name, "" | "UTC" | "Local") || zones::named(name).is_some() {
        return Ok(());
    }
    Err(format!("unknown time zone {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn schedules(#[case] schedule: &str, #[case] expected: Option<&str>) {
        assert_eq!(check(schedule).err().as_deref(), expected);
    }
}
