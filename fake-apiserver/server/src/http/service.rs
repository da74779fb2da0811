//! The way of a request: read, route, decode, act, encode.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::Bytes;
use client_kit::{Jumps, LocalObjects};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, USER_AGENT, VARY};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use hyper::upgrade::OnUpgrade;
use machinery::status::ApiError;
use ring::digest::{SHA512, digest};
use shared_json::Value;

use super::dispatch::{Incoming, resource_request, unanswered_method};
use super::fairness::{self, Class};
use super::metrics::metrics;
use super::streams;
use crate::aggregation::{self, Asker, Ways};
use crate::authn::{self, Peer, User};
use crate::authz::{self, Act};
use crate::discovery;
use crate::faults::{Asked, Fate};
use crate::health::health;
use crate::message::body::ResponseBody;
use crate::message::decode::BODY_BYTES_MAX;
use crate::message::negotiate::{Accepted, Encoding, Offer, accept, is_routed};
use crate::message::params::{self, Params};
use crate::message::payload::Payload;
use crate::message::request::{ResourceRequest, Target, Verb, target};
use crate::message::respond::{self, AGGREGATED_PROTOBUF_TYPE, AGGREGATED_TYPE, AGGREGATED_YAML_TYPE};
use crate::openapi::{self, Document};
use crate::pages::{Page, PageRequest};
use crate::request_counts::Labels;
use crate::resources::Registry;
use crate::server::Server;
use crate::tokens::TokenSigner;

/// How long a client may take to send a request: the real server ends one that is not long-running after that.
const BODY_WAIT_MAX: Duration = Duration::from_secs(60);

impl<B> tower::Service<Request<B>> for Server
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let whole = Limited::new(body, BODY_BYTES_MAX).collect();
        let whole = whole.map(|read| read.ok().map(|body| body.to_bytes()));
        answered(self.clone(), head, whole.boxed())
    }
}

/// The class and the labels of a request over a socket before it is carried out.
#[derive(Default)]
struct Noted {
    class: Option<Class>,
    labels: Option<Labels>,
}

/// The body of a request as soon as it is read; none for one that is too large or breaks off.
type Whole = BoxFuture<'static, Option<Bytes>>;

/// Where the generic part ends: all that follows is compiled once, in this crate.
fn answered(
    server: Server,
    head: Parts,
    body: Whole,
) -> BoxFuture<'static, Result<Response<ResponseBody>, Infallible>> {
    Box::pin(async move { Ok(answer(server, head, body).await) })
}

async fn answer(server: Server, mut head: Parts, body: Whole) -> Response<ResponseBody> {
    if streams::is_needed(&head.headers, &head.extensions) {
        return streams::through_a_connection(server, head).await;
    }
    let upgrade = head.extensions.remove::<OnUpgrade>();
    let began = server.state.clock.now();
    let state = Arc::clone(&server.state);
    let mut noted = Noted::default();
    let mut response = match handle(server, &head, upgrade, body, &mut noted).await {
        Ok(response) => response,
        Err(error) => {
            let accepted = accept(header(&head, &ACCEPT), Offer::ERRORS).unwrap_or_default();
            let pretty = Params::parse(head.uri.query().unwrap_or_default())
                .is_ok_and(|params| is_pretty(&params, header(&head, &USER_AGENT)));
            let encoding = match accepted.encoding {
                Encoding::Json if pretty => Encoding::PrettyJson,
                encoding => encoding,
            };
            respond::failure(&error, encoding)
        }
    };
    if let Some(class) = noted.class {
        class.write(response.headers_mut());
    }
    if let Some(labels) = noted.labels {
        let took = Duration::try_from(state.clock.now().duration_since(began)).unwrap_or_default();
        state
            .request_counts
            .note(&labels, response.status().as_u16(), took);
    }
    respond::finish(response, &head.headers)
}

fn header<'a>(head: &'a Parts, name: &HeaderName) -> &'a str {
    let value = head.headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

