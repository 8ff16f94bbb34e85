//! What the messages of one answer are compressed by, each for itself.

use super::ending::malformed;
use crate::inflate::Inflate;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use turnkeep_base::Fault;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_wire::envelope::Envelope;

/// So much of a message is inflated at a time.
const STEP: usize = 64 << 10;

/// The coding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// By the header of this name; without it nothing is compressed.
    pub(super) fn named(headers: &HeaderMap, header: &str) -> Result<Coding, Fault> {
        let Some(value) = headers.get(header) else { return Ok(Coding::Identity) };
        let name = String::from_utf8_lossy(value.as_bytes());
        match name.trim() {
            "" | "identity" => Ok(Coding::Identity),
            "gzip" => Ok(Coding::Gzip),
            "zstd" => Ok(Coding::Zstd),
            other => Err(malformed(format!("a {header} that was not offered: {other:?}"))),
        }
    }

    /// The message in an envelope.
    pub(super) fn message(self, envelope: Envelope) -> Result<Bytes, Fault> {
        if !envelope.is_compressed() {
            return Ok(envelope.payload);
        }
        let name = match self {
            Coding::Identity => return Err(malformed("a compressed message, and no header says by what")),
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        };
        // Of no bytes nothing is inflated: some servers set the flag on empty messages too.
        if envelope.payload.is_empty() {
            return Ok(envelope.payload);
        }
        inflate(name, &envelope.payload).map_err(malformed)
    }
}

fn inflate(name: &str, payload: &[u8]) -> Result<Bytes, String> {
    let named = Inflate::named(name).ok().flatten();
    let mut decoder = named.ok_or_else(|| format!("{name} cannot be inflated"))?;
    let mut whole = BytesMut::new();
    for piece in payload.chunks(STEP) {
        let more = decoder.feed(piece)?;
        if whole.len() + more.len() > MAX_EVENT {
            return Err(format!("a message becomes more than {MAX_EVENT} bytes"));
        }
        whole.extend_from_slice(&more);
    }
    decoder.finish()?;
    Ok(whole.freeze())
}
