//! The built-in types of Kubernetes 1.36: OpenAPI's types from `k8s-openapi`, joined with the facts table.
//!
//! A definition is converted when the first type that needs it is asked for, once per process, and shared by all.

use super::facts::{self, FieldFacts};
use super::schema::{Array, Child, Definition, Field, Kind, ListType, Object, Schema};
use k8s_openapi::{api, apiextensions_apiserver, apimachinery, kube_aggregator};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use shared_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(super) const DEFINITIONS: &str = "#/$defs/";

type Add = fn(&mut SchemaGenerator) -> schemars::Schema;

/// One row per kind that a 1.36 server stores or takes: group, version, kind, and the type in `k8s-openapi`.
macro_rules! kinds {
    ($($group:literal $version:literal $module:tt { $($kind:ident)* })*) => {
        const KINDS: &[(&str, &str, &str, Add)] = &[$($(
            ($group, $version, stringify!($kind), |generator| kinds!(@add generator $module $kind)),
        )*)*];
    };
    (@add $generator:ident ($($module:ident)::+) $kind:ident) => {
        $generator.subschema_for::<$($module)::+::$kind>()
    };
}

kinds! {
    "" "v1" (api::core::v1) {
        Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod
        PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
    }
    "" "v1" (apimachinery::pkg::apis::meta::v1) { DeleteOptions Status ObjectMeta }
    "admissionregistration.k8s.io" "v1" (api::admissionregistration::v1) {
        MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy
        ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
    }
    "apiextensions.k8s.io" "v1" (apiextensions_apiserver::pkg::apis::apiextensions::v1) { CustomResourceDefinition }
    "apiregistration.k8s.io" "v1" (kube_aggregator::pkg::apis::apiregistration::v1) { APIService }
    "apps" "v1" (api::apps::v1) { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
    "authentication.k8s.io" "v1" (api::authentication::v1) { SelfSubjectReview TokenRequest TokenReview }
    "authorization.k8s.io" "v1" (api::authorization::v1) {
        LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
    }
    "autoscaling" "v1" (api::autoscaling::v1) { HorizontalPodAutoscaler Scale }
    "autoscaling" "v2" (api::autoscaling::v2) { HorizontalPodAutoscaler }
    "batch" "v1" (api::batch::v1) { CronJob Job }
    "certificates.k8s.io" "v1" (api::certificates::v1) { CertificateSigningRequest }
    "coordination.k8s.io" "v1" (api::coordination::v1) { Lease }
    "discovery.k8s.io" "v1" (api::discovery::v1) { EndpointSlice }
    "events.k8s.io" "v1" (api::events::v1) { Event }
    "flowcontrol.apiserver.k8s.io" "v1" (api::flowcontrol::v1) { FlowSchema PriorityLevelConfiguration }
    "networking.k8s.io" "v1" (api::networking::v1) { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
    "node.k8s.io" "v1" (api::node::v1) { RuntimeClass }
    "policy" "v1" (api::policy::v1) { Eviction PodDisruptionBudget }
    "rbac.authorization.k8s.io" "v1" (api::rbac::v1) { ClusterRole ClusterRoleBinding Role RoleBinding }
    "resource.k8s.io" "v1" (api::resource::v1) { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
    "scheduling.k8s.io" "v1" (api::scheduling::v1) { PriorityClass }
    "storage.k8s.io" "v1" (api::storage::v1) {
        CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass
    }
}

/// The description of a built-in kind, by group, version and kind; none for a kind that 1.36 does not serve.
///
/// The kinds are those of discovery, and those that a subresource takes or gives (`Scale`, `Eviction`, `TokenRequest`,
/// `Binding`). `DeleteOptions`, `Status` and `ObjectMeta` are found under the empty group and `v1`.
///
/// ```
/// let pod = machinery::types::builtin(("", "v1", "Pod")).unwrap();
/// assert!(pod.at(&["spec", "containers", "image"]).is_some());
/// ```
pub fn builtin(gvk: (&str, &str, &str)) -> Option<Arc<Schema>> {
    let (group, version, kind) = gvk;
    let row = KINDS
        .iter()
        .position(|(g, v, k, _)| (*g, *v, *k) == (group, version, kind))?;
    let mut known = known();
    if let Some(schema) = known.kinds.get(&row) {
        return Some(schema.clone());
    }
    let (_, _, _, add) = KINDS.get(row)?;
    let schema = known.add(*add);
    known.kinds.insert(row, schema.clone());
    Some(schema)
}

fn known() -> MutexGuard<'static, Registry> {
    static KNOWN: OnceLock<Mutex<Registry>> = OnceLock::new();
    KNOWN
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// OpenAPI's definitions as they are generated, by name.
pub(super) type Definitions = serde_json::Map<String, serde_json::Value>;

/// Looks at OpenAPI's definitions of all kinds that have been asked for so far, by name.
pub(super) fn with_definitions<T>(look: impl FnOnce(&Definitions) -> T) -> T {
    look(known().generator.definitions())
}

/// OpenAPI's description of the field at the end of a path (`spec.replicas`) of a built-in kind; empty if there is none.
pub fn field_description(gvk: (&str, &str, &str), path: &str) -> String {
    let name = builtin(gvk)
        .and_then(|schema| schema.name.clone())
        .unwrap_or_default();
    let referred = |schema: &serde_json::Value| {
        let path = schema.get("$ref")?.as_str()?;
        path.strip_prefix(DEFINITIONS).map(str::to_owned)
    };
    with_definitions(|definitions| {
        let mut at = definitions.get(&*name)?;
        let mut fields = path.split('.').peekable();
        while let Some(field) = fields.next() {
            let property = at.get("properties")?.get(field)?;
            if fields.peek().is_none() {
                return property.get("description")?.as_str().map(str::to_owned);
            }
            let inner = property.get("items").unwrap_or(property);
            at = match referred(inner) {
                Some(name) => definitions.get(&name)?,
                None => inner,
            };
        }
        None
    })
    .unwrap_or_default()
}

/// Every built-in kind: group, version, kind.
pub fn builtin_kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    KINDS
        .iter()
        .map(|(group, version, kind, _)| (*group, *version, *kind))
}

/// The description of `metadata`, which every object has.
///
/// Custom resources keep only its declared fields: prune and check their `metadata` with it.
pub fn object_meta() -> Arc<Schema> {
    builtin(("", "v1", "ObjectMeta")).unwrap_or_default()
}

struct Registry {
    generator: SchemaGenerator,
    definitions: BTreeMap<String, Arc<Definition>>,
    kinds: BTreeMap<usize, Arc<Schema>>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            generator: SchemaSettings::draft2020_12().into_generator(),
            definitions: BTreeMap::new(),
            kinds: BTreeMap::new(),
        }
    }
}

