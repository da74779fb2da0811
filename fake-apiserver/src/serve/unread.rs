//! The bytes of a request that are unread when its answer is ready.
//!
//! Many a refusal is known from a request's head. Were the connection closed while the client still sends, the client's system
//! would throw the answer away with it (a reset). Go's `net/http` therefore reads up to 256 KiB more, after which the connection
//! can be used again, and keeps a connection that it gives up open for another half a second, so that the answer arrives. So does
//! this, beside the answer, which waits for nothing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;

/// The most bytes that are read and dropped.
const UNREAD_BYTES_MAX: usize = 256 << 10;
/// How long a client may take to send that.
const UNREAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a connection stays open whose client sends more than that.
const LINGER: Duration = Duration::from_millis(500);

/// A request's body, the rest of which is read when it is dropped before its end.
pub(super) struct ReadToEnd<B>(Option<B>)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static;

impl<B> ReadToEnd<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    pub(super) fn new(body: B) -> Self {
        Self(Some(body))
    }
}

impl<B> Body for ReadToEnd<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B> Drop for ReadToEnd<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(finish(body));
        }
    }
}

/// Reads the rest of `body`; if that is too much or takes too long, waits a little before it drops it.
async fn finish<B>(mut body: B)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    let read = async {
        let mut left = UNREAD_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else {
                return false;
            };
            left = rest;
        }
        true
    };
    if !tokio::time::timeout(UNREAD_WAIT_MAX, read).await.unwrap_or(false) {
        tokio::time::sleep(LINGER).await;
    }
    drop(body);
}
