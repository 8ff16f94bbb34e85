//! Reasoning in a conversation that the upstream at hand did not make, taken out of a body that otherwise stays.

use crate::envelope::PREFIX;
use crate::identity::{Foreign, without};
use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{ClientRequest, Edit};
use memchr::memmem;

/// What stands for an input of which nothing is left, as one without items is refused.
const NOTHING_LEFT: &[u8] = br#"{"type":"message","role":"user","content":"..."}"#;

/// The edits that take `reasoning` items out of the `input`: those in our envelope, whose state another dialect's
/// upstream made ([`Foreign::Enveloped`]), or all of them ([`Foreign::All`]). In order; none where there is nothing to
/// take, so that every other byte stays.
pub fn foreign_reasoning(request: &ClientRequest, which: Foreign) -> Vec<Edit> {
    let needle: &[u8] = match which {
        Foreign::Enveloped => PREFIX.as_bytes(),
        Foreign::All => b"reasoning",
    };
    if memmem::find(&request.body, needle).is_none() {
        return Vec::new();
    }
    let (mut items, mut edits) = (Vec::new(), Vec::new());
    // An error never comes of a body that was checked.
    if read(request, which, &mut items).is_ok() {
        without(&items, NOTHING_LEFT, &mut edits);
    }
    edits
}

fn read(request: &ClientRequest, which: Foreign, items: &mut Vec<(Span, bool)>) -> Result<(), Invalid> {
    Reader::new(&request.body)?.object::<Invalid>(|r, key| {
        if key != "input" || r.kind()? != Kind::Array {
            return r.skip().map(drop);
        }
        r.array::<Invalid>(|r, _| {
            r.kind()?;
            let start = r.position();
            let foreign = is_foreign(r, which)?;
            items.push((start..r.position(), foreign));
            Ok(())
        })
    })
}

/// Whether the item at hand, which is read, is to be taken out.
fn is_foreign(r: &mut Reader<'_>, which: Foreign) -> Result<bool, Invalid> {
    if r.kind()? != Kind::Object {
        return r.skip().map(|_| false);
    }
    let (mut reasoning, mut enveloped) = (false, false);
    r.object::<Invalid>(|r, key| {
        match (key, r.kind()?) {
            ("type", Kind::String) => reasoning = r.string()? == "reasoning",
            ("encrypted_content", Kind::String) => enveloped = r.string()?.starts_with(PREFIX),
            _ => r.skip().map(drop)?,
        }
        Ok(())
    })?;
    Ok(match which {
        Foreign::All => reasoning,
        Foreign::Enveloped => reasoning && enveloped,
    })
}
