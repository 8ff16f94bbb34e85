//! The parts of a content in canonical form.

use super::fields::{self, BLOB, CALL, DATA, FILE, Hints, PART, missing};
use super::results::{Open, response};
use crate::gemini::proof::{self, Proof};
use crate::gemini::sentinel::is_sentinel;
use crate::json::{Invalid, Kind, Reader};
use crate::remote::is_http;
use crate::turn::{Body, File, FileSource, Image, Text};
use std::borrow::Cow;

/// Where a part stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The content's index.
    pub(super) content: u32,
    /// The part's index.
    pub(super) part: u32,
}

/// One part as it was read.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    /// What it says; a part with nothing but a signature is an empty text.
    pub(super) body: Body<'a>,
    /// What its signature holds, if that says anything.
    pub(super) proof: Option<Proof>,
    /// What tells whose result it is, if it is one.
    pub(super) open: Option<Open<'a>>,
}

const NAME: &str = "contents[].parts[].";

/// Reads a part.
pub(super) fn part<'a>(r: &mut Reader<'a>, place: Place, hints: &mut Hints) -> Result<Decoded<'a>, Invalid> {
    let (mut body, mut unknown, mut signature, mut open, mut thought) = (None, None, None, None, false);
    fields::object(r, PART, |r, key| {
        match key {
            "text" => body = Some(Body::Text(r.string()?)),
            "thought" => thought = r.bool()?,
            "thoughtSignature" => {
                let state = r.string()?;
                signature = (!state.is_empty() && !is_sentinel(&state)).then(|| proof::read(&state));
            }
            "inlineData" => body = Some(inline(r, hints)?),
            "fileData" => body = Some(file(r, hints)?),
            "functionCall" => body = Some(call(r, place, hints)?),
            "functionResponse" => {
                let (result, whose) = response(r, place, hints)?;
                (body, open) = (Some(result), Some(whose));
            }
            key if PART.iter().take(DATA).any(|data| *data == key) => {
                r.skip()?;
                body = Some(Body::Other(key.to_owned()));
            }
            "videoMetadata" | "mediaResolution" | "partMetadata" => hints.skip(r, NAME, key)?,
            other => {
                r.skip()?;
                unknown = Some(other.to_owned());
            }
        }
        Ok(())
    })?;
    let body = match (body, unknown) {
        (Some(Body::Text(text)), _) if thought => Body::Thinking { text, signature: None },
        (Some(body), unknown) => {
            if let Some(unknown) = unknown {
                hints.name(&format!("{NAME}{unknown}"));
            }
            body
        }
        (None, Some(unknown)) => Body::Other(unknown),
        (None, None) => Body::Text(Text::default()),
    };
    Ok(Decoded { body, proof: signature, open })
}

/// Base 64 in the standard alphabet with its padding, which is what other providers take; Python's SDK writes the
/// alphabet for addresses.
fn standard(data: Text<'_>) -> Text<'_> {
    let padding = match data.len() % 4 {
        2 => "==",
        3 => "=",
        _ => "",
    };
    if padding.is_empty() && memchr::memchr2(b'-', b'_', data.as_bytes()).is_none() {
        return data;
    }
    Cow::Owned(data.replace('-', "+").replace('_', "/") + padding)
}

fn inline<'a>(r: &mut Reader<'a>, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let (mut media_type, mut data, mut name) = (None, None, None);
    fields::object(r, BLOB, |r, key| {
        match key {
            "mimeType" => media_type = Some(r.string()?),
            "data" => data = Some(standard(r.string()?)),
            "displayName" => name = Some(r.string()?),
            other => hints.skip(r, "contents[].parts[].inlineData.", other)?,
        }
        Ok(())
    })?;
    match (media_type, data) {
        (Some(media_type), Some(data)) if is_image(&media_type) => Ok(Body::Image(Image::Data { media_type, data })),
        (Some(media_type), Some(data)) => {
            Ok(Body::File(File { media_type: Some(media_type), name, source: FileSource::Data(data) }))
        }
        (None, _) => Err(missing(r, "mimeType")),
        (Some(_), None) => Err(missing(r, "data")),
    }
}

fn is_image(media_type: &str) -> bool {
    media_type.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("image/"))
}

/// Hosts whose addresses only Gemini can read: its own store of files, and videos that it knows by their page.
const OWN_HOSTS: [&str; 5] =
    ["generativelanguage.googleapis.com", "www.youtube.com", "youtube.com", "m.youtube.com", "youtu.be"];

fn file<'a>(r: &mut Reader<'a>, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let (mut media_type, mut uri, mut name) = (None, None, None);
    fields::object(r, FILE, |r, key| {
        match key {
            "mimeType" => media_type = Some(r.string()?).filter(|said| !said.is_empty()),
            "fileUri" => uri = Some(r.string()?),
            "displayName" => name = Some(r.string()?),
            other => hints.skip(r, "contents[].parts[].fileData.", other)?,
        }
        Ok(())
    })?;
    let Some(uri) = uri else { return Err(missing(r, "fileUri")) };
    let host = uri.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    if !is_http(&uri) || OWN_HOSTS.iter().any(|own| host.eq_ignore_ascii_case(own)) {
        return Ok(Body::Other("fileData".into()));
    }
    if media_type.as_deref().is_some_and(is_image) {
        return Ok(Body::Image(Image::Url(uri)));
    }
    Ok(Body::File(File { media_type, name, source: FileSource::Url(uri) }))
}

/// A call; one without an id gets one from its place, which is the same whenever the same body comes.
fn call<'a>(r: &mut Reader<'a>, place: Place, hints: &mut Hints) -> Result<Body<'a>, Invalid> {
    let (mut id, mut name, mut arguments) = (None, None, "");
    fields::object(r, CALL, |r, key| {
        match key {
            "id" => id = Some(r.string()?).filter(|id| !id.is_empty()),
            "name" => name = Some(r.string()?),
            "args" if r.kind()? == Kind::Object => arguments = r.raw()?,
            other => hints.skip(r, "contents[].parts[].functionCall.", other)?,
        }
        Ok(())
    })?;
    let Some(name) = name else { return Err(missing(r, "name")) };
    let id = id.unwrap_or_else(|| Cow::Owned(format!("call_{}_{}", place.content, place.part)));
    Ok(Body::ToolCall { id, name, arguments: Cow::Borrowed(arguments) })
}
