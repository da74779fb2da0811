//! The paths of OpenAPI documents: the operations of a resource, by method.

use machinery::types::published::{self, COMPONENTS};
use shared_json::{Map, Value, json};

use super::custom;
use crate::resources::{Resource, Subresource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const PATCHES: [&str; 5] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];
/// Nothing says how lists of custom resources merge: kubectl sends them no strategic patch if it is not offered here.
const CUSTOM_PATCHES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
const DELETE_COLLECTION: &[&str] = &[
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];

/// One method of a path.
struct Operation<'a> {
    method: &'static str,
    /// The first word of the operation's id.
    verb: &'static str,
    action: &'static str,
    description: String,
    parameters: &'a [&'a str],
    body: Option<String>,
    answer: String,
    codes: &'static [u16],
}

/// The paths of a resource and their operations, by path.
pub(super) fn of_resource(resource: &Resource) -> Map {
    let mut out = Map::new();
    let paths = Paths::of(resource);
    let has = |verb: &str| resource.verbs.iter().any(|given| given == verb);
    let (object, list) = names(resource);
    let kind = &resource.kind;
    let mut collection = vec![];
    if has("list") {
        collection.push(Operation {
            method: "get",
            verb: "list",
            action: "list",
            description: format!("list or watch objects of kind {kind}"),
            parameters: LIST,
            body: None,
            answer: list.clone(),
            codes: &[200],
        });
    }
    if has("create") {
        collection.push(Operation {
            method: "post",
            verb: "create",
            action: "post",
            description: format!("create {} {kind}", article(kind)),
            parameters: WRITE,
            body: Some(object.clone()),
            answer: object.clone(),
            codes: &[200, 201, 202],
        });
    }
    if has("deletecollection") {
        collection.push(Operation {
            method: "delete",
            verb: "delete",
            action: "deletecollection",
            description: format!("delete collection of {kind}"),
            parameters: DELETE_COLLECTION,
            body: Some(format!("{META}DeleteOptions")),
            answer: format!("{META}Status"),
            codes: &[200],
        });
    }
    paths.add(&mut out, &paths.collection(), "", &collection, false);
    if resource.namespaced && has("list") {
        let everywhere = Operation {
            method: "get",
            verb: "list",
            action: "list",
            description: format!("list or watch objects of kind {kind}"),
            parameters: &[],
            body: None,
            answer: list,
            codes: &[200],
        };
        paths.add(
            &mut out,
            &paths.everywhere(),
            "ForAllNamespaces",
            &[everywhere],
            false,
        );
    }
    if has("watch") && !resource.is_custom() {
        watches(&paths, &mut out);
    }
    let one: Vec<Operation<'_>> = resource
        .verbs
        .iter()
        .filter_map(|verb| on_object(verb, kind, &object))
        .collect();
    paths.add(&mut out, &paths.object(""), "", &one, true);
    for (name, subresource) in &resource.subresources {
        let suffix: String = name.split('/').map(capital).collect();
        if subresource.kind.ends_with("Options") {
            connects(&paths, &mut out, name, &suffix, subresource);
            continue;
        }
        let object = subresource_type(resource, subresource);
        let what = format!("{name} of the specified {kind}");
        let operations: Vec<Operation<'_>> = subresource
            .verbs
            .iter()
            .filter_map(|verb| on_subresource(verb, &what, &object))
            .collect();
        paths.add(&mut out, &paths.object(name), &suffix, &operations, true);
    }
    out
}

/// A subresource that connects to something else: its answers are that one's own.
fn connects(paths: &Paths<'_>, out: &mut Map, name: &str, suffix: &str, subresource: &Subresource) {
    const ALL: [&str; 5] = ["delete", "get", "patch", "post", "put"];
    let methods: &[&'static str] = if name.starts_with("proxy") {
        &ALL
    } else {
        &["get", "post"]
    };
    let kind = &paths.resource.kind;
    let operations: Vec<Operation<'_>> = methods
        .iter()
        .map(|method| Operation {
            method,
            verb: "connect",
            action: "connect",
            description: format!("connect {} requests to {name} of {kind}", method.to_uppercase()),
            parameters: &[],
            body: None,
            answer: String::new(),
            codes: &[200],
        })
        .collect();
    let path = paths.object(name);
    paths.add(out, &path, suffix, &operations, true);
    let item = out.get_mut(&path).and_then(Value::as_object_mut);
    for (method, entry) in item.into_iter().flatten().filter(|(key, _)| *key != "parameters") {
        let id = entry["operationId"].as_str().unwrap_or_default();
        let (group, version) = (&paths.resource.group, &paths.resource.version);
        let start = format!("connect{}", camel(group, version));
        entry["operationId"] = Value::from(id.replacen(&start, &format!("{start}{}", capital(method)), 1));
        entry["responses"]["200"]["content"] = json!({"*/*": {"schema": {"type": "string"}}});
        entry["x-kubernetes-group-version-kind"] =
            json!({"group": subresource.group, "version": subresource.version, "kind": subresource.kind});
    }
}

