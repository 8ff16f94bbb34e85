//! Whether two requests ask for the same answer.
//!
//! Headers are not looked at: an API version or a beta in a header that changes the answer is its reader's to add.

use super::canonical::Canonical;
use super::{HashKey, fingerprint};
use crate::json::{Invalid, Reader};
use crate::request::{ClientRequest, Operation};
use turnkeep_base::{Dialect, Fingerprint};

/// Of the whole request: equal for requests that ask for the same answer. The order of keys (at every depth), white space,
/// escapes, the spelling of a number, `stream` and `stream_options` make no difference; everything else does: dialect,
/// operation, the model's name, fields that nobody here knows, and `null` against a field that is not there. Of two members
/// with one key both count, in their order. One pass over the body; its nesting is bounded by the reader.
pub fn request(key: &HashKey, request: &ClientRequest) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let dialect = match request.dialect {
        Dialect::Chat => b"chat",
        Dialect::Responses => b"resp",
        Dialect::Messages => b"mess",
        Dialect::Gemini => b"gemi",
    };
    let operation = match request.operation {
        Operation::Generate => b"1",
        Operation::CountTokens => b"2",
        Operation::Complete => b"3",
        Operation::Embed => b"4",
    };
    for part in [b"request ", &dialect[..], b" ", operation] {
        hasher.update(part);
    }
    if request.dialect == Dialect::Gemini {
        // It is in the path, and so not among the body's members.
        hasher.update(request.model.as_bytes());
        hasher.update(b"\0");
    }
    let mut canonical = Canonical::new(key);
    match read(&request.body, &mut canonical) {
        Ok(()) => {
            // In their order without being put in order: the messages are most of the body.
            for member in canonical.sorted(0) {
                hasher.update(member);
            }
        }
        // Only a body that was never checked comes here; it is what its bytes are.
        Err(_) => {
            hasher.update(b"?");
            hasher.update(&request.body);
        }
    }
    fingerprint(&hasher.finalize())
}

fn read(body: &[u8], canonical: &mut Canonical<'_>) -> Result<(), Invalid> {
    let mut r = Reader::new(body)?;
    r.object(|r, key| match key {
        "stream" | "stream_options" => r.skip().map(drop),
        _ => canonical.member(r, key),
    })?;
    r.end()
}
