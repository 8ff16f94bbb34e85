//! The parts of a Chat message's content: texts, images, documents and sounds.

use super::decode::{hint, says_nothing};
use super::decode_tools::named;
use super::missing;
use crate::json::{Invalid, Kind, Reader};
use crate::remote::is_http;
use crate::turn::{At, Body, File, FileSource, Image, Part, Text};
use std::borrow::Cow;

pub(super) fn content_part<'a>(r: &mut Reader<'a>, at: At, hints: &mut Vec<String>) -> Result<Part<'a>, Invalid> {
    let mut kind: Option<Text<'a>> = None;
    let (mut text, mut refusal, mut url, mut cache) = (None, None, None, None);
    let (mut audio, mut file) = (None, None);
    r.object(|r, key| {
        match key {
            "type" => kind = Some(r.string()?),
            "text" if r.kind()? == Kind::String => text = Some(r.string()?),
            "refusal" if r.kind()? == Kind::String => refusal = Some(r.string()?),
            // Some clients give the address itself.
            "image_url" if r.kind()? == Kind::String => url = Some(r.string()?),
            "image_url" if r.kind()? == Kind::Object => r.object(|r, key| {
                match key {
                    "url" => url = Some(r.string()?),
                    "detail" => {
                        if r.raw()? != "\"auto\"" {
                            hint(hints, "messages[].content[].image_url.detail");
                        }
                    }
                    _ => named(r, hints, "messages[].content[].image_url.", key)?,
                }
                Ok::<(), Invalid>(())
            })?,
            "cache_control" => cache = Some(r.raw()?).filter(|raw| !says_nothing(raw)),
            "prompt_cache_breakpoint" if r.kind()? == Kind::Object => {
                cache = breakpoint(r, hints, "messages[].content[].")?.or(cache)
            }
            "input_audio" if r.kind()? == Kind::Object => audio = Some(read_audio(r, hints)?),
            "file" if r.kind()? == Kind::Object => file = Some(read_file(r, hints)?),
            "input_audio" | "file" | "video_url" => {
                r.skip()?;
            }
            _ => named(r, hints, "messages[].content[].", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let Some(kind) = kind else { return Err(missing(r, "type")) };
    let body = match kind.as_ref() {
        "text" => Body::Text(text.ok_or_else(|| missing(r, "text"))?),
        "refusal" => Body::Refusal(refusal.ok_or_else(|| missing(r, "refusal"))?),
        "image_url" => Body::Image(image(r, url.ok_or_else(|| missing(r, "image_url.url"))?)?),
        "input_audio" => audio.ok_or_else(|| missing(r, "input_audio"))?,
        "file" => file.ok_or_else(|| missing(r, "file"))?,
        other => Body::Other(other.to_owned()),
    };
    Ok(Part { body, at, cache })
}

/// OpenAI's mark of where a prompt may be cached, in the form that a turn's marks have.
/// `place` is that of the part's fields, as hints name it.
pub(crate) fn breakpoint<'a>(
    r: &mut Reader<'a>,
    hints: &mut Vec<String>,
    place: &str,
) -> Result<Option<&'a str>, Invalid> {
    let (mut explicit, mut hour) = (false, false);
    r.object(|r, key| {
        match (key, r.clone().raw()?) {
            ("mode", "\"explicit\"") => explicit = true,
            ("ttl", "\"1h\"") => hour = true,
            // What it is without saying so.
            ("ttl", "\"5m\"") => {}
            _ => return named(r, hints, &format!("{place}prompt_cache_breakpoint."), key),
        }
        r.skip().map(|_| ())
    })?;
    Ok(match (explicit, hour) {
        (true, false) => Some(r#"{"type":"ephemeral"}"#),
        (true, true) => Some(r#"{"type":"ephemeral","ttl":"1h"}"#),
        (false, _) => None,
    })
}

/// A sound.
fn read_audio<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Body<'a>, Invalid> {
    let (mut data, mut format): (Option<Text<'a>>, Option<Text<'a>>) = (None, None);
    r.object(|r, key| {
        match key {
            "data" => data = Some(r.string()?),
            "format" => format = Some(r.string()?),
            _ => named(r, hints, "messages[].content[].input_audio.", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let data = data.ok_or_else(|| missing(r, "data"))?;
    let format = format.ok_or_else(|| missing(r, "format"))?;
    let media_type = Some(format!("audio/{}", format.to_ascii_lowercase()).into());
    Ok(Body::File(File { media_type, name: None, source: FileSource::Data(data) }))
}

/// A document, whose bytes are in a data: URL. One that the provider keeps is not portable.
fn read_file<'a>(r: &mut Reader<'a>, hints: &mut Vec<String>) -> Result<Body<'a>, Invalid> {
    let (mut data, mut name, mut kept): (Option<Text<'a>>, _, bool) = (None, None, false);
    r.object(|r, key| {
        match key {
            "file_data" => data = r.optional_string()?,
            "filename" => name = r.optional_string()?,
            "file_id" => kept = r.optional_string()?.is_some(),
            _ => named(r, hints, "messages[].content[].file.", key)?,
        }
        Ok::<(), Invalid>(())
    })?;
    let Some(data) = data else {
        return if kept { Ok(Body::Other("file with a file_id".into())) } else { Err(missing(r, "file_data")) };
    };
    let (media_type, data) = if begins(&data, "data:") {
        let (media_type, data) = data_url(data).map_err(|what| {
            let mut error = r.fail(what);
            error.path.push_str(".file_data");
            error
        })?;
        (Some(media_type), data)
    } else {
        // The bytes alone; what they are shows by the name or by themselves.
        (None, data)
    };
    Ok(Body::File(File { media_type, name, source: FileSource::Data(data) }))
}

pub(crate) fn begins(url: &str, start: &str) -> bool {
    url.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

fn image<'a>(r: &Reader<'a>, url: Text<'a>) -> Result<Image<'a>, Invalid> {
    if is_http(&url) {
        return Ok(Image::Url(url));
    }
    let wrong = |what: &str| {
        let mut error = r.fail(what);
        error.path.push_str(".image_url.url");
        error
    };
    if !begins(&url, "data:") {
        return Err(wrong("expected an http(s) or a data: URL"));
    }
    let (media_type, data) = data_url(url).map_err(wrong)?;
    Ok(Image::Data { media_type, data })
}

/// The media type and the base 64 of `data:image/png;base64,AAAA`; other parameters may stand before `base64`.
pub(crate) fn data_url(url: Text<'_>) -> Result<(Text<'_>, Text<'_>), &'static str> {
    let (head, data) = url.split_once(',').ok_or("a data: URL without a comma")?;
    let head = head.get(5..).unwrap_or_default();
    let (media_type, encoding) = head.split_once(';').unwrap_or((head, ""));
    let is_base64 = encoding.rsplit(';').next().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
    if !is_base64 || media_type.is_empty() {
        return Err("expected data:<media type>;base64,<data>");
    }
    let media_type = Cow::Owned(media_type.to_ascii_lowercase());
    let start = url.len() - data.len();
    let data = match url {
        Cow::Borrowed(url) => Cow::Borrowed(url.get(start..).unwrap_or_default()),
        Cow::Owned(mut url) => {
            url.drain(..start);
            Cow::Owned(url)
        }
    };
    Ok((media_type, data))
}
