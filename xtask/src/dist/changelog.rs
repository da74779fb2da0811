//! The changelog: the subjects of commits by their area, which stands in front of the first colon.

use std::collections::BTreeMap;

/// The heading of commits without an area.
const OTHER: &str = "other";
/// The longest area: more is a sentence with a colon.
const AREA_BYTES_MAX: usize = 24;

/// The area and the rest of a subject. Of several areas the first counts.
fn split(subject: &str) -> (String, &str) {
    match subject.split_once(": ") {
        Some((area, rest)) if area.len() <= AREA_BYTES_MAX => {
            let first = area.split(',').next().unwrap_or(area);
            (first.trim().to_lowercase(), rest)
        }
        _ => (OTHER.to_owned(), subject),
    }
}

/// The changelog of a version, of lines with an abbreviated id and a subject.
pub(super) fn by_area(version: &str, lines: &str) -> String {
    let mut areas: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, subject) in lines.lines().filter_map(|line| line.split_once(' ')) {
        let (area, rest) = split(subject);
        areas.entry(area).or_default().push(format!("- {rest} ({id})\n"));
    }
    let other = areas.remove(OTHER);
    let areas = areas
        .into_iter()
        .chain(other.map(|entries| (OTHER.to_owned(), entries)));
    let sections = areas.map(|(area, entries)| format!("\n## {area}\n\n{}", entries.concat()));
    format!("# Seatrial {version}\n{}", sections.collect::<String>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nodes: know options", "nodes", "know options")]
    #[case("Nodes: know options", "nodes", "know options")]
    #[case("store, rules: share a type", "store", "share a type")]
    #[case("a subject without an area", "other", "a subject without an area")]
    #[case(
        "a sentence about something, which goes on: so",
        "other",
        "a sentence about something, which goes on: so"
    )]
    #[case("http://a", "other", "http://a")]
    fn subjects(#[case] subject: &str, #[case] area: &str, #[case] rest: &str) {
        assert_eq!(split(subject), (area.to_owned(), rest));
    }

    #[test]
    fn areas_are_sorted_and_the_rest_comes_last() {
        let lines = "1 store: a\n2 something else\n3 docs: b\n4 store: c";
        let expected = "# Seatrial 1.0\n\n## docs\n\n- b (3)\n\n## store\n\n- a (1)\n- c (4)\n\n## other\n\n- something else (2)\n";
        assert_eq!(by_area("1.0", lines), expected);
    }

    #[test]
    fn no_commits_make_a_heading() {
        assert_eq!(by_area("1.0", ""), "# Seatrial 1.0\n");
    }
}
