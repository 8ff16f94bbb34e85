//! Images and files that a turn has by address only. Some upstreams want the bytes: the gateway fetches them and puts
//! them in the address's place, before the turn is written for such an upstream.

use crate::turn::{At, Body, File, FileSource, Image, Part, Text, Turn};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The http and https addresses of the images and files in a turn, those in tool results too; each once, in the order of
/// the conversation, with where it first stands.
pub fn remote_urls<'t>(turn: &'t Turn<'_>) -> Vec<(&'t str, At)> {
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
        for (url, at) in whole.iter().filter_map(|part| Some((address(&part.body)?, part.at))) {
            if is_http(url) && seen.insert(url) {
                urls.push((url, at));
            }
        }
    }
    urls
}

/// Puts fetched bytes wherever the turn has this address: the media type as `image/png`, the bytes in base 64. It is
/// the type that the bytes have, whatever a client said of its file. Without effect where the address is not.
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
            file.media_type = Some(Cow::Borrowed(media_type));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::{At, Message, Role};

    fn part(body: Body<'_>) -> Part<'_> {
        Part { body, at: At::Message(0), cache: None }
    }

    fn image(url: &str) -> Body<'_> {
        Body::Image(Image::Url(url.into()))
    }

    fn file<'a>(url: &'a str, media_type: Option<&'a str>) -> Body<'a> {
        Body::File(File { media_type: media_type.map(Into::into), name: None, source: FileSource::Url(url.into()) })
    }

    #[test]
    fn every_address_is_told_once_and_replaced_wherever_it_stands() {
        let result = Body::ToolResult {
            id: "a".into(),
            content: vec![
                part(image("https://h/b")),
                part(Body::Text("https://h/text".into())),
                part(image("http://h/a")),
            ],
            is_error: false,
        };
        let bodies = vec![
            part(image("http://h/a")),
            part(file("HTTPS://h/c", None)),
            part(file("https://h/d", Some("application/pdf"))),
            part(result),
            part(image("data:image/png;base64,AA")),
            part(file("gs://bucket/x", None)),
        ];
        let message = Message { role: Role::User, at: At::Message(0), parts: bodies };
        let mut turn = Turn { messages: vec![message], ..Turn::default() };
        let expected = ["http://h/a", "HTTPS://h/c", "https://h/d", "https://h/b"].map(|url| (url, At::Message(0)));
        assert_eq!(remote_urls(&turn), expected);
        for url in ["http://h/a", "HTTPS://h/c", "https://h/d", "https://h/b"] {
            put_bytes(&mut turn, url, "image/png", "AAAA");
        }
        assert_eq!(remote_urls(&turn), []);
        let data = || Body::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() });
        let parts = &turn.messages[0].parts;
        assert_eq!(parts[0].body, data());
        let Body::ToolResult { content, .. } = &parts[3].body else { panic!("no result") };
        assert_eq!((&content[0].body, &content[2].body), (&data(), &data()));
        let kinds: Vec<_> = parts
            .iter()
            .filter_map(|part| {
                let Body::File(file) = &part.body else { return None };
                Some((file.media_type.as_deref(), &file.source))
            })
            .collect();
        let bytes = FileSource::Data("AAAA".into());
        assert_eq!(kinds[..2], [(Some("image/png"), &bytes), (Some("image/png"), &bytes)]);
    }
}
