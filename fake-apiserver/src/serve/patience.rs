//! The time limit for a client to begin a request.
//!
//! The real server waits 32 seconds for the head of a request and 90 for the next one on the same connection. hyper counts both
//! together, from the end of the request before; and it does not count before it knows which version of HTTP a connection speaks.
//! [`Prompt`] does: it closes a connection whose client says nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use client_kit::{Jumps, RealSleep};
use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a client may take for the head of a request, and between two of them.
pub(super) const HEAD_WAIT_MAX: Duration = Duration::from_secs(90);
/// The number of bytes that identify the version of HTTP: the preface of HTTP/2.
const PREFACE_BYTES: usize = 24;

/// hyper's timer on the clock without the jumps of the cluster's time: the time limits of clients are real.
pub(super) struct RealTimer(pub(super) Arc<Jumps>);

/// One of its waits.
struct Wait(RealSleep);

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl Sleep for Wait {}

impl Timer for RealTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Wait(self.0.real_sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Wait(self.0.real_sleep_until(deadline)))
    }

    fn now(&self) -> Instant {
        self.0.real_now()
    }
}

/// A connection that fails if its client does not begin in time.
pub(super) struct Prompt<S> {
    stream: S,
    /// How many bytes are still awaited, and until when.
    awaited: usize,
    end: RealSleep,
}

impl<S> Prompt<S> {
    pub(super) fn new(stream: S, jumps: &Arc<Jumps>) -> Self {
        Self {
            stream,
            awaited: PREFACE_BYTES,
            end: jumps.real_sleep(HEAD_WAIT_MAX),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prompt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.awaited == 0 {
            return polled;
        }
        if polled.is_ready() {
            let read = buffer.filled().len() - before;
            self.awaited = self.awaited.saturating_sub(read);
            return polled;
        }
        Pin::new(&mut self.end)
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prompt<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
