//! What one event says, as far as the order of a stream is judged by it. It is read without a tree, as every event that
//! begins or ends something is judged in production.

use crate::json::{Invalid, Kind, Reader};
use std::borrow::Cow;

/// The fields of an event. What is not there, or of another kind than it should be, is `None` or false.
#[derive(Default)]
pub(super) struct Said<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) index: Option<u64>,
    pub(super) message: Message,
    pub(super) block: Block<'a>,
    pub(super) delta: Delta<'a>,
    pub(super) usage: Usage,
    /// The error has a type, and a message.
    pub(super) error_type: bool,
    pub(super) error_message: bool,
}

/// The message of a `message_start`.
#[derive(Default)]
pub(super) struct Message {
    /// It begins with `msg_`.
    pub(super) id: bool,
    /// It is `message`.
    pub(super) kind: bool,
    /// It is `assistant`.
    pub(super) role: bool,
    pub(super) model: bool,
    /// The content is an empty list.
    pub(super) empty: bool,
    /// There is a reason of its end already.
    pub(super) stopped: bool,
    pub(super) usage: Usage,
}

/// Which counts are there.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) input: bool,
    pub(super) output: bool,
}

/// The block of a `content_block_start`.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    /// Empty texts.
    pub(super) text: bool,
    pub(super) thinking: bool,
    /// Texts.
    pub(super) data: bool,
    pub(super) name: bool,
    /// An empty object.
    pub(super) input: bool,
}

/// The `delta` of a block or of the message; which texts are there.
#[derive(Default)]
pub(super) struct Delta<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) reason: Option<Cow<'a, str>>,
    pub(super) text: bool,
    pub(super) thinking: bool,
    pub(super) signature: bool,
    pub(super) arguments: bool,
}

impl<'a> Said<'a> {
    /// Reads the data of an event, which must be one whole object.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, Invalid> {
        let mut said = Said::default();
        let mut r = Reader::new(data)?;
        r.object(|r, key| said.field(r, key))?;
        r.end()?;
        Ok(said)
    }

    fn field(&mut self, r: &mut Reader<'a>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("type", Kind::String) => self.kind = Some(r.string()?),
            ("index", Kind::Number) => self.index = r.number()?.parse().ok(),
            ("message", Kind::Object) => r.object(|r, key| self.message.field(r, key))?,
            ("content_block", Kind::Object) => r.object(|r, key| self.block.field(r, key))?,
            ("delta", Kind::Object) => r.object(|r, key| self.delta.field(r, key))?,
            ("usage", Kind::Object) => r.object(|r, key| self.usage.field(r, key))?,
            ("error", Kind::Object) => r.object(|r, key| {
                match (key, r.kind()?) {
                    ("type", Kind::String) => self.error_type = true,
                    ("message", Kind::String) => self.error_message = true,
                    _ => {}
                }
                r.skip().map(drop)
            })?,
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}

impl Message {
    fn field(&mut self, r: &mut Reader<'_>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("id", Kind::String) => self.id = r.string()?.starts_with("msg_"),
            ("type", Kind::String) => self.kind = r.string()? == "message",
            ("role", Kind::String) => self.role = r.string()? == "assistant",
            ("model", Kind::String) => {
                self.model = true;
                r.skip()?;
            }
            ("content", Kind::Array) => {
                self.empty = true;
                r.array(|r, _| {
                    self.empty = false;
                    r.skip().map(drop)
                })?;
            }
            ("stop_reason", kind) => {
                self.stopped = kind != Kind::Null;
                r.skip()?;
            }
            ("usage", Kind::Object) => r.object(|r, key| self.usage.field(r, key))?,
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}

impl Usage {
    fn field(&mut self, r: &mut Reader<'_>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("input_tokens", Kind::Number) => self.input = r.number()?.parse::<u64>().is_ok(),
            ("output_tokens", Kind::Number) => self.output = r.number()?.parse::<u64>().is_ok(),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}

impl<'a> Block<'a> {
    fn field(&mut self, r: &mut Reader<'a>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("type", Kind::String) => self.kind = Some(r.string()?),
            ("id", Kind::String) => self.id = Some(r.string()?),
            ("text", Kind::String) => self.text = r.string()?.is_empty(),
            ("thinking", Kind::String) => self.thinking = r.string()?.is_empty(),
            ("data", Kind::String) => {
                self.data = true;
                r.skip()?;
            }
            ("name", Kind::String) => {
                self.name = true;
                r.skip()?;
            }
            ("input", Kind::Object) => {
                self.input = true;
                r.object(|r, _| {
                    self.input = false;
                    r.skip().map(drop)
                })?;
            }
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}

impl<'a> Delta<'a> {
    fn field(&mut self, r: &mut Reader<'a>, key: &str) -> Result<(), Invalid> {
        match (key, r.kind()?) {
            ("type", Kind::String) => self.kind = Some(r.string()?),
            ("stop_reason", Kind::String) => self.reason = Some(r.string()?),
            (key, Kind::String) => {
                match key {
                    "text" => self.text = true,
                    "thinking" => self.thinking = true,
                    "signature" => self.signature = true,
                    "partial_json" => self.arguments = true,
                    _ => {}
                }
                r.skip()?;
            }
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }
}
