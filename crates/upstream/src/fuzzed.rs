//! The decoders of this crate by themselves, for the fuzz targets and nobody else (the layer check looks): bytes in, what
//! was read out, no connection.

use crate::cascade::fuzzed as cascade;
use crate::connect_chat::read::Events;
use crate::devin::fuzzed as devin;
use crate::inflate::Inflate;
use crate::rpc::Codec;
pub use crate::rpc::fuzzed::{end_of_stream, error_reply, grpc_status};
use turnkeep_base::Fault;
use turnkeep_dialect::event::Event;
use turnkeep_proto::connect::v1::ChatEvent;

pub use cascade::{Step, watched};
pub use devin::{Page, Session, page, session};

/// The content-codings that are read.
pub const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// What a body of this coding becomes that comes in these pieces.
///
/// # Errors
/// The bytes are not of the coding, or end before it does.
pub fn inflate(coding: &str, pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
    let mut inflate = Inflate::named(coding).ok().flatten().ok_or("no such coding")?;
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&inflate.feed(piece)?);
    }
    inflate.finish()?;
    Ok(out)
}

/// A message of a chat's stream, in both forms: as it is read, and as it is written again.
///
/// # Errors
/// The bytes are no such message.
pub fn chat_event(codec: Codec, bytes: &[u8]) -> Result<(ChatEvent, Vec<u8>), Fault> {
    let event: ChatEvent = codec.read(bytes)?;
    let again = codec.write(&event)?.to_vec();
    Ok((event, again))
}

/// The events that a stream of these messages becomes, up to a fault; `ended` as its protocol says.
pub fn events(messages: Vec<ChatEvent>, ended: bool) -> (Vec<Event>, Option<Fault>) {
    let (mut events, mut out) = (Events::default(), Vec::new());
    let mut drain = |events: &mut Events| loop {
        match events.next_event() {
            Ok(Some(event)) => out.push(event),
            Ok(None) => return None,
            Err(fault) => return Some(fault),
        }
    };
    for message in messages {
        events.take(message);
        if let Some(fault) = drain(&mut events) {
            return (out, Some(fault));
        }
    }
    if ended {
        events.end();
    }
    let fault = drain(&mut events);
    (out, fault)
}
