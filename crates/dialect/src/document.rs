//! What kind of file a turn carries, by its media type, or by its name and its bytes where the client did not say.

use crate::turn::{File, FileSource};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// What a PDF begins with, in base 64.
const PDF: &str = "JVBERi";

/// The media type without its parameters.
pub(crate) fn essence<'f>(file: &'f File<'_>) -> Option<&'f str> {
    file.media_type.as_deref().map(|kind| kind.split(';').next().unwrap_or(kind).trim())
}

/// The text of a file that is text.
pub(crate) fn plain<'f>(file: &'f File<'_>) -> Option<Cow<'f, str>> {
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

/// The file is a PDF, as far as can be told without fetching it.
pub(crate) fn is_pdf(file: &File<'_>) -> bool {
    match essence(file) {
        Some(kind) => kind == "application/pdf",
        None => {
            let named = file.name.as_deref().is_some_and(|name| name.to_ascii_lowercase().ends_with(".pdf"));
            named || matches!(&file.source, FileSource::Data(data) if data.starts_with(PDF))
        }
    }
}
