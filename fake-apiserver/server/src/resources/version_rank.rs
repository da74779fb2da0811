//! The order of API versions.

/// `v2` before `v1` before `v1beta1`: released versions first, then the higher number.
pub(crate) fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u32>, std::cmp::Reverse<u32>, String) {
    let rest = version.strip_prefix('v').unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let major = digits.parse().unwrap_or_default();
    let suffix = &rest[digits.len()..];
    let minor = |word: &str| {
        suffix
            .strip_prefix(word)
            .and_then(|n| n.parse().ok())
            .unwrap_or_default()
    };
    let (class, minor) = if suffix.is_empty() && !digits.is_empty() {
        (0, 0)
    } else if suffix.starts_with("beta") {
        (1, minor("beta"))
    } else if suffix.starts_with("alpha") {
        (2, minor("alpha"))
    } else {
        (3, 0)
    };
    (
        class,
        std::cmp::Reverse(major),
        std::cmp::Reverse(minor),
        version.to_owned(),
    )
}
