//! A completions request as a canonical turn: the prompt is the user's one message.

use crate::chat::fields::missing;
use crate::dropped::MAX_NAMES;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{At, Body, Message, Part, Role, Text, Turn};

/// Reads a request, which [`super::read()`] has accepted, into a turn. What changes the text that is asked for (`suffix`,
/// `echo`, several prompts or answers) is refused by its path; `logprobs`, `best_of` and whatever else only steers is
/// named as dropped.
pub fn decode(body: &[u8]) -> Result<Turn<'_>, Invalid> {
    let mut turn = Turn::default();
    let mut prompt = None;
    let mut r = Reader::new(body)?;
    r.object(|r, key| top(r, key, &mut turn, &mut prompt))?;
    r.end()?;
    let Some(text) = prompt else { return Err(missing(&r, "prompt")) };
    let part = Part { body: Body::Text(text), at: At::Message(0), cache: None };
    turn.messages.push(Message { role: Role::User, at: At::Message(0), parts: vec![part] });
    Ok(turn)
}

fn top<'a>(r: &mut Reader<'a>, key: &str, turn: &mut Turn<'a>, prompt: &mut Option<Text<'a>>) -> Result<(), Invalid> {
    if r.null()? {
        return Ok(());
    }
    match key {
        "model" => turn.model = r.string()?,
        "prompt" => *prompt = Some(one_text(r)?),
        "stream" => turn.stream = r.bool()?,
        "stream_options" => r.object::<Invalid>(|r, key| {
            if key == "include_usage" && r.kind()? == Kind::Bool {
                turn.stream_usage = r.bool()?;
                return Ok(());
            }
            let raw = r.raw()?;
            hint(turn, &format!("stream_options.{key}"), raw);
            Ok(())
        })?,
        "max_tokens" => turn.max_output = Some(r.u64()?),
        "temperature" => turn.temperature = Some(r.number()?),
        "top_p" => turn.top_p = Some(r.number()?),
        "seed" => turn.seed = Some(r.number()?),
        "presence_penalty" => turn.presence_penalty = Some(r.number()?),
        "frequency_penalty" => turn.frequency_penalty = Some(r.number()?),
        "stop" if r.kind()? == Kind::Array => r.array::<Invalid>(|r, _| {
            turn.stop.push(r.string()?);
            Ok(())
        })?,
        "stop" => turn.stop = vec![r.string()?],
        "user" => turn.user = Some(r.string()?),
        "n" => {
            if r.u64()? > 1 {
                return Err(r.fail("this model's upstream gives one answer at a time; ask with `n` of 1"));
            }
        }
        "suffix" => {
            if !r.string()?.is_empty() {
                return Err(r.fail("this model's upstream cannot fill in before a suffix"));
            }
        }
        "echo" => {
            if r.bool()? {
                return Err(r.fail("this model's upstream does not repeat the prompt"));
            }
        }
        "best_of" => {
            let most = r.u64()?;
            if most > 1 {
                hint(turn, key, "more than one");
            }
        }
        _ => {
            let raw = r.raw()?;
            hint(turn, key, raw);
        }
    }
    Ok(())
}

/// The one text of a prompt.
fn one_text<'a>(r: &mut Reader<'a>) -> Result<Text<'a>, Invalid> {
    if r.kind()? != Kind::Array {
        return r.string();
    }
    let mut text = None;
    r.array::<Invalid>(|r, _| {
        if r.kind()? != Kind::String {
            return Err(
                r.fail("tokens are their model's own and cannot be carried to this model's upstream; send text")
            );
        }
        if text.is_some() {
            return Err(r.fail("this model's upstream takes one prompt at a time"));
        }
        text = Some(r.string()?);
        Ok(())
    })?;
    text.ok_or_else(|| r.fail("expected at least one text, found an empty array"))
}

/// Names a hint that will be dropped, if it says something, once; only so many.
fn hint(turn: &mut Turn<'_>, name: &str, raw: &str) {
    let says_nothing = matches!(raw, "null" | "[]" | "{}" | "\"\"" | "false" | "0");
    if !says_nothing && turn.hints.len() <= MAX_NAMES && !turn.hints.iter().any(|known| known == name) {
        turn.hints.push(name.to_owned());
    }
}
