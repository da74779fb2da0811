//! The target of a request, from its method and path.

use http::Method;

/// The verb of a request for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// The verb's name in discovery and authorization.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceRequest {
    pub verb: Verb,
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    pub subresource: String,
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/healthz`, `/readyz`, `/livez`, whole or one check of them
    Health(String, Option<String>),
    /// `/`
    Root,
    /// `/version`
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    GroupVersion(String, String),
    /// `/.well-known/openid-configuration`
    OpenIdConfiguration,
    /// `/openid/v1/jwks`
    KeySet,
    /// `/metrics`
    Metrics,
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`, or a document below it.
    OpenApiV3(String),
    /// An object or a collection.
    Resource(ResourceRequest),
    /// `/api/v1/watch/...`, the old form of a watch, by any method.
    OldWatch(ResourceRequest),
    /// Something that is served, but not by this method.
    WrongMethod,
    /// The same of `/api/v1` and its like, if they are served.
    WrongMethodOfVersion(String, String),
    /// The same of objects or collections.
    WrongMethodOf(ResourceRequest),
    /// A path that ends where a word must follow: `/api/v1/watch`.
    Unfinished,
    /// Below something that is served, and not served.
    NoRoute,
    /// An object in a namespace that the path leaves empty.
    NoNamespace,
    /// Nothing that is served.
    Nothing,
}

impl Target {
    /// Whether a request has no time limit: watches, and requests that go on to a node.
    pub(crate) fn is_long_running(&self) -> bool {
        match self {
            Target::OldWatch(_) => true,
            Target::Resource(request) => {
                request.verb == Verb::Watch
                    || matches!(
                        request.subresource.as_str(),
                        "attach" | "exec" | "log" | "portforward" | "proxy"
                    )
            }
            _ => false,
        }
    }
}

/// Takes a path apart, percent escapes undone. `watch` is whether the query asks for a watch.
pub(crate) fn target(method: &Method, path: &str, watch: bool) -> Target {
    let path = path.strip_prefix('/').unwrap_or(path);
    let ends_in_slash = path.ends_with('/');
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        // The index answers every method.
        return Target::Root;
    }
    let segments: Vec<&str> = path.split('/').collect();
    if segments.iter().any(|segment| segment.is_empty()) {
        // Below a version no route has an empty part.
        return match segments.as_slice() {
            ["api", version, "namespaces", "", rest @ ..] => no_namespace(method, ("", version), rest, watch),
            ["apis", group, version, "namespaces", "", rest @ ..] => {
                no_namespace(method, (group, version), rest, watch)
            }
            ["api", ..] => resource(method, "", "", &[""], watch),
            ["apis", "", ..] => Target::Nothing,
            ["apis", group, _, ..] => resource(method, group, "", &[""], watch),
            _ => Target::Nothing,
        };
    }
    match segments.as_slice() {
        ["healthz" | "readyz" | "livez" | "metrics"] | ["openapi", "v2"] if ends_in_slash => {
            return Target::Nothing;
        }
        ["openapi", "v3"] if ends_in_slash => return Target::OpenApiV3("/".to_owned()),
        ["index.html"] if !ends_in_slash => return Target::Root,
        ["version", _, ..] => return Target::NoRoute,
        ["api", _, "watch" | "proxy"] | ["apis", _, _, "watch" | "proxy"] => return Target::Unfinished,
        _ => {}
    }
    let document = match segments.as_slice() {
        [which @ ("healthz" | "readyz" | "livez"), check @ ..] => {
            let check = (!check.is_empty()).then(|| check.join("/"));
            return Target::Health((*which).to_owned(), check);
        }
        ["version"] => Target::Version,
        [".well-known", "openid-configuration"] => Target::OpenIdConfiguration,
        ["openid", "v1", "jwks"] => Target::KeySet,
        ["metrics"] => Target::Metrics,
        ["openapi", "v2"] => Target::OpenApiV2,
        ["openapi", "v3", rest @ ..] => Target::OpenApiV3(rest.join("/")),
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group, version] => Target::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => return resource(method, "", version, rest, watch),
        ["apis", group, version, rest @ ..] => return resource(method, group, version, rest, watch),
        _ => return Target::Nothing,
    };
    // The handlers of these look at no method.
    let any_method = matches!(
        document,
        Target::Groups | Target::Group(_) | Target::Metrics | Target::OpenApiV2 | Target::OpenApiV3(_)
    );
    match document {
        document if method == Method::GET || any_method => document,
        Target::GroupVersion(group, version) => Target::WrongMethodOfVersion(group, version),
        _ => Target::WrongMethod,
    }
}

/// A path whose namespace is empty: a collection is that of all namespaces, an object is none.
fn no_namespace(method: &Method, (group, version): (&str, &str), rest: &[&str], watch: bool) -> Target {
    if version.is_empty() || rest.iter().any(|segment| segment.is_empty()) {
        return resource(method, group, version, &[""], watch);
    }
    match (method.as_str(), rest) {
        ("GET" | "PUT" | "PATCH", [_]) => resource(method, group, version, rest, watch),
        ("GET" | "PUT" | "PATCH", [_, _, ..]) | ("POST", [_, _, _, ..]) | ("DELETE", [_, ..]) => {
            Target::NoNamespace
        }
        _ => resource(method, group, version, &[""], watch),
    }
}

