//! Whether the images and files that a turn carries as bytes are such at all. A translated request with one that is not is
//! refused with its place: some providers pass over what they cannot decode, and the model would answer as if it had seen it.

use crate::json::Invalid;
use crate::turn::{Body, FileSource, Image, Part, Turn};

/// Checks every image and file of a turn, those in tool results too. The error names the first that is none.
pub(crate) fn check(turn: &Turn<'_>) -> Result<(), Invalid> {
    turn.messages.iter().try_for_each(|message| message.parts.iter().try_for_each(part))
}

fn part(part: &Part<'_>) -> Result<(), Invalid> {
    match &part.body {
        Body::Image(Image::Data { media_type, data }) => {
            if !is_image(media_type) {
                let shown: String = media_type.chars().take(60).collect();
                return Err(refused(
                    part,
                    format!("{shown:?} is no image's type; expected one as in \"image/png\", or a part for files"),
                ));
            }
            bytes(part, "an image", data)
        }
        Body::File(file) => match &file.source {
            FileSource::Data(data) => bytes(part, "a file", data),
            FileSource::Url(_) | FileSource::Plain(_) => Ok(()),
        },
        Body::ToolResult { id: _, content, is_error: _ } => content.iter().try_for_each(self::part),
        Body::Image(Image::Url(_))
        | Body::Text(_)
        | Body::ToolCall { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => Ok(()),
    }
}

fn bytes(part: &Part<'_>, what: &str, data: &str) -> Result<(), Invalid> {
    if data.is_empty() {
        return Err(refused(part, format!("{what} of no bytes; expected its bytes in base64")));
    }
    match wrong(data.as_bytes()) {
        None => Ok(()),
        Some(at) => {
            let message =
                format!("the bytes of {what} are not base64 (at character {at}); expected RFC 4648's, padded");
            Err(refused(part, message))
        }
    }
}

/// Where data stops to be base64 in the standard alphabet with its padding; `None` if it is such to its end.
fn wrong(data: &[u8]) -> Option<usize> {
    let padding = data.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let (body, _) = data.split_at(data.len() - padding);
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    match body.iter().position(|byte| !known(byte)) {
        Some(at) => Some(at),
        None if data.len().is_multiple_of(4) => None,
        None => Some(data.len()),
    }
}

fn is_image(media_type: &str) -> bool {
    media_type.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("image/"))
}

fn refused(part: &Part<'_>, message: String) -> Invalid {
    Invalid { path: part.at.path(), message, at: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_told_from_what_is_not_with_the_place() {
        for good in ["AAAA", "AA==", "AAA=", "+/9z"] {
            assert_eq!(wrong(good.as_bytes()), None, "{good}");
        }
        for (bad, at) in [
            ("AAA", 3),
            ("AA=", 3),
            ("A", 1),
            ("====", 0),
            ("A===", 1),
            ("AA==AA==", 2),
            ("AA AA", 2),
            ("AA-_", 2),
            ("AAAA\n", 4),
            ("%41%41", 0),
            ("AAé=", 2),
        ] {
            assert_eq!(wrong(bad.as_bytes()), Some(at), "{bad}");
        }
    }
}
