//! Requests that end at a node: logs, commands, ports.
//!
//! The way of one: [`target`] finds the pod, its container and its node; [`handshake`] changes the connection's protocol;
//! [`remote_command`] carries a session and [`forward`] connections to ports, each over WebSockets ([`websocket`]) or SPDY
//! ([`spdy`]). [`proxy`] passes requests on to pods, services and nodes, and [`rewrite`] makes links of their pages lead back through it. [`loopback`] gives a client of this process a connection that can change its protocol.

mod forward;
mod handshake;
mod loopback;
mod place;
mod proxy;
mod remote_command;
mod rewrite;
mod spdy;
mod target;
mod websocket;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::upgrade::OnUpgrade;

use crate::context::Context;
use crate::message::body::ResponseBody;
use crate::message::request::{ResourceRequest, Verb};
use crate::message::respond;
use crate::rest;
use handshake::{Protocol, Wire};
use machinery::status::ApiError;
use node_access::{Refused, Wants, failure};
use target::Query;

pub(super) use loopback::{is_needed, through_a_connection};

/// The parts of a request's head that such an answer needs.
pub(super) struct Head {
    pub method: Method,
    /// The path as it came.
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub upgrade: Option<OnUpgrade>,
}

/// Whether a request ends at a node.
pub(super) fn ends_at_node(request: &ResourceRequest) -> bool {
    let proxied = request.subresource == "proxy" || request.subresource.starts_with("proxy/");
    request.group.is_empty()
        && match request.resource.as_str() {
            "pods" => {
                proxied
                    || matches!(
                        request.subresource.as_str(),
                        "log" | "exec" | "attach" | "portforward"
                    )
            }
            "services" | "nodes" => proxied,
            _ => false,
        }
}

/// Whether a request is passed on, whatever its method.
pub(super) fn is_proxied(request: &ResourceRequest) -> bool {
    let subresource = request.subresource.as_str();
    ends_at_node(request) && (subresource == "proxy" || subresource.starts_with("proxy/"))
}

/// Answers a request that ends at a node.
///
/// # Errors
/// As the real server refuses it.
pub(super) async fn answer(context: &Context, head: Head) -> Result<Response<ResponseBody>, ApiError> {
    let query = Query::parse(&head.query);
    let verb = context.request.verb;
    let is_served = match context.request.subresource.as_str() {
        "log" => verb == Verb::Get,
        "exec" | "attach" | "portforward" => matches!(verb, Verb::Get | Verb::Create),
        _ => true,
    };
    if !is_served {
        return Err(ApiError::method_not_allowed());
    }
    let subresource = context.request.subresource.as_str();
    if subresource != "log" && !context.params.dry_run_given.is_empty() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    if let Some(asked) = query.options(&context.request.resource, subresource) {
        rest::subresource::judge_connection(context, asked).await?;
    }
    match subresource {
        "log" => log(context, head, &query),
        "exec" | "attach" => remote_command(context, head, &query),
        "portforward" => port_forward(context, head, &query),
        _ => proxy::answer(context, head).await,
    }
}

