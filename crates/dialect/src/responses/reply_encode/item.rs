//! One output item that is being written: its announcement, its pieces, its end.

use super::{Form, ItemKind, Writer};
use crate::event::Delta;
use crate::json::{Invalid, Kind, Object, Reader};
use std::borrow::Cow;

/// An item that is open.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) block: u32,
    /// `output_index`.
    index: u64,
    id: String,
    kind: ItemKind,
    text: String,
    proof: String,
    /// Of its pieces, once a second one has come.
    form: Option<Form>,
}

impl Item {
    /// Announces an item.
    pub(super) fn open(
        block: u32,
        index: u64,
        id: String,
        kind: ItemKind,
        writer: &mut Writer,
        out: &mut Vec<u8>,
    ) -> Self {
        let item = Item { block, index, id, kind, text: String::new(), proof: String::new(), form: None };
        writer.event(out, "response.output_item.added", |event| {
            event.number("output_index", index);
            item.write(&mut event.object("item"), None);
        });
        if let Some(part) = item.part() {
            writer.event(out, "response.content_part.added", |event| {
                item.place(event);
                part.write(&mut event.object("part"), "");
            });
        }
        item
    }

    /// Where in a message an event belongs. Messages have one part.
    fn place(&self, event: &mut Object<'_>) {
        self.of(event);
        event.number("content_index", 0);
    }

    fn of(&self, event: &mut Object<'_>) {
        event.string("item_id", &self.id);
        event.number("output_index", self.index);
    }

    fn part(&self) -> Option<Part> {
        match self.kind {
            ItemKind::Text => Some(Part::Text),
            ItemKind::Refusal => Some(Part::Refusal),
            ItemKind::Reasoning | ItemKind::Redacted(_) | ItemKind::Call { .. } => None,
        }
    }

    /// Takes a piece.
    pub(super) fn delta(&mut self, delta: &Delta, writer: &mut Writer, out: &mut Vec<u8>) {
        match (delta, &self.kind) {
            (Delta::Text(text), ItemKind::Text | ItemKind::Refusal) => self.grow(text, writer, out),
            (Delta::Thinking(text), ItemKind::Reasoning) => {
                if self.text.is_empty() && !text.is_empty() {
                    writer.event(out, "response.reasoning_summary_part.added", |event| {
                        self.of(event);
                        event.number("summary_index", 0);
                        Part::Summary.write(&mut event.object("part"), "");
                    });
                }
                self.grow(text, writer, out);
            }
            (Delta::Signature(text), ItemKind::Reasoning) => self.proof.push_str(text),
            // Free text is taken out of its JSON when it is whole.
            (Delta::Arguments(text), ItemKind::Call { custom: true, .. }) => self.text.push_str(text),
            (Delta::Arguments(text), ItemKind::Call { custom: false, .. }) => self.grow(text, writer, out),
            // What does not belong to the block is not there.
            (Delta::Text(_) | Delta::Thinking(_) | Delta::Signature(_) | Delta::Arguments(_), _) => {}
        }
    }

    fn grow(&mut self, text: &str, writer: &mut Writer, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        match &self.form {
            Some(form) => writer.piece(out, form, text),
            // Many an item comes in one piece, for which the form does not pay.
            None if self.text.is_empty() => writer.event(out, self.kind.delta(), |event| {
                self.stand(event);
                event.string("delta", text);
                if matches!(self.kind, ItemKind::Text) {
                    event.array("logprobs");
                }
            }),
            None => {
                let form = self.form();
                writer.piece(out, &form, text);
                self.form = Some(form);
            }
        }
        self.text.push_str(text);
    }

    /// Where a piece belongs.
    fn stand(&self, event: &mut Object<'_>) {
        match self.kind {
            ItemKind::Text | ItemKind::Refusal => self.place(event),
            ItemKind::Reasoning | ItemKind::Redacted(_) => {
                self.of(event);
                event.number("summary_index", 0);
            }
            ItemKind::Call { .. } => self.of(event),
        }
    }

