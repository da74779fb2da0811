//! The body of a request.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;
use machinery::go_json::{self, Document};
use machinery::status::ApiError;
use shared_json::Value;

use super::decode::{self, Format};

/// The body of a request: text, or, from within this process, an object that is written as text when needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    object: Option<Value>,
    text: OnceLock<Bytes>,
}

impl Payload {
    /// An object of this process.
    pub(crate) fn of_object(object: Value) -> Self {
        Self {
            object: Some(object),
            text: OnceLock::new(),
        }
    }

    /// The document that it is.
    ///
    /// # Errors
    /// The parse error, in Go's words.
    pub(crate) fn document(&self, format: Format) -> Result<Document, String> {
        match self.object() {
            Some(document) => Ok(document),
            None => decode::document(format, self),
        }
    }

    /// The body as a JSON document: a repeated field replaces the former one.
    ///
    /// # Errors
    /// The parse error, in Go's words.
    pub(crate) fn untyped(&self) -> Result<Document, String> {
        match self.object() {
            Some(document) => Ok(document),
            None => go_json::parse_untyped(self),
        }
    }

    /// The body where no object of a resource is expected. Null if it is empty.
    ///
    /// # Errors
    /// 400 for text that does not parse, 415 for an unsupported type.
    pub(crate) fn options(&self, content_type: &str) -> Result<Value, ApiError> {
        match &self.object {
            Some(value) => Ok(value.clone()),
            None => decode::decode(content_type, self),
        }
    }

    fn object(&self) -> Option<Document> {
        let value = self.object.clone()?;
        Some(Document {
            value,
            duplicates: Vec::new(),
        })
    }
}

impl From<Bytes> for Payload {
    fn from(text: Bytes) -> Self {
        Self {
            object: None,
            text: OnceLock::from(text),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text.get_or_init(|| match &self.object {
            Some(object) => Bytes::from(object.to_string()),
            None => Bytes::new(),
        })
    }
}
