//! Paths besides those of Kubernetes, for the program around the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Method;
use machinery::status::ApiError;
use shared_json::Value;

/// A request for a page.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// The method.
    pub method: Method,
    /// The body, whole.
    pub body: Bytes,
}

/// Answers the requests for a path with JSON.
pub type Page = Arc<dyn Fn(PageRequest) -> BoxFuture<'static, Result<Value, ApiError>> + Send + Sync>;

/// The pages of a server, by path.
#[derive(Default)]
pub(crate) struct Pages(Mutex<BTreeMap<String, Page>>);

impl Pages {
    pub(crate) fn add(&self, path: &str, page: Page) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(path.to_owned(), page);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Page> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.get(path).cloned()
    }
}
