//! The proofs in a body that passes as it is, where they are another maker's than the upstream that it goes to.

use super::fields::{self, CONTENT, PART, REQUEST, list};
use crate::gemini::generation;
use crate::gemini::sentinel::{SENTINEL, is_marked, is_sentinel};
use crate::identity::{Foreign, without};
use crate::json::{Invalid, Kind, Reader, Span};
use crate::request::{ClientRequest, Edit};
use memchr::memmem;

/// What stands for a content of which nothing is left, as one without parts is refused.
const NOTHING_LEFT: &[u8] = br#"{"text":"..."}"#;

/// The edits that take those proofs out: in order, and none where there is nothing to take, so that every other byte
/// stays. A thought, or an empty part, goes with its proof; a call gets the placeholder that Gemini documents, unless the
/// model's name says that it wants none; any other part loses only its proof.
pub fn foreign_signatures(request: &ClientRequest, which: Foreign) -> Vec<Edit> {
    if memmem::find(&request.body, b"ignature").is_none() {
        return Vec::new();
    }
    let mut edits = Vec::new();
    let placeholder = !generation::is_before_signatures(&request.model);
    let read = Reader::new(&request.body).and_then(|mut r| object(&mut r, which, placeholder, &mut edits));
    match read {
        Ok(()) => {
            edits.sort_by_key(|edit| edit.span.start);
            edits
        }
        // Never for a body that was checked.
        Err(_) => Vec::new(),
    }
}

fn object(r: &mut Reader<'_>, which: Foreign, placeholder: bool, edits: &mut Vec<Edit>) -> Result<(), Invalid> {
    fields::object(r, REQUEST, |r, key| match (key, r.kind()?) {
        ("contents", Kind::Array) => r.array(|r, _| content(r, which, placeholder, edits)),
        ("generateContentRequest", Kind::Object) => object(r, which, placeholder, edits),
        _ => r.skip().map(drop),
    })
}

fn content(r: &mut Reader<'_>, which: Foreign, placeholder: bool, edits: &mut Vec<Edit>) -> Result<(), Invalid> {
    fields::object(r, CONTENT, |r, key| {
        if key != "parts" {
            return r.skip().map(drop);
        }
        // One part that is not in a list must not leave the list's brackets out.
        let listed = r.kind()? == Kind::Array;
        let mut parts: Vec<(Span, bool)> = Vec::new();
        let mut inside = Vec::new();
        list(r, |r, _| {
            r.kind()?;
            let start = r.position();
            let part = part(r, which)?;
            let whole = part.signature.is_some() && (part.thought || part.empty);
            if let Some(span) = part.signature.filter(|_| !whole) {
                // An empty one is as good as none: no bytes.
                let with = if part.call && placeholder { SENTINEL } else { "" };
                inside.push(Edit { span, with: format!("\"{with}\"").into_bytes() });
            }
            parts.push((start..r.position(), whole));
            Ok(())
        })?;
        match (listed, parts.as_slice()) {
            (true, parts) => without(parts, NOTHING_LEFT, edits),
            (false, [(span, true)]) => edits.push(Edit { span: span.clone(), with: NOTHING_LEFT.to_vec() }),
            (false, _) => {}
        }
        edits.append(&mut inside);
        Ok(())
    })
}

/// What must be known of a part.
#[derive(Default)]
struct Part {
    thought: bool,
    call: bool,
    /// It says nothing but its proof.
    empty: bool,
    /// Where a foreign proof stands, quotes included.
    signature: Option<Span>,
}

fn part(r: &mut Reader<'_>, which: Foreign) -> Result<Part, Invalid> {
    let mut part = Part { empty: true, ..Part::default() };
    fields::object(r, PART, |r, key| {
        match (key, r.kind()?) {
            ("thought", Kind::Bool) => part.thought = r.bool()?,
            ("text", Kind::String) => part.empty &= r.raw()? == "\"\"",
            ("thoughtSignature", Kind::String) => {
                let span = r.clone().skip()?;
                let text = r.string()?;
                let foreign = match which {
                    Foreign::Enveloped => is_marked(&text),
                    Foreign::All => !text.is_empty() && !is_sentinel(&text),
                };
                if foreign {
                    part.signature = Some(span);
                }
            }
            (key, _) => {
                part.call |= key == "functionCall";
                part.empty = false;
                r.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(part)
}