impl Registry {
    /// Generates a type with all types that it refers to, and converts the new ones.
    fn add(&mut self, add: Add) -> Arc<Schema> {
        let root = add(&mut self.generator);
        let fresh: BTreeMap<String, Value> = self
            .generator
            .definitions()
            .iter()
            .filter(|(name, _)| !self.definitions.contains_key(*name))
            .map(|(name, schema)| (name.clone(), schema.clone().into()))
            .collect();
        for name in fresh.keys() {
            let definition = Definition {
                name: name.as_str().into(),
                schema: OnceLock::new(),
            };
            self.definitions.insert(name.clone(), Arc::new(definition));
        }
        for (name, schema) in fresh {
            let converted = Arc::new(self.definition(&name, schema));
            if let Some(definition) = self.definitions.get(&name) {
                // It was inserted empty a moment ago, under the registry's lock.
                let _ = definition.schema.set(converted);
            }
        }
        self.convert(root.to_value().into(), None).shared()
    }

    fn definition(&self, name: &str, schema: Value) -> Schema {
        let kind = match name.rsplit('.').next().unwrap_or(name) {
            "Quantity" => Some(Kind::Quantity),
            "IntOrString" => Some(Kind::IntOrString),
            "Time" => Some(Kind::Time),
            "MicroTime" => Some(Kind::MicroTime),
            _ => None,
        };
        let mut converted = match kind {
            Some(kind) => Schema::of(kind),
            None => self.schema(schema, Some(name)),
        };
        converted.name = Some(name.into());
        converted
    }

