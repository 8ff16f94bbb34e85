//! What may be fetched: the kinds of picture that models take, and PDF. The bytes must be what the server says.

/// The kinds, by the type that is passed on.
const KINDS: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/// Reads a `content-type`.
pub(super) fn declared(value: &str) -> Option<&'static str> {
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kind = if kind == "image/jpg" { "image/jpeg" } else { kind.as_str() };
    KINDS.into_iter().find(|known| *known == kind)
}

/// What the bytes are, by how they begin.
pub(super) fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else if bytes.starts_with(b"%PDF-") {
        Some("application/pdf")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_name_and_by_how_its_bytes_begin() {
        for (name, bytes, kind) in [
            ("image/png", &b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
            ("Image/JPEG; charset=binary", b"\xff\xd8\xff\xe0..JFIF", "image/jpeg"),
            ("image/jpg", b"\xff\xd8\xff\xe1", "image/jpeg"),
            ("image/gif", b"GIF89a..", "image/gif"),
            ("image/gif", b"GIF87a..", "image/gif"),
            (" image/webp ", b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
            ("application/pdf", b"%PDF-1.7", "application/pdf"),
        ] {
            assert_eq!((declared(name), sniffed(bytes)), (Some(kind), Some(kind)), "{name}");
        }
        for name in ["text/html", "image/svg+xml", "application/octet-stream", "", "image"] {
            assert_eq!(declared(name), None, "{name}");
        }
        for bytes in [&b""[..], b"<svg", b"RIFF\x01\x02\x03\x04WAVE", b"\x89PNG", b"GIF88a", b"<html>"] {
            assert_eq!(sniffed(bytes), None);
        }
    }
}
