//! The order validator of whichever dialect.

use turnkeep_base::Dialect;
use turnkeep_dialect::{chat, gemini, messages, responses};
use turnkeep_wire::sse::Frame;

/// Watches one stream.
pub(super) enum Order {
    Chat(chat::order::Order),
    Messages(messages::order::Order),
    Responses(responses::order::Order),
    Gemini(gemini::order::Order),
}

impl Order {
    pub(super) fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Order::Chat(chat::order::Order::default()),
            Dialect::Messages => Order::Messages(messages::order::Order::default()),
            Dialect::Responses => Order::Responses(responses::order::Order::default()),
            Dialect::Gemini => Order::Gemini(gemini::order::Order::default()),
        }
    }

    /// Takes a frame; the error tells what may not stand there.
    pub(super) fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        match self {
            Order::Chat(order) => order.frame(frame),
            Order::Messages(order) => order.frame(frame),
            Order::Responses(order) => order.frame(frame),
            Order::Gemini(order) => order.frame(frame),
        }
    }

    /// The stream is at its end.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self {
            Order::Chat(order) => order.finish(),
            Order::Messages(order) => order.finish(),
            Order::Responses(order) => order.finish(),
            Order::Gemini(order) => order.finish(),
        }
    }
}
