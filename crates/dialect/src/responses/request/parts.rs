//! The parts of an item as canonical ones. What kind of item they are in may be known only behind them, and other kinds
//! use the same names for other things: what is wrong with a part is kept, and raised once it matters.

use super::media;
use crate::chat::request::{breakpoint, missing, named};
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Part, Text};

/// A list of parts.
#[derive(Debug, Default)]
pub(super) struct List<'a> {
    parts: Vec<Part<'a>>,
    /// What is wrong with the first wrong one.
    wrong: Option<Invalid>,
}

impl<'a> List<'a> {
    /// The parts of an item that wants parts.
    pub(super) fn parts(self) -> Result<Vec<Part<'a>>, Invalid> {
        self.wrong.map_or(Ok(self.parts), Err)
    }
}

/// Where a list stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// `content` of the item.
    Content(u32),
    /// `output` of the item.
    Output(u32),
    /// `summary` of the item.
    Summary(u32),
}

impl Of {
    fn at(self, part: usize) -> At {
        let part = part as u32;
        match self {
            Of::Content(item) => At::ItemContent { item, part },
            Of::Output(item) => At::ItemOutput { item, part },
            Of::Summary(item) => At::Item(item),
        }
    }

    fn whole(self) -> At {
        match self {
            Of::Content(item) | Of::Output(item) | Of::Summary(item) => At::Item(item),
        }
    }

    /// The place of a part's fields, as hints name it.
    fn place(self) -> &'static str {
        match self {
            Of::Content(_) => "input[].content[].",
            Of::Output(_) => "input[].output[].",
            Of::Summary(_) => "input[].summary[].",
        }
    }
}

/// Reads a string, which is one text, or parts; anything else is wrong.
pub(super) fn list<'a>(r: &mut Reader<'a>, of: Of, hints: &mut Vec<String>) -> Result<List<'a>, Invalid> {
    let mut list = List::default();
    match r.kind()? {
        Kind::Null => {
            r.null()?;
        }
        Kind::String => {
            list.parts.push(Part { body: Body::Text(r.string()?), at: of.whole(), cache: None });
        }
        Kind::Array => r.array::<Invalid>(|r, at| {
            match part(r, of.at(at), of.place(), hints)? {
                Ok(part) => list.parts.push(part),
                Err(wrong) => list.wrong = list.wrong.take().or(Some(wrong)),
            }
            Ok(())
        })?,
        Kind::Object | Kind::Number | Kind::Bool => {
            list.wrong = Some(r.fail("expected a string or an array of parts"));
            r.skip()?;
        }
    }
    Ok(list)
}

#[derive(Default)]
struct Fields<'a> {
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    image_url: Option<Text<'a>>,
    file_id: bool,
    file_data: Option<Text<'a>>,
    file_url: Option<Text<'a>>,
    filename: Option<Text<'a>>,
    audio: Option<Reader<'a>>,
    cache: Option<&'a str>,
}

fn part<'a>(
    r: &mut Reader<'a>,
    at: At,
    place: &str,
    hints: &mut Vec<String>,
) -> Result<Result<Part<'a>, Invalid>, Invalid> {
    if r.kind()? != Kind::Object {
        let wrong = r.fail("expected an object with a `type`");
        r.skip()?;
        return Ok(Err(wrong));
    }
    let mut fields = Fields::default();
    r.object(|r, key| field(r, key, &mut fields, place, hints))?;
    let cache = fields.cache;
    Ok(body(r, fields).map(|body| Part { body, at, cache }))
}

fn field<'a>(
    r: &mut Reader<'a>,
    key: &str,
    fields: &mut Fields<'a>,
    place: &str,
    hints: &mut Vec<String>,
) -> Result<(), Invalid> {
    match (key, r.kind()?) {
        ("type", Kind::String) => fields.kind = Some(r.string()?),
        ("text", Kind::String) => fields.text = Some(r.string()?),
        ("refusal", Kind::String) => fields.refusal = Some(r.string()?),
        ("image_url", Kind::String) => fields.image_url = Some(r.string()?),
        ("file_data", Kind::String) => fields.file_data = Some(r.string()?),
        ("file_url", Kind::String) => fields.file_url = Some(r.string()?),
        ("filename", Kind::String) => fields.filename = Some(r.string()?),
        ("file_id", Kind::String) => {
            r.skip()?;
            fields.file_id = true;
        }
        ("input_audio", Kind::Object) => {
            fields.audio = Some(r.clone());
            r.skip()?;
        }
        ("prompt_cache_breakpoint", Kind::Object) => fields.cache = breakpoint(r, hints, place)?,
        ("detail", Kind::String) if r.clone().string()? == "auto" => r.skip().map(drop)?,
        // What the answer said of its text, which does not change it.
        ("annotations" | "logprobs", _) => r.skip().map(drop)?,
        _ => named(r, hints, place, key)?,
    }
    Ok(())
}

fn body<'a>(r: &Reader<'a>, fields: Fields<'a>) -> Result<Body<'a>, Invalid> {
    let below = |field: &str, message: &str| Invalid { message: message.to_owned(), ..missing(r, field) };
    let Some(kind) = fields.kind else { return Err(missing(r, "type")) };
    match kind.as_ref() {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            fields.text.map(Body::Text).ok_or_else(|| below("text", "expected a string"))
        }
        "refusal" => fields.refusal.map(Body::Refusal).ok_or_else(|| below("refusal", "expected a string")),
        "input_image" => match fields.image_url {
            Some(url) => media::image(url).map_err(|message| below("image_url", message)),
            None if fields.file_id => Ok(Body::Other("input_image with a file_id".into())),
            None => Err(missing(r, "image_url")),
        },
        "input_file" => match (fields.file_data, fields.file_url) {
            (Some(data), _) => media::file(data, fields.filename).map_err(|message| below("file_data", message)),
            (None, Some(url)) => media::remote_file(url, fields.filename).map_err(|message| below("file_url", message)),
            (None, None) if fields.file_id => Ok(Body::Other("input_file with a file_id".into())),
            (None, None) => Err(missing(r, "file_data")),
        },
        "input_audio" => match fields.audio {
            Some(mut audio) => media::audio(&mut audio),
            None => Err(below("input_audio", "expected an object")),
        },
        other => Ok(Body::Other(other.to_owned())),
    }
}

/// The texts of parts as one; a paragraph each.
pub(super) fn joined(parts: Vec<Part<'_>>) -> Text<'_> {
    let mut all: Option<Text<'_>> = None;
    for part in parts {
        if let Body::Text(text) = part.body {
            match &mut all {
                None => all = Some(text),
                Some(_) if text.is_empty() => {}
                Some(all) => {
                    let all = all.to_mut();
                    all.push_str("\n\n");
                    all.push_str(&text);
                }
            }
        }
    }
    all.unwrap_or_default()
}

/// A result that is the empty string is empty.
pub(super) fn of_result(mut parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    if let [Part { body: Body::Text(text), .. }] = parts.as_slice()
        && text.is_empty()
    {
        parts.clear();
    }
    parts
}
