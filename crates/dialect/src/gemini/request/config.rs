//! `generationConfig`: sampling, limits, thinking and the form of the answer.

use super::fields::{self, CONFIG, Hints, THINKING};
use super::tools::{is_schema, schema};
use crate::json::{Invalid, Reader};
use crate::messages::nothing::says_nothing;
use crate::turn::{Output, Text, Thinking, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;

const PLACE: &str = "generationConfig.";

/// Reads it.
pub(super) fn config<'a>(
    r: &mut Reader<'a>,
    turn: &mut Turn<'a>,
    made: &'a BTreeMap<usize, Box<str>>,
    hints: &mut Hints,
) -> Result<(), Invalid> {
    let (mut form, mut open_api, mut json) = (None, None, None);
    fields::object(r, CONFIG, |r, key| {
        match key {
            "temperature" => turn.temperature = Some(r.number()?),
            "topP" => turn.top_p = Some(r.number()?),
            "topK" => turn.top_k = Some(r.number()?),
            "seed" => turn.seed = Some(r.number()?),
            "presencePenalty" => turn.presence_penalty = Some(r.number()?),
            "frequencyPenalty" => turn.frequency_penalty = Some(r.number()?),
            "maxOutputTokens" => turn.max_output = Some(r.u64()?),
            "candidateCount" => {
                if r.u64()? > 1 {
                    return Err(r.fail("an upstream of another dialect gives one candidate; ask for one"));
                }
            }
            "stopSequences" => r.array::<Invalid>(|r, _| {
                turn.stop.push(r.string()?);
                Ok(())
            })?,
            "responseMimeType" => form = Some(r.string()?),
            "responseSchema" => open_api = Some(schema(r, made)?),
            "responseJsonSchema" => json = Some(schema(r, made)?),
            "responseModalities" => r.array::<Invalid>(|r, _| {
                let kind = r.string()?;
                if kind.eq_ignore_ascii_case("text") || kind == "MODALITY_UNSPECIFIED" {
                    return Ok(());
                }
                Err(r.fail("only answers in text can be had from an upstream of another dialect"))
            })?,
            "thinkingConfig" => thinking(r, turn, hints)?,
            // The answer would not go on where the other one stopped.
            "continuationToken" => {
                if !says_nothing(r.raw()?) {
                    return Err(r.fail("an answer cannot be continued by an upstream of another dialect"));
                }
            }
            other => hints.skip(r, PLACE, other)?,
        }
        Ok(())
    })?;
    turn.output = output(r, form, json.or(open_api))?;
    Ok(())
}

/// The form of the answer. A schema asks for JSON by itself.
fn output<'a>(r: &Reader<'a>, form: Option<Text<'a>>, schema: Option<&'a str>) -> Result<Output<'a>, Invalid> {
    let json = match form.as_deref() {
        None | Some("") => schema.is_some(),
        Some("text/plain") => false,
        Some("application/json") => true,
        Some(other) => {
            let brief: String = other.chars().take(40).collect();
            let mut error = r.fail(format!("an answer in the form `{brief}` cannot be had from another dialect"));
            error.path.push_str(".responseMimeType");
            return Err(error);
        }
    };
    match schema {
        Some(schema) if json && is_schema(schema) => Ok(Output::Schema { name: None, schema, strict: None }),
        Some(schema) if json && schema != "null" => {
            let mut error = r.fail("expected a JSON schema, which is an object");
            error.path.push_str(".responseJsonSchema");
            Err(error)
        }
        Some(_) | None if json => Ok(Output::Json),
        Some(_) | None => Ok(Output::Text),
    }
}

fn thinking<'a>(r: &mut Reader<'a>, turn: &mut Turn<'a>, hints: &mut Hints) -> Result<(), Invalid> {
    fields::object(r, THINKING, |r, key| {
        match key {
            "thinkingBudget" => {
                let budget = r.number()?;
                turn.reasoning.mode = Some(match budget.parse::<f64>() {
                    Ok(0.0) => Thinking::Off,
                    Ok(-1.0) => Thinking::Adaptive,
                    Ok(number) if number > 0.0 && number.fract() == 0.0 && number < 9.0e15 => {
                        Thinking::Budget(number as u64)
                    }
                    Ok(_) | Err(_) => {
                        return Err(r.fail(format!("expected -1, 0 or a number of tokens, found {budget}")));
                    }
                });
            }
            "thinkingLevel" => {
                let level = r.string()?;
                if !level.is_empty() && level != "THINKING_LEVEL_UNSPECIFIED" {
                    turn.reasoning.effort = Some(Cow::Owned(level.to_ascii_lowercase()));
                }
            }
            // Thoughts are shown to who asks in every dialect as the upstream gives them.
            "includeThoughts" => {
                r.skip()?;
            }
            other => hints.skip(r, "generationConfig.thinkingConfig.", other)?,
        }
        Ok(())
    })
}
