//! The lines of a watch, each decoded once for all watches of this thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::core::WatchEvent;
use serde_json::Value;

use super::lean::LeanObject;

/// So many lines are remembered with what they say: as many as an API server keeps ready for its watchers.
const REMEMBERED: usize = 256;
/// Longer lines are decoded by each watch for itself.
const REMEMBERED_BYTES: usize = 64 << 10;

/// What a line says.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// The object is there.
    Present(Arc<Value>),
    /// It is gone.
    Gone(Arc<Value>),
    /// All before this version has been told; whether that ends the list at the beginning.
    Bookmark { version: String, ends: bool },
    /// The watch has failed.
    Failed { code: u16, message: String },
}

thread_local! {
    /// A server in the same process hands the same bytes to every watch of an event: who holds the same memory needs not
    /// look at it again, and the watchers share the object.
    static MEMO: RefCell<VecDeque<(Bytes, Told)>> = const { RefCell::new(VecDeque::new()) };
}

/// What a line says that is in memory where one was that is still remembered.
fn remembered(line: &Bytes) -> Option<Told> {
    MEMO.with_borrow(|memo| {
        let same = |(known, _): &&(Bytes, Told)| known.as_ptr() == line.as_ptr() && known.len() == line.len();
        memo.iter().rev().find(same).map(|(_, told)| told.clone())
    })
}

fn remember(line: Bytes, told: &Told) {
    if line.len() > REMEMBERED_BYTES {
        return;
    }
    MEMO.with_borrow_mut(|memo| {
        if memo.len() == REMEMBERED {
            memo.pop_front();
        }
        memo.push_back((line, told.clone()));
    });
}

/// The lines of an answer.
pub(super) struct Lines {
    body: BoxStream<'static, kube::Result<Bytes>>,
    /// What has come and was not read yet.
    rest: BytesMut,
    /// So much of it holds no end of a line.
    searched: usize,
    /// Whether others may watch the same.
    shared: bool,
}

impl Lines {
    /// `shared` says whether other watches may be sent the same lines.
    pub(super) fn of(body: impl Stream<Item = kube::Result<Bytes>> + Send + 'static, shared: bool) -> Self {
        Self {
            body: body.boxed(),
            rest: BytesMut::new(),
            searched: 0,
            shared,
        }
    }

    /// What the next line says; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, or the line is not of a watch.
    pub(super) async fn next(&mut self) -> Result<Option<Told>, kube::Error> {
        loop {
            let new = self.rest.iter().skip(self.searched);
            if let Some(end) = new.copied().position(|byte| byte == b'\n') {
                let line = self.rest.split_to(self.searched + end + 1);
                self.searched = 0;
                return decode(&line).map(Some);
            }
            self.searched = self.rest.len();
            let Some(bytes) = self.body.next().await else {
                return Ok(None);
            };
            let bytes = bytes?;
            if self.rest.is_empty() && self.shared {
                if let Some(told) = remembered(&bytes) {
                    return Ok(Some(told));
                }
                if bytes.iter().position(|byte| *byte == b'\n') == bytes.len().checked_sub(1) {
                    let told = decode(&bytes)?;
                    remember(bytes, &told);
                    return Ok(Some(told));
                }
            }
            self.rest.extend_from_slice(&bytes);
        }
    }
}

/// What ends the initial events, as an annotation of a bookmark.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

fn decode(line: &[u8]) -> Result<Told, kube::Error> {
    let event = serde_json::from_slice(line).map_err(kube::Error::SerdeError)?;
    Ok(match event {
        WatchEvent::Added(LeanObject(object)) | WatchEvent::Modified(LeanObject(object)) => {
            Told::Present(Arc::new(object))
        }
        WatchEvent::Deleted(LeanObject(object)) => Told::Gone(Arc::new(object)),
        WatchEvent::Bookmark(bookmark) => {
            let end = bookmark.metadata.annotations.get(INITIAL_EVENTS_END);
            Told::Bookmark {
                ends: end.is_some_and(|end| end == "true"),
                version: bookmark.metadata.resource_version,
            }
        }
        WatchEvent::Error(status) => Told::Failed {
            code: status.code,
            message: status.message,
        },
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ADDED: &str = r#"{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[]}}}"#;
    const GONE: &str = r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#;
    const BOOKMARK: &str = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    const FAILED: &str = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"message":"old","reason":"Expired"}}"#;

    fn word(told: &Told) -> String {
        match told {
            Told::Present(object) => format!("present {object}"),
            Told::Gone(object) => format!("gone {object}"),
            Told::Bookmark { version, ends } => format!("bookmark {version} {ends}"),
            Told::Failed { code, message } => format!("failed {code} {message}"),
        }
    }

    async fn all(chunks: Vec<Bytes>, shared: bool) -> Vec<String> {
        let mut lines = Lines::of(futures::stream::iter(chunks.into_iter().map(Ok)), shared);
        let mut out = Vec::new();
        while let Some(told) = lines.next().await.expect("a line of a watch") {
            out.push(word(&told));
        }
        out
    }

    #[rstest]
    #[case::whole(usize::MAX)]
    #[case::by_byte(1)]
    #[case::across_lines(100)]
    #[tokio::test]
    async fn lines_are_read_however_they_come(#[case] chunk: usize, #[values(true, false)] shared: bool) {
        let text = [ADDED, BOOKMARK, GONE, FAILED, ""].join("\n");
        let chunks = text.as_bytes().chunks(chunk.min(text.len()));
        let told = all(chunks.map(Bytes::copy_from_slice).collect(), shared).await;
        assert_eq!(
            told,
            [
                r#"present {"metadata":{"name":"a"}}"#,
                "bookmark 7 true",
                r#"gone {"metadata":{"name":"a"}}"#,
                "failed 410 old",
            ]
        );
    }

    #[tokio::test]
    async fn the_same_memory_is_read_once() {
        let line = Bytes::from(format!("{ADDED}\n"));
        let first = all(vec![line.clone()], true).await;
        let objects = || {
            MEMO.with_borrow(|memo| {
                memo.iter()
                    .map(|(_, told)| match told {
                        Told::Present(object) => Arc::strong_count(object),
                        _ => 0,
                    })
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(objects(), [1]);
        assert_eq!(all(vec![line.clone()], true).await, first);
        assert_eq!(objects(), [1], "nothing was added");
        // The same text in other memory is another line.
        all(vec![Bytes::from(format!("{ADDED}\n"))], true).await;
        assert_eq!(objects(), [1, 1]);
        all(vec![Bytes::from(format!("{ADDED}\n"))], false).await;
        assert_eq!(objects(), [1, 1], "nobody else is sent these");
        // What is remembered is bounded, and goes in the order in which it came.
        for _ in 0..300 {
            all(vec![Bytes::from(format!("{GONE}\n"))], true).await;
        }
        assert_eq!(objects().len(), REMEMBERED);
        assert!(remembered(&line).is_none());
    }

    #[tokio::test]
    async fn what_is_no_line_is_an_error() {
        for text in [
            "\n",
            "nonsense\n",
            "{}\n",
            "[]\n",
            r#"{"type":"ADDED","object":1}"#,
        ] {
            let body = futures::stream::iter([Ok(Bytes::from(format!("{text}\n")))]);
            assert!(Lines::of(body, true).next().await.is_err(), "{text:?}");
        }
    }
}
