//! What no other dialect has a place for, in words.

/// Says that an image, or other bytes, stood here. An answer that fails silently is worse than one that says so.
pub(super) fn media(mime: &str, bytes: usize) -> String {
    let kind = match mime.split('/').next() {
        Some(kind @ ("image" | "audio" | "video")) => kind,
        Some(_) | None => "file",
    };
    // The type is the upstream's word: what is no type is not repeated.
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-;=_ ".contains(&byte);
    let mime = if !mime.is_empty() && mime.len() <= 80 && mime.bytes().all(fits) { mime } else { "unknown type" };
    format!("[{kind} omitted: {mime}, {bytes} bytes]")
}

/// Code that the provider ran, or what it wrote, as a fenced block.
pub(super) fn fenced(language: &str, code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2).saturating_add(1));
    let end = if code.is_empty() || code.ends_with('\n') { "" } else { "\n" };
    format!("\n{fence}{language}\n{code}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_named_by_type_and_size() {
        assert_eq!(media("image/png", 3), "[image omitted: image/png, 3 bytes]");
        assert_eq!(media("application/pdf", 0), "[file omitted: application/pdf, 0 bytes]");
        assert_eq!(media("<b>\n", 9), "[file omitted: unknown type, 9 bytes]");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_code() {
        assert_eq!(fenced("python", "print(1)"), "\n```python\nprint(1)\n```\n");
        assert_eq!(fenced("", "a\n````\n"), "\n`````\na\n````\n`````\n");
        assert_eq!(fenced("", ""), "\n```\n```\n");
    }
}