/// The old paths of watches, which have a word of their own.
fn watches(paths: &Paths<'_>, out: &mut Map) {
    let kind = &paths.resource.kind;
    let operation = |action: &'static str, what: &str| Operation {
        method: "get",
        verb: "watch",
        action,
        description: format!(
            "watch {what}. deprecated: use the 'watch' parameter with a list operation instead{}",
            if action == "watch" {
                ", filtered to a single item with the 'fieldSelector' parameter."
            } else {
                "."
            },
        ),
        parameters: &[],
        body: None,
        answer: format!("{META}WatchEvent"),
        codes: &[200],
    };
    let (one, all) = (
        format!("changes to an object of kind {kind}"),
        format!("individual changes to a list of {kind}"),
    );
    let path = |path: String| path.replacen(&paths.prefix, &format!("{}/watch", paths.prefix), 1);
    paths.add(
        out,
        &path(paths.collection()),
        "List",
        &[operation("watchlist", &all)],
        false,
    );
    paths.add(
        out,
        &path(paths.object("")),
        "",
        &[operation("watch", &one)],
        true,
    );
    if paths.resource.namespaced {
        paths.add(
            out,
            &path(paths.everywhere()),
            "ListForAllNamespaces",
            &[operation("watchlist", &all)],
            false,
        );
    }
}

fn on_object<'a>(verb: &str, kind: &str, object: &str) -> Option<Operation<'a>> {
    let operation = on_subresource(verb, &format!("the specified {kind}"), object);
    match verb {
        "delete" => Some(Operation {
            method: "delete",
            verb: "delete",
            action: "delete",
            description: format!("delete {} {kind}", article(kind)),
            parameters: DELETE,
            body: Some(format!("{META}DeleteOptions")),
            answer: format!("{META}Status"),
            codes: &[200, 202],
        }),
        "create" => None,
        _ => operation,
    }
}

fn on_subresource<'a>(verb: &str, what: &str, object: &str) -> Option<Operation<'a>> {
    let (method, id, action, parameters, body, codes): (_, _, _, &[&str], _, &[u16]) = match verb {
        "get" => ("get", "read", "get", &[], None, &[200]),
        "update" => (
            "put",
            "replace",
            "put",
            WRITE,
            Some(object.to_owned()),
            &[200, 201],
        ),
        "patch" => (
            "patch",
            "patch",
            "patch",
            PATCH,
            Some(format!("{META}Patch")),
            &[200, 201],
        ),
        "create" => (
            "post",
            "create",
            "post",
            WRITE,
            Some(object.to_owned()),
            &[200, 201, 202],
        ),
        _ => return None,
    };
    let word = match id {
        "patch" => "partially update",
        other => other,
    };
    Some(Operation {
        method,
        verb: id,
        action,
        description: format!("{word} {what}"),
        parameters,
        body,
        answer: object.to_owned(),
        codes,
    })
}

/// The names of the definitions of a resource's object and list.
fn names(resource: &Resource) -> (String, String) {
    if resource.is_custom() {
        return (
            custom::definition_name(resource, &resource.kind),
            custom::definition_name(resource, &resource.list_kind),
        );
    }
    let gvk = (&*resource.group, &*resource.version, &*resource.kind);
    let name = published::definition_name(gvk).unwrap_or_default();
    let list = format!("{name}List");
    (name, list)
}

fn subresource_type(resource: &Resource, subresource: &Subresource) -> String {
    if resource.is_custom() && subresource.kind == resource.kind {
        return custom::definition_name(resource, &resource.kind);
    }
    let gvk = (&*subresource.group, &*subresource.version, &*subresource.kind);
    published::definition_name(gvk).unwrap_or_default()
}

