//! Hashes over Go's structs: the names of ReplicaSets and of revisions, the order of a service's ports, and the kubelet's hash of a
//! container.
//!
//! The real controllers print a struct with the library spew, as `dump.ForHash` of `k8s.io/utils` configures it, and hash
//! that text. So the text must be Go's own: every field in its order, unset ones included, with the
//! names of types. `types.txt` describes the structs (`generators/go-structs` makes it); it is read when
//! the first hash is asked for. A [`Program`] says which of the fields the controller's Kubernetes library has.
//!
//! ```
//! use go_dump::{Program, template_hash};
//! use shared_json::json;
//!
//! let template = json!({"spec": {"containers": [{"name": "main", "image": "nginx"}]}});
//! let [ours, theirs] = [Program::KUBERNETES, Program::OPENKRUISE].map(|program| template_hash(&program, &template, None));
//! assert_ne!(ours, theirs);
//! ```

mod quantity;
mod table;

use std::fmt::Write as _;

use shared_json::{Array, Map, Name, Value, to_go_string};

use table::{Definition, Field, definition};

/// The Go program whose hashes are wanted, as far as they depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Fields of `types.txt` that are newer than the program's Kubernetes library: the type, and the field's name in Go.
    lacks: &'static [(&'static str, &'static str)],
    /// Whether an empty list or map reads as none.
    empty_is_nil: bool,
}

impl Program {
    /// The built-in controllers of Kubernetes 1.36. They read protobuf, which has no empty lists.
    pub const KUBERNETES: Self = Self {
        lacks: &[],
        empty_is_nil: true,
    };

    /// The manager of OpenKruise 1.9.0: Kubernetes 1.32.10, read from JSON.
    pub const OPENKRUISE: Self = Self {
        lacks: &[
            ("v1.Container", "RestartPolicyRules"),
            ("v1.EnvVarSource", "FileKeyRef"),
            ("v1.EphemeralContainerCommon", "RestartPolicyRules"),
            ("v1.Lifecycle", "StopSignal"),
            ("v1.PodSpec", "HostnameOverride"),
            ("v1.PodSpec", "SchedulingGroup"),
            ("v1.VolumeProjection", "PodCertificate"),
        ],
        empty_is_nil: false,
    };

    fn lacks(&self, ty: &str, field: &str) -> bool {
        self.lacks.contains(&(ty, field))
    }
}

/// The hash of a pod template in the names of ReplicaSets and of a DaemonSet's revisions, with the count of collisions if there
/// is one.
#[must_use]
pub fn template_hash(program: &Program, template: &Value, collisions: Option<i64>) -> String {
    let mut bytes = dump(program, "v1.PodTemplateSpec", template).into_bytes();
    if let Some(count) = collisions {
        let count = u32::try_from(count).unwrap_or_default();
        bytes.extend(count.to_le_bytes());
        bytes.extend([0; 4]);
    }
    hash32(&bytes)
}

/// The hash of the template of ImagePullJobs, as OpenKruise's ImageListPullJobs have it in a label: all fields of the list's spec
/// but its images.
#[must_use]
pub fn pull_job_hash(template: &Value) -> String {
    hash32(dump(&Program::OPENKRUISE, "v1beta1.ImagePullJobTemplate", template).as_bytes())
}

/// The hash of a container that the kubelet (1.31 and later) gives its runtime: of its name and image.
#[must_use]
pub fn container_hash(name: &str, image: Option<&str>) -> u64 {
    // The kubelet omits the image when it is empty. Go writes the fields of a map by name.
    let fields = [("image", image), ("name", Some(name))];
    let fields = fields
        .into_iter()
        .filter_map(|(field, value)| Some((field, value?)));
    bytes_hash(to_go_string(&Value::from_iter(fields)).as_bytes())
}

/// The hash of a slice of bytes (`DeepHashObject` of Kubernetes, 32 bits).
#[must_use]
pub fn bytes_hash(bytes: &[u8]) -> u64 {
    let printed: Vec<String> = bytes.iter().map(u8::to_string).collect();
    u64::from(fnv(format!("([]uint8)[{}]", printed.join(" ")).as_bytes()))
}

/// FNV-1a, 32 bits, in the letters of names.
fn hash32(bytes: &[u8]) -> String {
    client_kit::safe_encode(&fnv(bytes).to_string())
}

