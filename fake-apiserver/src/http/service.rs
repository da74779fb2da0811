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
use super::decode::{self, BODY_BYTES_MAX};
use super::negotiate::{Accepted, Encoding, accept};
use super::params::Params;
use super::request::{ResourceRequest, Target, Verb, target};
use crate::discovery;
use crate::encode::Encoder;
use crate::rest::context::{Answer, Context, Shown};
use crate::rest::delete::DeleteOptions;
use crate::rest::{create, delete, patch, read, subresource, update, watch};
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
        let message = "only the following media types are accepted: application/json, application/yaml";
        let error = ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        return failure(&error, Accepted::default());
    };
    let params = match Params::parse(head.uri.query().unwrap_or_default()) {
        Ok(params) => params,
        Err(error) => return failure(&error, accepted),
    };
    let manager = manager(&params, header(USER_AGENT));
    let content_type = header(CONTENT_TYPE).to_owned();
    let result = match target(&head.method, head.uri.path(), params.watch) {
        Target::Health => return text("ok"),
        Target::Resource(request) => {
            match resource_request(server, request, params, accepted, content_type, manager, body).await {
                Ok(response) => return response,
                Err(error) => Err(error),
            }
        }
        other => document(&server, &other, accepted).ok_or_else(ApiError::no_such_resource),
    };
    match result {
        Ok(value) => response(StatusCode::OK, Bytes::from(value.to_string()), accepted, &[]),
        Err(error) => failure(&error, accepted),
    }
}

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
        Target::Health | Target::Resource(_) | Target::Nothing => None,
    }
}

async fn resource_request(
    server: Server,
    request: ResourceRequest,
    params: Params,
    accepted: Accepted,
    content_type: String,
    manager: String,
    body: Bytes,
) -> Result<Response<ResponseBody>, ApiError> {
    let resource = server
        .state
        .registry
        .find(&request.group, &request.version, &request.resource)
        .ok_or_else(ApiError::no_such_resource)?;
    check_scope(&resource, &request)?;
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
        Verb::Get => Answer::ok(Shown::Stored(context.existing()?)),
        Verb::List => {
            let page = read::list(&context)?;
            return Ok(response(
                StatusCode::OK,
                Encoder::new(&context).list(&page),
                accepted,
                &[],
            ));
        }
        Verb::Watch => {
            let stream = watch::watch(&context)?;
            return Ok(stream_response(ResponseBody::stream(stream)));
        }
        Verb::Create if !context.request.name.is_empty() => return Err(ApiError::method_not_allowed()),
        Verb::Create => create::create(&context, decode::decode(&context.content_type, &body)?).await?,
        Verb::Update => update::put(&context, decode::decode(&context.content_type, &body)?).await?,
        Verb::Patch => patch::patch(&context, &body).await?,
        Verb::Delete => {
            let options = DeleteOptions::read(&context, &decode::decode(&context.content_type, &body)?)?;
            delete::delete(&context, &options).await?
        }
        Verb::DeleteCollection => {
            let options = DeleteOptions::read(&context, &decode::decode(&context.content_type, &body)?)?;
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
                &[],
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
        .ok_or_else(ApiError::no_such_resource)?;
    if !served
        .verbs
        .iter()
        .any(|verb| verb == context.request.verb.as_str())
    {
        return Err(ApiError::method_not_allowed());
    }
    let answer = match (context.request.subresource.as_str(), context.request.verb) {
        ("status" | "ephemeralcontainers" | "resize" | "approval", Verb::Update) => {
            update::put(context, decode::decode(&context.content_type, body)?).await?
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
    response(answer.code, bytes, context.accepted, &answer.warnings)
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

fn text(text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(Bytes::from_static(text.as_bytes())));
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
