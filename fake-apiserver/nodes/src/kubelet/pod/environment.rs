//! A container's environment variables, from wherever they come.

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::placement::amounts;
use machinery::types::Quantity;
use shared_json::{Array, Value};

use super::worker::PodWorker;
use crate::programs::Files;
use crate::status::is_host_network;

impl PodWorker {
    /// The variables of a container; the error is the kubelet's for a missing source.
    pub(super) async fn environment(&self, spec: &Value) -> Result<BTreeMap<String, String>, String> {
        let mut env = BTreeMap::new();
        let links = self.links();
        let mut sources: BTreeMap<String, Option<Value>> = BTreeMap::new();
        let list = |field: &str| {
            spec.get(field)
                .and_then(Value::as_array)
                .map(Array::as_slice)
                .unwrap_or_default()
                .to_vec()
        };
        for entry in list("envFrom") {
            let prefix = entry.get("prefix").and_then(Value::as_str).unwrap_or_default();
            for (field, kind) in [("configMapRef", "configmap"), ("secretRef", "secret")] {
                let Some(reference) = entry.get(field) else {
                    continue;
                };
                let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
                match self.source(&mut sources, kind, name).await {
                    Some(data) => {
                        for (key, value) in data_of(&data, kind) {
                            env.insert(format!("{prefix}{key}"), value);
                        }
                    }
                    None if is_optional(reference) => {}
                    None => return Err(format!("{kind} \"{name}\" not found")),
                }
            }
        }
        for entry in list("env") {
            let name = entry
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            if let Some(reference) = entry.pointer("/valueFrom/fileKeyRef") {
                if let Some(value) = self.value_in_file(reference)? {
                    env.insert(name, value);
                }
            } else if let Some(from) = entry.get("valueFrom") {
                if let Some(value) = self.value_from(&mut sources, from, spec).await? {
                    env.insert(name, value);
                }
            } else {
                let value = entry.get("value").and_then(Value::as_str).unwrap_or_default();
                let known = |name: &str| env.get(name).or_else(|| links.get(name)).cloned();
                let value = expand_with(value, known);
                env.insert(name, value);
            }
        }
        Ok(env)
    }

