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

    /// Reads a `usage` value over the earlier counts. Whatever is not a count is passed over.
    pub(super) fn merge(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        if r.kind()? != Kind::Object {
            return r.skip().map(drop);
        }
        let Counts { usage, seen } = self;
        r.object(|r, key| match key {
            "input_tokens" => count(r, &mut usage.input, seen),
            "cache_read_input_tokens" => count(r, &mut usage.cache_read, seen),
            "cache_creation_input_tokens" => count(r, &mut usage.cache_write, seen),
            "output_tokens" => count(r, &mut usage.output, seen),
            "output_tokens_details" if r.kind()? == Kind::Object => r.object(|r, key| match key {
                "thinking_tokens" => count(r, &mut usage.reasoning, seen),
                _ => r.skip().map(drop),
            }),
            _ => r.skip().map(drop),
        })
    }
}

fn count(r: &mut Reader<'_>, slot: &mut u64, seen: &mut bool) -> Result<(), Invalid> {
    let raw = r.raw()?;
    if let Ok(number) = Reader::over(raw).u64() {
        *slot = number;
        *seen = true;
    }
    Ok(())
}

/// Writes a `usage` field.
pub(super) fn write(object: &mut Object<'_>, usage: &Usage) {
    let mut out = object.object("usage");
    out.number("input_tokens", usage.input);
    out.number("cache_creation_input_tokens", usage.cache_write);
    out.number("cache_read_input_tokens", usage.cache_read);
    out.number("output_tokens", usage.output);
    if usage.reasoning > 0 {
        out.object("output_tokens_details").number("thinking_tokens", usage.reasoning);
    }
}
