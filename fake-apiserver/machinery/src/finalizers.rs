//! Finalizers that the server sets and controllers remove.

/// Holds a definition until its objects are gone.
pub const DEFINITION: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Holds a namespace, in its spec, until the namespace controller finds it empty.
pub const NAMESPACE: &str = "kubernetes";