    fn convert(&self, schema: Value, facts: Option<&FieldFacts>) -> Child {
        let reference = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|path| path.strip_prefix(DEFINITIONS));
        if let Some(definition) = reference.and_then(|name| self.definitions.get(name)) {
            let parted = facts.is_some_and(|facts| facts.map == Some("granular"));
            let raw = self.generator.definitions().get(&*definition.name);
            return match raw.filter(|_| parted) {
                Some(raw) => {
                    let mut schema = self.definition(&definition.name, raw.clone().into());
                    if let Kind::Object(object) = &mut schema.kind {
                        object.atomic = false;
                    }
                    schema.into()
                }
                None => Child::named(definition.clone()),
            };
        }
        let mut schema = self.schema(schema, None);
        if let Some(facts) = facts {
            apply_facts(&mut schema, facts);
        }
        schema.into()
    }

    fn schema(&self, schema: Value, name: Option<&str>) -> Schema {
        let Value::Object(mut schema) = schema else {
            return Schema::default_any();
        };
        let format = schema.get("format").and_then(Value::as_str).map(Arc::from);
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(&mut schema, name),
            Some("array") => Kind::Array(Array {
                items: schema
                    .remove("items")
                    .map(|items| self.convert(items, None))
                    .unwrap_or_default(),
                list_type: ListType::Atomic,
            }),
            Some("string") if format.as_deref() == Some("byte") => Kind::Bytes,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Any,
        };
        let description = match schema.remove("description") {
            Some(Value::String(text)) => Some(text.as_str().into()),
            _ => None,
        };
        Schema {
            kind,
            format,
            description,
            ..Schema::default_any()
        }
    }

    fn object(&self, schema: &mut Map, name: Option<&str>) -> Kind {
        let mut object = Object::default();
        if let Some(Value::Object(properties)) = schema.remove("properties") {
            let facts = name.map(facts::of).unwrap_or_default();
            let nothing = FieldFacts::default();
            object.atomic = facts.atomic;
            for (field, schema) in properties {
                let known = facts.fields.get(field.as_str()).unwrap_or(&nothing);
                let field_schema = Field {
                    schema: self.convert(schema, Some(known)),
                    default: known.default.clone(),
                    zero: known.zero.clone(),
                    patch: known.patch.clone(),
                    written: known.written,
                    pointer: known.pointer,
                };
                object.fields.insert(field, field_schema);
            }
        }
        object.additional = schema
            .remove("additionalProperties")
            .map(|values| self.convert(values, None));
        // FieldsV1, RawExtension and JSON are objects without a word about their fields: any JSON.
        if object.fields.is_empty() && object.additional.is_none() && !name.is_some_and(is_empty_struct) {
            return Kind::Any;
        }
        Kind::Object(object)
    }
}

/// Go structs without fields.
fn is_empty_struct(name: &str) -> bool {
    !["FieldsV1", "RawExtension", "JSON"].contains(&name.rsplit('.').next().unwrap_or(name))
}

fn apply_facts(schema: &mut Schema, facts: &FieldFacts) {
    match &mut schema.kind {
        Kind::Array(array) => {
            array.list_type = match facts.list {
                Some("map") => ListType::Map(facts.keys.iter().map(|key| (*key).to_owned()).collect()),
                Some("set") => ListType::Set,
                // Without a list type, a merged list is one of sets or maps, as in the published OpenAPI.
                None if facts.patch.merge => match &facts.patch.key {
                    Some(key) => ListType::Map(vec![key.clone()]),
                    None => ListType::Set,
                },
                _ => ListType::Atomic,
            }
        }
        Kind::Object(object) => object.atomic = facts.map == Some("atomic"),
        _ => {}
    }
    schema.go_type = facts.go_type.map(Arc::from);
    schema.allowed.clone_from(&facts.allowed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_metadata_or_is_an_option() {
        for (group, version, kind) in builtin_kinds() {
            let schema = builtin((group, version, kind)).unwrap();
            let named = schema.name.as_deref().unwrap().rsplit('.').next().unwrap();
            assert_eq!(named, kind);
            let meta = schema
                .field("metadata")
                .and_then(|field| field.schema.name.clone());
            match kind {
                "DeleteOptions" | "ObjectMeta" => assert!(meta.is_none()),
                "Status" => assert!(meta.unwrap().ends_with("ListMeta")),
                _ => assert_eq!(
                    meta.as_deref(),
                    Some("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
                    "{group}/{version} {kind}"
                ),
            }
        }
    }

    #[test]
    fn every_fact_is_about_a_field_that_exists() {
        let mut unknown = Vec::new();
        for gvk in builtin_kinds() {
            let root = builtin(gvk).unwrap();
            visit(&root, &mut std::collections::BTreeSet::new(), &mut unknown);
        }
        assert_eq!(unknown, Vec::<String>::new());
    }

    fn visit(schema: &Schema, seen: &mut std::collections::BTreeSet<String>, unknown: &mut Vec<String>) {
        if let Some(name) = &schema.name
            && !seen.insert(name.to_string())
        {
            return;
        }
        match &schema.kind {
            Kind::Array(array) => visit(&array.items, seen, unknown),
            Kind::Object(object) => {
                let facts = schema.name.as_deref().map(facts::of).unwrap_or_default();
                unknown.extend(
                    facts
                        .fields
                        .keys()
                        .filter(|f| !object.fields.contains_key(f))
                        .map(|f| format!("{}.{f}", schema.name.as_deref().unwrap_or_default())),
                );
                object
                    .fields
                    .values()
                    .for_each(|field| visit(&field.schema, seen, unknown));
                object
                    .additional
                    .iter()
                    .for_each(|values| visit(values, seen, unknown));
            }
            _ => {}
        }
    }
}
