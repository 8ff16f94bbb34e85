//! Images and files that a turn has by address only. Some upstreams want the bytes: the gateway fetches them and puts
//! them in the address's place, before the turn is written for such an upstream.

use crate::turn::{Body, File, FileSource, Image, Part, Text, Turn};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The http and https addresses of the images and files in a turn, those in tool results too; each once, in the order of
/// the conversation.
pub fn remote_urls<'t>(turn: &'t Turn<'_>) -> Vec<&'t str> {
    let (mut urls, mut seen) = (Vec::new(), BTreeSet::new());
    for part in turn.messages.iter().flat_map(|message| &message.parts) {
        let whole = match &part.body {
            Body::ToolResult { content, .. } => content.as_slice(),
            Body::Text(_)
            | Body::Image(_)
            | Body::File(_)
            | Body::ToolCall { .. }
            | Body::Thinking { .. }
            | Body::RedactedThinking(_)
            | Body::Refusal(_)
            | Body::Other(_) => std::slice::from_ref(part),
        };
        for url in whole.iter().filter_map(|part| address(&part.body)) {
            if is_http(url) && seen.insert(url) {
                urls.push(url);
            }
        }
    }
    urls
}

/// Puts fetched bytes wherever the turn has this address: the media type as `image/png`, the bytes in base 64. A file
/// keeps the media type that its client gave, and gets this one only where there was none. Without effect where the
/// address is not.
pub fn put_bytes<'a>(turn: &mut Turn<'a>, url: &str, media_type: &'a str, base64: &'a str) {
    for part in turn.messages.iter_mut().flat_map(|message| &mut message.parts) {
        match &mut part.body {
            Body::ToolResult { content, .. } => content.iter_mut().for_each(|part| put(part, url, media_type, base64)),
            Body::Image(_) | Body::File(_) => put(part, url, media_type, base64),
            Body::Text(_)
            | Body::ToolCall { .. }
            | Body::Thinking { .. }
            | Body::RedactedThinking(_)
            | Body::Refusal(_)
            | Body::Other(_) => {}
        }
    }
}

fn put<'a>(part: &mut Part<'a>, url: &str, media_type: &'a str, base64: &'a str) {
    if address(&part.body) != Some(url) {
        return;
    }
    let data: Text<'a> = Cow::Borrowed(base64);
    match &mut part.body {
        Body::Image(image) => *image = Image::Data { media_type: Cow::Borrowed(media_type), data },
        Body::File(file) => {
            file.media_type.get_or_insert(Cow::Borrowed(media_type));
            file.source = FileSource::Data(data);
        }
        Body::Text(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => {}
    }
}

fn address<'t>(body: &'t Body<'_>) -> Option<&'t str> {
    match body {
        Body::Image(Image::Url(url)) | Body::File(File { source: FileSource::Url(url), .. }) => Some(url),
        Body::Image(Image::Data { .. })
        | Body::File(File { source: FileSource::Data(_) | FileSource::Plain(_), .. })
        | Body::Text(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => None,
    }
}

/// An http or https address, by its scheme in any case.
pub fn is_http(url: &str) -> bool {
    let begins = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}
