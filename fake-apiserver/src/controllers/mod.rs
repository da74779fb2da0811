//! The built-in controllers: what kube-controller-manager does.
//!
//! Each is a client of the API and holds nothing but a `kube::Client`.

mod custom_resources;
mod garbage;
mod graph;
mod namespaces;
mod service_accounts;
mod watching;

pub use custom_resources::CustomResourceCleanup;
pub use garbage::GarbageCollector;
pub use namespaces::NamespaceController;
pub use service_accounts::ServiceAccountController;

/// The finalizer that holds a definition until its objects are gone.
pub(crate) const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
