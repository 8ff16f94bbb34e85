//! The order validator of whichever dialect.

use turnkeep_base::Dialect;
use turnkeep_dialect::{chat, messages};
use turnkeep_wire::sse::Frame;

/// Watches one stream.
pub(super) enum Order {
    Chat(chat::order::Order),
    Messages(messages::order::Order),
    /// A dialect whose order this build does not know.
    Unknown(Dialect),
}

impl Order {
    pub(super) fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Order::Chat(chat::order::Order::default()),
            Dialect::Messages => Order::Messages(messages::order::Order::default()),
            Dialect::Responses | Dialect::Gemini => Order::Unknown(dialect),
        }
    }

    /// Takes a frame; the error tells what may not stand there.
    pub(super) fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        match self {
            Order::Chat(order) => order.frame(frame),
            Order::Messages(order) => order.frame(frame),
            Order::Unknown(dialect) => Err(format!("this build knows no order of a {dialect} stream")),
        }
    }

    /// The stream is at its end.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self {
            Order::Chat(order) => order.finish(),
            Order::Messages(order) => order.finish(),
            Order::Unknown(dialect) => Err(format!("this build knows no order of a {dialect} stream")),
        }
    }
}
