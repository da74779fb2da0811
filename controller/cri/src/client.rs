//! The client: one HTTP/2 connection to a socket, made when it is needed and made again after it broke.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::call::Call;
use crate::framing::{BODY_BYTES_MAX, pack, too_long, unpack};
use crate::status::{Code, Status};

/// The most digits of a time in the header `grpc-timeout`.
const TIMEOUT_MAX: u128 = 99_999_999;

/// A client of the runtime that listens at a unix socket.
pub struct Client {
    socket: PathBuf,
    user_agent: &'static str,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Client {
    /// A client of the runtime at `socket`, which connects with the first call.
    #[must_use]
    pub fn new(socket: &Path, user_agent: &'static str) -> Self {
        Self {
            socket: socket.to_owned(),
            user_agent,
            connection: Mutex::new(None),
        }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Makes a call, which may take `limit` if that is given. A future that is dropped cancels the call.
    ///
    /// # Errors
    /// The runtime's status; `Unavailable` if it cannot be reached, `DeadlineExceeded` after the limit.
    pub async fn call<C: Call>(&self, request: &C, limit: Option<Duration>) -> Result<C::Answer, Status> {
        let body = pack(request)?;
        let exchange = self.exchange(C::METHOD, body, limit);
        let answer = match limit {
            None => exchange.await?,
            Some(limit) => tokio::time::timeout(limit, exchange)
                .await
                .map_err(|_| Status::new(Code::DEADLINE_EXCEEDED, "context deadline exceeded"))??,
        };
        unpack(answer)
    }

    /// Sends a body to a method, and gives the body of the answer.
    async fn exchange(&self, method: &str, body: Bytes, limit: Option<Duration>) -> Result<Bytes, Status> {
        let mut request = Request::post(format!("http://localhost{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", self.user_agent);
        if let Some(limit) = limit {
            request = request.header("grpc-timeout", timeout_text(limit));
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| Status::new(Code::INTERNAL, error.to_string()))?;
        let mut sender = self.connected().await?;
        let response = sender.send_request(request).await;
        read(response.map_err(|error| self.unavailable("ask", &error))?).await
    }

    /// The connection, a new one if the last has ended.
    async fn connected(&self) -> Result<SendRequest<Full<Bytes>>, Status> {
        let mut kept = self.connection.lock().await;
        if let Some(sender) = kept.as_mut()
            && sender.ready().await.is_ok()
        {
            return Ok(sender.clone());
        }
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|error| self.unavailable("connect to", &error))?;
        let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| self.unavailable("connect to", &error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the runtime ended");
            }
        });
        *kept = Some(sender.clone());
        Ok(sender)
    }

    fn unavailable(&self, verb: &str, error: &dyn std::error::Error) -> Status {
        let why = format!("{verb} {}: {error}", self.socket.display());
        Status::new(Code::UNAVAILABLE, why)
    }
}

/// A time in the header `grpc-timeout`: milliseconds, or seconds if those are too many.
fn timeout_text(limit: Duration) -> String {
    match limit.as_millis() {
        ms if ms <= TIMEOUT_MAX => format!("{ms}m"),
        _ => format!("{}S", u128::from(limit.as_secs()).min(TIMEOUT_MAX)),
    }
}

/// The body of an answer whose status is good.
async fn read(response: Response<Incoming>) -> Result<Bytes, Status> {
    let (head, mut body) = response.into_parts();
    if head.status != StatusCode::OK {
        let why = format!("unexpected HTTP status code {}", head.status);
        return Err(Status::new(Code::UNKNOWN, why));
    }
    // A failure before the first message comes with the headers.
    if let Some(result) = Status::read(&head.headers) {
        result?;
    }
    let mut bytes = BytesMut::new();
    let mut status = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::new(Code::UNAVAILABLE, error.to_string()))?;
        match frame.into_data() {
            Ok(data) if bytes.len() + data.len() > BODY_BYTES_MAX => {
                return Err(too_long(bytes.len() + data.len()));
            }
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => status = frame.trailers_ref().and_then(Status::read).or(status),
        }
    }
    let missing = || Status::new(Code::INTERNAL, "the answer ended without a status");
    status.ok_or_else(missing)??;
    Ok(bytes.freeze())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
