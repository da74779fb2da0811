//! Errors of Go's decoder: values of the wrong type, in its words.

use super::go_time;
use super::quantity;
use super::schema::{Kind, Object, Schema};
use crate::go_json;
use shared_json::{Name, Number, Value};

/// Why Go's decoder would refuse a value of a built-in type.
///
/// The server puts `<kind> in version "<version>" cannot be handled as a <kind>: ` before it and answers 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A JSON value of the wrong type: `json: cannot unmarshal string into Go struct field PodSpec.spec.replicas of type int32`.
    #[error("json: cannot unmarshal {found} into Go {place} of type {expected}")]
    WrongType {
        /// The found type: `string`, `object`, `number 1.5`, …
        found: String,
        /// Where: `struct field DeploymentSpec.spec.replicas`, or `value` for the whole.
        place: String,
        /// The Go type.
        expected: String,
    },
    /// Text that is no amount.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Quantity,
    /// Text that is no time, in the words of Go's parser.
    #[error("{0}")]
    Time(String),
    /// A value that is neither a schema nor a boolean.
    #[error("boolean or JSON schema expected")]
    NoSchema,
    /// Text that is no base64.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// The error in a resource within a custom resource.
    #[error("{0}")]
    Embedded(String),
}

impl DecodeError {
    /// The same with numbers as the document writes them.
    pub fn with_written_numbers(mut self, document: Option<&[u8]>) -> Self {
        if let (DecodeError::WrongType { found, .. }, Some(document)) = (&mut self, document)
            && let Some(number) = found.strip_prefix("number ")
            && let Some(literal) = go_json::as_written(&String::from_utf8_lossy(document), number)
        {
            *found = format!("number {literal}");
        }
        self
    }
}

impl Schema {
    /// Checks that Go's decoder would take the value; the error is the first one, in the order of field names.
    ///
    /// Unknown fields are fine here (see [`Schema::prune`]), and so is null, which Go takes for "not set".
    pub fn check_types(&self, value: &Value) -> Result<(), DecodeError> {
        self.check_changed(value, None)
    }

    /// The same, except for parts that share memory with `old`, which are known to be right.
    pub fn check_changed(&self, value: &Value, old: Option<&Value>) -> Result<(), DecodeError> {
        Place::Root(self).check(self, value, old)
    }

    /// The complaint about the error that comes first in the document that a refused value was read from: Go's decoder reads on,
    /// and reports that one. An error in a type with its own decoder ends decoding at once, and is the one reported.
    pub fn first_refused(&self, value: &Value, document: &[u8]) -> Option<DecodeError> {
        let mut found = Vec::new();
        Place::Root(self).all(self, value, "", &mut found);
        if found.len() > 1 {
            let order = go_json::order(document);
            let known = |path: &str| order.iter().position(|known| known == path);
            found.sort_by_key(|refused| {
                let path = refused.path.as_str();
                let whole = known(path);
                let place =
                    whole.or_else(|| known(path.trim_end_matches(|c| c != '[').trim_end_matches('[')));
                (!refused.ends, place)
            });
        }
        found.into_iter().next().map(|refused| refused.error)
    }
}

/// The decoder's error in a document.
struct Refused {
    path: String,
    /// Whether it reads no further.
    ends: bool,
    error: DecodeError,
}

/// Where the decoder is: the Go struct that it is in and the fields to here. Written out only for an error.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root(&'a Schema),
    Field {
        parent: &'a Place<'a>,
        owner: &'a Schema,
        name: &'a str,
    },
}

