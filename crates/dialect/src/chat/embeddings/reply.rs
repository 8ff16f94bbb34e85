//! An embeddings answer: read in passing, or written from Gemini's.

use super::request::{format, inputs};
use crate::chat::classify;
use crate::json::{Array, Invalid, Kind, Object, Reader};
use crate::reply::{Facts, ReplyFault, ReplyOptions, named};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use turnkeep_base::{FaultKind, Usage};

/// Reads a whole answer of an OpenAI-like upstream in passing: it has a list `data`, or it is malformed.
pub fn plain(body: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
    let (mut data, mut error) = (false, None);
    let mut r = Reader::new(body).map_err(malformed)?;
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("data", Kind::Array) => {
                data = true;
                r.skip()?;
            }
            ("model", Kind::String) => facts.model = named(&r.string()?),
            ("usage", Kind::Object) => {
                r.object::<Invalid>(|r, key| {
                    if key == "prompt_tokens" && r.kind()? == Kind::Number {
                        facts.usage = Some(Usage { input: count(r.number()?), ..Usage::default() });
                        return Ok(());
                    }
                    r.skip().map(drop)
                })?;
            }
            ("error", Kind::Object | Kind::Array | Kind::String | Kind::Number | Kind::Bool) => error = Some(r.raw()?),
            (_, Kind::Object | Kind::Array | Kind::String | Kind::Number | Kind::Bool | Kind::Null) => {
                r.skip()?;
            }
        }
        Ok(())
    })
    .map_err(malformed)?;
    r.end().map_err(malformed)?;
    if let Some(error) = error {
        return Err(classify::in_band(error));
    }
    if data { Ok(()) } else { Err(ReplyFault::malformed("a JSON object without `data`")) }
}

/// Writes the answer of Gemini's `batchEmbedContents` in OpenAI's form. The client's body, in `options.asked`, says how
/// vectors are written (numbers, where it is not there), and its texts are counted where Gemini tells no usage.
pub fn from_gemini(body: &[u8], options: &ReplyOptions) -> Result<(Bytes, Facts), ReplyFault> {
    let asked = &options.asked.body;
    let (base64, texts) = if asked.is_empty() { (false, Vec::new()) } else { wants(asked).map_err(malformed)? };
    let mut facts = Facts { model: named(&options.model), ..Facts::default() };
    let mut out = Vec::with_capacity(body.len() + 256);
    let mut vectors = 0;
    {
        let mut object = Object::open(&mut out);
        object.string("object", "list");
        {
            let mut data = object.array("data");
            let mut r = Reader::new(body).map_err(malformed)?;
            r.object::<Invalid>(|r, key| match (key, r.kind()?) {
                ("embeddings", Kind::Array) => r.array::<Invalid>(|r, _| {
                    vector(r, &mut data, vectors, base64)?;
                    vectors += 1;
                    Ok(())
                }),
                ("usageMetadata", Kind::Object) => r.object::<Invalid>(|r, key| {
                    if key == "promptTokenCount" && r.kind()? == Kind::Number {
                        facts.usage = Some(Usage { input: count(r.number()?), ..Usage::default() });
                        return Ok(());
                    }
                    r.skip().map(drop)
                }),
                (_, _) => r.skip().map(drop),
            })
            .map_err(malformed)?;
            r.end().map_err(malformed)?;
        }
        object.string("model", &options.model);
        let tokens = match facts.usage {
            Some(usage) => usage.input,
            None => texts.iter().map(|text| crate::count::tokens(text)).sum(),
        };
        let mut usage = object.object("usage");
        usage.number("prompt_tokens", tokens);
        usage.number("total_tokens", tokens);
    }
    if vectors == 0 || (!texts.is_empty() && vectors != texts.len() as u64) {
        let what = format!("{vectors} embeddings for {} texts", texts.len());
        return Err(ReplyFault::new(FaultKind::MalformedResponse, what));
    }
    Ok((out.into(), facts))
}

fn malformed(invalid: Invalid) -> ReplyFault {
    ReplyFault::malformed(invalid.to_string())
}

/// A count of tokens; what is no whole number counts for nothing.
fn count(number: &str) -> u64 {
    number.parse().unwrap_or(0)
}

/// What the client's request says of its answer: base64 or not, and the texts.
fn wants(body: &[u8]) -> Result<(bool, Vec<crate::turn::Text<'_>>), Invalid> {
    let (mut base64, mut texts) = (false, Vec::new());
    Reader::new(body)?.object::<Invalid>(|r, key| {
        match key {
            "encoding_format" if r.kind()? == Kind::String => base64 = format(r)?,
            "input" => texts = inputs(r)?,
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    Ok((base64, texts))
}

/// Writes one `{"values":[…]}` as an embedding.
fn vector(r: &mut Reader<'_>, data: &mut Array<'_>, index: u64, base64: bool) -> Result<(), Invalid> {
    let mut entry = data.object();
    entry.string("object", "embedding");
    entry.number("index", index);
    let mut found = false;
    r.object::<Invalid>(|r, key| {
        if key != "values" || found {
            return r.skip().map(drop);
        }
        found = true;
        if !base64 {
            let raw = r.raw()?;
            numbers(raw, |_| {})?;
            entry.raw("embedding", raw);
            return Ok(());
        }
        let mut bytes = Vec::new();
        numbers(r.raw()?, |number| bytes.extend_from_slice(&number.to_le_bytes()))?;
        entry.string("embedding", &STANDARD.encode(&bytes));
        Ok(())
    })?;
    if found { Ok(()) } else { Err(r.fail("an embedding without `values`")) }
}

/// The numbers of a list and of nothing else.
fn numbers(raw: &str, mut each: impl FnMut(f32)) -> Result<(), Invalid> {
    Reader::over(raw).array::<Invalid>(|r, _| {
        let number = r.number()?;
        match number.parse::<f32>() {
            Ok(number) if number.is_finite() => {
                each(number);
                Ok(())
            }
            Ok(_) | Err(_) => Err(r.fail("expected a 32-bit number")),
        }
    })
}