fn log(context: &Context, head: Head, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let asked = query.log(&context.request.name, context.state().clock.now())?;
    let pod = context.existing()?;
    let container = target::container(&pod.value, query.text("container"))?;
    let Some(node) = target::node(context, &pod.value)? else {
        // Nobody has been asked yet, and nothing has been said.
        let mut empty = respond::text(String::new());
        *empty.status_mut() = StatusCode::NO_CONTENT;
        empty.headers_mut().remove(CONTENT_TYPE);
        return Ok(empty);
    };
    let stream = node
        .access()?
        .logs(&pod.value, &container, &asked)
        .map_err(|refused| ApiError::bad_request(refused.to_string()))?;
    if let Ok(protocol @ Protocol::WebSocket { .. }) = Protocol::of(&head.headers) {
        let (response, wire) = protocol.accept(head.upgrade, &handshake::LOG)?;
        if let Wire::WebSocket(socket, protocol) = wire {
            tokio::spawn(async move {
                if let Some(socket) = socket.await {
                    websocket::send_log(socket, stream, protocol == handshake::TEXT).await;
                }
            });
        }
        return Ok(response);
    }
    let mut response = respond::stream(ResponseBody::stream(stream), "text/plain");
    if asked.follow {
        // What is between must not wait for more.
        response
            .headers_mut()
            .insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    Ok(response)
}

fn remote_command(context: &Context, head: Head, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let pod = context.existing()?;
    let container = target::container(&pod.value, query.text("container"))?;
    let node = target::node(context, &pod.value)?.ok_or_else(|| target::no_host(&pod.value))?;
    let protocol = Protocol::of(&head.headers)?;
    let access = node.access()?;
    let wants = Wants {
        stdin: query.flag("stdin"),
        stdout: query.flag("stdout"),
        stderr: query.flag("stderr"),
        tty: query.flag("tty"),
    };
    if !(wants.stdin || wants.stdout || wants.stderr) {
        return Err(ApiError::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    if wants.tty && wants.stderr {
        return Err(ApiError::bad_request("tty and stderr cannot both be true"));
    }
    let session = if context.request.subresource == "exec" {
        access.exec(&pod.value, &container, query.all("command"), wants)
    } else {
        access.attach(&pod.value, &container, wants)
    };
    let session = match (session, &protocol) {
        (Ok(session), _) => Ok(session),
        // Over WebSockets such a refusal comes when the connection stands, as a session's end.
        (Err(refused), Protocol::WebSocket { .. }) => {
            Err(failure(&format!("unable to upgrade connection: {refused}")))
        }
        (Err(refused), Protocol::Spdy { .. }) => return Ok(refusal(&refused)),
    };
    let (response, wire) = protocol.accept(head.upgrade, &handshake::REMOTE_COMMAND)?;
    match wire {
        Wire::WebSocket(socket, protocol) => {
            tokio::spawn(async move {
                if let Some(socket) = socket.await {
                    remote_command::over_websocket(socket, &protocol, wants, session).await;
                }
            });
        }
        Wire::Spdy(connection, protocol) => {
            tokio::spawn(async move {
                if let (Some(connection), Ok(session)) = (connection.await, session) {
                    remote_command::over_spdy(connection, &protocol, wants, session).await;
                }
            });
        }
    }
    Ok(response)
}

/// The node's own words, as the server passes them on.
fn refusal(refused: &Refused) -> Response<ResponseBody> {
    let mut response = respond::text(format!("{refused}\n"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

fn port_forward(context: &Context, head: Head, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let pod = context.existing()?;
    let node = target::node(context, &pod.value)?.ok_or_else(|| target::no_host(&pod.value))?;
    let protocol = Protocol::of(&head.headers)?;
    let access = node.access()?;
    let ports = query.ports()?;
    let (response, wire) = protocol.accept(head.upgrade, &handshake::PORT_FORWARD)?;
    let target = forward::Target { access, pod };
    match wire {
        Wire::WebSocket(socket, protocol) if protocol.starts_with(handshake::TUNNEL) => {
            tokio::spawn(async move {
                if let Some(socket) = socket.await {
                    forward::over_spdy(websocket::tunnel(socket), target).await;
                }
            });
        }
        Wire::WebSocket(socket, _) => {
            if ports.is_empty() {
                return Err(ApiError::bad_request("query parameter \"port\" is required"));
            }
            tokio::spawn(async move {
                if let Some(socket) = socket.await {
                    forward::over_websocket(socket, &ports, target).await;
                }
            });
        }
        Wire::Spdy(connection, _) => {
            tokio::spawn(async move {
                if let Some(connection) = connection.await {
                    forward::over_spdy(connection, target).await;
                }
            });
        }
    }
    Ok(response)
}
