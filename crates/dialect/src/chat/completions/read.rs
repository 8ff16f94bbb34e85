//! One pass over a completions request that checks its form and keeps what the gateway must know.

use crate::chat::fields::{
    Once, missing, model, optional_bool, optional_number, optional_string, optional_u64, stream_options,
};
use crate::json::{Invalid, Kind, Reader};
use crate::request::{ClientRequest, Made, Operation, Spans, StreamForm};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Reads and checks a request. `choices` is the number of answers: prompts times `n`.
pub fn read(body: Bytes) -> Result<ClientRequest, Invalid> {
    let mut found = Found::default();
    let mut reader = Reader::new(&body)?;
    reader.object(|r, key| top(r, key, &mut found))?;
    reader.end()?;
    for (field, is_there) in [("model", found.model.is_some()), ("prompt", found.prompts > 0)] {
        if !is_there {
            return Err(Invalid { at: 0, ..missing(&reader, field) });
        }
    }
    Ok(ClientRequest {
        dialect: Dialect::Chat,
        operation: Operation::Complete,
        model: found.model.unwrap_or_default(),
        stream: found.stream,
        max_output: found.max_tokens,
        choices: found.choices.unwrap_or(1).saturating_mul(found.prompts),
        usage_wanted: found.stream && found.usage_wanted,
        form: StreamForm::Events,
        made: Made::new(),
        spans: found.spans,
        body,
    })
}

#[derive(Default)]
struct Found {
    once: Once,
    model: Option<String>,
    prompts: u64,
    stream: bool,
    usage_wanted: bool,
    max_tokens: Option<u64>,
    choices: Option<u64>,
    spans: Spans,
}

fn top(r: &mut Reader<'_>, key: &str, found: &mut Found) -> Result<(), Invalid> {
    match key {
        "model" => {
            found.once.check(r, 0, key)?;
            let (name, span) = model(r)?;
            found.spans.model = span;
            found.model = Some(name);
        }
        "prompt" => {
            found.once.check(r, 1, key)?;
            found.prompts = texts(r)?;
        }
        "stream" => {
            found.once.check(r, 2, key)?;
            found.stream = optional_bool(r)?;
        }
        "stream_options" => {
            found.once.check(r, 3, key)?;
            found.usage_wanted = stream_options(r, &mut found.once, 6, &mut found.spans)?;
        }
        "max_tokens" => {
            found.once.check(r, 4, key)?;
            found.max_tokens = optional_u64(r)?;
        }
        "n" => {
            found.once.check(r, 5, key)?;
            found.choices = optional_u64(r)?;
            if found.choices == Some(0) {
                return Err(r.fail("expected a whole number of at least 1, found 0"));
            }
        }
        "best_of" | "logprobs" => {
            optional_u64(r)?;
        }
        "temperature" | "top_p" | "frequency_penalty" | "presence_penalty" | "seed" => optional_number(r)?,
        "echo" => {
            optional_bool(r)?;
        }
        "suffix" | "user" => optional_string(r)?,
        "logit_bias" => {
            if r.kind()? == Kind::Object || r.kind()? == Kind::Null {
                r.skip()?;
            } else {
                return Err(r.fail("expected an object"));
            }
        }
        "stop" => match r.kind()? {
            Kind::Array => r.array(|r, _| r.string().map(drop))?,
            Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => optional_string(r)?,
        },
        _ => {
            r.skip()?;
        }
    }
    Ok(())
}

/// The texts of a prompt or of an embeddings input, and how many: a string, strings, one list of token numbers, or
/// several of those.
pub(in crate::chat) fn texts(r: &mut Reader<'_>) -> Result<u64, Invalid> {
    const FORMS: &str = "expected a string, an array of strings, or tokens";
    match r.kind()? {
        Kind::String => r.skip().map(|_| 1),
        Kind::Array => {
            let (mut several, mut tokens) = (0, false);
            r.array::<Invalid>(|r, _| match r.kind()? {
                Kind::Number if several == 0 => {
                    tokens = true;
                    r.u64().map(drop)
                }
                Kind::String if !tokens => {
                    several += 1;
                    r.skip().map(drop)
                }
                Kind::Array if !tokens => {
                    several += 1;
                    r.array(|r, _| r.u64().map(drop))
                }
                Kind::String | Kind::Array | Kind::Number | Kind::Object | Kind::Bool | Kind::Null => {
                    Err(r.fail(FORMS))
                }
            })?;
            match (several, tokens) {
                (0, false) => Err(r.fail("expected at least one text, found an empty array")),
                (_, true) => Ok(1),
                (several, false) => Ok(several),
            }
        }
        Kind::Object | Kind::Number | Kind::Bool | Kind::Null => Err(r.fail(FORMS)),
    }
}
