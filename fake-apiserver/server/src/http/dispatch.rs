//! Requests for resources, dispatched to their verbs.

use std::sync::Arc;

use client_kit::LocalObjects;
use http::{Response, StatusCode};
use machinery::status::ApiError;

use super::service::not_acceptable;
use super::streams;
use crate::authn::User;
use crate::context::{Answer, Context, Page, Shown, Warnings};
use crate::encode::Encoder;
use crate::message::body::{ResponseBody, join};
use crate::message::negotiate::{self, Accepted, Encoding, Offer, View};
use crate::message::params::Params;
use crate::message::payload::Payload;
use crate::message::request::{ResourceRequest, Verb};
use crate::message::respond::{self, page_not_found};
use crate::resources::Resource;
use crate::rest::delete::DeleteOptions;
use crate::rest::patch::PatchKind;
use crate::rest::{
    components, create, delete, options, ownership, patch, read, reviews, subresource, subresource_body,
    token_request, update, watch,
};
use crate::server::Server;
use crate::{conversion, incoming};

/// The parts of a request for a resource.
pub(super) struct Incoming {
    pub user: Arc<User>,
    /// Where a watcher of this process takes objects from.
    pub local: Option<LocalObjects>,
    /// Whether it came over a socket.
    pub is_remote: bool,
    /// The header's text.
    pub accept: String,
    pub content_type: String,
    pub manager: String,
    pub user_agent: String,
    /// JSON is laid out for people.
    pub pretty: bool,
    pub params: Params,
    pub body: Payload,
    /// Set for a request that ends at a node.
    pub stream: Option<streams::Head>,
}

/// The routes of built-in resources refuse a client that takes none of the types that they list.
fn unrouted(request: &ResourceRequest) -> ApiError {
    let streams = if matches!(request.verb, Verb::List | Verb::Watch) {
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        ""
    };
    let mut error = ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf{streams}"
        ),
    );
    error.details = Some(shared_json::json!({}));
    error
}

/// Refuses a watch in YAML.
fn no_stream(resource: &Resource) -> ApiError {
    let protobuf = if resource.is_custom() {
        ""
    } else {
        ", application/vnd.kubernetes.protobuf;stream=watch"
    };
    ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        format!("only the following media types are accepted: application/json;stream=watch{protobuf}"),
    )
}

/// The form of the answer.
fn accepted(
    resource: &Resource,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> Result<Accepted, ApiError> {
    let offer = Offer {
        protobuf: !resource.is_custom(),
        views: true,
        tables: has_tables(resource, request),
        aggregated: false,
    };
    if !resource.is_custom() && !negotiate::is_routed(&incoming.accept) {
        return Err(unrouted(request));
    }
    let mut accepted = negotiate::accept(&incoming.accept, offer).ok_or_else(not_acceptable)?;
    if request.verb == Verb::Watch && accepted.encoding == Encoding::Yaml {
        options::check_list(&incoming.params, true)?;
        return Err(no_stream(resource));
    }
    if incoming.pretty && accepted.encoding == Encoding::Json && request.verb != Verb::Watch {
        accepted.encoding = Encoding::PrettyJson;
    }
    Ok(accepted)
}

/// Whether the answer has a form as a table: reviews and statuses have none.
fn has_tables(resource: &Resource, request: &ResourceRequest) -> bool {
    let subresource = request.subresource.as_str();
    // The statuses of these are read by handlers that make none.
    if subresource == "status"
        && !resource.is_custom()
        && matches!(
            resource.plural.as_str(),
            "customresourcedefinitions" | "resourceclaims"
        )
    {
        return false;
    }
    if resource.is_custom() || matches!(subresource, "status" | "scale") {
        return true;
    }
    let verbs = match resource.subresources.get(subresource) {
        Some(subresource) => &subresource.verbs,
        None if resource.verbs.iter().any(|verb| verb == "get") => return true,
        None => &resource.verbs,
    };
    // That it cannot be done at all is found out first.
    !verbs.iter().any(|verb| verb == request.verb.as_str())
}

/// Refuses an answer whose form does not match the requested one: a list or not. The real server checks this in the encoder,
/// after the action; the rows' `includeObject` is checked there, too.
fn check_view(context: &Context) -> Result<(), ApiError> {
    let given = context.params.include_object.as_str();
    if context.accepted.view == View::Table && !matches!(given, "" | "None" | "Metadata" | "Object") {
        return Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {given:?}: must be 'Metadata', 'Object', \
             'None', or empty"
        )));
    }
    let verb = context.request.verb;
    let lists = matches!(verb, Verb::List | Verb::DeleteCollection);
    let (asked, is_not) = match context.accepted.view {
        View::MetadataOnly if lists => ("PartialObjectMetadata", "a list"),
        // That something was deleted is said as it is.
        View::MetadataOnlyList
            if verb == Verb::Delete && !context.resource.strategy.returns_deleted_object() =>
        {
            return Ok(());
        }
        View::MetadataOnlyList if !lists && verb != Verb::Watch => {
            ("PartialObjectMetadataList", "not a list")
        }
        _ => return Ok(()),
    };
    let go_type = go_type(&context.resource, lists);
    Err(ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        format!("you requested {asked}, but the requested object is {is_not} ({go_type})"),
    ))
}