/// The paths that are of no resource: the discovery of a version, of a group, or of all.
pub(super) fn of_document(path: &str, resource: Option<&Resource>) -> Map {
    let get = |id: String, description: &str, tag: String, schema: &str| {
        json!({"get": {
            "tags": [tag], "operationId": id, "description": description,
            "responses": responses(&[200], schema),
        }})
    };
    let words: Vec<&str> = path.split('/').collect();
    let mut out = Map::new();
    match (words.as_slice(), resource) {
        (_, Some(resource)) if !resource.is_custom() => {
            let id = format!("get{}APIResources", camel(&resource.group, &resource.version));
            let tag = tag(&resource.group, &resource.version);
            let item = get(
                id,
                "get available resources",
                tag,
                &format!("{META}APIResourceList"),
            );
            out.insert(format!("/{path}/"), item);
        }
        (["apis", group], _) => {
            let id = format!("get{}APIGroup", camel(group, ""));
            let item = get(
                id,
                "get information of a group",
                tag(group, ""),
                &format!("{META}APIGroup"),
            );
            out.insert(format!("/{path}/"), item);
        }
        (["api"], _) => {
            let item = get(
                "getCoreAPIVersions".to_owned(),
                "get available API versions",
                "core".to_owned(),
                &format!("{META}APIVersions"),
            );
            out.insert("/api/".to_owned(), item);
        }
        (["apis"], _) => {
            let item = get(
                "getAPIVersions".to_owned(),
                "get available API versions",
                "apis".to_owned(),
                &format!("{META}APIGroupList"),
            );
            out.insert("/apis/".to_owned(), item);
        }
        (["version"], _) => {
            let schema = "io.k8s.apimachinery.pkg.version.Info";
            let item = get(
                "getCodeVersion".to_owned(),
                "get the version information for this server",
                "version".to_owned(),
                schema,
            );
            out.insert("/version/".to_owned(), item);
        }
        _ => {}
    }
    out
}

/// Where the paths of a resource are, and how its operations are called.
struct Paths<'a> {
    resource: &'a Resource,
    prefix: String,
}

impl<'a> Paths<'a> {
    fn of(resource: &'a Resource) -> Self {
        let prefix = if resource.group.is_empty() {
            format!("/api/{}", resource.version)
        } else {
            format!("/apis/{}/{}", resource.group, resource.version)
        };
        Self { resource, prefix }
    }

    fn collection(&self) -> String {
        let namespaces = if self.resource.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        format!("{}{namespaces}/{}", self.prefix, self.resource.plural)
    }

    fn everywhere(&self) -> String {
        format!("{}/{}", self.prefix, self.resource.plural)
    }

    fn object(&self, subresource: &str) -> String {
        let tail = if subresource.is_empty() {
            String::new()
        } else {
            format!("/{subresource}")
        };
        format!("{}/{{name}}{tail}", self.collection())
    }

    /// Adds a path with its methods, unless it has none.
    fn add(&self, out: &mut Map, path: &str, suffix: &str, operations: &[Operation<'_>], named: bool) {
        if operations.is_empty() {
            return;
        }
        let resource = self.resource;
        let everywhere = suffix.ends_with("ForAllNamespaces");
        let watch = operations.iter().any(|operation| operation.verb == "watch");
        let mut item = Map::new();
        for operation in operations {
            let namespaced = if resource.namespaced && !everywhere {
                "Namespaced"
            } else {
                ""
            };
            let collection = if operation.action == "deletecollection" {
                "Collection"
            } else {
                ""
            };
            let id = format!(
                "{}{}{collection}{namespaced}{}{suffix}",
                operation.verb,
                camel(&resource.group, &resource.version),
                resource.kind,
            );
            let mut entry = json!({
                "tags": [tag(&resource.group, &resource.version)],
                "description": operation.description,
                "operationId": id,
                "responses": responses(operation.codes, &operation.answer),
                "x-kubernetes-action": operation.action,
                "x-kubernetes-group-version-kind": {
                    "group": resource.group, "version": resource.version, "kind": resource.kind,
                },
            });
            if !operation.parameters.is_empty() {
                entry["parameters"] = operation.parameters.iter().map(|name| parameter(name)).collect();
            }
            if let Some(body) = &operation.body {
                entry["requestBody"] = request_body(operation, body, self.resource.is_custom());
            }
            item.insert(operation.method.to_owned(), entry);
        }
        let mut shared: Vec<&str> = Vec::new();
        if named {
            shared.push("name");
        }
        if resource.namespaced && !everywhere {
            shared.push("namespace");
        }
        if everywhere || watch {
            shared.extend(LIST);
        }
        shared.push("pretty");
        shared.sort_unstable();
        item.insert(
            "parameters".to_owned(),
            shared.iter().map(|name| parameter(name)).collect(),
        );
        out.insert(path.to_owned(), Value::Object(item));
    }
}

fn responses(codes: &[u16], schema: &str) -> Value {
    let word = |code: u16| match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    };
    let reference = json!({"schema": {"$ref": format!("{COMPONENTS}{schema}")}});
    let types = [
        "application/json",
        "application/vnd.kubernetes.protobuf",
        "application/yaml",
    ];
    let content: Map = types
        .into_iter()
        .map(|name| (name.to_owned(), reference.clone()))
        .collect();
    let mut out: Map = codes
        .iter()
        .map(|code| {
            (
                code.to_string(),
                json!({"description": word(*code), "content": content}),
            )
        })
        .collect();
    out.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(out)
}

