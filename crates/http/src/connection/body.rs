//! A reply's body as a connection sends it. Dropping it before its end is the client's leaving; its last byte brings the
//! reply's ticket to [`Deliveries`].

use super::deliveries::{Deliveries, HTTP1, Proof, UnderWay};
use crate::reply_body::ReplyBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes of a reply, and whether they are the last.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes; none at an end that was not known with the piece before.
    pub bytes: Bytes,
    /// Nothing follows.
    pub last: bool,
}

/// The reply was given up before its end: the client read too slowly, or nobody makes the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply was given up before its end")]
pub struct Aborted;

/// A reply's body on its connection.
#[derive(Debug)]
pub struct Tracked {
    body: ReplyBody,
    stream: u32,
    deliveries: Arc<Deliveries>,
    under_way: Option<UnderWay>,
    /// The last bytes of a length that is known, kept until the turn says that it has ended: the framing takes its end
    /// from the length and would not ask again for the ticket.
    held: Option<Bytes>,
    ended: bool,
}

impl Tracked {
    /// On HTTP/1.1.
    pub fn http1(body: ReplyBody, under_way: UnderWay, deliveries: Arc<Deliveries>) -> Self {
        // The head is a piece of it too.
        deliveries.piece();
        Tracked::http2(body, HTTP1, under_way, deliveries)
    }

    /// On a stream of HTTP/2.
    pub fn http2(body: ReplyBody, stream: u32, under_way: UnderWay, deliveries: Arc<Deliveries>) -> Self {
        let ended = matches!(body, ReplyBody::Whole(None));
        Tracked { body, stream, deliveries, under_way: (!ended).then_some(under_way), held: None, ended }
    }

    /// The next bytes; `None` after the last.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, Aborted>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let (reader, left, receipts) = match &mut self.body {
            ReplyBody::Whole(bytes) => {
                let bytes = bytes.take().unwrap_or_default();
                self.end();
                return Poll::Ready(Some(Ok(Piece { bytes, last: true })));
            }
            ReplyBody::Turn { reader, left, receipts } => (reader, left, receipts),
        };
        loop {
            let chunk = ready!(reader.poll_chunk(cx));
            let proof = reader.ticket().map(|ticket| Proof { ticket, receipts: receipts.clone() });
            if let (Some(left), Some(chunk)) = (left.as_mut(), &chunk) {
                *left = left.saturating_sub(chunk.len() as u64);
            }
            if let Some(proof) = proof {
                let bytes = match (self.held.take(), chunk) {
                    (Some(held), None) | (None, Some(held)) => held,
                    (Some(held), Some(chunk)) => [held, chunk].concat().into(),
                    (None, None) => Bytes::new(),
                };
                self.deliveries.handed(self.stream, proof, !bytes.is_empty());
                self.end();
                return Poll::Ready(Some(Ok(Piece { bytes, last: true })));
            }
            let Some(chunk) = chunk else {
                let aborted = reader.is_aborted();
                self.end();
                return Poll::Ready(match (aborted, self.held.take()) {
                    (true, _) => Some(Err(Aborted)),
                    (false, held) => held.map(|bytes| Ok(Piece { bytes, last: true })),
                });
            };
            if *left == Some(0) && self.held.is_none() {
                self.held = Some(chunk);
                continue;
            }
            if self.stream == HTTP1 {
                self.deliveries.piece();
            }
            let bytes = match self.held.take() {
                Some(held) => [held, chunk].concat().into(),
                None => chunk,
            };
            return Poll::Ready(Some(Ok(Piece { bytes, last: false })));
        }
    }

    /// The reply was given up, as far as it was not handed over; `cx` is woken when it is.
    pub fn poll_aborted(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.body {
            ReplyBody::Whole(_) => false,
            ReplyBody::Turn { reader, .. } => !self.ended && reader.poll_aborted(cx),
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if self.stream == HTTP1 {
            self.deliveries.whole();
        }
        self.under_way = None;
    }
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.get_mut().poll_piece(cx).map(|piece| match piece? {
            Ok(piece) => (!piece.bytes.is_empty()).then(|| Ok(Frame::data(piece.bytes))),
            Err(aborted) => Some(Err(aborted)),
        })
    }

    fn is_end_stream(&self) -> bool {
        // Not what the pipe says: it may end between the last bytes and this question, and the ticket would be lost.
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ReplyBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            ReplyBody::Turn { left: Some(left), .. } => SizeHint::with_exact(*left),
            ReplyBody::Turn { left: None, .. } => SizeHint::default(),
        }
    }
}
