//! Parts of what the user, or a tool, gives the model: texts, images and files.

use super::refuse;
use crate::document::{essence, is_pdf};
use crate::json::{Array, Invalid};
use crate::turn::{Body, File, FileSource, Image, Part};

pub(super) fn text_part(parts: &mut Array<'_>, kind: &str, text: &str) {
    let mut part = parts.object();
    part.string("type", kind);
    part.string("text", text);
}

/// A part of what the user, or a tool, gives the model.
pub(super) fn input_part(parts: &mut Array<'_>, part: &Part<'_>) -> Result<(), Invalid> {
    match &part.body {
        Body::Text(text) => text_part(parts, "input_text", text),
        Body::Image(image) => {
            let mut out = parts.object();
            out.string("type", "input_image");
            out.string("detail", "auto");
            match image {
                Image::Url(url) => out.string("image_url", url),
                Image::Data { media_type, data } => out.string("image_url", &data_url(media_type, data)),
            }
        }
        Body::File(file) => return file_part(parts, part, file),
        Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => return Err(unfit(part)),
    }
    Ok(())
}

fn file_part(parts: &mut Array<'_>, part: &Part<'_>, file: &File<'_>) -> Result<(), Invalid> {
    let media_type = if is_pdf(file) { Some("application/pdf") } else { essence(file) };
    if let Some(other) = media_type.filter(|kind| kind.starts_with("audio/") || kind.starts_with("video/")) {
        return Err(refuse(part.at.path(), &format!("a file of the type `{other}`")));
    }
    match &file.source {
        FileSource::Url(url) => {
            let mut out = parts.object();
            out.string("type", "input_file");
            out.string("file_url", url);
        }
        FileSource::Data(data) => {
            let mut out = parts.object();
            out.string("type", "input_file");
            out.string("filename", file.name.as_deref().unwrap_or_else(|| default_name(media_type)));
            out.string("file_data", &data_url(media_type.unwrap_or("application/octet-stream"), data));
        }
        // Text needs no form of its own, and every server takes it.
        FileSource::Plain(text) => text_part(parts, "input_text", text),
    }
    Ok(())
}

/// The API asks for a name, and tells the form of the file by it.
fn default_name(media_type: Option<&str>) -> &'static str {
    match media_type {
        Some("application/pdf") => "document.pdf",
        Some("text/plain") => "document.txt",
        Some("text/markdown") => "document.md",
        Some("text/csv") => "document.csv",
        Some("application/json") => "document.json",
        Some(_) | None => "document",
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

pub(super) fn unfit(part: &Part<'_>) -> Invalid {
    refuse(part.at.path(), &part.body.misplaced())
}
