//! An embeddings request: checked as it comes, or written for Gemini.

use crate::chat::completions::texts;
use crate::chat::fields::{Once, missing, model, optional_string, optional_u64};
use crate::json::{Invalid, Kind, Object, Reader};
use crate::request::{ApiVersion, ClientRequest, Encoded, Made, Operation, Spans, StreamForm};
use crate::tool_names::ToolNames;
use crate::turn::Text;
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Reads and checks a request.
pub fn read(body: Bytes) -> Result<ClientRequest, Invalid> {
    let (mut once, mut name, mut spans, mut inputs) = (Once::default(), None, Spans::default(), 0);
    let mut reader = Reader::new(&body)?;
    reader.object::<Invalid>(|r, key| {
        match key {
            "model" => {
                once.check(r, 0, key)?;
                let (found, span) = model(r)?;
                (name, spans.model) = (Some(found), span);
            }
            "input" => {
                once.check(r, 1, key)?;
                inputs = texts(r)?;
            }
            "encoding_format" => {
                once.check(r, 2, key)?;
                if !r.null()? {
                    format(r)?;
                }
            }
            "dimensions" => {
                once.check(r, 3, key)?;
                optional_u64(r)?;
            }
            "user" => optional_string(r)?,
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    reader.end()?;
    for (field, is_there) in [("model", name.is_some()), ("input", inputs > 0)] {
        if !is_there {
            return Err(Invalid { at: 0, ..missing(&reader, field) });
        }
    }
    Ok(ClientRequest {
        dialect: Dialect::Chat,
        operation: Operation::Embed,
        model: name.unwrap_or_default(),
        stream: false,
        // Vectors are no tokens.
        max_output: Some(0),
        choices: 1,
        usage_wanted: false,
        form: StreamForm::Events,
        made: Made::new(),
        spans,
        body,
    })
}

/// How vectors are written: as base64 of their 32-bit floats (`true`), or as numbers.
pub(super) fn format(r: &mut Reader<'_>) -> Result<bool, Invalid> {
    match &*r.string()? {
        "float" => Ok(false),
        "base64" => Ok(true),
        _ => Err(r.fail("expected `float` or `base64`")),
    }
}

/// The texts of an input, in their order. Token numbers are their model's own, so they are refused.
pub(super) fn inputs<'a>(r: &mut Reader<'a>) -> Result<Vec<Text<'a>>, Invalid> {
    if r.kind()? != Kind::Array {
        return Ok(vec![r.string()?]);
    }
    let mut inputs = Vec::new();
    r.array::<Invalid>(|r, _| {
        if r.kind()? != Kind::String {
            return Err(
                r.fail("tokens are their model's own and cannot be carried to this model's upstream; send text")
            );
        }
        inputs.push(r.string()?);
        Ok(())
    })?;
    Ok(inputs)
}

/// Writes a request, which [`read`] has accepted, as Gemini's `batchEmbedContents` for the upstream's name of the model.
/// Token numbers are refused by their path; fields that Gemini has no place for are named as dropped.
pub fn to_gemini(body: &[u8], upstream_model: &str) -> Result<Encoded, Invalid> {
    let (mut texts, mut dimensions, mut dropped) = (Vec::new(), None, Vec::new());
    let mut r = Reader::new(body)?;
    r.object::<Invalid>(|r, key| {
        match key {
            "input" => texts = inputs(r)?,
            "dimensions" => dimensions = optional_u64(r)?,
            // The answer is written as it says.
            "model" | "encoding_format" => {
                r.skip()?;
            }
            _ => {
                let says_nothing = matches!(r.raw()?, "null" | "\"\"" | "{}" | "[]");
                if !says_nothing && dropped.len() <= crate::dropped::MAX_NAMES {
                    dropped.push(key.to_owned());
                }
            }
        }
        Ok(())
    })?;
    r.end()?;
    let model = format!("models/{upstream_model}");
    let mut out = Vec::with_capacity(body.len() + 64);
    {
        let mut object = Object::open(&mut out);
        let mut requests = object.array("requests");
        for text in &texts {
            let mut request = requests.object();
            request.string("model", &model);
            request.object("content").array("parts").object().string("text", text);
            if let Some(dimensions) = dimensions {
                request.number("outputDimensionality", dimensions);
            }
        }
    }
    Ok(Encoded { body: out.into(), dropped, version: ApiVersion::default(), names: ToolNames::default() })
}
