//! Input and output of programs: bytes that one side writes and the other reads, now or later.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use client_kit::SharedClock;
use jiff::Timestamp;
use tokio::sync::Notify;

/// The size of the output that a container keeps; the oldest is dropped first.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// How much of an output with a reader may wait for that reader.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// How much is handed on at once.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// A buffer with a writer's and a reader's end; clones are the same buffer.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Sink>);

#[derive(Default)]
struct Sink {
    buffer: Mutex<Buffer>,
    changed: Notify,
    /// A log knows when each line was written.
    clock: Option<SharedClock>,
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many bytes came before those that are left.
    dropped: u64,
    /// From which position on which time holds.
    marks: Vec<(u64, Timestamp)>,
    closed: bool,
    interrupted: bool,
    waits: bool,
}

/// The contents of a log at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    /// The position of the first byte.
    pub from: u64,
    pub bytes: Vec<u8>,
    /// From which position on which time holds.
    pub marks: Vec<(u64, Timestamp)>,
    /// Nothing more will come.
    pub closed: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Output").field(&self.text()).finish()
    }
}

impl Output {
    /// A container's log.
    pub(crate) fn log(clock: SharedClock) -> Self {
        Self(Arc::new(Sink {
            clock: Some(clock),
            ..Sink::default()
        }))
    }

    /// An output whose reader removes the bytes that it has read.
    pub(crate) fn pipe() -> Self {
        let buffer = Buffer {
            waits: true,
            ..Buffer::default()
        };
        Self(Arc::new(Sink {
            buffer: Mutex::new(buffer),
            ..Sink::default()
        }))
    }

    /// An input that is all there.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let buffer = Buffer {
            bytes,
            closed: true,
            ..Buffer::default()
        };
        Self(Arc::new(Sink {
            buffer: Mutex::new(buffer),
            ..Sink::default()
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut buffer = self.lock();
        if let Some(clock) = &self.0.clock {
            let (now, end) = (clock.now(), buffer.end());
            if buffer.marks.last().is_none_or(|(_, time)| *time != now) {
                buffer.marks.push((end, now));
            }
        }
        buffer.bytes.extend_from_slice(bytes);
        buffer.trim();
        drop(buffer);
        self.0.changed.notify_waiters();
    }

    /// Nothing more will be written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.0.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Asks the reader to give up its work, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.lock().interrupted = true;
        self.0.changed.notify_waiters();
    }

    /// Ready once the reader was asked to give up; the next call waits for the next time.
    pub(crate) async fn interrupted(&self) {
        self.until(|buffer| std::mem::take(&mut buffer.interrupted).then_some(()))
            .await;
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// The position after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.lock().end()
    }

    /// The bytes from a position on.
    pub(crate) fn kept(&self, from: u64) -> Kept {
        self.lock().kept(from)
    }

    /// The same, as soon as there is something, or nothing more will come.
    pub(crate) async fn kept_after(&self, from: u64) -> Kept {
        self.until(|buffer| (buffer.closed || buffer.end() > from).then(|| buffer.kept(from)))
            .await
    }

    /// Takes the available bytes.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.lock().take(usize::MAX)
    }

    /// Takes some bytes as soon as there are any; none once nothing more will come.
    pub(crate) async fn next(&self) -> Option<Vec<u8>> {
        self.until(|buffer| match buffer.bytes.is_empty() {
            false => Some(Some(buffer.take(PIECE_BYTES_MAX))),
            true => buffer.closed.then_some(None),
        })
        .await
    }

    /// Takes a line, without its end, as soon as there is one; none once nothing more will come.
    pub(crate) async fn line(&self) -> Option<String> {
        let line = self.until(|buffer| {
            let end = buffer.bytes.iter().position(|byte| *byte == b'\n');
            match end {
                Some(end) => Some(Some(buffer.take(end + 1))),
                None if buffer.closed && !buffer.bytes.is_empty() => Some(Some(buffer.take(usize::MAX))),
                None => buffer.closed.then_some(None),
            }
        });
        let line = String::from_utf8_lossy(&line.await?).into_owned();
        Some(line.strip_suffix('\n').map(str::to_owned).unwrap_or(line))
    }

    /// Waits until nothing more will be written.
    pub(crate) async fn closed(&self) {
        self.until(|buffer| buffer.closed.then_some(())).await;
    }

    async fn until<T>(&self, mut ready: impl FnMut(&mut Buffer) -> Option<T>) -> T {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // What changes from here on is heard.
            changed.as_mut().enable();
            if let Some(found) = ready(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

impl Buffer {
    fn end(&self) -> u64 {
        self.dropped + self.bytes.len() as u64
    }

    fn take(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.bytes.len());
        self.dropped += count as u64;
        if count == self.bytes.len() {
            return std::mem::take(&mut self.bytes);
        }
        self.bytes.drain(..count).collect()
    }

    /// Drops the oldest bytes, a quarter more than needed, so that it does not cost anything each time.
    fn trim(&mut self) {
        let most = if self.waits {
            WAITING_BYTES_MAX
        } else {
            KEPT_BYTES_MAX
        };
        if self.bytes.len() <= most + most / 4 {
            return;
        }
        let extra = self.bytes.len() - most;
        self.bytes.drain(..extra);
        self.dropped += extra as u64;
        let old = self
            .marks
            .iter()
            .filter(|(from, _)| *from <= self.dropped)
            .count();
        self.marks.drain(..old.saturating_sub(1));
    }

    fn kept(&self, from: u64) -> Kept {
        let from = from.clamp(self.dropped, self.end());
        let skip = usize::try_from(from - self.dropped).unwrap_or(usize::MAX);
        let old = self
            .marks
            .iter()
            .filter(|(position, _)| *position <= from)
            .count();
        Kept {
            from,
            bytes: self.bytes.get(skip..).unwrap_or_default().to_vec(),
            marks: self
                .marks
                .get(old.saturating_sub(1)..)
                .unwrap_or_default()
                .to_vec(),
            closed: self.closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_written_is_read_once() {
        let pipe = Output::pipe();
        pipe.write(b"one\ntwo");
        assert_eq!(pipe.line().await.as_deref(), Some("one"));
        let reader = tokio::spawn({
            let pipe = pipe.clone();
            async move { pipe.line().await }
        });
        tokio::task::yield_now().await;
        assert!(!reader.is_finished());
        pipe.close();
        assert_eq!(reader.await.expect("a reader").as_deref(), Some("two"));
        assert_eq!(pipe.next().await, None);
    }

    #[test]
    fn a_log_keeps_its_end() {
        let log = Output::default();
        for _ in 0..3 {
            log.write(&vec![b'a'; KEPT_BYTES_MAX / 2]);
        }
        log.write(b"end");
        let kept = log.kept(0);
        assert!(kept.bytes.len() <= KEPT_BYTES_MAX + KEPT_BYTES_MAX / 4);
        assert!(kept.bytes.ends_with(b"end"));
        assert_eq!(kept.from + kept.bytes.len() as u64, log.end());
        assert_eq!(log.kept(log.end() - 3).bytes, b"end");
    }
}
