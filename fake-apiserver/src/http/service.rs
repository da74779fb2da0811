//! The way of a request: read, route, decode, act, encode.

use std::convert::Infallible;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT, WARNING};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

use super::body::ResponseBody;
use super::decode::BODY_BYTES_MAX;
use super::negotiate::{Accepted, Encoding, accept};
use super::params::{self, Params};
use super::request::{ResourceRequest, Target, Verb, target};
use crate::discovery;
use crate::encode::Encoder;
use crate::rest::context::{Answer, Context, Shown};
use crate::rest::delete::DeleteOptions;
use crate::rest::{create, delete, options, patch, read, subresource, update, watch};
use crate::server::Server;
use crate::status::ApiError;

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
        let server = self.clone();
        Box::pin(async move { Ok(answer(server, request).await) })
    }
}

async fn answer<B>(server: Server, request: Request<B>) -> Response<ResponseBody>
where
    B: Body,
    B::Error: std::fmt::Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return failure(&ApiError::too_large(BODY_BYTES_MAX), Accepted::default()),
    };
    let header = |name| {
        head.headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
            .unwrap_or_default()
    };
    let Some(accepted) = accept(header(ACCEPT)) else {
        let message = "only the following media types are accepted: application/json, application/yaml, \
                       application/vnd.kubernetes.protobuf";
        let error = ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        return failure(&error, Accepted::default());
    };
    let params = match Params::parse(head.uri.query().unwrap_or_default()) {
        Ok(params) => params,
        Err(error) => return failure(&error, accepted),
    };
    let manager = manager(&params, header(USER_AGENT));
    let content_type = header(CONTENT_TYPE).to_owned();
    let path = params::unescape_path(head.uri.path());
    let result = match target(&head.method, &path, params.watch) {
        Target::Health(which, check) => {
            return health(&which, check.as_deref(), head.uri.query().unwrap_or_default());
        }
        Target::WrongMethod => Err(ApiError::method_not_allowed()),
        Target::Nothing => return page_not_found(),
        Target::Resource(request) => {
            match resource_request(server, request, params, accepted, content_type, manager, body).await {
                Ok(response) => return response,
                Err(error) => Err(error),
            }
        }
        other => match document(&server, &other, accepted) {
            Some(value) => Ok(value),
            None => return page_not_found(),
        },
    };
    match result {
        Ok(value) => {
            let aggregated = value.get("kind").and_then(Value::as_str) == Some("APIGroupDiscoveryList");
            let mut answer = response(StatusCode::OK, Bytes::from(value.to_string()), accepted, &[]);
            if aggregated {
                answer
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static(AGGREGATED_TYPE));
            }
            answer
        }
        Err(error) => failure(&error, accepted),
    }
}

