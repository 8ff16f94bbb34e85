//! What a response is made of, before the connection sends it.

use crate::receipts::Receipts;
use bytes::Bytes;
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
