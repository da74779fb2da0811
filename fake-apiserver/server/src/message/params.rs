//! A request's options.

use std::borrow::Cow;

use machinery::status::ApiError;
use machinery::types::check_duration;

/// The treatment of unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of a request's query, as far as any verb uses them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pub watch: bool,
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub limit: usize,
    pub continue_token: String,
    /// How long the request may take, as given.
    pub timeout: String,
    /// No time at all is one that is over.
    pub timeout_seconds: Option<u64>,
    pub allow_watch_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    /// The values of `dryRun` as given; [`crate::rest::options`] checks them.
    pub dry_run_given: Vec<String>,
    pub dry_run: bool,
    pub field_manager: String,
    /// `fieldValidation` as given.
    pub field_validation_given: String,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
    pub pretty: Option<bool>,
    /// `uid`: the uid that a deleted object must have.
    pub uid: String,
    /// `includeObject` of a table, as given.
    pub include_object: String,
    pub propagation_policy: String,
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    /// The refusal of a `limit` or `timeoutSeconds` that is no number.
    pub wrong_list_number: Option<ApiError>,
    /// The refusal of a `gracePeriodSeconds` that is no number.
    pub wrong_grace_period: Option<ApiError>,
}

/// As Go reads the flags of a query: whatever does not say no is a yes.
fn flag(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// The texts that Go's `strconv.ParseBool` takes for true.
const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];

impl Params {
    /// Reads a query string.
    ///
    /// # Errors
    /// 400 for invalid values.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut params = Self::default();
        let mut seen: Vec<String> = Vec::new();
        // What is not well formed is passed over, as Go does where nobody asks for the error.
        let is_read = |pair: &&str| !pair.is_empty() && !pair.contains(';') && is_escaped_well(pair);
        for pair in query.split('&').filter(is_read) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (unescape(key), unescape(value));
            // Of what is given twice the first counts, but for lists.
            if key != "dryRun" {
                if seen.contains(&key) {
                    continue;
                }
                seen.push(key.clone());
            }
            let number = |value: &str| {
                value
                    .parse::<i64>()
                    .map_err(|_| ApiError::bad_request(unparsed("ParseInt", value)))
            };
            match key.as_str() {
                "watch" => params.watch = flag(&value),
                "labelSelector" => params.label_selector = value,
                "fieldSelector" => params.field_selector = value,
                "resourceVersion" => params.resource_version = value,
                "resourceVersionMatch" => params.resource_version_match = value,
                "limit" => match number(&value) {
                    Ok(limit) => params.limit = usize::try_from(limit).unwrap_or_default(),
                    Err(error) => params.wrong_list_number = Some(error),
                },
                "continue" => params.continue_token = value,
                "timeoutSeconds" => match number(&value) {
                    Ok(0) => params.timeout_seconds = None,
                    Ok(seconds) => params.timeout_seconds = Some(u64::try_from(seconds).unwrap_or_default()),
                    Err(error) => params.wrong_list_number = Some(error),
                },
                "timeout" => params.timeout = value,
                "allowWatchBookmarks" => params.allow_watch_bookmarks = flag(&value),
                "sendInitialEvents" => params.send_initial_events = Some(flag(&value)),
                "dryRun" => params.dry_run_given.push(value),
                "fieldManager" => params.field_manager = value,
                "fieldValidation" => params.field_validation_given = value,
                "force" => params.force = Some(flag(&value)),
                "export" if flag(&value) => {
                    return Err(ApiError::bad_request(
                        "the export parameter, deprecated since v1.14, is no longer supported",
                    ));
                }
                "pretty" if !value.is_empty() => params.pretty = Some(TRUE.contains(&value.as_str())),
                "uid" => params.uid = value,
                "includeObject" => params.include_object = value,
                "propagationPolicy" => params.propagation_policy = value,
                "gracePeriodSeconds" => match number(&value) {
                    Ok(seconds) => params.grace_period_seconds = Some(seconds),
                    Err(error) => params.wrong_grace_period = Some(error),
                },
                "orphanDependents" => params.orphan_dependents = Some(flag(&value)),
                _ => {}
            }
        }
        Ok(params)
    }

    /// Checks the `timeout` of a request. No request is ended for it.
    ///
    /// # Errors
    /// 400 for an invalid duration.
    pub(crate) fn check_timeout(&self) -> Result<(), ApiError> {
        if self.timeout.is_empty() {
            return Ok(());
        }
        check_duration(&self.timeout).map_err(|why| {
            ApiError::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })
    }
}

/// Go's error for a text that is no number, or out of range.
pub(crate) fn unparsed(function: &str, text: &str) -> String {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_signed = digits.len() < text.len();
    let why = if is_number && !(is_signed && function == "ParseUint") {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.{function}: parsing \"{text}\": {why}")
}

/// Undoes percent and plus encoding of a query; invalid UTF-8 is replaced.
pub(crate) fn unescape(text: &str) -> String {
    unescape_path(&text.replace('+', " ")).into_owned()
}

/// Whether every percent sign of a path begins an escape.
pub(crate) fn is_escaped_well(path: &str) -> bool {
    let mut parts = path.split('%');
    // What is before the first one is as it is.
    parts.next();
    parts.all(|part| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// Undoes percent encoding; invalid UTF-8 is replaced.
pub(crate) fn unescape_path(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let hex = (byte == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(hex.unwrap_or(byte));
        index += if hex.is_some() { 3 } else { 1 };
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_query() {
        let params =
            Params::parse("labelSelector=a%3Db%2Cc+in+%28d%29&limit=5&watch=1&dryRun=All").expect("a query");
        assert_eq!(params.label_selector, "a=b,c in (d)");
        assert_eq!((params.limit, params.watch), (5, true));
        assert_eq!(params.dry_run_given, ["All"]);
        let twice = Params::parse("limit=1&limit=x&pretty=no&pretty=1").expect("a query");
        assert_eq!((twice.limit, twice.pretty), (1, Some(false)));
        assert_eq!(unescape("%zz%4"), "%zz%4");
        let why = |text: &str| {
            unparsed("ParseUint", text)
                .rsplit_once(": ")
                .map(|(_, why)| why.to_owned())
        };
        for (text, expected) in [
            ("", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("18446744073709551616", "value out of range"),
        ] {
            assert_eq!(why(text).as_deref(), Some(expected), "{text}");
        }
        for (path, well) in [("/a%20b", true), ("/a%2", false), ("/%zz", false), ("%", false)] {
            assert_eq!(is_escaped_well(path), well, "{path}");
        }
    }
}
