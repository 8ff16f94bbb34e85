//! What the lab answers without a script: friendly, and the same for the same request.

use serde_json::{Value, json};

use crate::answer::{Answer, Call, Finish, Thought, Usage, call_id, counted, fragments, hide, words};
use crate::ask::{Ask, Choice, Thinking};
use crate::{schema, signature};

/// The longest part of the user's text that is echoed, in characters.
const MAX_ECHO_CHARS: usize = 200;

/// The default answer to a request.
pub(crate) fn answer(ask: &Ask, id: u64) -> Answer {
    let calls = calls(ask, id);
    let thought = (ask.thinking != Thinking::Off).then(|| {
        let text = format!("The user wrote {} words; I answer briefly.", ask.last_user_text.split_whitespace().count());
        Thought { words: words(&text), signature: signature::of(&text) }
    });
    let mut text = if calls.is_empty() { spoken(ask) } else { Vec::new() };
    let mut finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    if let Some((kept, stop)) = cut_at_stop(&text.concat(), &ask.stops) {
        text = words(&kept);
        finish = Finish::StopSequence(stop);
    }
    let thinking_words = thought.as_ref().map_or(0, |thought| thought.words.len() as u64);
    if let Some(most) = ask.max_tokens.filter(|_| calls.is_empty()) {
        let room = usize::try_from(most.saturating_sub(thinking_words)).unwrap_or(usize::MAX);
        if text.len() > room {
            text.truncate(room);
            finish = Finish::Length;
        }
    }
    let mut usage: Usage = counted(ask, thought.as_ref(), &text, None, &calls);
    usage.completion = usage.completion.max(1);
    let mut answer = Answer {
        id,
        model: ask.model.clone(),
        thought,
        words: text,
        refusal: None,
        calls,
        interleave: false,
        finish,
        usage,
    };
    if let Some(thought) = &mut answer.thought {
        hide(thought, ask.thinking);
    }
    answer
}

fn spoken(ask: &Ask) -> Vec<String> {
    if let Some(schema) = &ask.schema {
        let value = if schema.is_object() { schema::instance(schema) } else { json!({"answer": "lab"}) };
        return fragments(&value.to_string(), 8);
    }
    if !ask.results.is_empty() {
        let quoted: Vec<String> = ask
            .results
            .iter()
            .map(|result| format!("The tool {} returned: \"{}\".", result.name, short(&result.text)))
            .collect();
        return words(&format!("{} This is the lab model {} answering.", quoted.join(" "), ask.model));
    }
    words(&format!("You said: \"{}\". This is the lab model {} answering.", short(&ask.last_user_text), ask.model))
}

fn short(text: &str) -> String {
    let mut kept: String = text.chars().take(MAX_ECHO_CHARS).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    kept
}

fn calls(ask: &Ask, id: u64) -> Vec<Call> {
    if ask.tools.is_empty() || !ask.results.is_empty() {
        return Vec::new();
    }
    let mut asked: Vec<(usize, &crate::ask::Tool)> =
        ask.tools.iter().filter_map(|tool| mention(&ask.last_user_text, &tool.name).map(|at| (at, tool))).collect();
    asked.sort_by_key(|(at, _)| *at);
    let mut chosen: Vec<&crate::ask::Tool> = asked.into_iter().map(|(_, tool)| tool).collect();
    match &ask.choice {
        Choice::Never => chosen.clear(),
        Choice::Auto => {}
        Choice::Any if chosen.is_empty() => chosen.extend(ask.tools.first()),
        Choice::Any => {}
        Choice::Named(name) => chosen = ask.tools.iter().filter(|tool| tool.name == *name).take(1).collect(),
    }
    if !ask.parallel {
        chosen.truncate(1);
    }
    let call = |(at, tool): (usize, &crate::ask::Tool)| {
        let arguments =
            if tool.schema.is_object() { schema::instance(&tool.schema) } else { Value::Object(Default::default()) };
        Call { id: call_id(ask, id, at), name: tool.name.clone(), fragments: fragments(&arguments.to_string(), 8) }
    };
    chosen.into_iter().enumerate().map(call).collect()
}

/// Where the text says `call NAME`, the name not being the start of a longer one.
fn mention(text: &str, name: &str) -> Option<usize> {
    let wanted = format!("call {name}");
    let mut from = 0;
    while let Some(at) = text[from..].find(&wanted) {
        let end = from + at + wanted.len();
        let longer =
            text[end..].chars().next().is_some_and(|next| next.is_alphanumeric() || next == '_' || next == '-');
        if !longer {
            return Some(from + at);
        }
        from = end;
    }
    None
}

fn cut_at_stop(text: &str, stops: &[String]) -> Option<(String, String)> {
    let found = stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|at| (at, stop)));
    found.min_by_key(|(at, _)| *at).map(|(at, stop)| (text[..at].to_owned(), stop.clone()))
}