    /// Of a piece. An answer is little else, so it is written once for all of an item's.
    fn form(&self) -> Form {
        let name = self.kind.delta();
        let before = format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":").into_bytes();
        let mut place = Vec::with_capacity(128);
        self.stand(&mut Object::open(&mut place));
        // Its fields go on in an object that is open, and are followed by another.
        let mut between = b",".to_vec();
        between.extend_from_slice(place.get(1..place.len().saturating_sub(1)).unwrap_or_default());
        between.extend_from_slice(b",\"delta\":");
        let after: &[u8] = match self.kind {
            ItemKind::Text => b",\"logprobs\":[]}\n\n",
            ItemKind::Refusal | ItemKind::Reasoning | ItemKind::Redacted(_) | ItemKind::Call { .. } => b"}\n\n",
        };
        Form { before, between, after }
    }

    /// Ends the item; gives its place in the output and itself, as it stands there.
    pub(super) fn close(mut self, writer: &mut Writer, out: &mut Vec<u8>) -> (u64, Vec<u8>) {
        let mut whole = true;
        match &self.kind {
            ItemKind::Text => writer.event(out, "response.output_text.done", |event| {
                self.place(event);
                event.string("text", &self.text);
                event.array("logprobs");
            }),
            ItemKind::Refusal => writer.event(out, "response.refusal.done", |event| {
                self.place(event);
                event.string("refusal", &self.text);
            }),
            ItemKind::Reasoning if self.text.is_empty() => {}
            ItemKind::Reasoning => {
                writer.event(out, "response.reasoning_summary_text.done", |event| {
                    self.of(event);
                    event.number("summary_index", 0);
                    event.string("text", &self.text);
                });
                writer.event(out, "response.reasoning_summary_part.done", |event| {
                    self.of(event);
                    event.number("summary_index", 0);
                    Part::Summary.write(&mut event.object("part"), &self.text);
                });
            }
            ItemKind::Redacted(_) => {}
            ItemKind::Call { custom: true, .. } => {
                let input = free_text(&self.text);
                whole = input.is_some();
                let input = input.map(Cow::into_owned).unwrap_or_else(|| std::mem::take(&mut self.text));
                if !input.is_empty() {
                    writer.event(out, "response.custom_tool_call_input.delta", |event| {
                        self.of(event);
                        event.string("delta", &input);
                    });
                }
                writer.event(out, "response.custom_tool_call_input.done", |event| {
                    self.of(event);
                    event.string("input", &input);
                });
                self.text = input;
            }
            ItemKind::Call { name, custom: false, .. } => {
                // A client parses the arguments, and an empty text does not parse.
                if self.text.trim().is_empty() {
                    writer.event(out, "response.function_call_arguments.delta", |event| {
                        self.of(event);
                        event.string("delta", "{}");
                    });
                    self.text.push_str("{}");
                }
                let mut r = Reader::over(&self.text);
                whole = r.skip().and_then(|_| r.end()).is_ok();
                writer.event(out, "response.function_call_arguments.done", |event| {
                    self.of(event);
                    event.string("name", name);
                    event.string("arguments", &self.text);
                });
            }
        }
        if let Some(part) = self.part() {
            writer.event(out, "response.content_part.done", |event| {
                self.place(event);
                part.write(&mut event.object("part"), &self.text);
            });
        }
        let mut done = Vec::with_capacity(self.text.len() + 160);
        self.write(&mut Object::open(&mut done), Some(whole));
        writer.event(out, "response.output_item.done", |event| {
            event.number("output_index", self.index);
            event.raw_bytes("item", &done);
        });
        (self.index, done)
    }

    /// The item: at its beginning, or at its end, where it is told whether it is whole.
    fn write(&self, item: &mut Object<'_>, ended: Option<bool>) {
        let status = match ended {
            None => "in_progress",
            Some(true) => "completed",
            Some(false) => "incomplete",
        };
        item.string("id", &self.id);
        match &self.kind {
            ItemKind::Text | ItemKind::Refusal => {
                item.string("type", "message");
                item.string("status", status);
                item.string("role", "assistant");
                let mut content = item.array("content");
                if let (Some(part), Some(_)) = (self.part(), ended) {
                    part.write(&mut content.object(), &self.text);
                }
            }
            ItemKind::Reasoning => {
                item.string("type", "reasoning");
                {
                    let mut summary = item.array("summary");
                    if !self.text.is_empty() {
                        Part::Summary.write(&mut summary.object(), &self.text);
                    }
                }
                if let Some(proof) = super::proof(&self.proof) {
                    item.string("encrypted_content", &proof);
                }
            }
            ItemKind::Redacted(data) => {
                item.string("type", "reasoning");
                item.array("summary");
                item.string("encrypted_content", &format!("{}{data}", crate::envelope::REDACTED));
            }
            ItemKind::Call { call_id, name, namespace, custom } => {
                item.string("type", if *custom { "custom_tool_call" } else { "function_call" });
                item.string("status", status);
                item.string(if *custom { "input" } else { "arguments" }, &self.text);
                item.string("call_id", call_id);
                item.string("name", name);
                if let Some(namespace) = namespace {
                    item.string("namespace", namespace);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Text,
    Refusal,
    Summary,
}

impl Part {
    fn write(self, part: &mut Object<'_>, text: &str) {
        match self {
            Part::Text => {
                part.string("type", "output_text");
                part.array("annotations");
                part.array("logprobs");
                part.string("text", text);
            }
            Part::Refusal => {
                part.string("type", "refusal");
                part.string("refusal", text);
            }
            Part::Summary => {
                part.string("type", "summary_text");
                part.string("text", text);
            }
        }
    }
}

/// The free text in `{"input":"…"}`; `None` for what has no such form.
fn free_text(arguments: &str) -> Option<Cow<'_, str>> {
    if arguments.trim().is_empty() {
        return Some(Cow::Borrowed(""));
    }
    let mut input = None;
    let mut r = Reader::over(arguments);
    let read = r.object::<Invalid>(|r, key| {
        if key == "input" && r.kind()? == Kind::String {
            input = Some(r.string()?);
            return Ok(());
        }
        r.skip().map(drop)
    });
    read.and_then(|()| r.end()).ok().and(input)
}
