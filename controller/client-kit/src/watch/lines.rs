//! The lines of a watch.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::core::WatchEvent;
use shared_json::Value;

use crate::lean::LeanObject;
use crate::local::{LINE, LocalEvent, LocalObjects};

/// The content of a line.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// The object is there.
    Present(Arc<Value>),
    /// It is gone.
    Gone(Arc<Value>),
    /// All before this version has been sent; whether that ends the list at the beginning.
    Bookmark { version: String, ends: bool },
    /// The watch has failed.
    Failed { code: u16, message: String },
}

/// The lines of an answer.
pub(super) struct Lines {
    body: BoxStream<'static, kube::Result<Bytes>>,
    /// The bytes that have come and were not read yet.
    rest: BytesMut,
    /// So much of it holds no end of a line.
    searched: usize,
    /// The events that a server of this process leaves beside them.
    local: LocalObjects,
}

impl Lines {
    /// `local` has been sent with the request.
    pub(super) fn of(
        body: impl Stream<Item = kube::Result<Bytes>> + Send + 'static,
        local: LocalObjects,
    ) -> Self {
        Self {
            body: body.boxed(),
            rest: BytesMut::new(),
            searched: 0,
            local,
        }
    }

    /// The content of the next line; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, or the line is not of a watch.
    pub(super) async fn next(&mut self) -> Result<Option<Told>, kube::Error> {
        loop {
            let new = self.rest.iter().skip(self.searched);
            if let Some(end) = new.copied().position(|byte| byte == b'\n') {
                let line = self.rest.split_to(self.searched + end + 1);
                self.searched = 0;
                return self.read(&line).map(Some);
            }
            self.searched = self.rest.len();
            let Some(bytes) = self.body.next().await else {
                return Ok(None);
            };
            let bytes = bytes?;
            if self.rest.is_empty()
                && bytes.iter().position(|byte| *byte == b'\n') == bytes.len().checked_sub(1)
            {
                return self.read(&bytes).map(Some);
            }
            self.rest.extend_from_slice(&bytes);
        }
    }

    fn read(&self, line: &[u8]) -> Result<Told, kube::Error> {
        let local = (line == LINE).then(|| self.local.next()).flatten();
        match local {
            Some(LocalEvent::Present(object)) => Ok(Told::Present(object)),
            Some(LocalEvent::Gone(object)) => Ok(Told::Gone(object)),
            None => decode(line),
        }
    }
}

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

fn decode(line: &[u8]) -> Result<Told, kube::Error> {
    let event = shared_json::from_slice(line).map_err(kube::Error::SerdeError)?;
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
    use shared_json::json;

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

    async fn all(chunks: Vec<Bytes>, local: LocalObjects) -> Vec<String> {
        let mut lines = Lines::of(futures::stream::iter(chunks.into_iter().map(Ok)), local);
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
    async fn lines_are_read_however_they_come(#[case] chunk: usize) {
        let local = LocalObjects::default();
        local.tell(LocalEvent::Gone(Arc::new(json!({"a": 1}))));
        let text = [ADDED, BOOKMARK, "", GONE, FAILED, ""].join("\n");
        let chunks = text.as_bytes().chunks(chunk.min(text.len()));
        let told = all(chunks.map(Bytes::copy_from_slice).collect(), local).await;
        assert_eq!(
            told,
            [
                r#"present {"metadata":{"name":"a"}}"#,
                "bookmark 7 true",
                r#"gone {"a":1}"#,
                r#"gone {"metadata":{"name":"a"}}"#,
                "failed 410 old",
            ]
        );
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
            assert!(
                Lines::of(body, LocalObjects::default()).next().await.is_err(),
                "{text:?}"
            );
        }
    }
}