impl Place<'_> {
    fn check(&self, schema: &Schema, value: &Value, old: Option<&Value>) -> Result<(), DecodeError> {
        if old.is_some_and(|old| old.is_same(value)) {
            return Ok(());
        }
        match (&schema.kind, value) {
            (Kind::Any, _) => self.check_either(schema, value),
            (_, Value::Null) => Ok(()),
            (Kind::Object(object), Value::Object(map)) => {
                let old = old.and_then(Value::as_object);
                map.iter().enumerate().try_for_each(|(index, (name, value))| {
                    let old = old.and_then(|old| old.get_named(name, index));
                    self.check_field(schema, object, (name, value), old)
                })
            }
            (Kind::Array(array), Value::Array(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.check(&array.items, item, item_of(old, index, item))),
            (Kind::String, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_)) => Ok(()),
            (Kind::Integer | Kind::IntOrString, Value::Number(number)) => self.check_integer(schema, number),
            (Kind::IntOrString, Value::String(_)) => Ok(()),
            (Kind::Quantity, value) => quantity::canonical(value).map(drop).ok_or(DecodeError::Quantity),
            (Kind::Time, Value::String(text)) => check_time(text, false),
            (Kind::MicroTime, Value::String(text)) => check_time(text, true),
            (Kind::Bytes, Value::String(text)) => check_base64(text),
            (Kind::Bytes, Value::Array(bytes)) => bytes.iter().try_for_each(|byte| self.check_byte(byte)),
            _ => Err(self.wrong(schema, json_type(value).to_owned())),
        }
    }

    /// Bytes may be given one by one.
    fn check_byte(&self, byte: &Value) -> Result<(), DecodeError> {
        let found = match byte {
            Value::Null => return Ok(()),
            Value::Number(number) if number.as_u64().is_some_and(|byte| byte <= 255) => return Ok(()),
            Value::Number(number) => format!("number {number}"),
            other => json_type(other).to_owned(),
        };
        Err(DecodeError::WrongType {
            found,
            place: format!("struct field {}.{}", self.owner(), self.path()),
            expected: "uint8".to_owned(),
        })
    }

    /// A schema of a definition, in a place where something else may stand, too: it is of the type that it is a part of.
    fn check_either(&self, schema: &Schema, value: &Value) -> Result<(), DecodeError> {
        let Self::Field { owner, .. } = self else {
            return Ok(());
        };
        match (Either::of(schema), value) {
            (Some(_), Value::Object(_)) => self.check(owner, value, None),
            (Some(Either::Several), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.check(owner, item, None))
            }
            (Some(Either::Flag), Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(DecodeError::NoSchema)
            }
            _ => Ok(()),
        }
    }

    fn check_field(
        &self,
        schema: &Schema,
        object: &Object,
        (name, value): (&Name, &Value),
        old: Option<&Value>,
    ) -> Result<(), DecodeError> {
        if let Some(field) = object.fields.named(name) {
            let place = Place::Field {
                parent: self,
                owner: schema,
                name,
            };
            return place.check(&field.schema, value, old);
        }
        match &object.additional {
            Some(values) => self.check(values, value, old),
            None => Ok(()),
        }
    }

    /// All complaints about a value at `path`, with the paths of the wrong values.
    fn all(&self, schema: &Schema, value: &Value, path: &str, found: &mut Vec<Refused>) {
        match (&schema.kind, value) {
            (Kind::Object(object), Value::Object(map)) => {
                for (name, value) in map {
                    let path = match path {
                        "" => name.to_string(),
                        path => format!("{path}.{name}"),
                    };
                    if let Some(field) = object.fields.named(name) {
                        let place = Place::Field {
                            parent: self,
                            owner: schema,
                            name,
                        };
                        place.all(&field.schema, value, &path, found);
                    } else if let Some(values) = &object.additional {
                        self.all(values, value, &path, found);
                    }
                }
            }
            (Kind::Array(array), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.all(&array.items, item, &format!("{path}[{index}]"), found);
                }
            }
            _ => {
                if let Err(error) = self.check(schema, value, None) {
                    found.push(Refused {
                        path: path.to_owned(),
                        ends: decodes_itself(&schema.kind),
                        error,
                    });
                }
            }
        }
    }

    fn check_integer(&self, schema: &Schema, number: &Number) -> Result<(), DecodeError> {
        let narrow = matches!(schema.kind, Kind::IntOrString) || schema.format.as_deref() == Some("int32");
        let fits = number
            .as_i64()
            .is_some_and(|value| !narrow || i32::try_from(value).is_ok());
        if fits {
            Ok(())
        } else {
            Err(self.wrong(schema, format!("number {number}")))
        }
    }

    /// The Go struct.
    fn owner(&self) -> &str {
        match self {
            Self::Root(schema) => short_name(schema),
            Self::Field { owner, .. } => short_name(owner),
        }
    }

    /// The fields to here, with dots between them.
    fn path(&self) -> String {
        let Self::Field { parent, name, .. } = self else {
            return String::new();
        };
        let mut path = parent.path();
        for part in embedded(self.owner(), name).iter().chain([name]) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(part);
        }
        path
    }

    fn wrong(&self, schema: &Schema, found: String) -> DecodeError {
        let (owner, path) = (self.owner(), self.path());
        let place = match path.is_empty() {
            true => "value".to_owned(),
            false => format!("struct field {owner}.{path}"),
        };
        DecodeError::WrongType {
            found,
            place,
            expected: {
                let field = path.rsplit('.').next().unwrap_or_default();
                match (&schema.kind, item_type(owner, field), map_type(owner, field)) {
                    (Kind::Array(_), _, Some(list)) => list.to_owned(),
                    (Kind::Array(_), Some(item), _) => format!("[]v1.{item}"),
                    (Kind::String, Some(item), _) => format!("v1.{item}"),
                    (Kind::Object(object), _, Some(map)) if object.fields.is_empty() => map.to_owned(),
                    _ => go_type(schema),
                }
            },
        }
    }
}