/// The name that the real server's own type has in Go, as refusals quote it.
fn go_type(resource: &Resource, list: bool) -> String {
    let kind = if list { &resource.list_kind } else { &resource.kind };
    match resource.table.group.split('.').next().unwrap_or_default() {
        _ if resource.is_custom() => format!("*unstructured.Unstructured{}", if list { "List" } else { "" }),
        "" => format!("*core.{kind}"),
        group => format!("*{group}.{kind}"),
    }
}

const TOKEN_REQUEST: subresource_body::Taken = subresource_body::Taken {
    kind: "TokenRequest",
    package: "authentication",
    group: "authentication.k8s.io",
};

/// The content type of a server-side apply.
const APPLY_TYPE: &str = "application/apply-patch+yaml";

/// Answers a request for a resource.
pub(super) async fn resource_request(
    server: Server,
    request: ResourceRequest,
    incoming: Box<Incoming>,
) -> Result<Response<ResponseBody>, ApiError> {
    let registry = &server.state.registry;
    let Some(resource) = registry.find(&request.group, &request.version, &request.resource) else {
        // What no part of the server serves at all falls through to its last handler.
        return if registry.is_builtin_group(&request.group) {
            Err(ApiError::no_such_resource())
        } else {
            Ok(page_not_found())
        };
    };
    let served =
        resource.is_custom() || resource.has_path(&request.namespace, &request.name, &request.subresource);
    if !served {
        return Err(ApiError::no_such_resource());
    }
    if let Err(error) = check_scope(&resource, &request) {
        return if resource.is_custom() {
            Ok(page_not_found())
        } else {
            Err(error)
        };
    }
    if matches!(request.name.as_str(), "." | "..") {
        let name = &request.name;
        return Err(ApiError::bad_request(format!(
            "Name parameter invalid: \"{name}\": may not be '{name}'"
        )));
    }
    let (deprecation, encoding) = (resource.deprecation.clone(), negotiated_encoding(&incoming));
    let answer = perform(server, resource, request, incoming).await;
    match (answer, deprecation) {
        // That a version is deprecated is said whatever becomes of a request that the resource has a handler for.
        (Err(error), Some(warning)) if !is_unhandled(&error) => {
            Ok(respond::warned_failure(&error, encoding, &[warning]))
        }
        (answer, _) => answer,
    }
}