async fn handle(
    server: Server,
    head: &Parts,
    upgrade: Option<OnUpgrade>,
    body: Whole,
    noted: &mut Noted,
) -> Result<Response<ResponseBody>, ApiError> {
    let query = head.uri.query().unwrap_or_default();
    if !params::is_escaped_well(head.uri.path()) {
        let mut response = respond::text("400 Bad Request".to_owned());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    let params = Params::parse(query)?;
    let path = params::unescape_path(head.uri.path());
    let target = routed(target(&head.method, &path, params.watch), &server.state.registry);
    let target = match target {
        // What is passed on may have any method.
        Target::WrongMethodOf(request) if streams::is_proxied(&request) => Target::Resource(request),
        target => target,
    };
    let target = read_by_custom_handler(target, head, params.watch, &server.state.registry);
    if target == Target::Unfinished {
        let asked = head
            .uri
            .path_and_query()
            .map_or(head.uri.path(), PathAndQuery::as_str);
        return Ok(respond::unfinished(asked));
    }
    if !target.is_long_running() {
        params.check_timeout()?;
    }
    let agent = match header(head, &USER_AGENT) {
        "" => server.user_agent.unwrap_or_default(),
        said => said,
    };
    let fate = match &target {
        Target::Resource(request) => server.state.faults.of_request(&Asked {
            request,
            user_agent: agent,
        }),
        _ => Fate::default(),
    };
    if !fate.delay.is_zero() {
        tokio::time::sleep(fate.delay).await;
    }
    if let Some(refusal) = fate.refusal {
        return Err(refusal);
    }
    let user = admit(&server, head, (&path, &target), &params, noted)?;
    let body = received(&server.state.jumps, head, body).await?;
    if let Some(found) = aggregation::of_path(&server.state.store, &path, own_groups(&server)) {
        let asker = Asker {
            head,
            user: &user,
            body: Bytes::copy_from_slice(&body),
            upgrade,
        };
        let answer = aggregation::forward(ways(&server), &found, asker).await;
        return if fate.lose_answer {
            Err(ApiError::timed_out())
        } else {
            Ok(answer)
        };
    }
    match target {
        Target::Health(which, check) => Ok(health(&which, check.as_deref(), query)),
        Target::WrongMethod => Err(ApiError::method_not_allowed()),
        Target::WrongMethodOf(request) => unanswered_method(&server, &request, header(head, &ACCEPT)),
        Target::NoNamespace => Err(ApiError::bad_request("Namespace parameter required.")),
        Target::Nothing => match server.state.pages.get(&path) {
            Some(page) => page_of_program(page, &head.method, body).await,
            None => Ok(respond::page_not_found()),
        },
        Target::NoRoute => Err(ApiError::no_such_resource()),
        Target::Resource(request) => {
            let stream = streams::ends_at_node(&request).then(|| streams::Head {
                method: head.method.clone(),
                path: head.uri.path().to_owned(),
                query: query.to_owned(),
                headers: head.headers.clone(),
                upgrade,
            });
            let incoming = Box::new(Incoming {
                user,
                accept: header(head, &ACCEPT).to_owned(),
                content_type: header(head, &CONTENT_TYPE).to_owned(),
                manager: manager(&params, agent),
                pretty: is_pretty(&params, agent),
                local: head.extensions.get::<LocalObjects>().cloned(),
                is_remote: head.extensions.get::<Peer>().is_some(),
                user_agent: agent.to_owned(),
                params,
                body,
                stream,
            });
            let answer = resource_request(server, request, incoming).await;
            if fate.lose_answer {
                return Err(ApiError::timed_out());
            }
            answer
        }
        Target::Metrics => Ok(metrics(&server)),
        Target::KeySet => key_set(&server, header(head, &ACCEPT)),
        Target::OpenApiV2 => Ok(open_api_v2(&server, head)),
        Target::OpenApiV3(path) => Ok(open_api_v3(&server, head, &path)),
        other => described(&server, head, &other, is_pretty(&params, agent)),
    }
}

/// Tells the groups that this server answers whatever is registered for them.
fn own_groups(server: &Server) -> impl Fn(&str) -> bool + Copy + '_ {
    move |group| server.state.registry.is_builtin_group(group)
}

/// The ways to the servers behind APIServices.
fn ways(server: &Server) -> Ways<'_> {
    Ways {
        store: &server.state.store,
        aggregation: &server.state.aggregation,
        jumps: &server.state.jumps,
        network: server.state.network(),
    }
}

/// The answer of a page that the program around the server has.
async fn page_of_program(
    page: Page,
    method: &Method,
    body: Payload,
) -> Result<Response<ResponseBody>, ApiError> {
    let request = PageRequest {
        method: method.clone(),
        body: Bytes::copy_from_slice(&body),
    };
    let answer = page(request).await?;
    let bytes = Bytes::from(format!("{answer}\n"));
    Ok(respond::whole(bytes, Encoding::Json.content_type()))
}

