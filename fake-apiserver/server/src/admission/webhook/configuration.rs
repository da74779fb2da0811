//! Webhooks of the configurations in the store, and the writes that they match.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use machinery::meta::{at, string_map};
use machinery::selector::matches_selector;
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey, Stored};

use super::conditions;
use crate::admission::Attributes;
use crate::admission::authorizer;
use crate::conversion;
use crate::local_webhook::WebhookKind;
use crate::resources::Resource;
use crate::server::{Server, ServerState};
use crate::webhook_client::ClientConfig;

const GROUP: &str = "admissionregistration.k8s.io";
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// A webhook of a configuration.
pub(super) struct Configured {
    pub name: String,
    pub client: ClientConfig,
    pub timeout: Duration,
    pub ignore_failure: bool,
    pub has_side_effects: bool,
    pub reinvoke_if_needed: bool,
    description: Value,
}

/// In which version, and as which kind, a webhook is asked about a write.
pub(super) struct Concern {
    pub resource: Arc<Resource>,
    /// The object as it is to be and as it was, where the version is not that of the request.
    converted: Option<[Option<Value>; 2]>,
}

impl Concern {
    /// In the version of the request.
    pub(super) fn direct(attributes: &Attributes) -> Self {
        Self {
            resource: Arc::clone(&attributes.resource),
            converted: None,
        }
    }

    /// In that of `resource`, another version of the request's or the same.
    ///
    /// # Errors
    /// 500 if an object cannot be converted.
    async fn of(
        state: &ServerState,
        attributes: &Attributes,
        resource: Arc<Resource>,
    ) -> Result<Self, ApiError> {
        let mut concern = Self {
            resource,
            converted: None,
        };
        let asked = &attributes.resource;
        if concern.resource.api_version() == asked.api_version() || attributes.is_of_own_kind() {
            return Ok(concern);
        }
        let mut objects = [attributes.object.clone(), attributes.old.clone()];
        for object in objects.iter_mut().flatten() {
            *object = convert(state, asked, &concern.resource, std::mem::take(object)).await?;
        }
        concern.converted = Some(objects);
        Ok(concern)
    }

    /// The object as it is to be, in the webhook's version.
    pub(super) fn object<'a>(&'a self, attributes: &'a Attributes) -> Option<&'a Value> {
        match &self.converted {
            Some([object, _]) => object.as_ref(),
            None => attributes.object.as_ref(),
        }
    }

    /// The object as it was, in the webhook's version.
    pub(super) fn old<'a>(&'a self, attributes: &'a Attributes) -> Option<&'a Value> {
        match &self.converted {
            Some([_, old]) => old.as_ref(),
            None => attributes.old.as_ref(),
        }
    }

    /// An object of the webhook's version in that of the request.
    ///
    /// # Errors
    /// 500 if it cannot be converted.
    pub(super) async fn back(
        &self,
        state: &ServerState,
        attributes: &Attributes,
        object: Value,
    ) -> Result<Value, ApiError> {
        match self.converted {
            Some(_) => convert(state, &self.resource, &attributes.resource, object).await,
            None => Ok(object),
        }
    }
}

async fn convert(
    state: &ServerState,
    from: &Resource,
    to: &Resource,
    object: Value,
) -> Result<Value, ApiError> {
    let converted = conversion::between(state, from, to, object).await;
    converted.map_err(|error| ApiError::internal(error.message))
}

fn table(kind: WebhookKind) -> &'static GroupResource {
    static TABLES: LazyLock<[GroupResource; 2]> = LazyLock::new(|| {
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
            .map(|resource| GroupResource::new(GROUP, resource))
    });
    match kind {
        WebhookKind::Mutating => &TABLES[0],
        WebhookKind::Validating => &TABLES[1],
    }
}

fn configurations(state: &ServerState, kind: WebhookKind) -> Vec<Arc<Stored>> {
    let snapshot = state.store.list(table(kind), None, None, None);
    snapshot.map(|snapshot| snapshot.items).unwrap_or_default()
}

/// Whether there is any configuration of a kind.
pub(super) fn any(state: &ServerState, kind: WebhookKind) -> bool {
    state.store.count(table(kind)) > 0
}

/// All webhooks of a kind, in the order of their configurations' names.
pub(super) fn all(state: &ServerState, kind: WebhookKind) -> Vec<Configured> {
    let mut out = Vec::new();
    for configuration in configurations(state, kind) {
        let webhooks = configuration.value.get("webhooks").and_then(Value::as_array);
        out.extend(webhooks.into_iter().flatten().map(Configured::read));
    }
    out
}