    async fn value_from(
        &self,
        sources: &mut BTreeMap<String, Option<Value>>,
        from: &Value,
        spec: &Value,
    ) -> Result<Option<String>, String> {
        let text = |value: &Value, field: &str| {
            value
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        if let Some(reference) = from.get("fieldRef") {
            return Ok(Some(self.field(&text(reference, "fieldPath"))));
        }
        if let Some(reference) = from.get("resourceFieldRef") {
            return Ok(Some(self.amount(spec, reference)));
        }
        for (field, kind, word) in [
            ("configMapKeyRef", "configmap", "ConfigMap"),
            ("secretKeyRef", "secret", "Secret"),
        ] {
            let Some(reference) = from.get(field) else {
                continue;
            };
            let (name, key) = (text(reference, "name"), text(reference, "key"));
            let Some(object) = self.source(sources, kind, &name).await else {
                if is_optional(reference) {
                    return Ok(None);
                }
                return Err(format!("{kind} \"{name}\" not found"));
            };
            let found = data_of(&object, kind).remove(&key);
            if found.is_none() && !is_optional(reference) {
                let namespace = self.pod.namespace();
                return Err(format!("couldn't find key {key} in {word} {namespace}/{name}"));
            }
            return Ok(found);
        }
        Ok(None)
    }

    /// A variable that a container before this one has written into a file.
    fn value_in_file(&self, reference: &Value) -> Result<Option<String>, String> {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (volume, key) = (text("volumeName"), text("key"));
        let Some(known) = self.volumes.get(volume) else {
            return Err(format!(
                "cannot find the volume {volume:?} referenced by FileKeyRef"
            ));
        };
        let files = Files::with_mounts(vec![("/v".to_owned(), known.clone())]);
        let found = files.read(&format!("/v/{}", text("path"))).ok();
        let content = found.and_then(|content| String::from_utf8(content).ok());
        let Some(value) = content.and_then(|content| assigned(&content, key).ok()) else {
            return Err("couldn't parse env file".to_owned());
        };
        if !value.is_empty() {
            return Ok(Some(value));
        }
        if is_optional(reference) {
            return Ok(None);
        }
        let file = format!(
            "/var/lib/kubelet/pods/{}/volumes/kubernetes.io~empty-dir/{volume}/{}",
            self.pod.uid(),
            text("path")
        );
        Err(format!(
            "environment variable key {key:?} not found in file {file:?}"
        ))
    }

    /// Reads a ConfigMap or Secret of the pod's namespace, once per start.
    async fn source(
        &self,
        known: &mut BTreeMap<String, Option<Value>>,
        kind: &str,
        name: &str,
    ) -> Option<Value> {
        let path = format!("/api/v1/namespaces/{}/{kind}s/{name}", self.pod.namespace());
        if let Some(found) = known.get(&path) {
            return found.clone();
        }
        let found = self.get(&path).await;
        known.insert(path, found.clone());
        found
    }

    /// An object of the API; none if it is not there.
    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path)
            .header(http::header::USER_AGENT, "kubelet")
            .body(Vec::new())
            .ok()?;
        self.kubelet.client.request::<Value>(request).await.ok()
    }

    /// A container's request or limit of a resource, as the downward API gives it: without a limit, the node's amount.
    pub(super) fn amount(&self, container: &Value, reference: &Value) -> String {
        let resource = reference
            .get("resource")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let own = at(container, "resources").and_then(|resources| at(resources, resource));
        let mut amount = own.map_or(0, |own| Quantity::of(own).nanos());
        let name = resource.split_once('.').map_or("", |(_, name)| name);
        let of_node = ["cpu", "memory", "ephemeral-storage"].contains(&name);
        if amount == 0 && of_node && resource.starts_with("limits.") {
            let node = self.kubelet.spec.object("");
            let all = amounts(at(&node, "status.allocatable"));
            amount = all.get(name).copied().unwrap_or_default();
        }
        let divisor = reference
            .get("divisor")
            .map_or(0, |divisor| Quantity::of(divisor).nanos());
        in_parts(amount, divisor, name).to_string()
    }

    /// A field of the pod, as the downward API gives it.
    pub(super) fn field(&self, path: &str) -> String {
        if let Some((map, rest)) = path.split_once("['")
            && let Some(key) = rest.strip_suffix("']")
        {
            let field = map.rsplit('.').next().unwrap_or_default();
            let value = string_map(&self.pod, field).get(key).and_then(Value::as_str);
            return value.unwrap_or_default().to_owned();
        }
        let ip = if is_host_network(&self.pod) {
            &self.record.host_ip
        } else {
            &self.record.pod_ip
        };
        match path {
            "status.podIP" | "status.podIPs" => ip.to_string(),
            "status.hostIP" | "status.hostIPs" => self.record.host_ip.to_string(),
            path => at(&self.pod, path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

/// How many of `divisor` an amount is, rounded up; processors are counted in thousandths, all else in whole units.
fn in_parts(amount: i128, divisor: i128, resource: &str) -> i128 {
    let part = if resource == "cpu" {
        1_000_000
    } else {
        1_000_000_000
    };
    let up = |value: i128, by: i128| value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0);
    let divisor = if divisor == 0 { 1_000_000_000 } else { divisor };
    up(up(amount, part), up(divisor, part).max(1))
}

/// Whether a missing source or key is no failure.
pub(super) fn is_optional(reference: &Value) -> bool {
    reference.get("optional").and_then(Value::as_bool) == Some(true)
}

/// The entries of a ConfigMap or Secret as text.
pub(super) fn data_of(object: &Value, kind: &str) -> BTreeMap<String, String> {
    use base64::Engine as _;
    let mut out = BTreeMap::new();
    let entries = object.get("data").and_then(Value::as_object);
    for (key, value) in entries.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let decoded = if kind == "secret" {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        } else {
            text.to_owned()
        };
        out.insert(key.to_string(), decoded);
    }
    out
}

/// The entries of a ConfigMap or Secret as files hold them.
pub(super) fn files_of(object: &Value, kind: &str) -> BTreeMap<String, Vec<u8>> {
    use base64::Engine as _;
    let mut out = BTreeMap::new();
    for (field, encoded) in [("data", kind == "secret"), ("binaryData", true)] {
        let entries = object.get(field).and_then(Value::as_object);
        for (key, value) in entries.into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let bytes = if encoded {
                base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .unwrap_or_default()
            } else {
                text.as_bytes().to_vec()
            };
            out.insert(key.to_string(), bytes);
        }
    }
    out
}

