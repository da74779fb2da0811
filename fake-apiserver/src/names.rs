//! What names, label keys and label values may look like, and what the real server says of those that do not.

/// The longest name of an object that is a DNS subdomain.
pub(crate) const SUBDOMAIN_BYTES_MAX: usize = 253;
/// The longest DNS label, label value, or name part of a label key.
pub(crate) const LABEL_BYTES_MAX: usize = 63;

pub(crate) const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_label(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// What is wrong with a DNS subdomain.
pub(crate) fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(name) {
        problems.push(SUBDOMAIN_TEXT.to_owned());
    }
    problems
}

/// What is wrong with a DNS label.
pub(crate) fn label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        problems.push(too_long(LABEL_BYTES_MAX));
    }
    if !is_label(name) {
        problems.push(LABEL_TEXT.to_owned());
    }
    problems
}

/// What is wrong with a DNS label that names an object, in the words of the newer, generated validation.
pub(crate) fn label_name_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        problems.push(format!("must be no more than {LABEL_BYTES_MAX} characters"));
    }
    if !is_label(name) {
        let dots = name.contains('.');
        problems.push(if dots {
            "must not contain dots".to_owned()
        } else {
            LABEL_TEXT.to_owned()
        });
    }
    problems
}

/// What is wrong with a name that is a segment of a path, the loosest kind.
pub(crate) fn path_segment_problems(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(*bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// What is wrong with a label key: a name with an optional prefix, `example.com/name`.
pub(crate) fn qualified_problems(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => problems.extend(
            subdomain_problems(prefix)
                .iter()
                .map(|text| format!("prefix part {text}")),
        ),
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        problems.push(format!("name part {}", too_long(LABEL_BYTES_MAX)));
    }
    if !is_qualified_part(name) {
        problems.push(format!("name part {QUALIFIED_TEXT}"));
    }
    problems
}

/// What is wrong with a label's value.
pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_BYTES_MAX {
        problems.push(too_long(LABEL_BYTES_MAX));
    }
    if !value.is_empty() && !is_qualified_part(value) {
        problems.push(LABEL_VALUE_TEXT.to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("app", 0)]
    #[case("example.com/app", 0)]
    #[case("a/b/c", 1)]
    #[case("/a", 1)]
    #[case("a/", 2)]
    #[case("Example.com/a", 1)]
    #[case("-a", 1)]
    fn label_keys(#[case] key: &str, #[case] problems: usize) {
        assert_eq!(
            qualified_problems(key).len(),
            problems,
            "{:?}",
            qualified_problems(key)
        );
    }
}