/// Whether Go's type has a decoder of its own.
fn decodes_itself(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Quantity | Kind::Time | Kind::MicroTime | Kind::IntOrString | Kind::Any
    )
}

/// The alternative to a schema at a place of a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Either {
    /// True or false.
    Flag,
    /// A list of schemas.
    Several,
}

impl Either {
    pub(super) fn of(schema: &Schema) -> Option<Self> {
        if !matches!(schema.kind, Kind::Any) {
            return None;
        }
        match short_name(schema) {
            "JSONSchemaPropsOrBool" => Some(Self::Flag),
            "JSONSchemaPropsOrArray" => Some(Self::Several),
            _ => None,
        }
    }
}

/// The old list's counterpart of an item: an equal one, wherever it stood, or the one at the same index.
pub(in crate::types) fn item_of<'a>(old: Option<&'a Value>, index: usize, item: &Value) -> Option<&'a Value> {
    let old = old.and_then(Value::as_array)?;
    let in_place = old.get(index);
    if in_place.is_some_and(|old| old.is_same(item)) {
        return in_place;
    }
    old.iter().find(|old| old.is_same(item)).or(in_place)
}

fn check_time(text: &str, micro: bool) -> Result<(), DecodeError> {
    // What Go reads as null is no time, and not wrong.
    match go_time::complaint(text, micro) {
        None => Ok(()),
        Some(complaint) => Err(DecodeError::Time(complaint)),
    }
}

fn check_base64(text: &str) -> Result<(), DecodeError> {
    match go_base64(text.as_bytes()) {
        None => Ok(()),
        Some(at) => Err(DecodeError::Base64(at)),
    }
}

/// Where Go's decoder of base64 stops; `None` if it does not. Line breaks are passed over and counted.
fn go_base64(text: &[u8]) -> Option<usize> {
    let is_break = |byte: u8| matches!(byte, b'\r' | b'\n');
    let mut at = 0;
    loop {
        let mut digits = 0;
        while digits < 4 {
            let Some(&byte) = text.get(at) else {
                // A last group that is not whole is wrong at its beginning.
                return (digits > 0).then(|| at - digits);
            };
            at += 1;
            match byte {
                _ if is_break(byte) => {}
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => digits += 1,
                b'=' if digits >= 2 => {
                    let mut rest = at;
                    let skip = |rest: &mut usize| {
                        while text.get(*rest).copied().is_some_and(is_break) {
                            *rest += 1;
                        }
                    };
                    skip(&mut rest);
                    if digits == 2 {
                        match text.get(rest) {
                            None => return Some(text.len()),
                            Some(b'=') => rest += 1,
                            Some(_) => return Some(rest),
                        }
                        skip(&mut rest);
                    }
                    return (rest < text.len()).then_some(rest);
                }
                _ => return Some(at - 1),
            }
        }
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The structs within a struct that have the field, where Go's types embed some; its decoder names all.
fn embedded(owner: &str, field: &str) -> &'static [&'static str] {
    match (owner, field) {
        ("Probe", "exec" | "httpGet" | "tcpSocket" | "grpc") => &["ProbeHandler"],
        (
            "PersistentVolumeSpec",
            "accessModes"
            | "capacity"
            | "claimRef"
            | "mountOptions"
            | "nodeAffinity"
            | "persistentVolumeReclaimPolicy"
            | "storageClassName"
            | "volumeAttributesClassName"
            | "volumeMode",
        ) => &[],
        ("PersistentVolumeSpec", _) => &["PersistentVolumeSource"],
        ("IngressRule", "http") => &["IngressRuleValue"],
        ("Volume", field) if field != "name" => &["VolumeSource"],
        ("EphemeralContainer", field) if field != "targetContainerName" => &["EphemeralContainerCommon"],
        (
            "ConfigMapEnvSource"
            | "SecretEnvSource"
            | "ConfigMapKeySelector"
            | "SecretKeySelector"
            | "ConfigMapProjection"
            | "SecretProjection"
            | "ConfigMapVolumeSource",
            "name",
        ) => &["LocalObjectReference"],
        ("NamedRuleWithOperations", "operations") => &["RuleWithOperations"],
        ("NamedRuleWithOperations", "apiGroups" | "apiVersions" | "resources" | "scope") => {
            &["RuleWithOperations", "Rule"]
        }
        (
            "DeviceClaimConfiguration" | "DeviceAllocationConfiguration" | "DeviceClassConfiguration",
            "opaque",
        ) => &["DeviceConfiguration"],
        ("RuleWithOperations", "apiGroups" | "apiVersions" | "resources" | "scope") => &["Rule"],
        _ => &[],
    }
}

/// The Go type of a map whose keys are texts of a kind of their own, or of a list that has a name.
fn map_type(owner: &str, field: &str) -> Option<&'static str> {
    Some(match (owner, field) {
        ("JSONSchemaProps", "x-kubernetes-validations") => "v1.ValidationRules",
        ("JSONSchemaProps", "definitions") => "v1.JSONSchemaDefinitions",
        ("JSONSchemaProps", "dependencies") => "v1.JSONSchemaDependencies",
        ("Device", "attributes") => "map[v1.QualifiedName]v1.DeviceAttribute",
        ("Device", "capacity") => "map[v1.QualifiedName]v1.DeviceCapacity",
        ("CapacityRequirements", "requests") | ("DeviceRequestAllocationResult", "consumedCapacity") => {
            "map[v1.QualifiedName]resource.Quantity"
        }
        ("PersistentVolumeClaimStatus", "allocatedResourceStatuses") => {
            "map[v1.ResourceName]v1.ClaimResourceStatus"
        }
        ("UserInfo" | "SubjectAccessReviewSpec" | "CertificateSigningRequestSpec", "extra") => {
            "map[string]v1.ExtraValue"
        }
        _ => return None,
    })
}