/// The value of a name in a file of lines `NAME='value'`, with the text between the quotes as it is; empty if there is none. The
/// error says that it is no such file, as far as it had to be read.
fn assigned(content: &str, key: &str) -> Result<String, NotAssignments> {
    let mut lines = content.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(NotAssignments)?;
        if name.is_empty() || name.ends_with([' ', '\t']) {
            return Err(NotAssignments);
        }
        if value.starts_with([' ', '\t']) {
            if name == key {
                return Ok(String::new());
            }
            continue;
        }
        let mut rest = value.strip_prefix('\'').ok_or(NotAssignments)?;
        let mut value = String::new();
        let after = loop {
            if let Some((end, after)) = rest.split_once('\'') {
                value.push_str(end);
                break after.trim_start_matches([' ', '\t']);
            }
            value.push_str(rest);
            value.push('\n');
            rest = lines.next().ok_or(NotAssignments)?;
        };
        if !(after.is_empty() || after.starts_with('#')) {
            return Err(NotAssignments);
        }
        if name == key {
            return Ok(value);
        }
    }
    Ok(String::new())
}

/// A file is not one of assignments.
#[derive(Debug, PartialEq, Eq)]
struct NotAssignments;

/// `$(NAME)` in a value, from the variables so far; `$$` is a dollar.
pub(super) fn expand(value: &str, env: &BTreeMap<String, String>) -> String {
    expand_with(value, |name| env.get(name).cloned())
}

/// The same, with the variables of a function. An unknown reference stays as it is.
pub(super) fn expand_with(value: &str, mut known: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(tail) = rest.strip_prefix("$$") {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = rest.strip_prefix("$(").and_then(|inner| inner.split_once(')')) {
            match known(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = tail;
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::cores_up("cpu", "250m", "0", "1")]
    #[case::thousandths("cpu", "250m", "1m", "250")]
    #[case::halves("cpu", "1100m", "500m", "3")]
    #[case::bytes("memory", "64Mi", "0", "67108864")]
    #[case::mebibytes("memory", "64Mi", "1Mi", "64")]
    #[case::up("memory", "65Mi", "1Gi", "1")]
    #[case::none("ephemeral-storage", "0", "1Mi", "0")]
    fn amounts_in_parts(
        #[case] resource: &str,
        #[case] amount: &str,
        #[case] divisor: &str,
        #[case] expected: &str,
    ) {
        let of = |text: &str| Quantity::of(&Value::from(text)).nanos();
        assert_eq!(in_parts(of(amount), of(divisor), resource).to_string(), expected);
    }

    #[rstest]
    #[case::texts("configmap", json!({"data": {"a": "b"}}), "a", b"b")]
    #[case::bytes("configmap", json!({"binaryData": {"a": "/wA="}}), "a", b"\xff\x00")]
    #[case::secret("secret", json!({"data": {"a": "/wA="}}), "a", b"\xff\x00")]
    fn files(#[case] kind: &str, #[case] object: Value, #[case] key: &str, #[case] expected: &[u8]) {
        assert_eq!(
            files_of(&object, kind).get(key).map(Vec::as_slice),
            Some(expected)
        );
    }

    #[rstest]
    #[case::plain("A='1'", Ok("1"))]
    #[case::second("B='2'\nA='1'", Ok("1"))]
    #[case::first_counts("A='1'\nA='2'", Ok("1"))]
    #[case::not_there("B='2'", Ok(""))]
    #[case::empty("A=''", Ok(""))]
    #[case::nothing("", Ok(""))]
    #[case::comments("# x\n\n  \t\n  A='1'  # y", Ok("1"))]
    #[case::as_it_is("A='$B \\n \"'", Ok("$B \\n \""))]
    #[case::several_lines("A='1\n\n2'", Ok("1\n\n2"))]
    #[case::lines_of_another("B='1\nA=x\n'\nA='2'", Ok("2"))]
    #[case::space_after("A= '1'", Ok(""))]
    #[case::space_before("A ='1'", Err(NotAssignments))]
    #[case::bare("A=1", Err(NotAssignments))]
    #[case::double_quotes("A=\"1\"", Err(NotAssignments))]
    #[case::open("A='1", Err(NotAssignments))]
    #[case::more("A='1'2", Err(NotAssignments))]
    #[case::no_name("='1'", Err(NotAssignments))]
    #[case::no_assignment("A", Err(NotAssignments))]
    #[case::wrong_before("x\nA='1'", Err(NotAssignments))]
    #[case::wrong_after("A='1'\nx", Ok("1"))]
    fn assignments(#[case] content: &str, #[case] expected: Result<&str, NotAssignments>) {
        assert_eq!(assigned(content, "A"), expected.map(str::to_owned));
    }

    #[rstest]
    #[case("plain", "plain")]
    #[case("$(A)-$(B)", "1-$(B)")]
    #[case("$$(A) $A $", "$(A) $A $")]
    #[case("$(A", "$(A")]
    fn references(#[case] value: &str, #[case] expected: &str) {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(expand(value, &env), expected);
    }
}
