//! The response body over a reply's pipe. Dropping it before its end is the client's leaving.

use crate::receipts::Receipts;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use turnkeep_base::receipt::Level;
use turnkeep_engine::pipe::ReplyReader;

/// A response body: nothing, one piece, or a turn's reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// Known at once.
    Whole(Option<Bytes>),
    /// As it comes; the length where it is known.
    Turn {
        /// The pipe.
        reader: ReplyReader,
        /// Bytes to come, if that is known.
        left: Option<u64>,
        /// Makes the receipt.
        receipts: Receipts,
    },
}

impl ReplyBody {
    /// A body known at once.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        ReplyBody::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ReplyBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            ReplyBody::Turn { reader, left, receipts } => reader.poll_chunk(cx).map(|chunk| {
                let chunk = chunk?;
                if let Some(left) = left {
                    *left = left.saturating_sub(chunk.len() as u64);
                }
                // A framing that knows the length, or a stream whose last piece this was, never asks again.
                if let Some(ticket) = reader.ticket() {
                    let receipt = receipts.receipt(ticket.turn(), Level::Flushed);
                    ticket.turn_in(receipt);
                }
                Some(Ok(Frame::data(chunk)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Whole(bytes) => bytes.is_none(),
            ReplyBody::Turn { reader, .. } => reader.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            ReplyBody::Turn { left: Some(left), .. } => SizeHint::with_exact(*left),
            ReplyBody::Turn { left: None, .. } => SizeHint::default(),
        }
    }
}
