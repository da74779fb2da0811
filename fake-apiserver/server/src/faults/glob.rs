//! Names with `*` in them.

/// Whether `text` is of the form `pattern`, in which `*` stands for any characters, or none.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts
        .into_iter()
        .any(|at| text.get(at..).is_some_and(|text| fits(rest, text)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", "a", true)]
    #[case("a", "ab", false)]
    #[case("a*", "ab", true)]
    #[case("a*", "a", true)]
    #[case("*", "", true)]
    #[case("*b", "aab", true)]
    #[case("a*c*e", "abcde", true)]
    #[case("a*c*e", "abcd", false)]
    #[case("kube*", "kubé", false)]
    #[case("kub*", "kubé", true)]
    fn patterns(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(fits(pattern, text), expected);
    }
}
