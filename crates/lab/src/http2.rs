//! HTTP/2 frames that the HTTP library would not write: a stream's reset with any code, and a goodbye that counts any
//! streams as unprocessed.

use bytes::Bytes;

/// An error code by its name in the standard, in lower case, or by its number.
pub(crate) fn code(name: &str) -> Option<u32> {
    const NAMES: [&str; 14] = [
        "no_error",
        "protocol_error",
        "internal_error",
        "flow_control_error",
        "settings_timeout",
        "stream_closed",
        "frame_size_error",
        "refused_stream",
        "cancel",
        "compression_error",
        "connect_error",
        "enhance_your_calm",
        "inadequate_security",
        "http_1_1_required",
    ];
    let named = NAMES.iter().position(|known| *known == name);
    named.and_then(|at| u32::try_from(at).ok()).or_else(|| name.parse().ok())
}

/// `RST_STREAM`.
pub(crate) fn reset(stream: u32, code: u32) -> Bytes {
    frame(3, stream, &[&code.to_be_bytes()])
}

/// `GOAWAY`: streams above `last` were not processed.
pub(crate) fn goaway(last: u32, code: u32) -> Bytes {
    frame(7, 0, &[&last.to_be_bytes(), &code.to_be_bytes()])
}

fn frame(kind: u8, stream: u32, payload: &[&[u8; 4]]) -> Bytes {
    let mut out = vec![0, 0, u8::try_from(payload.len() * 4).unwrap_or_default(), kind, 0];
    out.extend_from_slice(&stream.to_be_bytes());
    for part in payload {
        out.extend_from_slice(*part);
    }
    out.into()
}
