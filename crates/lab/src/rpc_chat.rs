//! Turns and answers of the published chat schema: what is asked, in the lab's own terms, and its answers as events.

use serde_json::Value;
use turnkeep_proto::connect::v1 as pb;
use turnkeep_proto::connect::v1::{block_start, chat_event, delta, part};

use crate::answer::{Answer, Finish};
use crate::ask::{Ask, Choice, Dialect, InPath, Thinking, Tool, ToolResult, read};
use crate::frame::Mark;

/// The text of a message, one part after the other.
pub(crate) fn said(message: &pb::Message) -> String {
    let role = match message.role() {
        pb::Role::System => "system",
        pb::Role::User => "user",
        pb::Role::Assistant => "assistant",
        pb::Role::Unspecified => "nobody",
    };
    let parts: Vec<String> = message.parts.iter().map(part_text).collect();
    format!("{role}: {}", parts.join(" "))
}

fn part_text(part: &pb::Part) -> String {
    match &part.body {
        Some(part::Body::Text(text) | part::Body::Refusal(text)) => text.clone(),
        Some(part::Body::Image(_)) => "[image]".into(),
        Some(part::Body::File(_)) => "[file]".into(),
        Some(part::Body::ToolCall(call)) => format!("[call {} {} {}]", call.id, call.name, call.arguments_json),
        Some(part::Body::ToolResult(result)) => {
            let content: Vec<String> = result.content.iter().map(part_text).collect();
            format!("[result {} {}]", result.id, content.join(" "))
        }
        Some(part::Body::Thinking(thinking)) => format!("[thinking {}]", thinking.text),
        Some(part::Body::RedactedThinking(_)) => "[redacted thinking]".into(),
        None => "[nothing]".into(),
    }
}

/// What a turn asks, all messages of its conversation given.
pub(crate) fn ask(model: &str, messages: &[pb::Message], tools: &[pb::Tool], turn: &pb::ChatRequest) -> Ask {
    let mut ask = read(Dialect::Chat, InPath { model: Some(model), ..InPath::default() }, &Value::Null);
    ask.stream = turn.stream;
    ask.max_tokens = turn.max_output_tokens;
    ask.stops.clone_from(&turn.stop);
    ask.parallel = turn.parallel_tool_calls.unwrap_or(true);
    ask.tools = tools
        .iter()
        .map(|tool| Tool {
            name: tool.name.clone(),
            schema: serde_json::from_str(&tool.parameters_json_schema).unwrap_or(Value::Null),
            custom: false,
            namespace: None,
        })
        .collect();
    if let Some(choice) = &turn.tool_choice {
        use pb::tool_choice::Mode;
        ask.choice = match (choice.mode(), choice.only.as_slice()) {
            (Mode::None, _) => Choice::Never,
            (Mode::Required, [one]) => Choice::Named(one.clone()),
            (Mode::Required, _) => Choice::Any,
            (Mode::Auto | Mode::Unspecified, _) => Choice::Auto,
        };
    }
    if let Some(output) = &turn.output {
        use pb::output_form::Kind;
        ask.schema = match output.kind() {
            Kind::Json => Some(Value::Bool(true)),
            Kind::JsonSchema => serde_json::from_str(&output.json_schema).ok(),
            Kind::Text | Kind::Unspecified => None,
        };
    }
    if let Some(reasoning) = &turn.reasoning {
        use pb::reasoning::Mode;
        ask.thinking = match reasoning.mode() {
            Mode::Adaptive | Mode::Budget => Thinking::Shown,
            Mode::Off | Mode::Unspecified => Thinking::Off,
        };
    }
    let texts: Vec<String> = messages.iter().map(said).collect();
    ask.prompt_words = texts.iter().map(|text| text.split_whitespace().count().saturating_sub(1) as u64).sum();
    let last = messages.iter().rev().find(|message| message.role() == pb::Role::User);
    let parts = last.map(|message| message.parts.as_slice()).unwrap_or_default();
    for part in parts {
        match &part.body {
            Some(part::Body::Text(text)) => ask.last_user_text.push_str(text),
            Some(part::Body::ToolResult(result)) => {
                let text: Vec<String> = result.content.iter().map(part_text).collect();
                ask.results.push(ToolResult { name: name_of_call(messages, &result.id), text: text.join(" ") });
            }
            Some(
                part::Body::Image(_)
                | part::Body::File(_)
                | part::Body::ToolCall(_)
                | part::Body::Thinking(_)
                | part::Body::RedactedThinking(_)
                | part::Body::Refusal(_),
            )
            | None => {}
        }
    }
    ask
}