fn resource(method: &Method, group: &str, version: &str, rest: &[&str], watch: bool) -> Target {
    // The old form of a watch: /api/v1/watch/pods
    let (rest, by_path) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (rest, true),
        _ => (rest, false),
    };
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", String::new()),
        [resource, name] => (*resource, *name, String::new()),
        [resource, name, subresource @ ..] => (*resource, *name, subresource.join("/")),
        [] => return Target::Nothing,
    };
    let verb = match (method.as_str(), name.is_empty()) {
        ("GET", true) if watch || by_path => Some(Verb::Watch),
        ("GET", true) => Some(Verb::List),
        // A single object is watched by its old path only, or by a field selector on the collection.
        ("GET", false) if by_path && subresource.is_empty() => Some(Verb::Watch),
        ("GET", false) => Some(Verb::Get),
        ("POST", _) => Some(Verb::Create),
        ("PUT", false) => Some(Verb::Update),
        ("PATCH", false) => Some(Verb::Patch),
        ("DELETE", true) => Some(Verb::DeleteCollection),
        ("DELETE", false) => Some(Verb::Delete),
        _ => None,
    };
    let request = ResourceRequest {
        verb: verb.unwrap_or(Verb::Get),
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        subresource,
    };
    match verb {
        // A watch is asked for by nothing but GET.
        Some(Verb::Watch) | None if by_path => Target::OldWatch(request),
        Some(_) if by_path => Target::OldWatch(ResourceRequest {
            verb: Verb::Get,
            ..request
        }),
        Some(_) => Target::Resource(request),
        None => Target::WrongMethodOf(request),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET", "/api/v1/pods", "list /v1 pods ns= name= sub=")]
    #[case("GET", "/api/v1/watch/pods", "old watch /v1 pods ns= name= sub=")]
    #[case(
        "GET",
        "/api/v1/watch/namespaces/a",
        "old watch /v1 namespaces ns= name=a sub="
    )]
    #[case("DELETE", "/api/v1/watch/pods", "old get /v1 pods ns= name= sub=")]
    #[case("PUT", "/api/v1/namespaces/a/pods", "wrong get /v1 pods ns=a name= sub=")]
    #[case("GET", "/api/v1/namespaces", "list /v1 namespaces ns= name= sub=")]
    #[case("GET", "/api/v1/namespaces/a", "get /v1 namespaces ns= name=a sub=")]
    #[case(
        "PUT",
        "/api/v1/namespaces/a/finalize",
        "update /v1 namespaces ns= name=a sub=finalize"
    )]
    #[case("POST", "/api/v1/namespaces/a/pods", "create /v1 pods ns=a name= sub=")]
    #[case(
        "PATCH",
        "/api/v1/namespaces/a/pods/x/status",
        "patch /v1 pods ns=a name=x sub=status"
    )]
    #[case(
        "DELETE",
        "/apis/apps/v1/namespaces/a/deployments",
        "deletecollection apps/v1 deployments ns=a name= sub="
    )]
    #[case(
        "DELETE",
        "/apis/apps/v1/namespaces/a/deployments/d",
        "delete apps/v1 deployments ns=a name=d sub="
    )]
    #[case("GET", "/api/v1/namespaces//pods", "list /v1 pods ns= name= sub=")]
    #[case("GET", "/api/v1/namespaces/a/pods//", "list /v1 pods ns=a name= sub=")]
    fn paths(#[case] method: &str, #[case] path: &str, #[case] expected: &str) {
        let method = method.parse().expect("a method");
        let (what, r) = match target(&method, path, false) {
            Target::Resource(r) => ("", r),
            Target::OldWatch(r) => ("old ", r),
            Target::WrongMethodOf(r) => ("wrong ", r),
            _ => panic!("{path} is no resource"),
        };
        let got = format!(
            "{what}{} {}/{} {} ns={} name={} sub={}",
            r.verb.as_str(),
            r.group,
            r.version,
            r.resource,
            r.namespace,
            r.name,
            r.subresource
        );
        assert_eq!(got, expected);
    }

    #[rstest]
    #[case("GET", "/api/v1/namespaces//pods/x", Target::NoNamespace)]
    #[case("DELETE", "/apis/apps/v1/namespaces//deployments", Target::NoNamespace)]
    #[case("PUT", "/api/v1/namespaces//pods/x", Target::NoNamespace)]
    #[case("PATCH", "/apis/apps/v1/namespaces//deployments/d", Target::NoNamespace)]
    #[case("POST", "/api/v1/namespaces//pods/x/binding", Target::NoNamespace)]
    #[case("PUT", "/api/v1", Target::WrongMethodOfVersion(String::new(), "v1".to_owned()))]
    #[case("POST", "/apis/apps/", Target::Group("apps".to_owned()))]
    #[case("GET", "/api/v1/watch/", Target::Unfinished)]
    #[case("GET", "/version/a", Target::NoRoute)]
    #[case("GET", "/apis//apps", Target::Nothing)]
    #[case("GET", "/index.html", Target::Root)]
    fn paths_of_nothing(#[case] method: &str, #[case] path: &str, #[case] expected: Target) {
        let method = method.parse().expect("a method");
        assert_eq!(target(&method, path, false), expected);
    }
}
