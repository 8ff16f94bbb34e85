//! Whether what we write of a translated answer keeps the order that the client's dialect asks for. Both ends are
//! checked: the events that the decoder gives, each of them; and the bytes that the encoder makes, by the dialect's own
//! validator.
//!
//! The validators read JSON: of every delta, that would cost half to three quarters of the translation itself, where the
//! check of its event costs a hundredth. So the bytes of deltas, which are nearly all of an answer and of one form, are
//! left to the check of the events; whatever begins, ends or closes something is read. A breach is a mistake of ours, and
//! never silent.

use super::{ReplyFault, ReplyOptions};
use crate::event::{self, Event};
use crate::request::{Operation, StreamForm};
use crate::{chat, gemini, messages, responses};
use bytes::Bytes;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_wire::sse;

/// Watches one translated answer.
#[derive(Debug)]
pub(super) struct Lawful {
    client: Dialect,
    events: event::Order,
    reader: sse::Reader,
    written: Written,
}

/// The validator of the client's dialect.
#[derive(Debug)]
enum Written {
    Chat(chat::order::Order),
    Responses(responses::outline::Outline),
    Messages(messages::order::Order),
    Gemini(gemini::order::Order),
    /// A form that has no validator: the older completions, and Gemini's array, whose elements stand in one document.
    Unchecked,
}

impl Lawful {
    pub(super) fn new(options: &ReplyOptions) -> Self {
        let client = options.client;
        let written = match (client, options.asked.operation, options.asked.form) {
            (_, Operation::Complete | Operation::Embed, _) | (_, _, StreamForm::Array) => Written::Unchecked,
            (Dialect::Chat, _, StreamForm::Events) => Written::Chat(chat::order::Order::default()),
            (Dialect::Responses, _, StreamForm::Events) => Written::Responses(responses::outline::Outline::default()),
            (Dialect::Messages, _, StreamForm::Events) => Written::Messages(messages::order::Order::default()),
            (Dialect::Gemini, _, StreamForm::Events) => Written::Gemini(gemini::order::Order::default()),
        };
        // Our own bytes, which are in memory already.
        Lawful { client, events: event::Order::default(), reader: sse::Reader::new(usize::MAX / 2), written }
    }

    /// Before an event is encoded.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), ReplyFault> {
        self.events.event(event).map_err(|what| self.breach(&format!("the translated answer has {what}")))
    }

    /// The bytes that the event became.
    pub(super) fn bytes(&mut self, event: &Event, bytes: &Bytes) -> Result<(), ReplyFault> {
        if bytes.is_empty() || matches!(self.written, Written::Unchecked) {
            return Ok(());
        }
        if matches!(event, Event::Delta { .. }) {
            if let Written::Responses(outline) = &mut self.written {
                outline.unread(bytes);
            }
            return Ok(());
        }
        self.reader.push(bytes.clone());
        while let Some(frame) = self.reader.next_frame().map_err(|long| self.breach(&long.to_string()))? {
            self.frame(&frame).map_err(|what| self.breach(&what))?;
        }
        if self.reader.pending() > 0 {
            return Err(self.breach("half an event"));
        }
        if matches!(event, Event::End) { self.finish().map_err(|what| self.breach(&what)) } else { Ok(()) }
    }

    fn frame(&mut self, frame: &sse::Frame) -> Result<(), String> {
        match &mut self.written {
            Written::Chat(order) => order.frame(frame),
            Written::Responses(outline) => outline.frame(frame),
            Written::Messages(order) => order.frame(frame),
            Written::Gemini(order) => order.frame(frame),
            Written::Unchecked => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), String> {
        match &self.written {
            Written::Chat(order) => order.finish(),
            Written::Responses(outline) => outline.finish(),
            Written::Messages(order) => order.finish(),
            Written::Gemini(order) => order.finish(),
            Written::Unchecked => Ok(()),
        }
    }

    fn breach(&self, what: &str) -> ReplyFault {
        ReplyFault::new(FaultKind::GatewayBug, format!("what we wrote in {} is not lawful: {what}", self.client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Block, Finish};
    use crate::reply::{Facts, ReplyOptions, Writer, translate};

    fn options(client: Dialect) -> ReplyOptions {
        ReplyOptions {
            client,
            upstream: Dialect::Chat,
            model: "m".into(),
            usage_wanted: false,
            choices: 1,
            id: "1".into(),
            created: 0,
            max_event: 1 << 20,
            asked: super::super::Asked::default(),
        }
    }

    fn start() -> Event {
        Event::Start { id: None, model: None, usage: None }
    }

    #[test]
    fn events_out_of_order_are_our_own_mistake() {
        for client in Dialect::ALL {
            let mut lawful = Lawful::new(&options(client));
            lawful.event(&start()).unwrap();
            let fault = lawful.event(&Event::BlockStop { block: 0 }).unwrap_err();
            assert_eq!(fault.kind, FaultKind::GatewayBug);
            assert!(fault.evidence.detail.contains("block 0, which is not open"), "{}", fault.evidence.detail);
        }
    }

    #[test]
    fn nothing_of_an_event_out_of_order_is_written() {
        let options = options(Dialect::Messages);
        let mut writer = Writer::new(&options);
        let mut events = vec![start(), Event::BlockStart { block: 7, kind: Block::Text }];
        let (mut facts, mut out) = (Facts::default(), Vec::new());
        let fault = translate(&mut events, &mut writer, &mut facts, &mut out).unwrap_err();
        assert_eq!((fault.kind, out.len()), (FaultKind::GatewayBug, 1));
    }

    #[test]
    fn bytes_that_the_dialect_does_not_allow_are_our_own_mistake() {
        let block = Event::BlockStart { block: 0, kind: Block::Text };
        let finish = Event::Finish { reason: Finish::Stop, stop_sequence: None };
        for (client, event, bytes, says) in [
            (Dialect::Chat, &block, "data: {\"choices\":[]}\n\n", "object is None"),
            (Dialect::Chat, &finish, "data: [DONE]\n\n", "before every choice had its finish_reason"),
            (Dialect::Chat, &block, "data: {}", "half an event"),
            (Dialect::Messages, &block, "event: ping\ndata: {\"type\":\"pong\"}\n\n", "carries data of type"),
            (Dialect::Messages, &Event::End, "event: ping\ndata: {\"type\":\"ping\"}\n\n", "stops in the state Fresh"),
        ] {
            let mut lawful = Lawful::new(&options(client));
            let fault = lawful.bytes(event, &Bytes::from_static(bytes.as_bytes())).unwrap_err();
            assert_eq!(fault.kind, FaultKind::GatewayBug);
            assert!(fault.evidence.detail.contains(says), "{}", fault.evidence.detail);
        }
    }
}
