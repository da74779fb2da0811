//! A container's log with the options of a request: since, tail, timestamps, follow.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use node_access::LogQuery;

use crate::programs::{Kept, Output};

/// The log so far, and with `follow` its further lines.
pub(super) fn stream(output: Output, query: LogQuery) -> BoxStream<'static, Bytes> {
    let kept = output.kept(0);
    let mut reader = Reader {
        at_line_start: true,
        left: query.limit_bytes,
        timestamps: query.timestamps,
        position: kept.from + kept.bytes.len() as u64,
    };
    let first = reader.show(&kept, begin(&kept, &query));
    let head = stream::iter((!first.is_empty()).then_some(first));
    if !query.follow {
        return head.boxed();
    }
    let rest = stream::unfold(Some((output, reader)), |state| async {
        let (output, mut reader) = state?;
        if reader.left == Some(0) {
            return None;
        }
        let kept = output.kept_after(reader.position).await;
        reader.position = kept.from + kept.bytes.len() as u64;
        let shown = reader.show(&kept, 0);
        let next = (!kept.closed).then_some((output, reader));
        Some((shown, next))
    });
    head.chain(rest.filter(|bytes| std::future::ready(!bytes.is_empty())))
        .boxed()
}

/// The start of the answer in the kept log: by age, and then by number of lines.
fn begin(kept: &Kept, query: &LogQuery) -> usize {
    let mut starts: Vec<usize> = line_starts(&kept.bytes);
    if let Some(since) = query.since {
        starts.retain(|start| time_at(kept, *start).is_none_or(|time| time >= since));
    }
    if let Some(tail) = query.tail {
        let skip = starts.len().saturating_sub(tail);
        starts.drain(..skip);
    }
    starts.first().copied().unwrap_or(kept.bytes.len())
}

fn line_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        starts.push(at);
        at += line.len();
    }
    starts
}

/// When the byte at an offset was written.
fn time_at(kept: &Kept, offset: usize) -> Option<Timestamp> {
    let position = kept.from + offset as u64;
    let mark = kept.marks.iter().rev().find(|(from, _)| *from <= position);
    mark.or(kept.marks.first()).map(|(_, time)| *time)
}

struct Reader {
    at_line_start: bool,
    left: Option<usize>,
    timestamps: bool,
    position: u64,
}

impl Reader {
    fn show(&mut self, kept: &Kept, from: usize) -> Bytes {
        let mut out = Vec::new();
        let mut at = from;
        for line in kept
            .bytes
            .get(from..)
            .unwrap_or_default()
            .split_inclusive(|byte| *byte == b'\n')
        {
            if self.timestamps && self.at_line_start {
                let time = time_at(kept, at).unwrap_or_default();
                out.extend_from_slice(time.strftime("%Y-%m-%dT%H:%M:%S.%9fZ ").to_string().as_bytes());
            }
            out.extend_from_slice(line);
            self.at_line_start = line.ends_with(b"\n");
            at += line.len();
        }
        if let Some(left) = &mut self.left {
            out.truncate(*left);
            *left -= out.len();
        }
        Bytes::from(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use client_kit::TokioClock;
    use rstest::rstest;

    use super::*;

    fn seconds(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// `one` at 0 s, `two` at 10 s, `three` at 20 s.
    async fn log() -> Output {
        let output = Output::log(Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)));
        for (index, line) in ["one\n", "two\n", "three\n"].into_iter().enumerate() {
            if index > 0 {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            output.write(line.as_bytes());
        }
        output
    }

    async fn text(stream: BoxStream<'static, Bytes>) -> String {
        let pieces: Vec<Bytes> = stream.collect().await;
        String::from_utf8(pieces.concat()).expect("text")
    }

    #[rstest]
    #[case(LogQuery::default(), "one\ntwo\nthree\n")]
    #[case(LogQuery { tail: Some(0), ..LogQuery::default() }, "")]
    #[case(LogQuery { tail: Some(2), ..LogQuery::default() }, "two\nthree\n")]
    #[case(LogQuery { tail: Some(9), ..LogQuery::default() }, "one\ntwo\nthree\n")]
    #[case(LogQuery { since: Some(seconds(10)), ..LogQuery::default() }, "two\nthree\n")]
    #[case(LogQuery { since: Some(seconds(11)), ..LogQuery::default() }, "three\n")]
    #[case(LogQuery { since: Some(seconds(60)), ..LogQuery::default() }, "")]
    #[case(LogQuery { since: Some(seconds(10)), tail: Some(1), ..LogQuery::default() }, "three\n")]
    #[case(LogQuery { limit_bytes: Some(5), ..LogQuery::default() }, "one\nt")]
    #[case(
        LogQuery { timestamps: true, tail: Some(1), ..LogQuery::default() },
        "1970-01-01T00:00:20.000000000Z three\n"
    )]
    #[tokio::test(start_paused = true)]
    async fn what_is_shown(#[case] query: LogQuery, #[case] expected: &str) {
        assert_eq!(text(stream(log().await, query)).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_follows_until_the_end() {
        let output = log().await;
        let query = LogQuery {
            follow: true,
            tail: Some(1),
            timestamps: true,
            ..LogQuery::default()
        };
        let reader = tokio::spawn(text(stream(output.clone(), query)));
        tokio::time::sleep(Duration::from_secs(5)).await;
        output.write(b"fo");
        tokio::time::sleep(Duration::from_secs(1)).await;
        output.write(b"ur\n");
        tokio::time::sleep(Duration::from_secs(1)).await;
        output.close();
        let expected = "1970-01-01T00:00:20.000000000Z three\n1970-01-01T00:00:25.000000000Z four\n";
        assert_eq!(reader.await.expect("a reader"), expected);
    }
}