/// The Go type of a list's items that are texts of a kind of their own.
fn item_type(owner: &str, field: &str) -> Option<&'static str> {
    Some(match (owner, field) {
        (
            "PersistentVolumeClaimSpec" | "PersistentVolumeClaimStatus" | "PersistentVolumeSpec",
            "accessModes",
        ) => "PersistentVolumeAccessMode",
        ("NodeStatus", "volumesInUse") => "UniqueVolumeName",
        ("ResourceQuotaSpec", "scopes") => "ResourceQuotaScope",
        ("RuleWithOperations" | "NamedRuleWithOperations", "operations") => "OperationType",
        ("NetworkPolicySpec", "policyTypes") => "PolicyType",
        ("NamespaceSpec", "finalizers") => "FinalizerName",
        ("CertificateSigningRequestSpec", "usages") => "KeyUsage",
        ("CSIDriverSpec", "volumeLifecycleModes") => "VolumeLifecycleMode",
        ("ValidatingAdmissionPolicyBindingSpec", "validationActions") => "ValidationAction",
        ("Capabilities", "add" | "drop") => "Capability",
        ("ServiceSpec", "ipFamilies") => "IPFamily",
        _ => return None,
    })
}

/// `Container` of `io.k8s.api.core.v1.Container`.
fn short_name(schema: &Schema) -> &str {
    let name = schema.name.as_deref().unwrap_or_default();
    name.rsplit('.').next().unwrap_or(name)
}

/// The Go name of a type: `[]v1.Container`, `map[string]string`, `int32`.
fn go_type(schema: &Schema) -> String {
    if let Some(name) = &schema.go_type {
        return name.to_string();
    }
    match &schema.kind {
        Kind::Object(object) => match (&object.additional, &schema.name) {
            (_, Some(name)) => package_name(name),
            (Some(values), None) if matches!(values.kind, Kind::Quantity) => "v1.ResourceList".to_owned(),
            (Some(values), None) if matches!(values.kind, Kind::Time) => "map[string]v1.Time".to_owned(),
            (Some(values), None) => format!("map[string]{}", go_type(values)),
            (None, None) => "map[string]interface {}".to_owned(),
        },
        Kind::Array(array) => format!("[]{}", go_type(&array.items)),
        // Go's time decoder unmarshals into a plain string first.
        Kind::String | Kind::Time | Kind::MicroTime => "string".to_owned(),
        Kind::Integer => schema.format.as_deref().unwrap_or("int64").to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::IntOrString => "int32".to_owned(),
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::Bytes => "[]uint8".to_owned(),
        Kind::Any => "interface {}".to_owned(),
    }
}

/// `v1.Container` of `io.k8s.api.core.v1.Container`.
fn package_name(name: &str) -> String {
    let mut parts = name.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let package = parts.next().unwrap_or_default();
    format!("{package}.{last}")
}

