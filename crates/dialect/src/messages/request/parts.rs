//! Content blocks of a Messages request as canonical parts. The order of a block's fields is free, so a block is read
//! whole and judged by its type afterwards.

use super::hints::Hints;
use crate::envelope;
use crate::json::{Invalid, Kind, Reader};
use crate::messages::nothing::says_nothing;
use crate::turn::{At, Body, File, FileSource, Image, Part, Text};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// Reads `content`: a string is one text part. `place` tells the part's place from its index.
pub(super) fn content<'a>(
    r: &mut Reader<'a>,
    whole: At,
    place: &dyn Fn(u32) -> At,
    hints: &mut Hints,
) -> Result<Vec<Part<'a>>, Invalid> {
    match r.kind()? {
        Kind::Null => r.null().map(|_| Vec::new()),
        Kind::String => {
            let text = r.string()?;
            Ok(if text.is_empty() { Vec::new() } else { vec![Part { body: Body::Text(text), at: whole, cache: None }] })
        }
        Kind::Array => {
            let mut parts = Vec::new();
            r.array::<Invalid>(|r, index| {
                parts.push(block(r, place(number(index)), hints)?);
                Ok(())
            })?;
            Ok(parts)
        }
        Kind::Object | Kind::Number | Kind::Bool => Err(r.fail("expected a string or an array of content blocks")),
    }
}

/// An index as the turn keeps it; bodies are far too small for more.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Fields<'a> {
    kind: Text<'a>,
    text: Option<Text<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    title: Option<Text<'a>>,
    input: Option<&'a str>,
    tool_use_id: Option<Text<'a>>,
    content: Option<Reader<'a>>,
    is_error: bool,
    source: Option<Reader<'a>>,
    thinking: Option<Text<'a>>,
    signature: Option<Text<'a>>,
    data: Option<Text<'a>>,
    cache: Option<&'a str>,
    /// Other fields that say something.
    other: Vec<Text<'a>>,
}

fn block<'a>(r: &mut Reader<'a>, at: At, hints: &mut Hints) -> Result<Part<'a>, Invalid> {
    let mut fields = Fields::default();
    r.object::<Invalid>(|r, key| field(r, key, &mut fields))?;
    let body = body(r, &mut fields, at, hints)?;
    if !matches!(body, Body::Other(_)) {
        let place = place_of(at);
        for key in &fields.other {
            hints.name(format!("{place}{key}"));
        }
    }
    Ok(Part { body, at, cache: fields.cache })
}

/// The place of a block's fields, as hints name it.
fn place_of(at: At) -> &'static str {
    match at {
        At::System => "system[].",
        At::Inner { .. } => "messages[].content[].content[].",
        At::Message(_) | At::Content { .. } | At::Call { .. } => "messages[].content[].",
        // Places of other dialects.
        At::Instructions | At::Item(_) | At::ItemContent { .. } | At::ItemOutput { .. } => "",
        // Never in a Messages body.
        At::Contents(_) | At::ContentsPart { .. } | At::ContentsInner { .. } => "contents[].parts[].",
    }
}

/// Takes a string; a value of another kind counts as not given, for blocks that use the name otherwise.
fn lax<'a>(r: &mut Reader<'a>) -> Result<Option<Text<'a>>, Invalid> {
    if r.kind()? == Kind::String { r.string().map(Some) } else { r.skip().map(|_| None) }
}

fn field<'a>(r: &mut Reader<'a>, key: &str, fields: &mut Fields<'a>) -> Result<(), Invalid> {
    match key {
        "type" => fields.kind = r.string()?,
        "text" => fields.text = lax(r)?,
        "id" => fields.id = lax(r)?,
        "name" => fields.name = lax(r)?,
        "title" => fields.title = lax(r)?,
        "input" => fields.input = Some(r.raw()?).filter(|raw| *raw != "null"),
        "tool_use_id" => fields.tool_use_id = lax(r)?,
        "content" => {
            fields.content = Some(r.clone());
            r.skip()?;
        }
        "is_error" => {
            if r.kind()? == Kind::Bool {
                fields.is_error = r.bool()?;
            } else {
                r.skip()?;
            }
        }
        "source" => {
            fields.source = Some(r.clone());
            r.skip()?;
        }
        "thinking" => fields.thinking = lax(r)?,
        "signature" => fields.signature = lax(r)?.filter(|signature| !signature.is_empty()),
        "data" => fields.data = lax(r)?,
        "cache_control" => fields.cache = Some(r.raw()?).filter(|raw| *raw != "null"),
        other => {
            if !says_nothing(r.raw()?) {
                fields.other.push(Cow::Owned(other.to_owned()));
            }
        }
    }
    Ok(())
}

