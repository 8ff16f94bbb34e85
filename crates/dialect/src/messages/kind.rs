//! Which event a frame of a stream is: what it is called, or what its data says. Both readers of a stream, the tap and the
//! decoder, go by this, so that an answer is the same whether it is passed on or translated.

/// The events that are read, and those that are known to say nothing.
const KNOWN: &[&[u8]] = &[
    b"message_start",
    b"content_block_start",
    b"content_block_delta",
    b"content_block_stop",
    b"message_delta",
    b"message_stop",
    b"ping",
    b"error",
];

/// The name in a frame's `event`, if it is one of the protocol's. The official SDKs go by it. Some servers in between call
/// every event `message`, or leave the name empty: then the data's `type` says what it is, where it has one.
pub(super) fn named(event: Option<&[u8]>) -> Option<&[u8]> {
    event.filter(|name| KNOWN.contains(name))
}