/// FNV-1a, 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// The sort key of the ports of EndpointSlices.
#[must_use]
pub fn slice_port_hash(port: &Value) -> u128 {
    hash128("v1.EndpointPort@discovery", port)
}

/// The sort key of the ports of Endpoints.
#[must_use]
pub fn port_hash(port: &Value) -> u128 {
    hash128("v1.EndpointPort", port)
}

/// The sort key of the subsets of Endpoints.
#[must_use]
pub fn subset_hash(subset: &Value) -> u128 {
    hash128("v1.EndpointSubset", subset)
}

/// FNV-1a, 128 bits, over the text of a struct.
fn hash128(ty: &str, value: &Value) -> u128 {
    dump(&Program::KUBERNETES, ty, value)
        .bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
        })
}

/// The text of a value of a Go type that `types.txt` knows.
fn dump(program: &Program, ty: &str, value: &Value) -> String {
    let mut out = String::with_capacity(4096);
    write(&mut out, program, ty, value, true);
    out
}

/// Writes a value, with its type in brackets before it if it is `typed` (not so for the items of lists and maps).
fn write(out: &mut String, program: &Program, ty: &str, value: &Value, typed: bool) {
    if let Some(inner) = ty.strip_prefix('*') {
        match (value.is_null(), typed) {
            (true, true) => out.extend(["(*", shown(inner), ")<nil>"]),
            (true, false) => out.push_str("<nil>"),
            (false, true) => out.extend(["(*", shown(inner), ")"]),
            (false, false) => out.push_str("<*>"),
        }
        if !value.is_null() {
            write(out, program, inner, value, false);
        }
        return;
    }
    if typed {
        out.extend(["(", shown(ty), ")"]);
    }
    let mut ty = ty;
    let mut found = definition(ty);
    while let Some(Definition::Named(other)) = found {
        ty = other;
        found = definition(ty);
    }
    if let Some(Definition::Struct(fields)) = found {
        let fields = fields.iter().filter(|field| !program.lacks(ty, field.name));
        return write_struct(out, program, fields, value);
    }
    if let Some(item) = ty.strip_prefix("[]") {
        return write_list(out, program, item, value);
    }
    if let Some((_, item)) = ty.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return write_map(out, program, item, value);
    }
    match ty {
        "string" => out.push_str(value.as_str().unwrap_or_default()),
        "bool" => out.push_str(if value.as_bool() == Some(true) {
            "true"
        } else {
            "false"
        }),
        "resource.Quantity" => quantity::write(out, value.as_str().unwrap_or("0")),
        "v1.Time" => write_time(out, value),
        "intstr.IntOrString" => write_int_or_string(out, value),
        "v1.FieldsV1" => out.push_str("{Raw:([]uint8)<nil>}"),
        _ => {
            let _ = write!(out, "{}", value.as_i64().unwrap_or_default());
        }
    }
}

/// The name of a type as Go prints it.
fn shown(ty: &str) -> &str {
    ty.split('@').next().unwrap_or(ty)
}

fn write_struct<'a>(
    out: &mut String,
    program: &Program,
    fields: impl Iterator<Item = &'a Field>,
    value: &Value,
) {
    out.push('{');
    for (at, field) in fields.enumerate() {
        if at > 0 {
            out.push(' ');
        }
        out.extend([field.name, ":"]);
        let inner = match &field.json {
            Some(json) => value.get(json).unwrap_or(&Value::Null),
            None => value,
        };
        write(out, program, field.ty, inner, true);
    }
    out.push('}');
}

/// Whether a list or map without items is nil.
fn is_nil(program: &Program, is_there: bool) -> bool {
    program.empty_is_nil || !is_there
}

fn write_list(out: &mut String, program: &Program, item: &str, value: &Value) {
    let items = value.as_array().map(Array::as_slice).unwrap_or_default();
    if items.is_empty() && is_nil(program, value.is_array()) {
        out.push_str("<nil>");
        return;
    }
    out.push('[');
    for (at, value) in items.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        write(out, program, item, value, false);
    }
    out.push(']');
}

