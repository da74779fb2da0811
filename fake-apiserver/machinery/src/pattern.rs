//! Go's errors for invalid regular expressions.

/// The complaint; `None` for one that it takes.
pub fn problem(pattern: &str) -> Option<String> {
    // Go has no looking around and no references back, where this program's library says so in other words.
    let said = |what: &str, part: &str| Some(format!("error parsing regexp: {what}: `{part}`"));
    for group in ["(?=", "(?!", "(?<=", "(?<!"] {
        if pattern.contains(group) {
            let shown = group.get(..3).unwrap_or(group);
            return said("invalid or unsupported Perl syntax", shown);
        }
    }
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        match chars.next() {
            None => return said("trailing backslash at end of expression", ""),
            Some(escaped @ '1'..='9') => {
                return said("invalid escape sequence", &format!("\\{escaped}"));
            }
            Some(_) => {}
        }
    }
    let error = regex::Regex::new(pattern).err()?.to_string();
    if error.contains("unclosed character class") {
        let rest = pattern
            .rfind('[')
            .and_then(|at| pattern.get(at..))
            .unwrap_or(pattern);
        return said("missing closing ]", rest);
    }
    if error.contains("unclosed group") {
        return said("missing closing )", pattern);
    }
    if error.contains("unopened group") {
        return said("unexpected )", pattern);
    }
    if error.contains("repetition operator missing expression") {
        let operator = pattern
            .find(['*', '+', '?'])
            .and_then(|at| pattern.get(at..=at))
            .unwrap_or("*");
        return said("missing argument to repetition operator", operator);
    }
    if error.contains("invalid character class range") || error.contains("the start must be <= the end") {
        return said("invalid character class range", pattern);
    }
    said("invalid regular expression", pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("^[a-z]+$", "")]
    #[case("[", "error parsing regexp: missing closing ]: `[`")]
    #[case("a(b", "error parsing regexp: missing closing ): `a(b`")]
    #[case("a)b", "error parsing regexp: unexpected ): `a)b`")]
    #[case(r"\", "error parsing regexp: trailing backslash at end of expression: ``")]
    #[case("*", "error parsing regexp: missing argument to repetition operator: `*`")]
    #[case("a(?=b)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`")]
    #[case(r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`")]
    fn as_go_says_it(#[case] pattern: &str, #[case] expected: &str) {
        assert_eq!(problem(pattern).unwrap_or_default(), expected);
    }
}