fn name_of_call(messages: &[pb::Message], id: &str) -> String {
    let calls = messages.iter().rev().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        Some(part::Body::ToolCall(call)) if call.id == id => Some(call.name.clone()),
        _ => None,
    });
    calls.into_iter().next().unwrap_or_else(|| id.to_owned())
}

/// The events of an answer, and what each is to gates and faults.
pub(crate) fn events(answer: &Answer) -> Vec<(Mark, pb::ChatEvent)> {
    let mut out = Vec::new();
    let mut blocks = 0;
    let mut push = |mark, event| out.push((mark, pb::ChatEvent { event: Some(event) }));
    let id = format!("lab-answer-{:06}", answer.id);
    let start = pb::Start { id, model: answer.model.clone(), usage: None };
    push(Mark::Preamble, chat_event::Event::Start(start));
    let mut block = |kind: block_start::Kind, grown: Vec<delta::Delta>| {
        let number = blocks;
        blocks += 1;
        push(Mark::Between, chat_event::Event::BlockStart(pb::BlockStart { block: number, kind: Some(kind) }));
        for grown in grown {
            let mark = match grown {
                delta::Delta::Signature(_) => Mark::Between,
                delta::Delta::Text(_) | delta::Delta::Thinking(_) | delta::Delta::Arguments(_) => Mark::Word,
            };
            push(mark, chat_event::Event::Delta(pb::Delta { block: number, delta: Some(grown) }));
        }
        push(Mark::Between, chat_event::Event::BlockStop(pb::BlockStop { block: number }));
    };
    if let Some(thought) = &answer.thought {
        let words = thought.words.iter().map(|word| delta::Delta::Thinking(word.clone()));
        let signed = delta::Delta::Signature(thought.signature.clone());
        block(block_start::Kind::Thinking(pb::ThinkingBlock {}), words.chain([signed]).collect());
    }
    if !answer.words.is_empty() {
        let words = answer.words.iter().map(|word| delta::Delta::Text(word.clone())).collect();
        block(block_start::Kind::Text(pb::TextBlock {}), words);
    }
    if let Some(refusal) = &answer.refusal {
        block(block_start::Kind::Refusal(pb::RefusalBlock {}), vec![delta::Delta::Text(refusal.clone())]);
    }
    for call in &answer.calls {
        let kind = pb::ToolCallBlock { id: call.id.clone(), name: call.name.clone() };
        let fragments = call.fragments.iter().map(|fragment| delta::Delta::Arguments(fragment.clone())).collect();
        block(block_start::Kind::ToolCall(kind), fragments);
    }
    push(Mark::Between, chat_event::Event::Usage(usage(answer)));
    push(Mark::Finish, chat_event::Event::Finish(finish(answer)));
    out
}

fn usage(answer: &Answer) -> pb::Usage {
    let counts = &answer.usage;
    pb::Usage {
        input: counts.prompt.saturating_sub(counts.cached + counts.cache_write),
        cache_read: counts.cached,
        cache_write: counts.cache_write,
        output: counts.completion,
        reasoning: counts.reasoning,
    }
}

fn finish(answer: &Answer) -> pb::Finish {
    use pb::finish::Reason;
    let (reason, stop_sequence) = match &answer.finish {
        Finish::Stop => (Reason::Stop, None),
        Finish::Length => (Reason::Length, None),
        Finish::StopSequence(text) => (Reason::StopSequence, Some(text.clone())),
        Finish::ToolCalls => (Reason::ToolCalls, None),
        Finish::Refusal => (Reason::Refusal, None),
        Finish::Other(_) => (Reason::Unspecified, None),
    };
    pb::Finish { reason: reason.into(), stop_sequence }
}

/// What the conversation holds of an answer.
pub(crate) fn answered(answer: &Answer) -> pb::Message {
    let mut bodies = Vec::new();
    if !answer.words.is_empty() {
        bodies.push(part::Body::Text(answer.words.concat()));
    }
    bodies.extend(answer.refusal.clone().map(part::Body::Refusal));
    bodies.extend(answer.calls.iter().map(|call| {
        part::Body::ToolCall(pb::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments_json: call.arguments(),
        })
    }));
    let parts = bodies.into_iter().map(|body| pb::Part { body: Some(body), cache_mark_json: None }).collect();
    pb::Message { role: pb::Role::Assistant.into(), parts }
}