/// The content type of aggregated discovery.
const AGGREGATED_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The field manager: as the client names it, or the program in its user agent.
fn manager(params: &Params, user_agent: &str) -> String {
    if !params.field_manager.is_empty() {
        return params.field_manager.clone();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    if program.is_empty() {
        "unknown".to_owned()
    } else {
        program.to_owned()
    }
}

/// The answers that concern no object.
fn document(server: &Server, target: &Target, accepted: Accepted) -> Option<Value> {
    let registry = &server.state.registry;
    match target {
        Target::Version => Some(discovery::version()),
        Target::CoreVersions if accepted.aggregated => Some(discovery::aggregated(registry, true)),
        Target::CoreVersions => Some(discovery::core_versions()),
        Target::Groups if accepted.aggregated => Some(discovery::aggregated(registry, false)),
        Target::Groups => Some(discovery::group_list(registry)),
        Target::Group(group) => discovery::group(registry, group),
        Target::GroupVersion(group, version) => discovery::resource_list(registry, group, version),
        Target::Root => Some(discovery::root_paths(registry)),
        Target::Health(..) | Target::Resource(_) | Target::WrongMethod | Target::Nothing => None,
    }
}

/// The content type of a server-side apply.
const APPLY_TYPE: &str = "application/apply-patch+";

async fn resource_request(
    server: Server,
    request: ResourceRequest,
    params: Params,
    accepted: Accepted,
    content_type: String,
    manager: String,
    body: Bytes,
) -> Result<Response<ResponseBody>, ApiError> {
    let registry = &server.state.registry;
    let Some(resource) = registry.find(&request.group, &request.version, &request.resource) else {
        // What no part of the server serves at all falls through to its last handler.
        return if registry.is_builtin_version(&request.group, &request.version) {
            Err(ApiError::no_such_resource())
        } else {
            Ok(page_not_found())
        };
    };
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
    let mut params = params;
    options::check(&mut params, request.verb, content_type.starts_with(APPLY_TYPE))?;
    let deprecated: Vec<String> = resource.deprecation.iter().cloned().collect();
    let context = Context {
        server,
        resource,
        request,
        params,
        accepted,
        content_type,
        manager,
    };
    if !context.request.subresource.is_empty() {
        return subresource_request(&context, &body).await;
    }
    if !context
        .resource
        .verbs
        .iter()
        .any(|verb| verb == context.request.verb.as_str())
    {
        return Err(ApiError::method_not_allowed());
    }
    let answer = match context.request.verb {
        Verb::Get => {
            read::check_get_version(&context.params.resource_version)?;
            Answer::ok(Shown::Stored(context.existing()?))
        }
        Verb::List => {
            let page = read::list(&context)?;
            return Ok(response(
                StatusCode::OK,
                Encoder::new(&context).list(&page),
                accepted,
                &deprecated,
            ));
        }
        Verb::Watch => {
            let stream = watch::watch(&context)?;
            return Ok(stream_response(ResponseBody::stream(stream)));
        }
        Verb::Create if !context.request.name.is_empty() => return Err(ApiError::method_not_allowed()),
        Verb::Create => create::create(&context, &body).await?,
        Verb::Update => update::put(&context, &body).await?,
        Verb::Patch => patch::patch(&context, &body).await?,
        Verb::Delete => {
            let options = DeleteOptions::read(&context, &body)?;
            delete::delete(&context, &options).await?
        }
        Verb::DeleteCollection => {
            let options = DeleteOptions::read(&context, &body)?;
            let items = delete::delete_collection(&context, &options).await?;
            let revision = context.state().store.revision();
            let page = read::Page {
                revision,
                items,
                continue_token: String::new(),
                remaining: None,
            };
            return Ok(response(
                StatusCode::OK,
                Encoder::new(&context).list(&page),
                accepted,
                &deprecated,
            ));
        }
    };
    Ok(object_response(&context, &answer))
}

/// A namespaced object has a namespace in its path, a cluster's has none; collections may be of all namespaces.
fn check_scope(resource: &crate::resources::Resource, request: &ResourceRequest) -> Result<(), ApiError> {
    let named = !request.namespace.is_empty();
    let of_all =
        request.name.is_empty() && matches!(request.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    if resource.namespaced == named
        || (resource.namespaced && of_all && request.verb != Verb::DeleteCollection)
    {
        return Ok(());
    }
    if resource.namespaced && request.verb == Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    Err(ApiError::no_such_resource())
}

async fn subresource_request(context: &Context, body: &Bytes) -> Result<Response<ResponseBody>, ApiError> {
    let served = context
        .resource
        .subresources
        .get(&context.request.subresource)
        .ok_or_else(|| {
            let resource = &context.resource;
            // The handler of custom resources is the same for all paths below them.
            if resource.is_custom() && matches!(context.request.subresource.as_str(), "status" | "scale") {
                ApiError::not_found(&resource.group_resource(), &context.request.name)
            } else {
                ApiError::no_such_resource()
            }
        })?;
    if !served
        .verbs
        .iter()
        .any(|verb| verb == context.request.verb.as_str())
    {
        return Err(ApiError::method_not_allowed());
    }
    let answer = match (context.request.subresource.as_str(), context.request.verb) {
        ("status" | "ephemeralcontainers" | "resize" | "approval", Verb::Update) => {
            update::put(context, body).await?
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", Verb::Patch) => {
            patch::patch(context, body).await?
        }
        _ => subresource::handle(context, body).await?,
    };
    Ok(object_response(context, &answer))
}

fn object_response(context: &Context, answer: &Answer) -> Response<ResponseBody> {
    let bytes = Encoder::new(context).object(&answer.object);
    let mut warnings: Vec<String> = context.resource.deprecation.iter().cloned().collect();
    warnings.extend(answer.warnings.iter().cloned());
    response(answer.code, bytes, context.accepted, &warnings)
}

fn response(
    code: StatusCode,
    json: Bytes,
    accepted: Accepted,
    warnings: &[String],
) -> Response<ResponseBody> {
    let (bytes, content_type) = match accepted.encoding {
        Encoding::Json => (json, "application/json"),
        Encoding::Yaml => (to_yaml(&json), "application/yaml"),
    };
    let mut response = Response::new(ResponseBody::whole(bytes));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

fn to_yaml(json: &Bytes) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    serde_saphyr::to_string(&value)
        .map(Bytes::from)
        .unwrap_or_else(|_| json.clone())
}

fn stream_response(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What the real server's last handler says.
fn page_not_found() -> Response<ResponseBody> {
    let mut response = text("404 page not found\n".to_owned());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The checks of `/healthz` and its like that are shown; here all of them always pass.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

fn health(which: &str, check: Option<&str>, query: &str) -> Response<ResponseBody> {
    if let Some(check) = check {
        return if CHECKS.contains(&check) {
            text("ok".to_owned())
        } else {
            page_not_found()
        };
    }
    let asked = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    if !asked("verbose") {
        return text("ok".to_owned());
    }
    let mut out = String::new();
    for name in CHECKS {
        let excluded = query
            .split('&')
            .any(|pair| pair.strip_prefix("exclude=") == Some(name));
        out.push_str(&format!(
            "[+]{name} {}ok\n",
            if excluded { "excluded: " } else { "" }
        ));
    }
    out.push_str(&format!("{which} check passed\n"));
    text(out)
}

fn text(text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(Bytes::from(text)));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

fn failure(error: &ApiError, accepted: Accepted) -> Response<ResponseBody> {
    response(
        error.code,
        Bytes::from(error.to_status().to_string()),
        accepted,
        &[],
    )
}
