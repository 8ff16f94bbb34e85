//! Canonical events in short, and the order that every decoder keeps.

use turnkeep_base::Usage;
use turnkeep_dialect::event::{Block, Delta, Event};

/// The events in short: `+0 text`, `0 a`, `-0`, `finish Stop`; a usage in the words of `counts`.
pub fn short(events: &[Event], counts: impl Fn(&Usage) -> String) -> Vec<String> {
    let line = |event: &Event| match event {
        Event::Start { id, model, .. } => {
            format!("start {} {}", id.as_deref().unwrap_or("-"), model.as_deref().unwrap_or("-"))
        }
        Event::BlockStart { block, kind } => match kind {
            Block::Text => format!("+{block} text"),
            Block::Thinking => format!("+{block} thinking"),
            Block::Refusal => format!("+{block} refusal"),
            Block::RedactedThinking(data) => format!("+{block} redacted {data}"),
            Block::ToolCall { id, name } => format!("+{block} call {id} {name}"),
        },
        Event::Delta { block, delta } => match delta {
            Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) => format!("{block} {text}"),
            Delta::Signature(text) => format!("{block} signed {text}"),
        },
        Event::BlockStop { block } => format!("-{block}"),
        Event::Finish { reason, .. } => format!("finish {reason:?}"),
        Event::Usage(usage) => format!("usage {}", counts(usage)),
        Event::End => "end".into(),
    };
    events.iter().map(line).collect()
}

/// What went in, all of it, and what came out.
pub fn in_and_out(usage: &Usage) -> String {
    format!("{}+{}", usage.total_input(), usage.output)
}

/// The order that decoders keep.
#[track_caller]
pub fn lawful(events: &[Event]) {
    assert!(matches!(events.first(), Some(Event::Start { .. })), "{events:?}");
    assert!(matches!(events.last(), Some(Event::End)), "{events:?}");
    let (mut next, mut open) = (0, std::collections::BTreeSet::new());
    for event in events {
        match event {
            Event::BlockStart { block, .. } => {
                assert_eq!(*block, next, "{events:?}");
                next += 1;
                open.insert(*block);
            }
            Event::Delta { block, .. } => assert!(open.contains(block), "{event:?}"),
            Event::BlockStop { block } => assert!(open.remove(block), "{event:?}"),
            Event::Finish { .. } => assert!(open.is_empty(), "{events:?}"),
            Event::Start { .. } | Event::Usage(_) | Event::End => {}
        }
    }
}
