//! The forms of names, label keys and label values, and the real server's errors for invalid ones.

/// The longest name of an object that is a DNS subdomain.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;
/// The longest DNS label, label value, or name part of a label key.
pub const LABEL_BYTES_MAX: usize = 63;

/// The complaint about a name that is no DNS subdomain.
pub const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
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

const SUBDOMAIN_UNDERSCORE_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const WILDCARD_TEXT: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
    consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
    '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const OLD_LABEL_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
    is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY_TEXT: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
    or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const VARIABLE_TEXT: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const STRICT_VARIABLE_TEXT: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or \
    '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is \
    '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const HEADER_TEXT: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex \
    used for validation is '[-A-Za-z0-9]+')";
const PERCENT_TEXT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
    regex used for validation is '[0-9]+%')";
/// The longest name of a port.
const PORT_NAME_BYTES_MAX: usize = 15;

fn is_label(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a name is a DNS subdomain (RFC 1123) of at most 253 bytes.
pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

/// The message about the length of label keys and values; that of names counts characters.
fn too_many_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// The errors in a DNS subdomain.
pub fn subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(name) {
        problems.push(SUBDOMAIN_TEXT.to_owned());
    }
    problems
}

/// The errors in a DNS subdomain that may have underscores, as search domains may.
pub fn subdomain_with_underscore_problems(name: &str) -> Vec<String> {
    let part = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
            && edge(label.bytes().next())
            && edge(label.bytes().last())
    };
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !name.split('.').all(part) {
        problems.push(SUBDOMAIN_UNDERSCORE_TEXT.to_owned());
    }
    problems
}

/// The errors in a DNS label.
pub fn label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        problems.push(too_long(LABEL_BYTES_MAX));
    }
    if !is_label(name) {
        problems.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            LABEL_TEXT.to_owned()
        });
    }
    problems
}

/// The errors in a label of the older kind, which begins with a letter.
pub fn old_label_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_BYTES_MAX {
        problems.push(too_long(LABEL_BYTES_MAX));
    }
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push(OLD_LABEL_TEXT.to_owned());
    }
    problems
}

/// The errors in a subdomain below a wildcard, `*.example.com`.
pub fn wildcard_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !name.strip_prefix("*.").is_some_and(is_subdomain) {
        problems.push(WILDCARD_TEXT.to_owned());
    }
    problems
}

/// The errors in the name of a port.
pub fn port_name_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > PORT_NAME_BYTES_MAX {
        problems.push(too_long(PORT_NAME_BYTES_MAX));
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// The errors in a key of a ConfigMap or a Secret.
pub fn config_key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > SUBDOMAIN_BYTES_MAX {
        problems.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(allowed) {
        problems.push(CONFIG_KEY_TEXT.to_owned());
    }
    match key {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The errors in the name of an environment variable.
pub fn variable_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push("environment variable name must be non-empty".to_owned());
    }
    if !name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        problems.push(VARIABLE_TEXT.to_owned());
    }
    problems
}

/// The errors in the name of an environment variable by the rules before 1.34 (`IsEnvVarName`).
pub fn strict_variable_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(allowed) || name.starts_with(|c: char| c.is_ascii_digit()) {
        problems.push(STRICT_VARIABLE_TEXT.to_owned());
    }
    match name {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The errors in the name of an HTTP header.
pub fn header_problems(name: &str) -> Vec<String> {
    let fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fits {
        Vec::new()
    } else {
        vec![HEADER_TEXT.to_owned()]
    }
}

/// The errors in a share in percent, `25%`.
pub fn percent_problems(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        Vec::new()
    } else {
        vec![PERCENT_TEXT.to_owned()]
    }
}

/// The errors in a name that is a segment of a path, the loosest kind.
pub fn path_segment_problems(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(*bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// The errors in a label key: a name with an optional prefix, `example.com/name`.
pub fn qualified_problems(key: &str) -> Vec<String> {
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
                .map(|text| format!("prefix part {}", text.replace("253 characters", "253 bytes"))),
        ),
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        problems.push(format!("name part {}", too_many_bytes(LABEL_BYTES_MAX)));
    }
    if !is_qualified_part(name) {
        problems.push(format!("name part {QUALIFIED_TEXT}"));
    }
    problems
}

/// The errors in a label's value.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_BYTES_MAX {
        problems.push(too_many_bytes(LABEL_BYTES_MAX));
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