/// The body of a request, once it is whole.
///
/// # Errors
/// 413 for a body that is too large, 400 for one that does not come in time.
async fn received(jumps: &Arc<Jumps>, head: &Parts, body: Whole) -> Result<Payload, ApiError> {
    let body = match jumps.real_timeout(BODY_WAIT_MAX, body).await {
        Some(Some(body)) => body,
        Some(None) => return Err(ApiError::too_large(BODY_BYTES_MAX)),
        None => return Err(ApiError::unread_in_time()),
    };
    let local = head.extensions.get::<LocalObjects>();
    Ok(match local.and_then(|local| local.sent(&body)) {
        Some(object) => Payload::of_object(object.clone()),
        None => Payload::from(body),
    })
}

fn open_api_v2(server: &Server, head: &Parts) -> Response<ResponseBody> {
    let others = aggregation::specs(&server.state.aggregation);
    match openapi::v2(&server.state.registry, &others, header(head, &ACCEPT)) {
        Some(found) => published(found, head, None),
        None => respond::silent(StatusCode::NOT_ACCEPTABLE),
    }
}

fn open_api_v3(server: &Server, head: &Parts, path: &str) -> Response<ResponseBody> {
    let query = head.uri.query().unwrap_or_default();
    let found = openapi::v3(&server.state.registry, path).map(|found| match path {
        "" => found.changed(|index| aggregation::add_open_api(index, &server.state.aggregation)),
        _ => found,
    });
    match found {
        Some(_) if !path.is_empty() && !openapi::takes_v3(header(head, &ACCEPT)) => {
            respond::silent(StatusCode::NOT_ACCEPTABLE)
        }
        Some(found) => match elsewhere(path, &found.hash, query) {
            Some(place) => respond::moved(&place),
            None => published(found, head, Some(query)),
        },
        None => respond::silent(StatusCode::NOT_FOUND),
    }
}

/// The answer of a path that describes the server: its version, its groups, their resources.
fn described(
    server: &Server,
    head: &Parts,
    target: &Target,
    pretty: bool,
) -> Result<Response<ResponseBody>, ApiError> {
    let asked = header(head, &ACCEPT);
    let offer = Offer {
        protobuf: matches!(
            target,
            Target::CoreVersions | Target::Groups | Target::Group(_) | Target::GroupVersion(..)
        ),
        views: false,
        tables: false,
        aggregated: matches!(target, Target::CoreVersions | Target::Groups),
    };
    if let Some(error) = unrouted(target, asked, server) {
        return Err(error);
    }
    // The version is given as it is, whatever is asked for.
    let mut accepted = if *target == Target::Version {
        Accepted::default()
    } else {
        accept(asked, offer).ok_or_else(not_acceptable)?
    };
    if pretty && accepted.encoding == Encoding::Json {
        accepted.encoding = Encoding::PrettyJson;
    }
    let Some(document) = document(server, target, accepted) else {
        let known =
            matches!(target, Target::GroupVersion(group, _) if server.state.registry.is_builtin_group(group));
        return if known {
            Err(ApiError::no_such_resource())
        } else {
            Ok(respond::page_not_found())
        };
    };
    let bytes = Bytes::from(document.to_string());
    if !accepted.aggregated {
        return Ok(respond::respond(StatusCode::OK, bytes, accepted.encoding, &[]));
    }
    // A client that has the groups and their resources already gets 304.
    let hash = digest(&SHA512, &bytes);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{hash}\"");
    let mut answer = if header(head, &IF_NONE_MATCH) == tag {
        respond::silent(StatusCode::NOT_MODIFIED)
    } else {
        let mut answer = respond::respond(StatusCode::OK, bytes, accepted.encoding, &[]);
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, aggregated_type(accepted.encoding));
        answer
    };
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    Ok(answer)
}

/// Resolves the paths that depend on the served resources: existing versions, and watchable resources.
fn routed(target: Target, registry: &Registry) -> Target {
    match target {
        Target::WrongMethodOfVersion(group, version) => {
            let served = registry.is_builtin_group(&group)
                && discovery::resource_list(registry, &group, &version).is_some();
            if served {
                Target::WrongMethod
            } else {
                Target::GroupVersion(group, version)
            }
        }
        Target::OldWatch(request) => {
            let Some(resource) = registry
                .find(&request.group, &request.version, &request.resource)
                .filter(|resource| !resource.is_custom())
            else {
                return Target::Resource(request);
            };
            let watched = resource.verbs.iter().any(|verb| verb == "watch")
                && request.subresource.is_empty()
                && (request.name.is_empty() || resource.namespaced != request.namespace.is_empty())
                && (resource.namespaced || request.namespace.is_empty());
            match request.verb {
                Verb::Watch if watched => Target::Resource(request),
                _ if watched => Target::WrongMethod,
                _ => Target::NoRoute,
            }
        }
        target => target,
    }
}

