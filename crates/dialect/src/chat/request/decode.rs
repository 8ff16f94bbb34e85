//! A Chat request as a canonical turn, for a route to another dialect. Content without a canonical form is refused by
//! its path, now or (as `Other`) by the target's encoder; hints without one are named.

use super::decode_message::{Legacy, message};
use super::decode_tools::{functions, legacy_choice, named, response_format, tool_choice, tools};
use super::missing;
use crate::dropped::MAX_NAMES;
use crate::json::{Invalid, Kind, Reader};
use crate::turn::{Text, Thinking, Turn};

/// Reads a request, which [`super::read()`] has accepted, into a turn.
pub fn decode(body: &[u8]) -> Result<Turn<'_>, Invalid> {
    let mut r = Reader::new(body)?;
    let mut turn = Turn::default();
    let mut extra = Extra::default();
    r.object(|r, key| top(r, key, &mut turn, &mut extra))?;
    r.end()?;
    for (field, absent) in [("model", turn.model.is_empty()), ("messages", turn.messages.is_empty())] {
        if absent {
            return Err(missing(&r, field));
        }
    }
    turn.max_output = extra.max_completion_tokens.or(extra.max_tokens);
    turn.user = match (extra.safety_identifier, extra.user) {
        (Some(id), Some(user)) if id != user => {
            hint(&mut turn.hints, "user");
            Some(id)
        }
        (id, user) => id.or(user),
    };
    Ok(turn)
}

#[derive(Default)]
struct Extra<'a> {
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    user: Option<Text<'a>>,
    safety_identifier: Option<Text<'a>>,
}

/// Names a hint that will be dropped, once; only so many.
pub(crate) fn hint(hints: &mut Vec<String>, name: &str) {
    if hints.len() <= MAX_NAMES && !hints.iter().any(|known| known == name) {
        hints.push(name.to_owned());
    }
}

/// A value that says nothing.
pub(crate) fn says_nothing(raw: &str) -> bool {
    matches!(raw, "null" | "[]" | "{}" | "\"\"")
}

fn top<'a>(r: &mut Reader<'a>, key: &str, turn: &mut Turn<'a>, extra: &mut Extra<'a>) -> Result<(), Invalid> {
    if key != "model" && key != "messages" && r.null()? {
        return Ok(());
    }
    match key {
        "model" => turn.model = r.string()?,
        "messages" => {
            let mut legacy = Legacy::default();
            r.array(|r, at| message(r, at, turn, &mut legacy))?;
        }
        "stream" => turn.stream = r.bool()?,
        "stream_options" => r.object(|r, key| {
            if key == "include_usage" && r.kind()? == Kind::Bool {
                turn.stream_usage = r.bool()?;
                return Ok(());
            }
            named(r, &mut turn.hints, "stream_options.", key)
        })?,
        "max_tokens" => extra.max_tokens = Some(r.u64()?),
        "max_completion_tokens" => extra.max_completion_tokens = Some(r.u64()?),
        "n" => {
            if r.u64()? > 1 {
                return Err(r.fail("this model's upstream gives one answer at a time; ask with `n` of 1"));
            }
        }
        "temperature" => turn.temperature = Some(r.number()?),
        "top_p" => turn.top_p = Some(r.number()?),
        "seed" => turn.seed = Some(r.number()?),
        "presence_penalty" => turn.presence_penalty = Some(r.number()?).filter(|raw| !is_zero(raw)),
        "frequency_penalty" => turn.frequency_penalty = Some(r.number()?).filter(|raw| !is_zero(raw)),
        "verbosity" => turn.verbosity = Some(r.string()?),
        "prompt_cache_key" => turn.cache_key = Some(r.string()?),
        "top_k" if r.kind()? == Kind::Number => turn.top_k = Some(r.number()?),
        "stop" => {
            if r.kind()? == Kind::Array {
                r.array(|r, _| {
                    turn.stop.push(r.string()?);
                    Ok::<(), Invalid>(())
                })?;
            } else {
                turn.stop = vec![r.string()?];
            }
        }
        "tools" => tools(r, turn)?,
        "functions" => functions(r, turn)?,
        "tool_choice" => turn.tool_choice = Some(tool_choice(r, &mut turn.hints)?),
        "function_call" => turn.tool_choice = Some(legacy_choice(r, &mut turn.hints)?),
        "parallel_tool_calls" => turn.parallel_tools = Some(r.bool()?),
        "response_format" => turn.output = response_format(r, &mut turn.hints)?,
        "reasoning_effort" => {
            let effort = r.string()?;
            if effort == "none" {
                turn.reasoning.mode = Some(Thinking::Off);
            } else {
                turn.reasoning.effort = Some(effort);
            }
        }
        "user" => extra.user = Some(r.string()?),
        "safety_identifier" => extra.safety_identifier = Some(r.string()?),
        "modalities" => r.array(|r, _| match r.string()?.as_ref() {
            "text" => Ok(()),
            other => Err(r.fail(format!("an answer as {other} cannot be asked of this model's upstream"))),
        })?,
        "audio" | "web_search_options" => {
            return Err(r.fail(format!("`{key}` cannot be carried to this model's upstream")));
        }
        _ => {
            let raw = r.raw()?;
            if !says_nothing(raw) && !is_default(key, raw) {
                hint(&mut turn.hints, key);
            }
        }
    }
    Ok(())
}

/// The value is what the field means when it is not there.
fn is_default(key: &str, raw: &str) -> bool {
    match key {
        "top_logprobs" => is_zero(raw),
        "logprobs" | "store" => raw == "false",
        "service_tier" => matches!(raw, "\"auto\"" | "\"default\""),
        _ => false,
    }
}

fn is_zero(raw: &str) -> bool {
    raw.parse::<f64>() == Ok(0.0)
}
