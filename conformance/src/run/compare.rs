//! The difference between two texts, for people.

use similar::{ChangeTag, TextDiff};

/// The lines that differ, each with its sign: `-` was expected, `+` is there instead.
#[must_use]
pub fn lines(expected: &str, actual: &str) -> Vec<String> {
    TextDiff::from_lines(expected, actual)
        .iter_all_changes()
        .filter_map(|change| {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => return None,
            };
            Some(format!("{sign} {}", change.value().trim_end()))
        })
        .collect()
}

/// The difference with some lines around it; empty if there is none.
#[must_use]
pub fn unified(expected: &str, actual: &str, expected_name: &str) -> String {
    if expected == actual {
        return String::new();
    }
    let diff = TextDiff::from_lines(expected, actual);
    diff.unified_diff()
        .context_radius(3)
        .header(expected_name, "this run")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_differs() {
        assert!(unified("a\n", "a\n", "x").is_empty());
        assert_eq!(lines("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
        assert!(unified("a\nb\n", "a\nc\n", "the recording").contains("-b\n+c"));
    }
}
