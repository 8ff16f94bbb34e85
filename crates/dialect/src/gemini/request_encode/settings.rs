//! `generationConfig` of a request to Gemini.

use super::{Dropped, at};
use crate::gemini::generation;
use crate::json::{Invalid, Object};
use crate::turn::{Output, Thinking, Turn};

/// Stop texts that Gemini takes.
const MAX_STOPS: usize = 5;
/// The largest number that its limits and seeds hold.
const MAX_INT: u64 = i32::MAX as u64;

/// Writes it, if there is anything to say.
pub(super) fn write_config(
    request: &mut Object<'_>,
    turn: &Turn<'_>,
    model: &str,
    dropped: &mut Dropped,
) -> Result<(), Invalid> {
    let mut out = Vec::new();
    let mut config = Object::open(&mut out);
    sampling(&mut config, turn, dropped)?;
    output(&mut config, turn, dropped);
    thinking(&mut config, turn, model, dropped);
    drop(config);
    if out.len() > 2 {
        request.raw("generationConfig", &String::from_utf8_lossy(&out));
    }
    Ok(())
}

fn sampling(config: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) -> Result<(), Invalid> {
    if let Some(most) = turn.max_output {
        config.number("maxOutputTokens", most.min(MAX_INT));
    }
    if let Some(temperature) = turn.temperature {
        if temperature.parse::<f64>().is_ok_and(|number| number > 2.0) {
            dropped.insert("temperature".into());
            config.raw("temperature", "2");
        } else {
            config.raw("temperature", temperature);
        }
    }
    if let Some(seed) = turn.seed {
        // Other dialects take longer ones.
        if seed.parse::<i32>().is_ok() {
            config.raw("seed", seed);
        } else {
            dropped.insert("seed".into());
        }
    }
    for (name, number) in [
        ("topP", turn.top_p),
        ("topK", turn.top_k),
        ("presencePenalty", turn.presence_penalty),
        ("frequencyPenalty", turn.frequency_penalty),
    ] {
        if let Some(number) = number {
            config.raw(name, number);
        }
    }
    let (blank, stops): (Vec<_>, Vec<_>) = turn.stop.iter().partition(|stop| stop.trim().is_empty());
    if !blank.is_empty() {
        dropped.insert("stop".into());
    }
    if stops.len() > MAX_STOPS {
        let message = format!("Gemini takes at most {MAX_STOPS} stop texts, found {}", stops.len());
        return Err(at("stop_sequences", message));
    }
    if !stops.is_empty() {
        let mut sequences = config.array("stopSequences");
        stops.iter().for_each(|stop| sequences.string(stop));
    }
    Ok(())
}

/// The form of the answer. Any JSON gets no schema: one would be obeyed.
fn output(config: &mut Object<'_>, turn: &Turn<'_>, dropped: &mut Dropped) {
    match &turn.output {
        Output::Text => {}
        Output::Json => config.string("responseMimeType", "application/json"),
        // The form is always kept to exactly; a client that asked for less is told.
        Output::Schema { name, schema, strict } => {
            if name.is_some() {
                dropped.insert("response_format.json_schema.name".into());
            }
            if *strict == Some(false) {
                dropped.insert("response_format.json_schema.strict".into());
            }
            config.string("responseMimeType", "application/json");
            config.raw("responseJsonSchema", schema);
        }
    }
}

/// How much to think, as Gemini is told it.
enum Amount {
    Level(&'static str),
    /// Tokens; -1 is as many as it sees fit.
    Budget(i64),
}

/// `thinkingConfig`: levels from the third generation on, a number of tokens before, and for names that do not tell.
/// Who asked for thinking is shown it.
fn thinking(config: &mut Object<'_>, turn: &Turn<'_>, model: &str, dropped: &mut Dropped) {
    let effort = turn.reasoning.effort.as_deref();
    if generation::cannot_think(model) {
        match turn.reasoning.mode {
            Some(Thinking::Adaptive | Thinking::Budget(_)) => {
                dropped.insert("thinking".into());
            }
            Some(Thinking::Off) | None => {}
        }
        if effort.is_some_and(|effort| effort != "none") {
            dropped.insert("reasoning_effort".into());
        }
        return;
    }
    let levels = generation::wants_signatures(model);
    // The larger models have no level below this one.
    let least = if model.contains("pro") { "LOW" } else { "MINIMAL" };
    let by_effort = match (effort, levels) {
        (Some("none" | "minimal"), true) => Some(Amount::Level(least)),
        (Some("low"), true) => Some(Amount::Level("LOW")),
        (Some("medium"), true) => Some(Amount::Level("MEDIUM")),
        (Some("high" | "xhigh" | "max"), true) => Some(Amount::Level("HIGH")),
        (Some("none"), false) => Some(Amount::Budget(0)),
        (Some("minimal" | "low"), false) => Some(Amount::Budget(1024)),
        (Some("medium"), false) => Some(Amount::Budget(8192)),
        (Some("high"), false) => Some(Amount::Budget(24576)),
        (Some("xhigh" | "max"), false) => Some(Amount::Budget(-1)),
        (Some(_), _) => {
            dropped.insert("reasoning_effort".into());
            None
        }
        (None, _) => None,
    };
    let amount = match turn.reasoning.mode {
        Some(Thinking::Off) if levels => Some(Amount::Level(least)),
        Some(Thinking::Off) => Some(Amount::Budget(0)),
        // The two cannot be given together; the number says more.
        Some(Thinking::Budget(tokens)) => {
            if by_effort.is_some() {
                dropped.insert("reasoning_effort".into());
            }
            Some(Amount::Budget(i64::try_from(tokens.min(MAX_INT)).unwrap_or(-1)))
        }
        Some(Thinking::Adaptive) if by_effort.is_none() && !levels => Some(Amount::Budget(-1)),
        Some(Thinking::Adaptive) | None => by_effort,
    };
    let shown = match turn.reasoning.mode {
        Some(Thinking::Adaptive | Thinking::Budget(_)) => true,
        Some(Thinking::Off) | None => false,
    };
    if amount.is_none() && !shown {
        return;
    }
    let mut thinking = config.object("thinkingConfig");
    if shown {
        thinking.bool("includeThoughts", true);
    }
    match amount {
        Some(Amount::Level(level)) => thinking.string("thinkingLevel", level),
        Some(Amount::Budget(tokens)) => thinking.raw("thinkingBudget", &tokens.to_string()),
        None => {}
    }
}
