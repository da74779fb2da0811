//! Jumps of a cluster's time in a program whose clock runs otherwise.
//!
//! All that belongs to a cluster waits on tokio's clock. A jump pauses that clock: tokio then moves it on to the next timer whenever
//! nothing can run, so everything due on the way happens in its order and at its time. At the end of the jump the clock runs on from
//! there.
//!
//! Two things must not follow a jump. The work of another program takes real time: while such work is under way
//! ([`Jumps::outside`]) the clock stands. And a client's time to send a request is real: [`RealSleep`] leaves out the jumps.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, Sleep};

/// How long the clock stands at most for another program: as long as the API server waits for a webhook at most. Then the cluster's
/// own time limit for the program goes on.
const STANDS_MAX: Duration = Duration::from_secs(30);

/// Why time cannot jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("jump: the clock of a runtime with several threads cannot be paused")]
pub struct CannotJump;

/// The jumps of one cluster's time.
#[derive(Default)]
pub struct Jumps {
    state: Mutex<State>,
    /// Jumps come one after the other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// How much time was jumped over, without the jump that is under way.
    over: Duration,
    /// When the jump began that is under way.
    since: Option<Instant>,
    /// How much work of other programs is under way.
    outside: usize,
    /// Dropped to let the clock move on.
    stands: Option<mpsc::Sender<()>>,
    /// Waits on the real clock that go on after the jump.
    waiting: Vec<Waker>,
}

impl State {
    /// How much time was jumped over so far.
    fn jumped(&self) -> Duration {
        self.over + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Lets the clock stand, or move on. tokio's paused clock stands while a blocking task runs.
    fn adjust(&mut self) {
        match (self.since.is_some() && self.outside > 0, &self.stands) {
            (true, None) => {
                let (sender, receiver) = mpsc::channel::<()>();
                tokio::task::spawn_blocking(move || receiver.recv_timeout(STANDS_MAX));
                self.stands = Some(sender);
            }
            (false, Some(_)) => self.stands = None,
            _ => {}
        }
    }
}

impl Jumps {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time jump. Everything due within `duration` happens before this returns. For a clock that runs: one that was paused before is
    /// moved by waiting.
    ///
    /// # Errors
    /// On a runtime with several threads.
    pub async fn by(&self, duration: Duration) -> Result<(), CannotJump> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread {
            return Err(CannotJump);
        }
        let _turn = self.turn.lock().await;
        let _jump = Jump::begin(self);
        tokio::time::sleep(duration).await;
        Ok(())
    }

    /// Work of another program is under way until the answer is dropped. Must be called within a tokio runtime.
    #[must_use]
    pub fn outside(&self) -> Outside<'_> {
        let mut state = self.lock();
        state.outside += 1;
        state.adjust();
        Outside(self)
    }

    /// Whether time jumps just now.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.lock().since.is_some()
    }

    /// How much time was jumped over so far.
    #[must_use]
    pub fn jumped(&self) -> Duration {
        self.lock().jumped()
    }

    /// The time without jumps.
    #[must_use]
    pub fn real_now(&self) -> std::time::Instant {
        let now = Instant::now().into_std();
        now.checked_sub(self.jumped()).unwrap_or(now)
    }

    /// Waits until then on the clock without jumps. Must be called within a tokio runtime.
    #[must_use]
    pub fn real_sleep_until(self: &Arc<Self>, end: std::time::Instant) -> RealSleep {
        let left = end.saturating_duration_since(self.real_now());
        RealSleep {
            jumps: Arc::clone(self),
            end,
            sleep: Box::pin(tokio::time::sleep(left)),
        }
    }

    /// Waits so long on the clock without jumps. Must be called within a tokio runtime.
    #[must_use]
    pub fn real_sleep(self: &Arc<Self>, duration: Duration) -> RealSleep {
        let now = self.real_now();
        self.real_sleep_until(now.checked_add(duration).unwrap_or(now))
    }

    /// The result of some work, if it has come within a time on the clock without jumps.
    pub async fn real_timeout<T>(
        self: &Arc<Self>,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = async { self.real_sleep(limit).await } => None,
        }
    }
}

/// A jump that is under way; the clock runs on when it is dropped.
struct Jump<'a>(&'a Jumps);

impl<'a> Jump<'a> {
    fn begin(jumps: &'a Jumps) -> Self {
        tokio::time::pause();
        let mut state = jumps.lock();
        state.since = Some(Instant::now());
        state.adjust();
        drop(state);
        Self(jumps)
    }
}

impl Drop for Jump<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.over = state.jumped();
        state.since = None;
        state.adjust();
        // A runtime that is shutting down has no clock any more.
        if Handle::try_current().is_ok() {
            tokio::time::resume();
        }
        for waker in state.waiting.drain(..) {
            waker.wake();
        }
    }
}

/// Work of another program that is under way.
pub struct Outside<'a>(&'a Jumps);

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.outside = state.outside.saturating_sub(1);
        state.adjust();
    }
}

/// A wait on the clock without jumps.
pub struct RealSleep {
    jumps: Arc<Jumps>,
    end: std::time::Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Future for RealSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(context));
            let mut state = self.jumps.lock();
            if state.since.is_some() {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            let left = self.end.saturating_duration_since(self.jumps.real_now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(Instant::now() + left);
        }
    }
}

#[cfg(test)]
#[path = "jumps_tests.rs"]
mod tests;