fn body<'a>(r: &Reader<'a>, fields: &mut Fields<'a>, at: At, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let need = |field: Option<Text<'a>>, name: &str| {
        field.ok_or_else(|| Invalid {
            path: format!("{}.{name}", at.path()),
            message: "expected a string".into(),
            at: r.position(),
        })
    };
    let other = |kind: &str| Body::Other(kind.to_owned());
    Ok(match &*fields.kind {
        "text" => Body::Text(need(fields.text.take(), "text")?),
        "image" => match fields.source.take() {
            Some(mut source) => image(&mut source, at, hints)?,
            None => return Err(r.fail("an image without `source`")),
        },
        "document" => match fields.source.take() {
            Some(mut source) => document(&mut source, fields.title.take(), at, hints)?,
            None => return Err(r.fail("a document without `source`")),
        },
        // Inside a result nothing but texts, images and documents has a canonical form.
        kind if matches!(at, At::Inner { .. }) => other(kind),
        "tool_use" => Body::ToolCall {
            id: need(fields.id.take(), "id")?,
            name: need(fields.name.take(), "name")?,
            arguments: Cow::Borrowed(fields.input.unwrap_or_default()),
        },
        "tool_result" => {
            let content = match (fields.content.take(), at) {
                (Some(mut inside), At::Content { message, part }) => {
                    content(&mut inside, at, &|inner| At::Inner { message, part, inner }, hints)?
                }
                (Some(_) | None, _) => Vec::new(),
            };
            Body::ToolResult { id: need(fields.tool_use_id.take(), "tool_use_id")?, content, is_error: fields.is_error }
        }
        "thinking" => {
            let signature = fields.signature.take().map(sealed);
            Body::Thinking { text: need(fields.thinking.take(), "thinking")?, signature }
        }
        "redacted_thinking" => Body::RedactedThinking(sealed(need(fields.data.take(), "data")?)),
        kind => other(kind),
    })
}

/// A proof in the form of the envelope.
fn sealed(proof: Text<'_>) -> Text<'_> {
    match proof {
        Cow::Borrowed(proof) => envelope::seal(Dialect::Messages, proof),
        Cow::Owned(proof) => Cow::Owned(envelope::seal(Dialect::Messages, &proof).into_owned()),
    }
}

/// Where the bytes of an image or a document are.
#[derive(Default)]
struct Source<'a> {
    kind: Text<'a>,
    media_type: Option<Text<'a>>,
    data: Option<Text<'a>>,
    url: Option<Text<'a>>,
    /// Other fields that say something, by the names of hints.
    rest: Vec<String>,
}

fn source<'a>(r: &mut Reader<'a>, at: At) -> Result<Source<'a>, Invalid> {
    let mut source = Source::default();
    r.object::<Invalid>(|r, key| {
        match key {
            "type" => source.kind = r.string()?,
            "media_type" => source.media_type = lax(r)?,
            "data" => source.data = lax(r)?,
            "url" => source.url = lax(r)?,
            other => {
                if !says_nothing(r.raw()?) {
                    source.rest.push(format!("{}source.{other}", place_of(at)));
                }
            }
        }
        Ok(())
    })?;
    Ok(source)
}

fn image<'a>(r: &mut Reader<'a>, at: At, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let Source { kind, media_type, data, url, rest } = source(r, at)?;
    let image = match (&*kind, media_type, data, url) {
        ("base64", Some(media_type), Some(data), _) => Image::Data { media_type, data },
        ("url", _, _, Some(url)) => Image::Url(url),
        ("base64", _, _, _) => return Err(r.fail("a base64 source needs the strings `media_type` and `data`")),
        ("url", _, _, None) => return Err(r.fail("a url source needs the string `url`")),
        (other, _, _, _) => return Ok(Body::Other(format!("image source {other}"))),
    };
    rest.into_iter().for_each(|name| hints.name(name));
    Ok(Body::Image(image))
}

fn document<'a>(r: &mut Reader<'a>, name: Option<Text<'a>>, at: At, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let Source { kind, media_type, data, url, rest } = source(r, at)?;
    let (media_type, source) = match (&*kind, media_type, data, url) {
        ("base64", Some(media_type), Some(data), _) => (Some(media_type), FileSource::Data(data)),
        ("text", media_type, Some(text), _) => (media_type, FileSource::Plain(text)),
        ("url", media_type, _, Some(url)) => (media_type, FileSource::Url(url)),
        ("base64", _, _, _) => return Err(r.fail("a base64 source needs the strings `media_type` and `data`")),
        ("text", _, None, _) => return Err(r.fail("a text source needs the string `data`")),
        ("url", _, _, None) => return Err(r.fail("a url source needs the string `url`")),
        // A file of the provider's own, or content of blocks.
        (other, _, _, _) => return Ok(Body::Other(format!("document source {other}"))),
    };
    rest.into_iter().for_each(|name| hints.name(name));
    Ok(Body::File(File { media_type, name, source }))
}