/// Answers a method that stands for no verb.
pub(super) fn unanswered_method(
    server: &Server,
    request: &ResourceRequest,
    accept: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let registry = &server.state.registry;
    let resource = registry.find(&request.group, &request.version, &request.resource);
    let Some(resource) = resource.filter(|resource| {
        resource.is_custom() || resource.has_path(&request.namespace, &request.name, &request.subresource)
    }) else {
        return if registry.is_builtin_group(&request.group) {
            Err(ApiError::no_such_resource())
        } else {
            Ok(page_not_found())
        };
    };
    if !resource.is_custom() {
        return Err(ApiError::method_not_allowed());
    }
    if resource.namespaced == request.namespace.is_empty() {
        return Ok(page_not_found());
    }
    // The handler of custom resources says what it knows of the method as a verb: nothing.
    let subresource = &request.subresource;
    let error = if subresource.is_empty() || resource.subresources.contains_key(subresource) {
        ApiError::not_supported("", &resource.group_resource())
    } else {
        ApiError::not_found(&resource.group_resource(), &request.name)
    };
    let Some(warning) = resource.deprecation.clone() else {
        return Err(error);
    };
    let accepted = negotiate::accept(accept, Offer::ERRORS).unwrap_or_default();
    Ok(respond::warned_failure(&error, accepted.encoding, &[warning]))
}

/// Whether the refusal says that nothing is there to handle the request: no route leads to a handler that would tell anything
/// besides.
fn is_unhandled(error: &ApiError) -> bool {
    *error == ApiError::method_not_allowed()
        || *error == ApiError::no_such_resource()
        || ["406: ", "415: "]
            .iter()
            .any(|code| error.message.starts_with(code))
}

/// The encoding in which the client would read a refusal.
fn negotiated_encoding(incoming: &Incoming) -> Encoding {
    let accepted = negotiate::accept(&incoming.accept, Offer::ERRORS).unwrap_or_default();
    match accepted.encoding {
        Encoding::Json if incoming.pretty => Encoding::PrettyJson,
        encoding => encoding,
    }
}

async fn perform(
    server: Server,
    resource: Arc<Resource>,
    request: ResourceRequest,
    incoming: Box<Incoming>,
) -> Result<Response<ResponseBody>, ApiError> {
    let accepted = match &incoming.stream {
        // Streams have forms of their own.
        Some(_) => Accepted::default(),
        None => {
            check_verb(&resource, &request)?;
            check_patch_type(&resource, &request, &incoming)?;
            check_named(&resource, &request)?;
            accepted(&resource, &request, &incoming)?
        }
    };
    let refusals = negotiated_encoding(&incoming);
    let Incoming {
        user,
        local,
        is_remote,
        content_type,
        manager,
        user_agent,
        mut params,
        body,
        stream,
        ..
    } = *incoming;
    let media_type = content_type.split(';').next().unwrap_or_default();
    let is_apply = media_type.trim() == APPLY_TYPE;
    options::check(&mut params, request.verb, is_apply)?;
    let deprecated: Vec<String> = resource.deprecation.iter().cloned().collect();
    // The less a request has at hand while it waits, the less is copied to begin it.
    let context = Box::new(Context {
        server,
        resource,
        request,
        params,
        accepted,
        content_type,
        body,
        manager,
        user,
        local,
        is_remote,
        warnings: Warnings::default(),
        asked: conversion::Asked::default(),
    });
    if let Some(head) = stream {
        return Box::pin(streams::answer(&context, head)).await;
    }
    let answer = act(&context, &context.body, user_agent).await;
    match answer.and_then(|answer| check_view(&context).map(|()| answer)) {
        Err(error) if !is_unhandled(&error) => {
            let warnings = [deprecated, context.warnings.told()].concat();
            Ok(respond::warned_failure(&error, refusals, &warnings))
        }
        answer => answer,
    }
}