/// The handler of custom resources reads HEAD as GET, and finds out by itself that a change needs a name. The routes of built-in
/// resources have nothing for either.
fn read_by_custom_handler(target: Target, head: &Parts, watch: bool, registry: &Registry) -> Target {
    let Target::WrongMethodOf(request) = target else {
        return target;
    };
    let verb = match (head.method.as_str(), request.name.is_empty()) {
        ("HEAD", false) => Verb::Get,
        ("HEAD", true) if watch => Verb::Watch,
        ("HEAD", true) => Verb::List,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        _ => return Target::WrongMethodOf(request),
    };
    let found = registry.find(&request.group, &request.version, &request.resource);
    if found.is_some_and(|resource| resource.is_custom()) {
        Target::Resource(ResourceRequest { verb, ..request })
    } else {
        Target::WrongMethodOf(request)
    }
}

/// Some of these documents are behind routes that list their media types, and refuse all others in their own wording.
fn unrouted(target: &Target, accept: &str, server: &Server) -> Option<ApiError> {
    let (produced, fits) = match target {
        Target::Version => (
            "application/json",
            accept.trim().is_empty()
                || accept.split(',').any(|range| {
                    let kind = range.split(';').next().unwrap_or_default().trim();
                    matches!(kind, "*/*" | "application/json")
                }),
        ),
        Target::CoreVersions => (DOCUMENT_TYPES, is_routed(accept)),
        Target::GroupVersion(group, _) if server.state.registry.is_builtin_group(group) => {
            (DOCUMENT_TYPES, is_routed(accept))
        }
        _ => return None,
    };
    if fits {
        return None;
    }
    let mut error = ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        format!("406: Not Acceptable\n\nAvailable representations: {produced}"),
    );
    error.details = Some(shared_json::json!({}));
    Some(error)
}

const DOCUMENT_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The content type of aggregated discovery.
fn aggregated_type(encoding: Encoding) -> HeaderValue {
    HeaderValue::from_static(match encoding {
        Encoding::Yaml => AGGREGATED_YAML_TYPE,
        Encoding::Protobuf => AGGREGATED_PROTOBUF_TYPE,
        Encoding::Json | Encoding::PrettyJson => AGGREGATED_TYPE,
    })
}

/// The user who sends a request, before impersonation; none if it comes from this process and does not say from whom.
///
/// # Errors
/// 401 for a token that is not good.
fn sender(server: &Server, head: &Parts) -> Result<Option<Arc<User>>, ApiError> {
    if let Some(peer) = head.extensions.get::<Peer>() {
        return authn::authenticate(&server.state, peer, &head.headers).map(Some);
    }
    if server.user.is_some() {
        return Ok(server.user.clone());
    }
    match authn::says_who(&head.headers) {
        true => authn::authenticate(&server.state, &Peer::in_process(), &head.headers).map(Some),
        false => Ok(None),
    }
}

/// Authenticates and authorizes a request. An administrator of this process pays nothing for it.
fn admit(
    server: &Server,
    head: &Parts,
    (path, target): (&str, &Target),
    params: &Params,
    noted: &mut Noted,
) -> Result<Arc<User>, ApiError> {
    let state = &server.state;
    let is_remote = head.extensions.get::<Peer>().is_some();
    let is_stream = matches!(target, Target::Resource(request) if streams::ends_at_node(request));
    if is_remote {
        noted.labels = Some(match target {
            Target::Resource(request) => {
                let apply = request.verb == Verb::Patch
                    && header(head, &CONTENT_TYPE).starts_with("application/apply-patch");
                Labels::of_resource(request, apply, is_stream, params.dry_run)
            }
            _ => Labels::of_path(&head.method, path),
        });
    }
    let Some(user) = sender(server, head)? else {
        return Ok(User::master());
    };
    let act = match target {
        Target::Resource(request) => {
            let mut act = Act::of(request);
            if request.name.is_empty() && matches!(request.verb, Verb::List | Verb::Watch) {
                // Whoever lists one object by its name may do so by that name.
                act.name = named(&params.field_selector).to_owned();
            }
            act.field_selector.clone_from(&params.field_selector);
            act
        }
        Target::WrongMethodOf(request) => Act {
            verb: meant(&head.method).to_owned(),
            ..Act::of(request)
        },
        _ => Act::path(&head.method, path),
    };
    let user = match authn::impersonated(&head.headers)? {
        Some(meant) => authz::become_user(state, &user, meant, &act)?,
        None => user,
    };
    if is_remote && !is_stream {
        noted.class = fairness::classify(state, &user, &act);
    }
    authz::check(state, &user, &act)?;
    Ok(user)
}

