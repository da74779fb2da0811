//! Get and list.

use std::borrow::Cow;
use std::sync::Arc;

use base64::DecodeError;
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::StatusCode;
use machinery::meta::string_map;
use machinery::selector::LabelSelector;
use machinery::status::ApiError;
use serde::Serialize;
use shared_json::Value;
use store::{ObjectKey, Revision, Scope, Stored};

use super::field_selector::FieldSelector;
use super::options;
use crate::context::{Context, Page};
use crate::conversion;
use crate::resources::Resource;
use crate::server::ServerState;

/// Which objects of a collection are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// The custom resource whose version has the fields, if that is not the stored one.
    shown_as: Option<Arc<Resource>>,
}

impl Selection {
    /// Reads the selectors of a list or a watch, whose options are looked at before its fields are; the name in its path is a selector
    /// too.
    pub(crate) fn parse(context: &Context, watch: bool) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(&context.params.label_selector)?;
        let mut text = context.params.field_selector.clone();
        if !context.request.name.is_empty() {
            let separator = if text.is_empty() { "" } else { "," };
            text = format!("{text}{separator}metadata.name={}", context.request.name);
        }
        let fields = FieldSelector::parse(&text)?;
        options::check_list(&context.params, watch)?;
        let resource = &context.resource;
        let fields = fields.of(resource)?;
        let is_other = resource.is_custom() && !resource.is_storage_version() && fields.names_content();
        Ok(Self {
            labels,
            fields,
            shown_as: is_other.then(|| Arc::clone(resource)),
        })
    }

    /// The one part of the table that the fields select from, if it is one.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.fields.scope()
    }

    /// Whether a stored object is selected.
    pub(crate) fn selects(&self, stored: &Stored) -> bool {
        self.is_everything() || stored.value.with(|object| self.matches(object))
    }

    /// Whether the fields name the one object that can be selected: then no page comes after it.
    fn names_one(&self, namespace: Option<&str>) -> bool {
        namespace.is_some() && matches!(self.scope(), Some(Scope::Field("metadata.name", _)))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a stored object is selected. Selectors of built-in resources name fields of the stored version, and those of custom
    /// resources fields of the requested one.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        if !self.labels.matches(string_map(object, "labels")) {
            return false;
        }
        let seen = match &self.shown_as {
            Some(resource) => conversion::seen_from_storage(resource, object),
            None => Cow::Borrowed(object),
        };
        self.fields.matches(&seen)
    }

    /// Converts the objects that are selected from, if their fields are those of another version and a webhook converts.
    ///
    /// # Errors
    /// 500: the webhook did not answer, or its answer is invalid.
    pub(crate) async fn ready(&self, state: &ServerState, stored: &[Arc<Stored>]) -> Result<(), ApiError> {
        match &self.shown_as {
            Some(resource) => conversion::ready(state, resource, stored).await,
            None => Ok(()),
        }
    }
}

/// The start of the next page; the text of `continue`, in the real server's form. Without a version it goes on at the newest one.
#[derive(Debug, Serialize)]
struct ContinueToken {
    v: String,
    rv: i64,
    start: String,
}

/// Base64 as Go reads it: bits that are left over do not matter.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);
const CONTINUE_VERSION: &str = "meta.k8s.io/v1";
/// The revision of a token that goes on at the newest one.
const NEWEST: i64 = -1;

impl ContinueToken {
    /// The token for the objects after a key, at a revision or at the newest one.
    fn encode(revision: Option<Revision>, last: &ObjectKey) -> String {
        let token = Self {
            v: CONTINUE_VERSION.to_owned(),
            rv: revision.map_or(NEWEST, |revision| i64::try_from(revision.0).unwrap_or(i64::MAX)),
            start: format!("{last}\0"),
        };
        // A struct of strings and numbers always encodes.
        let json = shared_json::to_vec(&token).unwrap_or_default();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
    }

