//! A request body whose rest is read and thrown away when it is dropped before its end.
//!
//! A refusal often comes before the body (a wrong key, a wrong path). Were the connection closed then, a client that
//! keeps connections would send its next request into the close, and one that is still sending could lose the answer to
//! a reset. So the rest is read on, within bounds; past them the connection closes. HTTP/2 has its own way to stop a
//! stream, and a client that waits for `100 Continue` has sent nothing that had to be read.

use bytes::Bytes;
use http::{Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The most that is thrown away of one body, in bytes.
const MOST: usize = 64 << 20;
/// The longest that a body is read for nothing.
const LONGEST: Duration = Duration::from_secs(5);

/// A request body.
#[derive(Debug)]
pub struct ClientBody {
    /// `None` once it is at its end, or handed to the task that reads the rest.
    inner: Option<Incoming>,
    read_out: bool,
}

impl ClientBody {
    /// Wraps the body of a request.
    pub fn of(request: Request<Incoming>) -> Request<ClientBody> {
        let read_out = request.version() <= Version::HTTP_11 && !request.headers().contains_key(header::EXPECT);
        request.map(|inner| ClientBody { inner: Some(inner), read_out })
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let polled = Pin::new(inner).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.inner = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for ClientBody {
    fn drop(&mut self) {
        let Some(rest) = self.inner.take() else { return };
        if !self.read_out || rest.is_end_stream() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LONGEST, throw_away(rest)));
        }
    }
}

async fn throw_away(mut rest: Incoming) {
    let mut read = 0_usize;
    while let Some(Ok(frame)) = rest.frame().await {
        read = read.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if read > MOST {
            return;
        }
    }
}