fn write_map(out: &mut String, program: &Program, item: &str, value: &Value) {
    let mut pairs: Vec<(&Name, &Value)> = value.as_object().map(Map::iter).into_iter().flatten().collect();
    if pairs.is_empty() && is_nil(program, value.is_object()) {
        out.push_str("<nil>");
        return;
    }
    pairs.sort_by_key(|(key, _)| *key);
    out.push_str("map[");
    for (at, (key, value)) in pairs.into_iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        out.extend([key, ":"]);
        write(out, program, item, value, false);
    }
    out.push(']');
}

/// A moment, in seconds since the year one; the zone, which would be that of the controller's machine, is left out.
fn write_time(out: &mut String, value: &Value) {
    let seconds = value
        .as_str()
        .and_then(|text| text.parse::<jiff::Timestamp>().ok())
        .map_or(0, |at| at.as_second() + 62_135_596_800);
    let _ = write!(
        out,
        "{{Time:(time.Time){{wall:(uint64)0 ext:(int64){seconds} loc:(*time.Location)<nil>}}}}"
    );
}

fn write_int_or_string(out: &mut String, value: &Value) {
    let (kind, number, text) = match value {
        Value::String(text) => (1, 0, text.as_str()),
        other => (0, other.as_i64().unwrap_or_default(), ""),
    };
    let _ = write!(
        out,
        "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"
    );
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// Every row was computed by Go: `generators/go-structs`.
    #[test]
    fn hashes_are_those_of_go() {
        let mut rows = 0;
        for line in include_str!("hashes.jsonl").lines() {
            let row: Value = shared_json::from_str(line).unwrap();
            if let Some(template) = row.get("template") {
                let program = match row.get("program").and_then(Value::as_str) {
                    Some("openkruise") => Program::OPENKRUISE,
                    _ => Program::KUBERNETES,
                };
                let hash = template_hash(&program, template, row.get("collisions").and_then(Value::as_i64));
                assert_eq!(hash, row["hash"], "{line}");
            }
            if let Some(subset) = row.get("subset") {
                assert_eq!(format!("{:032x}", subset_hash(subset)), row["hash"], "{line}");
            }
            for (field, of) in [
                ("ports", port_hash as fn(&Value) -> u128),
                ("slicePorts", slice_port_hash),
            ] {
                let ports = row.get(field).and_then(Value::as_array).into_iter().flatten();
                let hashes: Vec<String> = ports.map(|port| format!("{:032x}", of(port))).collect();
                assert!(hashes.is_empty() || json!(hashes) == row["hashes"], "{line}");
            }
            rows += 1;
        }
        assert!(rows >= 40);
    }

    /// The hashes of recorded containers.
    #[rstest]
    #[case("nginx", "nginx:alpine", 1_281_589_684)]
    #[case("nginx", "nginx:latest", 361_796_687)]
    #[case("main", "openkruise/guestbook:v1", 1_896_442_613)]
    #[case("main", "openkruise/guestbook:v2", 2_369_000_647)]
    fn containers_have_the_recorded_hashes(#[case] name: &str, #[case] image: &str, #[case] hash: u64) {
        assert_eq!(container_hash(name, Some(image)), hash);
    }

    /// The label of a recorded ImageListPullJob.
    #[test]
    fn a_list_of_images_has_the_recorded_hash() {
        let template = json!({
            "images": ["nginx:1.14.2"], "parallelism": 2, "pullPolicy": { "timeoutSeconds": 5, "backoffLimit": 1 },
            "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 40 },
        });
        assert_eq!(pull_job_hash(&template), "b8c9c4c96");
        let mut other = template.clone();
        other["selector"] = json!({ "names": ["a"] });
        assert_ne!(pull_job_hash(&other), "b8c9c4c96");
    }

    #[test]
    fn collisions_make_another_name() {
        let template = json!({"spec": {"containers": [{"name": "c"}]}});
        let hash = |collisions| template_hash(&Program::KUBERNETES, &template, collisions);
        assert_ne!(hash(None), hash(Some(0)));
        assert_ne!(hash(Some(0)), hash(Some(1)));
    }

    #[test]
    fn bad_input_is_printed_all_the_same() {
        for value in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({"spec": 7, "metadata": {"labels": [1]}}),
        ] {
            assert!(
                dump(&Program::KUBERNETES, "v1.PodTemplateSpec", &value)
                    .starts_with("(v1.PodTemplateSpec){ObjectMeta:(v1.ObjectMeta){Name:(string)")
            );
        }
    }
}