fn request_body(operation: &Operation<'_>, schema: &str, custom: bool) -> Value {
    let reference = json!({"schema": {"$ref": format!("{COMPONENTS}{schema}")}});
    let types: &[&str] = match (operation.method, custom) {
        ("patch", false) => &PATCHES,
        ("patch", true) => &CUSTOM_PATCHES,
        _ => &["*/*"],
    };
    let content: Map = types
        .iter()
        .map(|name| ((*name).to_owned(), reference.clone()))
        .collect();
    let mut body = json!({"content": content});
    if operation.method != "delete" {
        body["required"] = Value::from(true);
    }
    body
}

/// A parameter by its name; it has the same meaning in all operations.
fn parameter(name: &str) -> Value {
    let (kind, description) = match name {
        "name" => return path_parameter(name, "name of the object"),
        "namespace" => {
            return path_parameter(name, "object name and auth scope, such as for teams and projects");
        }
        "allowWatchBookmarks" => ("boolean", "whether a watch may be sent events of type BOOKMARK"),
        "continue" => ("string", "the token of the previous page, to go on from there"),
        "dryRun" => ("string", "\"All\": go through all stages, and write nothing"),
        "fieldManager" => ("string", "the name of the actor that makes the changes"),
        "fieldSelector" => ("string", "restricts the objects by their fields"),
        "fieldValidation" => (
            "string",
            "what becomes of unknown and duplicate fields: Ignore, Warn or Strict",
        ),
        "force" => ("boolean", "take over fields that others own; for apply only"),
        "gracePeriodSeconds" => (
            "integer",
            "the seconds before the object is deleted; 0 deletes at once",
        ),
        "ignoreStoreReadErrorWithClusterBreakingPotential" => {
            ("boolean", "delete an object that cannot be read")
        }
        "labelSelector" => ("string", "restricts the objects by their labels"),
        "limit" => ("integer", "the most objects of a page"),
        "orphanDependents" => ("boolean", "deprecated: use propagationPolicy"),
        "pretty" => ("string", "\"true\": lay the answer out for people"),
        "propagationPolicy" => (
            "string",
            "what becomes of dependents: Orphan, Background or Foreground",
        ),
        "resourceVersion" => ("string", "how new the answer must be"),
        "resourceVersionMatch" => ("string", "how resourceVersion is meant: Exact or NotOlderThan"),
        "sendInitialEvents" => (
            "boolean",
            "a watch begins with what there is, ended by a bookmark",
        ),
        "shardSelector" => ("string", "restricts the objects to a shard"),
        "timeoutSeconds" => ("integer", "how long a list or a watch may take"),
        "watch" => ("boolean", "watch for changes instead of listing"),
        _ => ("string", ""),
    };
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string", "uniqueItems": true},
    })
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        "an"
    } else {
        "a"
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

/// The words of a group, `.k8s.io` left out; `core` for the group without a name.
fn group_words(group: &str) -> Vec<&str> {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    let short = if short.is_empty() { "core" } else { short };
    short.split(['.', '-']).collect()
}

/// `RbacAuthorizationV1`
fn camel(group: &str, version: &str) -> String {
    group_words(group)
        .into_iter()
        .chain([version])
        .map(capital)
        .collect()
}

/// `rbacAuthorization_v1`
fn tag(group: &str, version: &str) -> String {
    let words = group_words(group);
    let (first, rest) = words.split_first().unwrap_or((&"", &[]));
    let rest: String = rest.iter().map(|word| capital(word)).collect();
    if version.is_empty() {
        format!("{first}{rest}")
    } else {
        format!("{first}{rest}_{version}")
    }
}
