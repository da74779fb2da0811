//! The way to the server behind an APIService: over TLS to an address of its Service, or within this process.

use bytes::Bytes;
use client_kit::Jumps;
use futures::StreamExt as _;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, BodyStream, Full, Limited};
use hyper::upgrade::OnUpgrade;
use network::Network;
use store::Store;

use super::Aggregation;
use super::api_service::ApiService;
use crate::message::body::ResponseBody;
use crate::passed_upgrade;
use crate::webhook_client::{Failure, Trust, client_config, connect, inside, target};

/// The largest description of a server that is read: 16 MiB.
const DESCRIPTION_BYTES_MAX: usize = 16 << 20;

/// Why a server has not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// No address of its Service is known.
    #[error("{0}")]
    NoAddress(String),
    /// Nothing answers at the address.
    #[error("{0}")]
    Broken(String),
}

/// The parts of this server that lead to others.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'a> {
    pub store: &'a Store,
    pub aggregation: &'a Aggregation,
    pub jumps: &'a Jumps,
    /// The network of the nodes, if there are any.
    pub network: Option<&'a Network>,
}

impl Ways<'_> {
    /// Sends a request to the server of an APIService. The body of the answer comes as the server sends it. If the server changes
    /// the protocol, the client's connection is joined to the server's.
    ///
    /// # Errors
    /// If the Service has no address, or nothing answers there.
    pub(super) async fn send(
        &self,
        to: &ApiService,
        mut request: Request<Bytes>,
        client: Option<OnUpgrade>,
    ) -> Result<Response<ResponseBody>, Unanswered> {
        let service = &to.service;
        if let Some(extension) = self.aggregation.extension(&service.namespace, &service.name) {
            return Ok(extension(request).await.map(ResponseBody::whole));
        }
        let place = service.place(self.store).map_err(Unanswered::NoAddress)?;
        let trust = match to.skips_tls {
            true => Trust::All,
            false => Trust::Bundle(&to.bundle),
        };
        let shown = self.aggregation.front_proxy.get();
        let tls = client_config(trust, shown.map(AsRef::as_ref)).map_err(Unanswered::Broken)?;
        // The other server takes real time.
        let _outside = self.jumps.outside();
        let mut sender = connect(&place, inside(self.network, &place), tls)
            .await
            .map_err(|failure| match failure {
                Failure::Transport(why) | Failure::Answer(why) => Unanswered::Broken(why),
            })?;
        if let Ok(host) = HeaderValue::from_str(&target(&place)) {
            request.headers_mut().insert(HOST, host);
        }
        let answer = sender.send_request(request.map(Full::new)).await;
        let mut answer = answer.map_err(|error| Unanswered::Broken(error.to_string()))?;
        if let Some(joined) = passed_upgrade::joined(client, &mut answer) {
            return Ok(joined);
        }
        Ok(answer.map(|body| {
            let frames = BodyStream::new(body).filter_map(move |frame| {
                // The connection lasts as long as the answer.
                let _open = &sender;
                let data = frame.ok().and_then(|frame| frame.into_data().ok());
                futures::future::ready(data)
            });
            ResponseBody::stream(frames.boxed())
        }))
    }

    /// The same, for an answer that is there as a whole.
    pub(super) async fn ask(&self, to: &ApiService, path: &str) -> Result<Response<Bytes>, Unanswered> {
        let broken = |why: &dyn std::fmt::Display| Unanswered::Broken(why.to_string());
        let request = Request::get(path).header("accept", "application/json");
        let request = request.body(Bytes::new()).map_err(|error| broken(&error))?;
        let (head, body) = self.send(to, request, None).await?.into_parts();
        let body = Limited::new(body, DESCRIPTION_BYTES_MAX).collect().await;
        let body = body.map_err(|error| broken(&error))?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}
