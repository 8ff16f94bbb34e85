//! A record as bytes for the store: a version, the facts, then the answer. What cannot be read is no record; it never
//! stops a start.

use super::Recorded;
use crate::event::Finish;
use crate::reply::Facts;
use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_base::{Dialect, Usage};

/// What a record begins with; the last byte is the version of its form.
const MAGIC: &[u8] = b"TKanswer\x01";

const FINISHES: [Finish; 7] = [
    Finish::Stop,
    Finish::StopSequence,
    Finish::Length,
    Finish::ContextFull,
    Finish::ToolCalls,
    Finish::Refusal,
    Finish::Pause,
];

impl Recorded {
    /// The record as bytes, with its version.
    pub fn to_bytes(&self) -> Bytes {
        let Facts { usage, finish, model, id, content_bytes, link: _ } = &self.facts;
        let mut out = BytesMut::with_capacity(self.bytes.len() + 128);
        out.put_slice(MAGIC);
        out.put_u8(match self.dialect {
            Dialect::Chat => 0,
            Dialect::Messages => 1,
            Dialect::Responses => 2,
            Dialect::Gemini => 3,
        });
        out.put_u8(u8::from(self.stream));
        let finish = finish.and_then(|finish| FINISHES.iter().position(|known| *known == finish));
        out.put_u8(finish.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(0));
        out.put_u8(u8::from(usage.is_some()));
        if let Some(Usage { input, cache_read, cache_write, output, reasoning }) = usage {
            [input, cache_read, cache_write, output, reasoning].into_iter().for_each(|count| out.put_u64(*count));
        }
        out.put_u64(*content_bytes);
        for name in [model, id] {
            let name = name.as_deref().unwrap_or_default();
            // Facts hold no longer names.
            let length = u16::try_from(name.len()).ok();
            out.put_u16(length.unwrap_or(0));
            out.put_slice(if length.is_some() { name.as_bytes() } else { b"" });
        }
        out.put_slice(&self.bytes);
        out.freeze()
    }

    /// The record that [`Recorded::to_bytes`] made; `None` for other bytes and other versions. The answer itself is not
    /// read here.
    pub fn from_bytes(bytes: Bytes) -> Option<Recorded> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let dialect = match byte(&mut rest)? {
            0 => Dialect::Chat,
            1 => Dialect::Messages,
            2 => Dialect::Responses,
            3 => Dialect::Gemini,
            _ => return None,
        };
        let stream = flag(&mut rest)?;
        let finish = match usize::from(byte(&mut rest)?).checked_sub(1) {
            None => None,
            Some(at) => Some(*FINISHES.get(at)?),
        };
        let usage = if flag(&mut rest)? {
            let mut count = || number(&mut rest);
            let (input, cache_read, cache_write) = (count()?, count()?, count()?);
            Some(Usage { input, cache_read, cache_write, output: count()?, reasoning: count()? })
        } else {
            None
        };
        let content_bytes = number(&mut rest)?;
        let model = name(&mut rest)?;
        let id = name(&mut rest)?;
        let at = bytes.len() - rest.len();
        let facts = Facts { usage, finish, model, id, content_bytes, ..Facts::default() };
        Some(Recorded { dialect, stream, bytes: bytes.slice(at..), facts })
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1)?.first().copied()
}

fn flag(rest: &mut &[u8]) -> Option<bool> {
    match byte(rest)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest, 8)?.try_into().ok().map(u64::from_be_bytes)
}

/// A name; none is an empty one.
fn name(rest: &mut &[u8]) -> Option<Option<String>> {
    let length = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    let name = std::str::from_utf8(take(rest, usize::from(length))?).ok()?;
    Some((!name.is_empty()).then(|| name.to_owned()))
}
