//! Limits, sampling, the form of the answer and how much to think.

use super::Dropped;
use crate::json::Object;
use crate::turn::{Output, Thinking, Turn};

/// OpenAI's models that do not reason, and refuse to be asked for their reasoning.
const WITHOUT_REASONING: [&str; 3] = ["gpt-4", "gpt-3.5", "chatgpt-4o"];

/// The fewest tokens of output that OpenAI lets a client ask for here; the other APIs take 1.
const LEAST_OUTPUT: u64 = 16;

/// Whether the model may be asked for its reasoning; a server that knows none passes over it.
pub(super) fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !WITHOUT_REASONING.iter().any(|start| name.starts_with(start))
}

pub(super) fn write(object: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) {
    if let Some(most) = turn.max_output {
        object.number("max_output_tokens", most.max(LEAST_OUTPUT));
        if most < LEAST_OUTPUT {
            dropped.add("max_tokens");
        }
    }
    if let Some(temperature) = turn.temperature {
        object.raw("temperature", temperature);
    }
    if let Some(top_p) = turn.top_p {
        object.raw("top_p", top_p);
    }
    for (name, given) in [
        ("stop", !turn.stop.is_empty()),
        ("top_k", turn.top_k.is_some()),
        ("seed", turn.seed.is_some()),
        ("presence_penalty", turn.presence_penalty.is_some()),
        ("frequency_penalty", turn.frequency_penalty.is_some()),
    ] {
        if given {
            dropped.add(name);
        }
    }
    text(object, turn);
    if let Some(effort) = effort(turn, dropped) {
        object.object("reasoning").string("effort", effort);
    }
    if let Some(user) = &turn.user {
        object.string("user", user);
    }
    if let Some(key) = &turn.cache_key {
        object.string("prompt_cache_key", key);
    }
}

fn text(object: &mut Object<'_>, turn: &Turn<'_>) {
    if turn.output == Output::Text && turn.verbosity.is_none() {
        return;
    }
    let mut text = object.object("text");
    match &turn.output {
        Output::Text => {}
        Output::Json => text.object("format").string("type", "json_object"),
        Output::Schema { name, schema, strict } => {
            let mut format = text.object("format");
            format.string("type", "json_schema");
            format.string("name", name.as_deref().unwrap_or("answer"));
            format.raw("schema", schema);
            // OpenAI refuses most schemas as strict that were not written for it, so it is not asked for by itself.
            if let Some(strict) = strict {
                format.bool("strict", *strict);
            }
        }
    }
    if let Some(verbosity) = &turn.verbosity {
        text.string("verbosity", verbosity);
    }
}

/// Responses has one word for it. Thinking turned off has none that every model takes, so it is named as dropped;
/// adaptive is what models do by themselves; a budget becomes the nearest word.
fn effort<'t>(turn: &'t Turn<'_>, dropped: &mut Dropped) -> Option<&'t str> {
    let known = ["minimal", "low", "medium", "high", "xhigh", "max"];
    let effort = turn.reasoning.effort.as_deref();
    match (turn.reasoning.mode, effort) {
        (Some(Thinking::Off), effort) => {
            dropped.add("thinking");
            if effort.is_some() {
                dropped.add("effort");
            }
            None
        }
        (Some(Thinking::Adaptive | Thinking::Budget(_)) | None, Some(effort)) if known.contains(&effort) => {
            Some(effort)
        }
        (Some(Thinking::Budget(tokens)), effort) => {
            if effort.is_some() {
                dropped.add("effort");
            }
            Some(match tokens {
                0..4096 => "low",
                4096..16384 => "medium",
                16384.. => "high",
            })
        }
        (Some(Thinking::Adaptive) | None, Some(_)) => {
            dropped.add("effort");
            None
        }
        (Some(Thinking::Adaptive) | None, None) => None,
    }
}