/// Whether the patch is of a kind that is taken here: found out before the form of the answer and the options are.
fn check_patch_type(
    resource: &Resource,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> Result<(), ApiError> {
    if request.verb == Verb::Patch {
        PatchKind::of(&incoming.content_type, resource.is_custom())?;
    }
    Ok(())
}

/// Whether a change of a custom resource names an object: one handler serves collections and their items.
fn check_named(resource: &Resource, request: &ResourceRequest) -> Result<(), ApiError> {
    let changes = matches!(request.verb, Verb::Update | Verb::Patch);
    if resource.is_custom() && changes && request.name.is_empty() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    Ok(())
}

/// Whether anything answers this verb: found out before the form of the answer and the options are.
fn check_verb(resource: &Resource, request: &ResourceRequest) -> Result<(), ApiError> {
    let verb = request.verb;
    let is_among = |verbs: &[String]| verbs.iter().any(|known| known == verb.as_str());
    if !request.subresource.is_empty() {
        return match resource.subresources.get(&request.subresource) {
            Some(served) if is_among(&served.verbs) => Ok(()),
            Some(_) if resource.is_custom() => {
                Err(ApiError::not_supported(verb.as_str(), &resource.group_resource()))
            }
            Some(_) => Err(ApiError::method_not_allowed()),
            // The handler of custom resources is the same for all paths below them.
            None if resource.is_custom() => {
                Err(ApiError::not_found(&resource.group_resource(), &request.name))
            }
            None => Err(ApiError::no_such_resource()),
        };
    }
    if is_among(&resource.verbs) {
        // Nothing built in is created under a name of its path.
        let misplaced = verb == Verb::Create && !request.name.is_empty() && !resource.is_custom();
        return if misplaced {
            Err(ApiError::method_not_allowed())
        } else {
            Ok(())
        };
    }
    // What is only ever created has no paths of its own.
    if !request.name.is_empty() && resource.verbs.iter().all(|verb| verb == "create") {
        return Err(ApiError::no_such_resource());
    }
    // Whether a list can be watched is found out by the handler of lists.
    let listed = verb == Verb::Watch && resource.verbs.iter().any(|verb| verb == "list");
    Err(if listed {
        ApiError::not_supported("watch", &resource.group_resource())
    } else {
        ApiError::method_not_allowed()
    })
}

/// Carries out the request.
async fn act(
    context: &Context,
    body: &Payload,
    user_agent: String,
) -> Result<Response<ResponseBody>, ApiError> {
    if !context.request.subresource.is_empty() {
        return subresource_request(context, body).await;
    }
    let answer = match context.request.verb {
        Verb::Get if components::is_status(&context.resource) => {
            Answer::ok(Shown::Made(components::get(context)?))
        }
        Verb::List if components::is_status(&context.resource) => {
            return Ok(list_response(context, &components::list(context)?));
        }
        Verb::Get => {
            read::check_get_version(context)?;
            Answer::ok(Shown::Stored(context.existing()?))
        }
        Verb::List => {
            let page = read::list(context).await?;
            conversion::ready(context.state(), &context.resource, &page.items).await?;
            return Ok(list_response(context, &page));
        }
        Verb::Watch => {
            let stream = watch::watch(context, user_agent).await?;
            let content_type = context.accepted.encoding.stream_content_type();
            let mut answer = respond::stream(ResponseBody::stream(stream), content_type);
            respond::warn(&mut answer, &warnings(context));
            return Ok(answer);
        }
        // A binding is no object of its own: it is the pod's of that name.
        Verb::Create if context.resource.kind == "Binding" => {
            subresource::create_binding(context, body).await?
        }
        Verb::Create if reviews::is_review(&context.resource) => {
            let (mut review, _) = incoming::read(context, body)?;
            if context.resource.kind.ends_with("AccessReview") {
                review["status"] = shared_json::json!({"allowed": false});
            }
            subresource::judge(context, &mut review).await?;
            reviews::answer(context, body)?
        }
        Verb::Create => create::create(context, body).await?,
        Verb::Update => update::put(context, body).await?,
        Verb::Patch => patch::patch(context, body).await?,
        Verb::Delete => {
            let options = DeleteOptions::read(context, body)?;
            delete::delete(context, &options).await?
        }
        Verb::DeleteCollection => {
            // What is to be deleted is read before how.
            read::Selection::parse(context, false)?;
            let options = DeleteOptions::read(context, body)?;
            let page = delete::delete_collection(context, &options).await?;
            conversion::ready(context.state(), &context.resource, &page.items).await?;
            let page = Page {
                revision: Some(context.state().store.revision()),
                ..page
            };
            return Ok(list_response(context, &page));
        }
    };
    if let Shown::Stored(stored) = &answer.object {
        conversion::ready(context.state(), &context.resource, std::slice::from_ref(stored)).await?;
    }
    Ok(object_response(context, &answer))
}

/// A namespaced object has a namespace in its path, a cluster's has none; collections may be of all namespaces.
fn check_scope(resource: &Resource, request: &ResourceRequest) -> Result<(), ApiError> {
    let named = !request.namespace.is_empty();
    let of_all =
        request.name.is_empty() && matches!(request.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    if resource.namespaced == named
        || (resource.namespaced && of_all && request.verb != Verb::DeleteCollection)
    {
        return Ok(());
    }
    if resource.namespaced && matches!(request.verb, Verb::Create | Verb::DeleteCollection) {
        return Err(ApiError::method_not_allowed());
    }
    Err(ApiError::no_such_resource())
}

async fn subresource_request(context: &Context, body: &Payload) -> Result<Response<ResponseBody>, ApiError> {
    let answer = match (context.request.subresource.as_str(), context.request.verb) {
        ("token", Verb::Create) if context.request.resource == "serviceaccounts" => {
            let mut request =
                token_request::with_lifetime(subresource_body::read(context, body, TOKEN_REQUEST)?);
            ownership::own_posted(context, &mut request, ("authentication.k8s.io", "TokenRequest"));
            let mut asked = token_request::completed(context, &request);
            let before = asked.clone();
            subresource::judge(context, &mut asked).await?;
            token_request::take_changes(&mut request, &before, &asked);
            token_request::answer(context, request)?
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", Verb::Update) => {
            update::put(context, body).await?
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", Verb::Patch) => {
            patch::patch(context, body).await?
        }
        _ => subresource::handle(context, body).await?,
    };
    if let Shown::Stored(stored) = &answer.object {
        conversion::ready(context.state(), &context.resource, std::slice::from_ref(stored)).await?;
    }
    Ok(object_response(context, &answer))
}

/// The warnings for the client: first that the version is deprecated.
fn warnings(context: &Context) -> Vec<String> {
    let mut warnings: Vec<String> = context.resource.deprecation.iter().cloned().collect();
    warnings.extend(context.warnings.told());
    warnings
}

fn list_response(context: &Context, page: &Page) -> Response<ResponseBody> {
    let encoding = context.accepted.encoding;
    let parts = Encoder::new(context).list(page);
    // A client of this process reads it as a whole anyway, and other encodings are made of the whole.
    if !context.is_remote || encoding != Encoding::Json {
        return respond::respond(StatusCode::OK, join(&parts), encoding, &warnings(context));
    }
    let mut response = respond::stream(ResponseBody::parts(parts), encoding.content_type());
    respond::warn(&mut response, &warnings(context));
    response
}

fn object_response(context: &Context, answer: &Answer) -> Response<ResponseBody> {
    let encoder = Encoder::new(context);
    let bytes = match (&context.local, &answer.object) {
        (Some(local), Shown::Stored(stored)) if encoder.is_local(stored) => local.answer(|| stored.local()),
        (_, shown) => encoder.object(shown),
    };
    respond::respond(answer.code, bytes, context.accepted.encoding, &warnings(context))
}