/// The verb that a method stands for where nothing answers it.
fn meant(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// The one name that a field selector asks for, if it does.
fn named(selector: &str) -> &str {
    let wanted = selector.split(',').find_map(|term| {
        let name = term.strip_prefix("metadata.name=")?;
        Some(name.strip_prefix('=').unwrap_or(name))
    });
    let is_name = |name: &&str| !matches!(*name, "." | "..") && !name.contains(['/', '%', '\\']);
    wanted.filter(is_name).unwrap_or_default()
}

/// The keys that tokens are signed with, which come in a media type of their own only.
fn key_set(server: &Server, accept: &str) -> Result<Response<ResponseBody>, ApiError> {
    const TYPE: &str = "application/jwk-set+json";
    let mut ranges = accept
        .split(',')
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    if !accept.is_empty() && !ranges.any(|range| matches!(range, TYPE | "application/*" | "*/*")) {
        let message = format!("only the following media types are accepted: {TYPE}");
        let mut error = ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        error.details = Some(shared_json::json!({}));
        return Err(error);
    }
    Ok(respond::whole(
        Bytes::from(server.state.tokens.key_set().to_string()),
        TYPE,
    ))
}

/// Where a document is that was asked for by the hash of another one.
fn elsewhere(path: &str, hash: &str, query: &str) -> Option<String> {
    let asked = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("hash="))
        .filter(|asked| !asked.is_empty() && !path.is_empty())?;
    (asked != hash).then(|| format!("/openapi/v3/{path}?hash={hash}"))
}

/// An OpenAPI document with headers for caches: a client that has it gets 304, and one that asks for it by its hash may keep
/// it for good.
fn published(document: Document, head: &Parts, query: Option<&str>) -> Response<ResponseBody> {
    let tag = format!("\"{}\"", document.hash);
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("hash=")));
    let mut answer = if header(head, &IF_NONE_MATCH) == tag {
        let mut unchanged = respond::whole(Bytes::new(), document.content_type);
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        respond::whole(document.bytes, document.content_type)
    };
    let headers = answer.headers_mut();
    let mut set = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    set(ETAG, &tag);
    set(VARY, "Accept-Encoding, Accept");
    if asked == Some(document.hash.as_str()) {
        set(CACHE_CONTROL, "public, immutable");
    }
    answer
}

/// No form that the client accepts is offered.
pub(super) fn not_acceptable() -> ApiError {
    ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

/// JSON is indented if the client asks for it, or if the client is a tool that shows it as it is.
fn is_pretty(params: &Params, user_agent: &str) -> bool {
    params.pretty.unwrap_or_else(|| {
        ["curl", "Wget", "Mozilla/5.0"]
            .iter()
            .any(|tool| user_agent.starts_with(tool))
    })
}

/// The field manager: as the client names it, or the program in its user agent.
const MANAGER_CHARS_MAX: usize = 128;

fn manager(params: &Params, user_agent: &str) -> String {
    if !params.field_manager.is_empty() {
        return params.field_manager.clone();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    if program.is_empty() {
        "unknown".to_owned()
    } else {
        // What names a manager is cut to what a manager may be named.
        let end = program.char_indices().nth(MANAGER_CHARS_MAX).map(|(end, _)| end);
        program[..end.unwrap_or(program.len())].to_owned()
    }
}

/// The answers that concern no object.
fn document(server: &Server, target: &Target, accepted: Accepted) -> Option<Value> {
    let (registry, store, own) = (&server.state.registry, &server.state.store, own_groups(server));
    match target {
        Target::Version => Some(discovery::version()),
        Target::CoreVersions if accepted.aggregated => Some(discovery::aggregated(registry, true)),
        Target::CoreVersions => Some(discovery::core_versions()),
        Target::Groups if accepted.aggregated => {
            let mut document = discovery::aggregated(registry, false);
            aggregation::add_resources(&mut document, store, &server.state.aggregation, own);
            Some(document)
        }
        Target::Groups => {
            let mut list = discovery::group_list(registry);
            aggregation::add_groups(&mut list, store, own);
            Some(list)
        }
        Target::Group(group) => aggregation::with_group(discovery::group(registry, group), store, group, own),
        Target::GroupVersion(group, version) => discovery::resource_list(registry, group, version),
        Target::OpenIdConfiguration => Some(TokenSigner::configuration()),
        Target::Root => {
            let mut index = discovery::root_paths(registry);
            aggregation::add_paths(&mut index, store, own);
            Some(index)
        }
        _ => None,
    }
}