#[cfg(test)]
mod tests {
    use crate::types::builtin;
    use rstest::rstest;
    use shared_json::{Value, json};

    /// Recorded of a 1.36.2 server (groups `field-validation` and `malformed`), without the words before the error.
    #[rstest]
    #[case("v1", "ConfigMap", json!({"data": {"k": true}}),
        "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string")]
    #[case("v1", "Pod", json!({"spec": {"containers": {}}}),
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container")]
    #[case("v1", "Pod", json!({"spec": {"containers": [[]]}}),
        "json: cannot unmarshal array into Go struct field PodSpec.spec.containers of type v1.Container")]
    #[case("v1", "Pod", json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": true}}}]}}),
        "json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32")]
    #[case("v1", "Pod", json!({"spec": []}), "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec")]
    #[case("v1", "Pod", json!({"spec": {"terminationGracePeriodSeconds": "5"}}),
        "json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64")]
    #[case("v1", "Pod", json!({"spec": {"hostNetwork": "yes"}}),
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool")]
    #[case("apps/v1", "Deployment", json!({"spec": {"replicas": 1.5}}),
        "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case("apps/v1", "Deployment", json!({"spec": {"replicas": 99999999999i64}}),
        "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case("v1", "Service", json!({"spec": {"ports": [{"targetPort": true}]}}),
        "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32")]
    #[case("v1", "Service", json!({"spec": {"ports": [{"targetPort": 80.5}]}}),
        "json: cannot unmarshal number 80.5 into Go struct field ServicePort.spec.ports.targetPort of type int32")]
    #[case("v1", "Pod", json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "abc"}}}]}}),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    #[case("v1", "Secret", json!({"data": {"k": ["a"]}}), "json: cannot unmarshal string into Go struct field Secret.data of type uint8")]
    #[case("v1", "Secret", json!({"data": {"k": [1, 256]}}), "json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8")]
    #[case("v1", "Secret", json!({"data": {"k": "%%%"}}), "illegal base64 data at input byte 0")]
    #[case("v1", "Secret", json!({"data": {"k": "1"}}), "illegal base64 data at input byte 0")]
    #[case("v1", "Secret", json!({"data": {"k": "aGk"}}), "illegal base64 data at input byte 0")]
    #[case("v1", "Secret", json!({"data": {"k": "aGk=x"}}), "illegal base64 data at input byte 4")]
    #[case("v1", "Secret", json!({"data": {"k": "aGVsbG8="}}), "")]
    #[case("v1", "Secret", json!({"data": {"k": "aGVs\nbG8="}}), "")]
    #[case("v1", "Secret", json!({"data": {"k": "YQ="}}), "illegal base64 data at input byte 3")]
    #[case("v1", "Secret", json!({"data": {"k": 5}}),
        "json: cannot unmarshal number into Go struct field Secret.data of type []uint8")]
    #[case("v1", "ConfigMap", json!({"metadata": {"creationTimestamp": "soon"}}),
        r#"parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006""#)]
    #[case("v1", "ConfigMap", json!({"metadata": "x"}),
        "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta")]
    #[case("v1", "ConfigMap", json!({"metadata": {"name": 5}}),
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string")]
    #[case("v1", "ConfigMap", json!({"metadata": {"labels": "x"}}),
        "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string")]
    #[case("v1", "Namespace", json!({"spec": {"finalizers": [5]}}),
        "json: cannot unmarshal number into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName")]
    #[case("v1", "ConfigMap", json!({"metadata": null, "data": {"k": null}, "nope": 5}), "")]
    fn refuses_what_go_refuses(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] value: Value,
        #[case] error: &str,
    ) {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        let schema = builtin((group, version, kind)).unwrap();
        let found = schema
            .check_types(&value)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert_eq!(found, error);
    }

    #[rstest]
    #[case(
        "StorageClass",
        r#"{"provisioner": true, "parameters": 5}"#,
        "StorageClass.provisioner of type string"
    )]
    #[case(
        "StorageClass",
        r#"{"parameters": {"b": [], "a": 5}, "provisioner": true}"#,
        "StorageClass.parameters of type string"
    )]
    fn tells_of_what_stands_first(#[case] kind: &str, #[case] document: &str, #[case] error: &str) {
        let schema = builtin(("storage.k8s.io", "v1", kind)).unwrap();
        let value = shared_json::from_str(document).unwrap();
        let found = schema.first_refused(&value, document.as_bytes()).unwrap();
        assert!(found.to_string().ends_with(error), "{found}");
    }
}
