//! Images, files and sounds of a Responses request. A provider's own file id is not portable and has no canonical form.

use crate::chat::request::{begins, data_url};
use crate::json::{Invalid, Reader};
use crate::remote::is_http;
use crate::turn::{Body, File, FileSource, Image, Text};
use std::borrow::Cow;

/// The image at an address. The error says what is wrong with the address.
pub(super) fn image(url: Text<'_>) -> Result<Body<'_>, &'static str> {
    if is_http(&url) {
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
    if !is_http(&url) {
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
    let media_type = format!("audio/{}", format.to_ascii_lowercase());
    Ok(Body::File(File { media_type: Some(media_type.into()), name: None, source: FileSource::Data(data) }))
}
