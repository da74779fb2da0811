//! Response bodies: whole, put together while they are sent, or a stream of watch events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};

/// The body of an answer.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Parts(Parts),
    Stream(BoxStream<'static, Bytes>),
}

/// About how many bytes are put together at once.
const PIECE_BYTES: usize = 64 << 10;

/// A long list, whose parts are in memory, and which never is there as a whole.
struct Parts {
    parts: std::vec::IntoIter<Bytes>,
    left: usize,
}

impl Parts {
    /// As many as fit into a piece; one at least, if there is one.
    fn piece(&mut self) -> Option<Bytes> {
        let first = self.parts.next()?;
        let mut piece = Vec::new();
        while let Some(next) = self.parts.as_slice().first() {
            let length = first.len().max(piece.len()) + next.len();
            if length > PIECE_BYTES {
                break;
            }
            if piece.is_empty() {
                piece.reserve_exact(PIECE_BYTES.min(self.left));
                piece.extend_from_slice(&first);
            }
            piece.extend_from_slice(next);
            self.parts.next();
        }
        let piece = match piece.is_empty() {
            true => first,
            false => Bytes::from(piece),
        };
        self.left = self.left.saturating_sub(piece.len());
        Some(piece)
    }
}

/// These one after the other, as a whole.
pub(crate) fn join(parts: &[Bytes]) -> Bytes {
    match parts {
        [whole] => whole.clone(),
        parts => parts.concat().into(),
    }
}

impl ResponseBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes)))
    }

    /// These one after the other: they are put together while they are sent.
    pub(crate) fn parts(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(Bytes::len).sum();
        let parts = parts.into_iter();
        Self(Kind::Parts(Parts { parts, left }))
    }

    /// The bytes of a body that is not streamed.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.0 {
            Kind::Whole(Some(bytes)) => Ok(bytes),
            Kind::Parts(parts) => Ok(join(parts.parts.as_slice())),
            other => Err(Self(other)),
        }
    }

    pub(crate) fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Kind::Stream(stream))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Parts(parts) => Poll::Ready(parts.piece().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => stream
                .as_mut()
                .poll_next(context)
                .map(|item| item.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Parts(parts) => parts.parts.as_slice().is_empty(),
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Parts(parts) => SizeHint::with_exact(parts.left as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use http_body_util::BodyExt as _;
    use rstest::rstest;

    use super::*;

    /// The lengths of parts, and of the pieces in which they are sent.
    #[rstest]
    #[case::none(&[], &[])]
    #[case::one(&[5], &[5])]
    #[case::together(&[5, 6, 7], &[18])]
    #[case::as_many_as_fit(&[PIECE_BYTES - 1, 1, 1], &[PIECE_BYTES, 1])]
    #[case::too_long_for_one(&[1, PIECE_BYTES * 3, 1, 1], &[1, PIECE_BYTES * 3, 2])]
    #[case::empty_ones(&[0, 0, 4, 0], &[4])]
    fn parts_are_sent_in_pieces(#[case] lengths: &[usize], #[case] expected: &[usize]) {
        let parts = || -> Vec<Bytes> {
            let part = |(number, length): (usize, &usize)| {
                let byte = u8::try_from(number).unwrap_or_default();
                Bytes::from(vec![byte; *length])
            };
            lengths.iter().enumerate().map(part).collect()
        };
        let whole = parts().concat();
        assert_eq!(
            ResponseBody::parts(parts()).into_whole().ok().as_deref(),
            Some(&*whole)
        );
        let mut body = ResponseBody::parts(parts());
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let (mut sent, mut pieces) = (Vec::new(), Vec::new());
        while let Some(Some(Ok(frame))) = body.frame().now_or_never() {
            let piece = frame.into_data().unwrap_or_default();
            pieces.push(piece.len());
            sent.extend_from_slice(&piece);
        }
        assert!(sent == whole && body.is_end_stream());
        assert_eq!(pieces, expected);
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}
