//! Images, documents and sounds in a Chat request. Chat takes a PDF as a data: URL, a sound as WAV or MP3, and a text as a
//! text; what it has no form for is refused.

use super::request_encode::refuse;
use super::request_encode_message::unfit;
use crate::document::{essence, is_pdf, plain};
use crate::json::{Array, Invalid};
use crate::turn::{Body, File, FileSource, Image, Part};

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
    match essence(file) {
        Some("audio/wav" | "audio/x-wav" | "audio/wave") => sound(parts, data, "wav"),
        Some("audio/mp3" | "audio/mpeg") => sound(parts, data, "mp3"),
        _ if is_pdf(file) => pdf(parts, file, data),
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
