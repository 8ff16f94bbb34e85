//! Token counts as Messages writes them. The counts of `message_delta` overwrite those of `message_start`; what they
//! leave out keeps its earlier value.

use crate::json::{Invalid, Kind, Object, Reader};
use turnkeep_base::Usage;

/// The counts so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    usage: Usage,
    seen: bool,
}

impl Counts {
    /// The counts, if any came.
    pub(super) fn get(&self) -> Option<Usage> {
        self.seen.then_some(self.usage)
    }

    /// Reads a `usage` value over the earlier counts. Whatever is not a count is passed over. Input counts that are all
    /// zero, which compatible servers put at the end of a stream, take nothing back of what its start told.
    pub(super) fn merge(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        if r.kind()? != Kind::Object {
            return r.skip().map(drop);
        }
        let (mut input, mut read, mut written, mut by_life) = (None, None, None, None::<u64>);
        let Counts { usage, seen } = self;
        r.object(|r, key| match key {
            "input_tokens" => count(r).map(|number| input = number.or(input)),
            "cache_read_input_tokens" => count(r).map(|number| read = number.or(read)),
            "cache_creation_input_tokens" => count(r).map(|number| written = number.or(written)),
            // The same by how long it lives, where it is not told as one number.
            "cache_creation" if r.kind()? == Kind::Object => r.object(|r, _| {
                if let Some(number) = count(r)? {
                    by_life = Some(by_life.unwrap_or(0).saturating_add(number));
                }
                Ok(())
            }),
            "output_tokens" => count(r).map(|number| set(&mut usage.output, number, seen)),
            "output_tokens_details" if r.kind()? == Kind::Object => r.object(|r, key| match key {
                "thinking_tokens" => count(r).map(|number| set(&mut usage.reasoning, number, seen)),
                _ => r.skip().map(drop),
            }),
            _ => r.skip().map(drop),
        })?;
        let written = written.or(by_life);
        let says_something = [input, read, written].into_iter().flatten().any(|number| number > 0);
        if says_something || usage.total_input() == 0 {
            set(&mut usage.input, input, seen);
            set(&mut usage.cache_read, read, seen);
            set(&mut usage.cache_write, written, seen);
        }
        Ok(())
    }
}

/// A whole number; anything else is passed over.
fn count(r: &mut Reader<'_>) -> Result<Option<u64>, Invalid> {
    Ok(Reader::over(r.raw()?).u64().ok())
}

fn set(slot: &mut u64, number: Option<u64>, seen: &mut bool) {
    if let Some(number) = number {
        *slot = number;
        *seen = true;
    }
}

/// Writes a `usage` field.
pub(crate) fn write(object: &mut Object<'_>, usage: &Usage) {
    let mut out = object.object("usage");
    out.number("input_tokens", usage.input);
    out.number("cache_creation_input_tokens", usage.cache_write);
    out.number("cache_read_input_tokens", usage.cache_read);
    out.number("output_tokens", usage.output);
    if usage.reasoning > 0 {
        out.object("output_tokens_details").number("thinking_tokens", usage.reasoning);
    }
}
