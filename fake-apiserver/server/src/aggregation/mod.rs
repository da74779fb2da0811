//! Groups of the API that other servers answer. An APIService names the Service at which such a server listens.
//!
//! [`api_service`] reads APIServices. [`availability`] asks the servers whether they answer, and writes that into the statuses of
//! the APIServices. [`proxy`] passes requests on, [`backend`] is the way to a server. [`discovery`] adds the groups to the documents
//! in which this server describes itself.

mod api_service;
mod availability;
mod backend;
mod discovery;
mod proxy;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use pki::FrontProxy;
use shared_json::Value;

pub(crate) use api_service::of_path;
pub(crate) use availability::{Checks, check_all};
pub(crate) use backend::Ways;
pub(crate) use discovery::{add_groups, add_open_api, add_paths, add_resources, specs, with_group};
pub(crate) use proxy::{Asker, forward};

/// An API server within this process, which stands behind a Service.
pub type Extension = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

/// The state of aggregation.
#[derive(Default)]
pub(crate) struct Aggregation {
    /// By the namespace and name of their Service.
    extensions: Mutex<BTreeMap<(String, String), Extension>>,
    front_proxy: OnceLock<Arc<FrontProxy>>,
    /// By the names of their APIServices.
    described: Mutex<BTreeMap<String, Description>>,
}

/// A group version as the server describes it that answers it.
#[derive(Debug, Clone, PartialEq)]
struct Description {
    /// The `APIResourceList`.
    resources: Value,
    /// Its entries of `/openapi/v3`, by path.
    open_api: Vec<(String, Value)>,
    /// The part of its `/openapi/v2` about the group version.
    spec: Option<Arc<Value>>,
    /// Whether it has answered when it was asked last.
    is_fresh: bool,
}

impl Aggregation {
    /// Puts a server of this process behind a Service.
    pub(crate) fn add_extension(&self, namespace: &str, service: &str, extension: Extension) {
        let key = (namespace.to_owned(), service.to_owned());
        lock(&self.extensions).insert(key, extension);
    }

    /// The certificate to show from now on; the first one stays.
    pub(crate) fn show(&self, proxy: Arc<FrontProxy>) {
        self.front_proxy.get_or_init(|| proxy);
    }

    fn extension(&self, namespace: &str, service: &str) -> Option<Extension> {
        let key = (namespace.to_owned(), service.to_owned());
        lock(&self.extensions).get(&key).cloned()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
