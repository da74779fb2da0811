//! Globs of names.

/// Whether a name matches a glob of `*` and `?`.
pub(crate) fn matches_glob(glob: &str, name: &str) -> bool {
    fn go(glob: &[u8], name: &[u8]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                go(rest, name) || name.split_first().is_some_and(|(_, name)| go(glob, name))
            }
            (Some((b'?', rest)), Some((_, name))) => go(rest, name),
            (Some((one, rest)), Some((other, name))) => one == other && go(rest, name),
            _ => false,
        }
    }
    go(glob.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::matches_glob;

    #[rstest]
    #[case("*", "anything", true)]
    #[case("tutorial*", "tutorial", true)]
    #[case("*/s1-*", "1.0.1/s1-cs-demo", true)]
    #[case("s1", "s1-cs-demo", false)]
    #[case("?1", "s1", true)]
    fn names_match(#[case] glob: &str, #[case] name: &str, #[case] expected: bool) {
        assert_eq!(matches_glob(glob, name), expected);
    }
}
