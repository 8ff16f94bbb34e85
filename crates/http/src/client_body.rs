//! A request body, as it comes over HTTP/1.1 or HTTP/2. The rest of an HTTP/1.1 one is read and thrown away when it is
//! dropped before its end.
//!
//! A refusal often comes before the body (a wrong key, a wrong path). Were the connection closed then, a client that
//! keeps connections would send its next request into the close, and one that is still sending could lose the answer to
//! a reset. So the rest is read on, within bounds; past them the connection closes. HTTP/2 has its own way to stop a
//! stream, and a client that waits for `100 Continue` has sent nothing that had to be read.

use bytes::Bytes;
use h2::RecvStream;
use http::{Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The most that is thrown away of one body, in bytes.
const MOST: usize = 64 << 20;
/// The longest that a body is read for nothing.
const LONGEST: Duration = Duration::from_secs(5);

/// A body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Over HTTP/1.1.
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    /// Over HTTP/2.
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

#[derive(Debug)]
enum Inner {
    Http1 { body: Incoming, read_out: bool },
    Http2 { stream: RecvStream, left: Option<u64> },
}

/// A request body.
#[derive(Debug)]
pub struct ClientBody {
    /// `None` once it is at its end, or handed to the task that reads the rest.
    inner: Option<Inner>,
}

impl ClientBody {
    /// Wraps the body of a request over HTTP/1.1.
    pub fn of(request: Request<Incoming>) -> Request<ClientBody> {
        let read_out = request.version() <= Version::HTTP_11 && !request.headers().contains_key(header::EXPECT);
        request.map(|body| ClientBody { inner: Some(Inner::Http1 { body, read_out }) })
    }

    /// Wraps the body of a request over HTTP/2.
    pub fn of_stream(request: Request<RecvStream>) -> Request<ClientBody> {
        let left = request.headers().get(header::CONTENT_LENGTH);
        let left = left.and_then(|length| length.to_str().ok()?.parse().ok());
        request.map(|stream| ClientBody { inner: Some(Inner::Http2 { stream, left }) })
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let polled = match inner {
            Inner::Http1 { body, .. } => ready!(Pin::new(body).poll_frame(cx)).map(|frame| frame.map_err(Into::into)),
            Inner::Http2 { stream, left } => ready!(stream.poll_data(cx)).map(|data| {
                let data = data?;
                if let Some(left) = left {
                    *left = left.saturating_sub(data.len() as u64);
                }
                // What is read makes room for more; that the stream has ended meanwhile is no error.
                let _ = stream.flow_control().release_capacity(data.len());
                Ok(Frame::data(data))
            }),
        };
        if let None | Some(Err(_)) = &polled {
            self.inner = None;
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            None => true,
            Some(Inner::Http1 { body, .. }) => body.is_end_stream(),
            Some(Inner::Http2 { stream, .. }) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            None => SizeHint::with_exact(0),
            Some(Inner::Http1 { body, .. }) => body.size_hint(),
            Some(Inner::Http2 { left: Some(left), .. }) => SizeHint::with_exact(*left),
            Some(Inner::Http2 { left: None, stream }) if stream.is_end_stream() => SizeHint::with_exact(0),
            Some(Inner::Http2 { left: None, .. }) => SizeHint::default(),
        }
    }
}

impl Drop for ClientBody {
    fn drop(&mut self) {
        let Some(Inner::Http1 { body, read_out: true }) = self.inner.take() else { return };
        if body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LONGEST, throw_away(body)));
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
