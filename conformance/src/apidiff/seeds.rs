//! The seeds of fuzz targets: the requests of the recorded cases, as inputs of `fake-apiserver/fuzz`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shared_json::Value;

use super::case::{Case, Step};
use super::request::{Prepared, Variables};
use crate::error::Error;

/// Longer inputs cost more time than they are worth: the long bodies in the cases look for limits.
const LENGTH_MAX: usize = 16 * 1024;

/// Inputs by the name of their target, each once and in order.
pub type Seeds = BTreeMap<&'static str, BTreeSet<Vec<u8>>>;

/// The inputs that these cases make.
///
/// ```
/// use conformance::apidiff::{Case, seeds};
/// let case = r#"{"name": "pods", "group": "list", "steps": [{"method": "GET", "path": "/api/v1/pods", "query": "limit=1"}]}"#;
/// let case: Case = shared_json::from_str(case)?;
/// let seeds = seeds([&case]);
/// assert!(seeds["list"].contains(b"/api/v1/pods?limit=1\napplication/json".as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn seeds<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Seeds {
    let names = [("ns", "default"), ("u", "abcdef")];
    let names = names.map(|(name, value)| (name.to_owned(), Value::from(value)));
    let variables = Variables(names.into());
    let mut seeds = Seeds::new();
    for case in cases {
        let steps = case.setup.iter().chain(&case.steps).flat_map(requests);
        let requests: Vec<Prepared> = steps.map(|step| variables.prepared(step)).collect();
        let sequence: Vec<Vec<u8>> = requests.iter().map(in_a_sequence).collect();
        add(&mut seeds, "sequence", sequence.join(b"\n---\n".as_slice()));
        for (place, request) in requests.iter().enumerate() {
            alone(&mut seeds, request);
            patches(&mut seeds, request, requests.get(..place).unwrap_or_default());
        }
        schemas(&mut seeds, &requests);
    }
    seeds
}

/// Writes the inputs of a target into a folder, each as a file named by its number. Existing files stay.
///
/// # Errors
/// If that cannot be written.
pub fn write_seeds(seeds: &Seeds, target: &str, folder: &Path) -> Result<(), Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for (number, input) in seeds.get(target).into_iter().flatten().enumerate() {
        let file = folder.join(format!("seed-{number:05}"));
        fs::write(&file, input).map_err(failed(&file))?;
    }
    Ok(())
}

fn add(seeds: &mut Seeds, target: &'static str, input: Vec<u8>) {
    if input.len() <= LENGTH_MAX {
        seeds.entry(target).or_default().insert(input);
    }
}

/// The requests that a step makes.
fn requests(step: &Step) -> Vec<&Step> {
    let parallel = step.parallel.iter().flatten();
    let own = (!step.path.is_empty()).then_some(step);
    own.into_iter().chain(parallel).collect()
}

impl Prepared {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value)
    }

    fn content(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    fn object(&self) -> Value {
        shared_json::from_slice(self.content()).unwrap_or_default()
    }

    fn below(&self, line: &str) -> Vec<u8> {
        [line.as_bytes(), self.content()].join(b"\n".as_slice())
    }
}

fn in_a_sequence(request: &Prepared) -> Vec<u8> {
    // A content type is one word there.
    let content_type = request.header("content-type").replace(' ', "");
    request.below(&format!("{} {} {content_type}", request.method, request.uri))
}

fn alone(seeds: &mut Seeds, request: &Prepared) {
    let content_type = request.header("content-type");
    let media_type = content_type.split(';').next().unwrap_or_default();
    let targets: &[&'static str] = match (request.method.as_str(), media_type) {
        ("GET", _) => {
            let line = format!("{}\n{}", request.uri, request.header("accept"));
            add(seeds, "list", line.into_bytes());
            &[]
        }
        ("POST", "application/json") => &["create_json", "create_yaml", "create_protobuf"],
        ("POST", "application/yaml") => &["create_yaml"],
        ("POST", "application/vnd.kubernetes.protobuf") => &["create_protobuf"],
        _ => &[],
    };
    for target in targets {
        add(seeds, target, request.below(&request.uri));
    }
    let object = request.object();
    expressions(seeds, &object);
    if let Some(request) = object.pointer("/spec/request").and_then(Value::as_str) {
        certificate_request(seeds, request);
    }
}

/// A request for a certificate, decoded from its text form.
fn certificate_request(seeds: &mut Seeds, request: &str) {
    let pem = STANDARD.decode(request).unwrap_or_default();
    let pem = String::from_utf8_lossy(&pem);
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    if let Ok(request) = STANDARD.decode(lines.collect::<String>())
        && !request.is_empty()
    {
        add(seeds, "certificate_request", request);
    }
}

/// A patch, with the object that it is for as one of these made it.
fn patches(seeds: &mut Seeds, request: &Prepared, before: &[Prepared]) {
    let target = match request.header("content-type") {
        "application/json-patch+json" => "patch_json",
        "application/merge-patch+json" => "patch_merge",
        "application/strategic-merge-patch+json" => "patch_strategic",
        "application/apply-patch+yaml" => "patch_apply",
        _ => return,
    };
    let path = request.uri.split('?').next().unwrap_or_default();
    let Some((collection, name)) = path.rsplit_once('/') else {
        return;
    };
    let is_maker = |made: &&Prepared| {
        made.method == "POST" && made.uri == collection && made.object()["metadata"]["name"] == *name
    };
    let object = before.iter().rev().find(is_maker).map(Prepared::object);
    let object = object.map_or_else(String::new, |object| object.to_string());
    add(
        seeds,
        target,
        request.below(&format!("{}\n{object}", request.uri)),
    );
}

/// Whatever is written in CEL anywhere in an object.
fn expressions(seeds: &mut Seeds, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| expressions(seeds, item)),
        Value::Object(map) => {
            for (name, value) in map {
                let text = value.as_str().filter(|_| {
                    let name: &str = name;
                    ["expression", "rule", "messageExpression"].contains(&name)
                });
                match text {
                    Some(text) => add(seeds, "expression", text.as_bytes().to_vec()),
                    None => expressions(seeds, value),
                }
            }
        }
        _ => {}
    }
}

/// Each schema of the definitions in a case, with each object that is created there.
fn schemas(seeds: &mut Seeds, requests: &[Prepared]) {
    let created: Vec<Value> = requests
        .iter()
        .filter(|request| request.method == "POST")
        .map(Prepared::object)
        .collect();
    let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
    for definition in created.iter().filter(is_definition) {
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let schema = &version["schema"]["openAPIV3Schema"];
            for object in created.iter().filter(|object| !is_definition(object)) {
                add(seeds, "schema", format!("{schema}\n{object}").into_bytes());
            }
        }
    }
}