impl Configured {
    fn read(description: &Value) -> Self {
        let text = |path: &str| at(description, path).and_then(Value::as_str).unwrap_or_default();
        let seconds = description.get("timeoutSeconds").and_then(Value::as_u64);
        Self {
            name: text("name").to_owned(),
            client: ClientConfig::read(description.get("clientConfig").unwrap_or(&Value::Null)),
            timeout: Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
            ignore_failure: text("failurePolicy") == "Ignore",
            has_side_effects: !matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            reinvoke_if_needed: text("reinvocationPolicy") == "IfNeeded",
            description: description.clone(),
        }
    }

    /// How the webhook is to be asked about a write; `None` if it is not.
    ///
    /// # Errors
    /// 403 if a condition cannot be evaluated and failures count; 500 if an object cannot be converted.
    pub(super) async fn concern(
        &self,
        server: &Server,
        attributes: &Attributes,
    ) -> Result<Option<Concern>, ApiError> {
        let resource = &attributes.resource;
        // A configuration that refuses changes to itself could never be mended.
        if resource.group == GROUP {
            return Ok(None);
        }
        let Some(matched) = self.matched(server, attributes) else {
            return Ok(None);
        };
        if !self.selects_namespace(&server.state, attributes) || !self.selects_object(attributes) {
            return Ok(None);
        }
        let concern = Concern::of(&server.state, attributes, matched).await?;
        let given = self.description.get("matchConditions").and_then(Value::as_array);
        let Some(given) = given.filter(|given| !given.is_empty()) else {
            return Ok(Some(concern));
        };
        let scope = authorizer::scope(server, &attributes.user);
        match conditions::hold(given, attributes, &concern, &scope) {
            Ok(true) => Ok(Some(concern)),
            Ok(false) => Ok(None),
            Err(_) if self.ignore_failure => Ok(None),
            Err(problem) => Err(ApiError::forbidden(
                &resource.group_resource(),
                &attributes.name,
                &problem,
            )),
        }
    }

    /// The resource as which a rule matches: the request's own, or (unless the match is to be exact) another version of it.
    fn matched(&self, server: &Server, attributes: &Attributes) -> Option<Arc<Resource>> {
        let rules = self.description.get("rules").and_then(Value::as_array);
        let rules: Vec<&Value> = rules.into_iter().flatten().collect();
        let matches = |resource: &Resource| rules.iter().any(|rule| covers(rule, resource, attributes));
        if matches(&attributes.resource) {
            return Some(Arc::clone(&attributes.resource));
        }
        if self.description.get("matchPolicy").and_then(Value::as_str) == Some("Exact") {
            return None;
        }
        let same =
            |resource: &Arc<Resource>| resource.table == attributes.resource.table && matches(resource);
        server.state.registry.all().into_iter().find(same)
    }

    fn selects_namespace(&self, state: &ServerState, attributes: &Attributes) -> bool {
        let Some(selector) = self.description.get("namespaceSelector") else {
            return true;
        };
        let is_namespace = attributes.resource.group.is_empty() && attributes.resource.plural == "namespaces";
        if is_namespace {
            let object = attributes.object.as_ref().or(attributes.old.as_ref());
            return object
                .is_some_and(|object| matches_selector(Some(selector), string_map(object, "labels")));
        }
        if attributes.namespace.is_empty() {
            return true;
        }
        let key = ObjectKey::new("", &attributes.namespace);
        let namespace = state.store.get(&GroupResource::new("", "namespaces"), &key);
        namespace
            .is_some_and(|namespace| matches_selector(Some(selector), string_map(&namespace.value, "labels")))
    }

    /// Whether the object as it is or as it was has the labels that are asked for.
    fn selects_object(&self, attributes: &Attributes) -> bool {
        let Some(selector) = self.description.get("objectSelector") else {
            return true;
        };
        let objects = [&attributes.object, &attributes.old];
        objects
            .into_iter()
            .flatten()
            .any(|object| matches_selector(Some(selector), string_map(object, "labels")))
    }
}

/// Whether a rule covers a write of a resource.
fn covers(rule: &Value, resource: &Resource, attributes: &Attributes) -> bool {
    let lists = |field: &str, wanted: &dyn Fn(&str) -> bool| {
        let list = rule.get(field).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).any(wanted)
    };
    let any_or = |field: &str, value: &str| lists(field, &|given| given == "*" || given == value);
    let scope = rule.get("scope").and_then(Value::as_str).unwrap_or("*");
    let in_scope = match scope {
        "Namespaced" => resource.namespaced,
        "Cluster" => !resource.namespaced,
        _ => true,
    };
    let subresource = attributes.subresource.as_str();
    let named = |given: &str| {
        let (main, sub) = given.split_once('/').unwrap_or((given, ""));
        let everything = given == "*/*";
        everything
            || ((main == "*" || main == resource.plural)
                && (sub == subresource || (sub == "*" && given.contains('/'))))
    };
    in_scope
        && any_or("operations", attributes.operation.as_str())
        && any_or("apiGroups", &resource.group)
        && any_or("apiVersions", &resource.version)
        && lists("resources", &named)
}
