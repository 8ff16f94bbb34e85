//! An answer that is a stream of messages, message by message to its end.

use super::RpcFault;
use super::coding::Coding;
use super::ending::{broken, end_of_stream, grpc_status, malformed, no_end};
use crate::answer::Body;
use bytes::Bytes;
use futures_util::task::noop_waker_ref;
use http::HeaderMap;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_engine::ports::AnswerBody as _;
use turnkeep_wire::envelope::{Known, Reader};

/// How long the transport's end is waited for after the protocol's.
const LEAVE: Duration = Duration::from_secs(1);

/// How the stream will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// By an envelope.
    Connect,
    /// By trailers.
    Grpc,
    /// The head has told the end already: nothing may follow.
    GrpcToldByHead,
}

/// A stream of messages. Dropping it before its end cancels the call.
pub struct RpcStream {
    /// What a head that has told the end holds from the beginning.
    trailers: HeaderMap,
    /// `None` after the end.
    body: Option<Body>,
    reader: Reader,
    coding: Coding,
    tail: Tail,
    continued: bool,
    /// A message has come.
    begun: bool,
    /// What [`RpcStream::begun`] has read ahead.
    ahead: Option<Bytes>,
}

impl RpcStream {
    pub(super) fn new(headers: HeaderMap, body: Body, coding: Coding, tail: Tail, continued: bool) -> Self {
        let (known, trailers) = match tail {
            Tail::Connect => (Known::Connect, HeaderMap::new()),
            Tail::Grpc => (Known::Grpc, HeaderMap::new()),
            Tail::GrpcToldByHead => (Known::Grpc, headers),
        };
        RpcStream {
            trailers,
            body: Some(body),
            reader: Reader::new(known, MAX_EVENT),
            coding,
            tail,
            continued,
            begun: false,
            ahead: None,
        }
    }

    /// Waits until the first message has come, or the end. An error until then is a refusal of the call, with its proof;
    /// one that comes later is not.
    pub async fn begun(mut self) -> Result<RpcStream, RpcFault> {
        self.ahead = self.next().await.transpose()?;
        Ok(self)
    }

    /// The next message; `None` after the protocol's own end, and only then: a stream that stops without it ends with
    /// `stream_truncated`.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, RpcFault>>> {
        if let Some(message) = self.ahead.take() {
            return Poll::Ready(Some(Ok(message)));
        }
        let polled = ready!(self.poll_on(cx)).transpose();
        if let Some(Err(_)) = &polled {
            // The connection is of no more use, and the server may stop.
            self.body = None;
        }
        Poll::Ready(polled)
    }

    /// As [`RpcStream::poll_message`].
    pub async fn next(&mut self) -> Option<Result<Bytes, RpcFault>> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// After the end: what came with it, the call's metadata, which the protocols promise and no driver reads.
    pub fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, RpcFault>> {
        loop {
            let Some(body) = &mut self.body else { return Poll::Ready(Ok(None)) };
            if let Some(envelope) = self.reader.next_envelope().map_err(broken)? {
                if self.tail == Tail::GrpcToldByHead {
                    return Poll::Ready(Err(malformed("a message after the status").into()));
                }
                let is_end = envelope.is_end();
                let message = self.coding.message(envelope)?;
                if !is_end {
                    self.begun = true;
                    return Poll::Ready(Ok(Some(message)));
                }
                self.trailers = end_of_stream(&message, self.begun, self.continued)?;
                if self.reader.pending() > 0 {
                    return Poll::Ready(Err(malformed("bytes after the end of the stream").into()));
                }
                if let Some(body) = self.body.take() {
                    leave(body);
                }
                return Poll::Ready(Ok(None));
            }
            match ready!(body.poll_chunk(cx)) {
                Some(chunk) => self.reader.push(chunk?),
                None => return Poll::Ready(self.at_the_end()),
            }
        }
    }

    /// The transport has ended.
    fn at_the_end(&mut self) -> Result<Option<Bytes>, RpcFault> {
        self.reader.finish().map_err(broken)?;
        let trailers = self.body.take().and_then(|mut body| body.trailers());
        match self.tail {
            Tail::Connect => Err(no_end("its end-of-stream envelope").into()),
            Tail::GrpcToldByHead => Ok(None),
            Tail::Grpc => {
                let trailers = trailers.unwrap_or_default();
                match grpc_status(&trailers, self.begun, self.continued) {
                    Some(Ok(())) => {
                        self.trailers = trailers;
                        Ok(None)
                    }
                    Some(Err(fault)) => Err(fault),
                    None => Err(no_end("a grpc-status in its trailers").into()),
                }
            }
        }
    }
}

/// The protocol's end has come, and the transport's will in a moment: until then the connection serves nobody else, and a
/// stream that was let go of would look cancelled.
fn leave(mut body: Body) {
    let mut at_once = Context::from_waker(noop_waker_ref());
    if body.poll_chunk(&mut at_once).is_pending() {
        tokio::spawn(async move {
            // More bytes than none, or none at all in time: the connection is closed.
            let _ = tokio::time::timeout(LEAVE, poll_fn(|cx| body.poll_chunk(cx))).await;
        });
    }
}

impl fmt::Debug for RpcStream {
    /// Without the messages, and without headers, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcStream")
            .field("tail", &self.tail)
            .field("coding", &self.coding)
            .field("begun", &self.begun)
            .field("ended", &self.body.is_none())
            .finish_non_exhaustive()
    }
}
