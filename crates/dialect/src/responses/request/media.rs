//! Images, files and sounds of a Responses request. A provider's own file id is not portable and has no canonical form.

use crate::json::{Invalid, Reader};
use crate::turn::{Body, File, FileSource, Image, Text};
use std::borrow::Cow;

fn begins(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

fn is_remote(url: &str) -> bool {
    begins(url, "http://") || begins(url, "https://")
}

/// `data:image/png;base64,AAAA`, of which other parameters may stand before `base64`: the media type and the data.
fn data_url(url: Text<'_>) -> Result<(Text<'_>, Text<'_>), &'static str> {
    let (head, data) = url.split_once(',').ok_or("a data: URL without a comma")?;
    let (media_type, encoding) = head.get(5..).unwrap_or_default().split_once(';').unwrap_or_default();
    let is_base64 = encoding.rsplit(';').next().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
    if !is_base64 || media_type.is_empty() {
        return Err("expected data:<media type>;base64,<data>");
    }
    let media_type = Cow::Owned(media_type.to_ascii_lowercase());
    let start = url.len() - data.len();
    Ok((media_type, behind(url, start)))
}

fn behind(text: Text<'_>, start: usize) -> Text<'_> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(start..).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.drain(..start.min(text.len()));
            Cow::Owned(text)
        }
    }
}

/// The image at an address. The error says what is wrong with the address.
pub(super) fn image(url: Text<'_>) -> Result<Body<'_>, &'static str> {
    if is_remote(&url) {
        return Ok(Body::Image(Image::Url(url)));
    }
    if !begins(&url, "data:") {
        return Err("expected an http(s) or a data: URL");
    }
    data_url(url).map(|(media_type, data)| Body::Image(Image::Data { media_type, data }))
}

/// A file whose bytes are here, as a data: URL or as bare base 64. The error says what is wrong with them.
pub(super) fn file<'a>(data: Text<'a>, name: Option<Text<'a>>) -> Result<Body<'a>, &'static str> {
    let (media_type, data) = if begins(&data, "data:") {
        let (media_type, data) = data_url(data)?;
        (Some(media_type), data)
    } else {
        (name.as_deref().and_then(by_name).map(Cow::Borrowed), data)
    };
    Ok(Body::File(File { media_type, name, source: FileSource::Data(data) }))
}

/// A file at an address.
pub(super) fn remote_file<'a>(url: Text<'a>, name: Option<Text<'a>>) -> Result<Body<'a>, &'static str> {
    if !is_remote(&url) {
        return Err("expected an http(s) URL");
    }
    let media_type = name.as_deref().and_then(by_name).map(Cow::Borrowed);
    Ok(Body::File(File { media_type, name, source: FileSource::Url(url) }))
}

fn by_name(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    match end.to_ascii_lowercase().as_str() {
        "pdf" => Some("application/pdf"),
        "txt" => Some("text/plain"),
        "md" => Some("text/markdown"),
        "csv" => Some("text/csv"),
        "json" => Some("application/json"),
        _ => None,
    }
}

/// The inside of an `input_audio` part.
pub(super) fn audio<'a>(r: &mut Reader<'a>) -> Result<Body<'a>, Invalid> {
    let (mut data, mut format) = (None, None);
    r.object::<Invalid>(|r, key| {
        match key {
            "data" => data = Some(r.string()?),
            "format" => format = Some(r.string()?),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    let (Some(data), Some(format)) = (data, format) else {
        return Err(r.fail("expected an object with the strings `data` and `format`"));
    };
    let media_type = match format.as_ref() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    };
    Ok(Body::File(File { media_type: Some(media_type.into()), name: None, source: FileSource::Data(data) }))
}
