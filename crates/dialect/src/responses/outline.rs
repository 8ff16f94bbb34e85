//! The outline of a Responses stream, cheap enough to be checked on every translated answer: which events come, how they
//! are numbered, and that every item is added once and done once before the end. What is in them is [`super::order`]'s,
//! which reads all of it.

use crate::json::{Invalid, Kind, Reader};
use bytes::Bytes;
use std::borrow::Cow;
use turnkeep_wire::sse::Frame;

/// Watches one stream.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Lifecycle events so far.
    begun: u8,
    ended: bool,
    /// The next `sequence_number`.
    next: u64,
    /// The `response` of the first event and what follows it, until the second has come, which says the same.
    response: Bytes,
    /// The items by their `output_index`: done or not.
    items: Vec<bool>,
}

impl Outline {
    /// Frames that went out unread.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        let frames = memchr::memmem::find_iter(bytes, b"\n\n").count();
        self.next += u64::try_from(frames).unwrap_or(u64::MAX);
    }

    /// Judges the next frame.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        let Some(data) = &frame.data else { return Ok(()) };
        let name = frame.event.as_deref().unwrap_or_default();
        let (mut same, mut number, mut index) = (false, None, None);
        let unread = self.unread_part(name, data);
        let mut r = Reader::new(&unread).map_err(|invalid| invalid.to_string())?;
        let read = r.object::<Invalid>(|r, key| match (key, r.kind()?) {
            ("type", Kind::String) => r.string().map(|kind| same = kind.as_bytes() == name),
            ("sequence_number", Kind::Number) => r.u64().map(|value| number = Some(value)),
            ("output_index", Kind::Number) => r.u64().map(|value| index = Some(value)),
            _ => r.skip().map(drop),
        });
        read.and_then(|()| r.end()).map_err(|invalid| invalid.to_string())?;
        let shown = String::from_utf8_lossy(name);
        if !same || self.ended {
            return Err(format!("`{shown}` that is another type in its data, or stands after the end"));
        }
        if number != Some(self.next) {
            return Err(format!("`{shown}` with the number {number:?} and not {}", self.next));
        }
        self.next += 1;
        let at = index.and_then(|index| usize::try_from(index).ok());
        let legal = match (name, at) {
            (b"response.created", None) => self.lifecycle(0),
            (b"response.in_progress", None) => self.lifecycle(1),
            (b"response.completed" | b"response.incomplete", None) => {
                self.ended = true;
                self.begun == 2 && self.items.iter().all(|done| *done)
            }
            (b"response.output_item.added", Some(at)) => {
                self.items.push(false);
                self.begun == 2 && at + 1 == self.items.len()
            }
            (b"response.output_item.done", Some(at)) => {
                self.items.get_mut(at).is_some_and(|done| !std::mem::replace(done, true))
            }
            (_, Some(at)) => self.items.get(at) == Some(&false),
            (_, None) => false,
        };
        if legal { Ok(()) } else { Err(format!("`{shown}` out of place (item {at:?} of {})", self.items.len())) }
    }

    /// What of an event is to be read. The second event's response is the first one's to the byte, and as long as a
    /// request's tools: it is compared with what has been read, and not read again.
    fn unread_part<'d>(&mut self, name: &[u8], data: &'d Bytes) -> Cow<'d, [u8]> {
        let known = std::mem::take(&mut self.response);
        let first = name == b"response.created";
        if !first && name != b"response.in_progress" {
            return Cow::Borrowed(data);
        }
        let Some(at) = memchr::memmem::find(data, b"\"response\":{") else { return Cow::Borrowed(data) };
        let rest = data.slice(at..);
        if first {
            self.response = rest;
            return Cow::Borrowed(data);
        }
        if rest != known {
            return Cow::Borrowed(data);
        }
        let mut short = data.get(..at).unwrap_or_default().to_vec();
        short.extend_from_slice(b"\"response\":{}}");
        Cow::Owned(short)
    }

    fn lifecycle(&mut self, at: u8) -> bool {
        let legal = self.begun == at;
        self.begun += 1;
        legal
    }

    /// The stream is at its end.
    pub(crate) fn finish(&self) -> Result<(), String> {
        if self.ended { Ok(()) } else { Err("the stream stops without its terminal event".into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn judged(events: &[(&str, &str)]) -> Result<(), String> {
        let mut outline = Outline::default();
        for (number, (name, more)) in events.iter().enumerate() {
            let data = format!("{{\"type\":\"response.{name}\",\"sequence_number\":{number}{more}}}");
            let event = Some(Bytes::from(format!("response.{name}")));
            outline.frame(&Frame { raw: Bytes::new(), event, data: Some(data.into()) })?;
        }
        outline.finish()
    }

    const ZERO: &str = ",\"output_index\":0";

    #[test]
    fn a_stream_of_whole_items_with_one_end_is_legal() {
        let good = [
            ("created", ""),
            ("in_progress", ""),
            ("output_item.added", ZERO),
            ("output_text.delta", ZERO),
            ("output_item.done", ZERO),
            ("completed", ""),
        ];
        judged(&good).unwrap();
        for missing in 0..good.len() {
            // Without any one of them but the delta something is out of place.
            let rest: Vec<_> = good.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, one)| *one).collect();
            assert_eq!(judged(&rest).is_ok(), missing == 3, "without {:?}", good[missing]);
        }
        let twice = [&good[..5], &good[4..]].concat();
        assert!(judged(&twice).is_err());
    }

    #[test]
    fn a_second_response_is_read_where_it_is_not_the_first_ones() {
        let judged = |second: &str| {
            let mut outline = Outline::default();
            let frame = |name: &str, number: u64, response: &str| {
                let data = format!("{{\"type\":\"{name}\",\"sequence_number\":{number},\"response\":{response}}}");
                Frame { raw: Bytes::new(), event: Some(Bytes::from(name.to_owned())), data: Some(data.into()) }
            };
            outline.frame(&frame("response.created", 0, "{\"tools\":[]}"))?;
            outline.frame(&frame("response.in_progress", 1, second))
        };
        assert_eq!(judged("{\"tools\":[]}"), Ok(()));
        assert_eq!(judged("{\"tools\":[1]}"), Ok(()));
        assert!(judged("{\"tools\":[}").is_err());
        assert!(judged("{\"tools\":[]},").is_err());
    }

    #[test]
    fn what_went_out_unread_counts_in_the_numbers() {
        let mut outline = Outline::default();
        outline.unread(b"event: a\ndata: {}\n\nevent: b\ndata: {}\n\n");
        let data = Some(Bytes::from_static(br#"{"type":"response.created","sequence_number":2}"#));
        outline.frame(&Frame { raw: Bytes::new(), event: Some("response.created".into()), data }).unwrap();
    }
}
