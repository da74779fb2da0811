//! APIServices, as far as they name a Service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;
use store::{GroupResource, ObjectKey, Store};

use crate::webhook_client::Service;

const DEFAULT_PORT: u16 = 443;

/// An APIService that names a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiService {
    /// `<version>.<group>`
    pub(super) name: String,
    pub(super) group: String,
    pub(super) version: String,
    /// The place of its group among the groups: higher ones come first.
    pub(super) group_priority: i64,
    /// The place of its version within its group: higher ones come first.
    pub(super) version_priority: i64,
    pub(super) service: Service,
    /// Authorities in PEM.
    pub(super) bundle: Vec<u8>,
    /// Whether every certificate will do.
    pub(super) skips_tls: bool,
}

pub(super) fn table() -> GroupResource {
    GroupResource::new("apiregistration.k8s.io", "apiservices")
}

impl ApiService {
    /// Reads one; none without a Service.
    fn read(object: &Value) -> Option<Self> {
        let spec = object.get("spec")?;
        let text = |path: &str| {
            at(spec, path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let number = |path: &str| at(spec, path).and_then(Value::as_i64);
        spec.get("service").filter(|service| service.is_object())?;
        Some(Self {
            name: object.name().to_owned(),
            group: text("group"),
            version: text("version"),
            group_priority: number("groupPriorityMinimum").unwrap_or_default(),
            version_priority: number("versionPriority").unwrap_or_default(),
            service: Service {
                namespace: text("service.namespace"),
                name: text("service.name"),
                path: String::new(),
                port: number("service.port")
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(DEFAULT_PORT),
            },
            bundle: STANDARD.decode(text("caBundle")).unwrap_or_default(),
            skips_tls: at(spec, "insecureSkipTLSVerify").and_then(Value::as_bool) == Some(true),
        })
    }

    /// `/apis/<group>/<version>`
    pub(super) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

/// The condition `Available` of an APIService.
pub(super) fn available(object: &Value) -> Option<&Value> {
    let conditions = at(object, "status.conditions").and_then(Value::as_array)?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Available"))
}

/// All that name a Service, by name.
pub(super) fn all(store: &Store) -> Vec<ApiService> {
    let found = store.list(&table(), None, None, None);
    let items = found.map(|list| list.items).unwrap_or_default();
    items
        .iter()
        .filter_map(|stored| ApiService::read(&stored.value))
        .collect()
}

/// The APIService with a Service that answers for a path, and whether it is available. `is_own` tells which groups this server
/// answers whatever is registered for them.
pub(crate) fn of_path(
    store: &Store,
    path: &str,
    is_own: impl Fn(&str) -> bool,
) -> Option<(ApiService, bool)> {
    let below = path.strip_prefix("/openapi/v3").unwrap_or(path);
    let mut parts = below.strip_prefix("/apis/")?.splitn(3, '/');
    let (group, version) = (parts.next()?, parts.next()?);
    if version.is_empty() || is_own(group) {
        return None;
    }
    let key = ObjectKey::new("", format!("{version}.{group}").as_str());
    let found = store.get(&table(), &key)?;
    let service = ApiService::read(&found.value)?;
    let status = available(&found.value).and_then(|condition| condition.get("status")?.as_str());
    Some((service, status == Some("True")))
}