    fn decode(text: &str, namespace: &str) -> Result<(Option<Revision>, ObjectKey), ApiError> {
        let not_valid = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let json = LENIENT.decode(text).map_err(|error| {
            let place = match error {
                DecodeError::InvalidByte(place, _) | DecodeError::InvalidLastSymbol(place, _) => place,
                // What is too short to mean anything is wrong from where it begins.
                DecodeError::InvalidPadding => text.find('=').unwrap_or_default(),
                DecodeError::InvalidLength(_) => text.len() / 4 * 4,
            };
            not_valid(format!("illegal base64 data at input byte {place}"))
        })?;
        // Go's scanner shows a byte that begins no text as the character of that number.
        if let Some(byte) = json.first().filter(|byte| !byte.is_ascii()) {
            let shown = match char::from(*byte) {
                c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            };
            return Err(not_valid(format!(
                "invalid character '{shown}' looking for beginning of value"
            )));
        }
        let document = machinery::go_json::parse(&json).map_err(not_valid)?;
        let token = document.value;
        if !token.is_object() {
            let kind = go_kind(&token);
            return Err(not_valid(format!(
                "json: cannot unmarshal {kind} into Go value of type storage.continueToken"
            )));
        }
        let of_type = |field: &str, fits: fn(&Value) -> bool, go: &str| match token.get(field) {
            Some(value) if !value.is_null() && !fits(value) => Err(not_valid(format!(
                "json: cannot unmarshal {} into Go struct field continueToken.{field} of type {go}",
                go_kind(value)
            ))),
            value => Ok(value.cloned().unwrap_or_default()),
        };
        let version = of_type("v", Value::is_string, "string")?;
        let revision = of_type("rv", Value::is_i64, "int64")?
            .as_i64()
            .unwrap_or_default();
        let start = of_type("start", Value::is_string, "string")?;
        let (version, start) = (
            version.as_str().unwrap_or_default(),
            start.as_str().unwrap_or_default(),
        );
        if version != CONTINUE_VERSION {
            return Err(not_valid(format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        if revision == 0 {
            return Err(not_valid(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned(),
            ));
        }
        if start.is_empty() {
            return Err(not_valid(
                "encoded start key empty (version meta.k8s.io/v1)".to_owned(),
            ));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(not_valid(start.to_owned()));
        }
        let key = key.trim_end_matches('\0');
        let (namespace, name) = key.split_once('/').unwrap_or((namespace, key));
        let revision = u64::try_from(revision).ok().map(Revision);
        Ok((revision, ObjectKey::new(namespace, name)))
    }
}

/// The name of a value's type in Go's decoder.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    }
}

/// Lists a collection, or a page of it.
pub(crate) async fn list(context: &Context) -> Result<Page, ApiError> {
    let selection = Selection::parse(context, false)?;
    let params = &context.params;
    let store = &context.state().store;
    let namespace = Some(context.request.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let (at, start) = if params.continue_token.is_empty() {
        (asked_revision(context)?, None)
    } else {
        let (revision, start) = ContinueToken::decode(&params.continue_token, &context.request.namespace)?;
        if !matches!(params.resource_version.as_str(), "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        check_not_future(context, revision)?;
        (revision, Some(start))
    };
    // A page's end says whether anything at all comes after it; a whole list has to look at what may be selected alone.
    if at.is_none()
        && start.is_none()
        && params.limit == 0
        && let Some(scope) = selection.scope()
        && let Some(snapshot) = store.list_indexed(context.table(), &scope, namespace)
    {
        let mut items = snapshot.items;
        selection.ready(context.state(), &items).await?;
        items.retain(|stored| selection.selects(stored));
        return Ok(Page {
            revision: Some(snapshot.revision),
            items,
            continue_token: String::new(),
            remaining: None,
        });
    }
    let (revision, items) = store
        .scan(context.table(), namespace, at, start.as_ref())
        .map_err(|_| list_expired(start.as_ref()))?;
    let items: Box<dyn ExactSizeIterator<Item = Arc<Stored>>> = if selection.shown_as.is_some() {
        let all: Vec<Arc<Stored>> = items.collect();
        selection.ready(context.state(), &all).await?;
        Box::new(all.into_iter())
    } else {
        Box::new(items)
    };
    let mut page = Page {
        revision: Some(revision),
        items: Vec::new(),
        continue_token: String::new(),
        remaining: None,
    };
    // "Whatever you have" is answered whole.
    let limit = match params.limit {
        0 => usize::MAX,
        _ if params.resource_version == "0" => usize::MAX,
        limit => limit,
    };
    let mut left = items.len();
    for stored in items {
        left -= 1;
        if !selection.selects(&stored) {
            continue;
        }
        page.items.push(stored);
        if page.items.len() == limit && left > 0 && !selection.names_one(namespace) {
            // Whether any of the rest will be selected is not known yet.
            page.continue_token = page
                .items
                .last()
                .map(|last| ContinueToken::encode(Some(revision), &last.key))
                .unwrap_or_default();
            page.remaining = selection.is_everything().then_some(left);
            break;
        }
    }
    Ok(page)
}

/// The revision that the list must be at exactly, if any.
fn asked_revision(context: &Context) -> Result<Option<Revision>, ApiError> {
    let params = &context.params;
    let given = parse_revision(&params.resource_version)?;
    match params.resource_version_match.as_str() {
        "" => {
            // A paged list at a version is exact; any other is "not older than".
            let exact = params.limit > 0 && given.is_some_and(|revision| revision.0 > 0);
            check_not_future(context, given)?;
            Ok(given.filter(|_| exact))
        }
        "Exact" => {
            check_not_future(context, given)?;
            Ok(given)
        }
        _ => {
            check_not_future(context, given)?;
            Ok(None)
        }
    }
}

/// Checks the resource version of a get; every valid one is served from the newest version.
pub(crate) fn check_get_version(context: &Context) -> Result<(), ApiError> {
    let text = context.params.resource_version.as_str();
    if text.is_empty() {
        return Ok(());
    }
    if let Ok(revision) = text.parse::<Revision>() {
        return check_not_future(context, Some(revision));
    }
    Err(ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "",
        bad_version(text),
    ))
}

pub(super) fn bad_version(text: &str) -> String {
    let why = crate::message::params::unparsed("ParseUint", text);
    format!("resourceVersion: Invalid value: \"{text}\": {why}")
}

/// Parses a resource version parameter; absent is `None`.
fn parse_revision(text: &str) -> Result<Option<Revision>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| ApiError::bad_request(format!("invalid resource version: {}", bad_version(text))))
}

/// A version that does not exist yet: the real server waits for it and gives up.
pub(super) fn check_not_future(context: &Context, given: Option<Revision>) -> Result<(), ApiError> {
    let current = context.state().store.revision();
    match given {
        Some(revision) if revision > current => {
            let mut error = ApiError::new(
                StatusCode::GATEWAY_TIMEOUT,
                "Timeout",
                format!("Timeout: Too large resource version: {revision}, current: {current}"),
            );
            let mut details = shared_json::json!({
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            });
            // Events have no cache that may catch up.
            if context.table().resource != "events" {
                details["retryAfterSeconds"] = Value::from(1);
            }
            error.details = Some(details);
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The refusal of a list at a revision that is too old. One that goes on after a key is offered to go on at the newest revision.
fn list_expired(start: Option<&ObjectKey>) -> ApiError {
    let Some(start) = start else {
        let message = "The resourceVersion for the provided list is too old.";
        return ApiError::new(StatusCode::GONE, "Expired", message);
    };
    let mut error = ApiError::new(
        StatusCode::GONE,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
         the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
         Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let metadata = shared_json::json!({"continue": ContinueToken::encode(None, start)});
    error.said = Some(Box::new(
        [("metadata".to_owned(), metadata)].into_iter().collect(),
    ));
    error
}
