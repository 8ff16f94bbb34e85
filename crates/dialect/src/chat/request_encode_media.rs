//! Images, documents and sounds in a Chat request. Chat takes a PDF as a data: URL, a sound as WAV or MP3, and a text as a
//! text; what it has no form for is refused.

use super::request_encode::refuse;
use super::request_encode_message::unfit;
use crate::json::{Array, Invalid};
use crate::turn::{Body, File, FileSource, Image, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// What a PDF begins with, in base 64.
const PDF: &str = "JVBERi";

pub(super) fn text_part(parts: &mut Array<'_>, text: &str) {
    let mut part = parts.object();
    part.string("type", "text");
    part.string("text", text);
}

/// Writes an image or a file.
pub(super) fn media_part(parts: &mut Array<'_>, part: &Part<'_>) -> Result<(), Invalid> {
    match &part.body {
        Body::Image(image) => {
            image_part(parts, image);
            Ok(())
        }
        Body::File(file) => file_part(parts, file).map_err(|what| refuse(part.at.path(), &what)),
        Body::Text(_)
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => Err(unfit(part)),
    }
}

fn image_part(parts: &mut Array<'_>, image: &Image<'_>) {
    let mut part = parts.object();
    part.string("type", "image_url");
    let mut inner = part.object("image_url");
    match image {
        Image::Url(url) => inner.string("url", url),
        Image::Data { media_type, data } => inner.string("url", &format!("data:{media_type};base64,{data}")),
    }
}

/// The media type without its parameters.
fn essence<'f>(file: &'f File<'_>) -> Option<&'f str> {
    file.media_type.as_deref().map(|kind| kind.split(';').next().unwrap_or(kind).trim())
}

/// The text of a file that is text.
pub(super) fn plain<'f>(file: &'f File<'_>) -> Option<Cow<'f, str>> {
    match &file.source {
        FileSource::Plain(text) => Some(Cow::Borrowed(text)),
        FileSource::Data(data) => {
            let kind = essence(file)?;
            if !(kind.starts_with("text/") || kind == "application/json") {
                return None;
            }
            let bytes = STANDARD.decode(data.as_bytes()).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
        FileSource::Url(_) => None,
    }
}

/// The error says what cannot be carried.
fn file_part(parts: &mut Array<'_>, file: &File<'_>) -> Result<(), String> {
    if let Some(text) = plain(file) {
        text_part(parts, &text);
        return Ok(());
    }
    let data = match &file.source {
        FileSource::Data(data) => data,
        FileSource::Url(_) => return Err("a file by its address".into()),
        FileSource::Plain(_) => return Err("this text".into()),
    };
    let named_pdf = file.name.as_deref().is_some_and(|name| name.to_ascii_lowercase().ends_with(".pdf"));
    match essence(file) {
        Some("audio/wav" | "audio/x-wav" | "audio/wave") => sound(parts, data, "wav"),
        Some("audio/mp3" | "audio/mpeg") => sound(parts, data, "mp3"),
        Some("application/pdf") => pdf(parts, file, data),
        None if named_pdf || data.starts_with(PDF) => pdf(parts, file, data),
        Some(other) => return Err(format!("a file of the type `{other}`")),
        None => return Err("a file whose type is not known".into()),
    }
    Ok(())
}

fn sound(parts: &mut Array<'_>, data: &str, format: &str) {
    let mut part = parts.object();
    part.string("type", "input_audio");
    let mut inner = part.object("input_audio");
    inner.string("data", data);
    inner.string("format", format);
}

fn pdf(parts: &mut Array<'_>, file: &File<'_>, data: &str) {
    let mut part = parts.object();
    part.string("type", "file");
    let mut inner = part.object("file");
    inner.string("filename", file.name.as_deref().unwrap_or("document.pdf"));
    inner.string("file_data", &format!("data:application/pdf;base64,{data}"));
}
