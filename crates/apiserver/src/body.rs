//! Response bodies: whole ones, and watches that go on.

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response.
pub struct Body {
    kind: Kind,
}

enum Kind {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A body that is there already.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Body { kind: Kind::Whole(Some(bytes.into())) }
    }

    /// A body that is sent piece by piece as it comes.
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Body { kind: Kind::Stream(Box::pin(pieces)) }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body::whole(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::whole(text)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Kind::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
