//! Ages, as kubectl writes them.

use jiff::Timestamp;

use super::UNKNOWN;

/// The time since a time: `46s`, `2m30s`, `9h`, `3d4h`; `<unknown>` for an invalid one.
pub(super) fn age(time: &str, now: Timestamp) -> String {
    between(time, now).map_or_else(|| UNKNOWN.to_owned(), human_duration)
}

/// The seconds from a time to another.
pub(super) fn between(from: &str, to: Timestamp) -> Option<i64> {
    let from = from.parse::<Timestamp>().ok()?;
    Some(to.as_second() - from.as_second())
}

/// A number of seconds in two units at most, coarser the longer it is.
pub(super) fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(150, "2m30s")]
    #[case(180, "3m")]
    #[case(599, "9m59s")]
    #[case(3_600, "60m")]
    #[case(12_720, "3h32m")]
    #[case(46_800, "13h")]
    #[case(180_000, "2d2h")]
    #[case(864_000, "10d")]
    fn durations(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(human_duration(seconds), expected);
    }
}
