//! Requests within one process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use shared_json::Value;
use tower::{BoxError, Service};

use crate::lean::{LeanObject, without_owners};

/// The event in one line of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalEvent {
    /// The object is there.
    Present(Arc<Value>),
    /// It is gone.
    Gone(Arc<Value>),
}

/// Objects that a server in the same process is sent and answers with, so that nothing need be written as text and read again.
///
/// A client sends it along as an extension of its request, which no socket carries. A server that finds it there may leave an
/// object in it, and send the bytes of [`LocalObjects::tell`], which are a line with nothing on it, instead of one with the object.
/// All clients get the same object. Everything between the two, and all that may go wrong there, is as it is for text.
#[derive(Debug, Clone, Default)]
pub struct LocalObjects {
    /// The object that is sent, for which the request's body only stands.
    sent: Option<Value>,
    /// The answer is not read.
    is_unheard: bool,
    told: Arc<Mutex<VecDeque<LocalEvent>>>,
    /// Whether a server has answered by it.
    is_met: Arc<AtomicBool>,
}

/// The line that stands for an object.
pub(crate) const LINE: &[u8] = b"\n";

impl LocalObjects {
    /// The object that is sent, if the body that was received stands for one.
    #[must_use]
    pub fn sent(&self, body: &[u8]) -> Option<&Value> {
        self.sent.as_ref().filter(|_| body == LINE)
    }

    /// Leaves an event, or for an answer the object that is present; gives the bytes that stand for it.
    pub fn tell(&self, event: LocalEvent) -> Bytes {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push_back(event);
        Bytes::from_static(LINE)
    }

    /// The answer of one object that is there: leaves that, if anybody looks at it.
    pub fn answer(&self, object: impl FnOnce() -> Arc<Value>) -> Bytes {
        self.is_met.store(true, Ordering::Relaxed);
        if self.is_unheard {
            return Bytes::from_static(LINE);
        }
        self.tell(LocalEvent::Present(object()))
    }

    /// The event that the next line stands for.
    pub(crate) fn next(&self) -> Option<LocalEvent> {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

impl LocalEvent {
    /// An object as it is sent: without `metadata.managedFields`, as [`crate::watch_json`] has it. It shares all else with `object`.
    #[must_use]
    pub fn object(object: &Value) -> Arc<Value> {
        Arc::new(without_owners(object))
    }
}

/// How a service of this process is asked.
type Ask = Arc<dyn Fn(http::Request<Body>) -> BoxFuture<'static, Result<Answer, BoxError>> + Send + Sync>;

/// An answer as a whole.
type Answer = (http::StatusCode, Bytes);

/// A client whose requests and answers are single objects. Once a server has answered with an object of this process, it is
/// sent objects, too. Clones share this knowledge of the server.
#[derive(Clone)]
pub struct ObjectClient {
    client: Client,
    /// How the server is asked without a task between, if it is a service of this process.
    ask: Option<Ask>,
    is_local: Arc<AtomicBool>,
}

impl From<Client> for ObjectClient {
    fn from(client: Client) -> Self {
        Self::new(client)
    }
}

impl ObjectClient {
    /// Requests through a client of kube's, whose server does not change.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            ask: None,
            is_local: Arc::default(),
        }
    }

    /// Requests to a service of this process, which must always be ready. Each is made by the task that waits for its answer. Must be
    /// called within a tokio runtime.
    #[must_use]
    pub fn of_service<S, B>(service: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let asked = service.clone();
        let ask: Ask = Arc::new(move |request| {
            let answer = asked.clone().call(request);
            async move {
                let answer = answer.await.map_err(Into::into)?;
                let code = answer.status();
                let body = answer.into_body().collect().await.map_err(Into::into)?;
                Ok((code, body.to_bytes()))
            }
            .boxed()
        });
        Self {
            client: Client::new(service, "default"),
            ask: Some(ask),
            is_local: Arc::default(),
        }
    }

    /// The client for all else.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request, without a body if that is null, and gives the object that is answered, without `metadata.managedFields`.
    ///
    /// # Errors
    /// As kube's client has them: a refusal of the server is [`kube::Error::Api`].
    pub async fn request(&self, request: http::Request<Value>) -> Result<Arc<Value>, kube::Error> {
        let local = LocalObjects::default();
        let body = self.exchange(request, local.clone()).await?;
        if *body == *LINE
            && let Some(LocalEvent::Present(object)) = local.next()
        {
            return Ok(object);
        }
        let LeanObject(object) = shared_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
        Ok(Arc::new(object))
    }

    /// Sends a request, without a body if that is null. The object that is answered is not read.
    ///
    /// # Errors
    /// As kube's client has them: a refusal of the server is [`kube::Error::Api`].
    pub async fn send(&self, request: http::Request<Value>) -> Result<(), kube::Error> {
        let local = LocalObjects {
            is_unheard: true,
            ..LocalObjects::default()
        };
        self.exchange(request, local).await.map(drop)
    }

    async fn exchange(
        &self,
        request: http::Request<Value>,
        mut local: LocalObjects,
    ) -> Result<Bytes, kube::Error> {
        let (mut head, object) = request.into_parts();
        let body = if object.is_null() {
            Body::empty()
        } else if self.is_local.load(Ordering::Relaxed) {
            local.sent = Some(object);
            Body::from(Bytes::from_static(LINE))
        } else {
            Body::from(shared_json::to_vec(&object).map_err(kube::Error::SerdeError)?)
        };
        let is_met = Arc::clone(&local.is_met);
        head.extensions.insert(local);
        let request = http::Request::from_parts(head, body);
        let (code, body) = match &self.ask {
            Some(ask) => ask(request).await.map_err(kube::Error::Service)?,
            None => whole(self.client.send(request).await?).await?,
        };
        if !code.is_success() {
            return Err(refused(code, &body));
        }
        if is_met.load(Ordering::Relaxed) {
            self.is_local.store(true, Ordering::Relaxed);
        }
        Ok(body)
    }
}

/// An answer that is no refusal.
pub(crate) async fn accepted(answer: http::Response<Body>) -> Result<http::Response<Body>, kube::Error> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (code, body) = whole(answer).await?;
    Err(refused(code, &body))
}

async fn whole(answer: http::Response<Body>) -> Result<Answer, kube::Error> {
    let code = answer.status();
    Ok((code, answer.into_body().collect().await?.to_bytes()))
}

/// The error of an answer that is a refusal.
fn refused(code: http::StatusCode, body: &[u8]) -> kube::Error {
    let status = shared_json::from_slice::<Status>(body).unwrap_or_else(|_| {
        let reason = code.canonical_reason().unwrap_or_default();
        Status::failure(&String::from_utf8_lossy(body), reason).with_code(code.as_u16())
    });
    kube::Error::Api(Box::new(status))
}
