//! The JSON reader against another parser.

use serde_json::Value;
use turnkeep_dialect::json::{Kind, Reader, write_string};

/// The reader of all dialects.
pub fn json(data: &[u8]) {
    let ours = skipped(data);
    let read = read(data);
    assert_eq!(
        ours.is_ok(),
        read.is_ok(),
        "taken when skipped and refused when read, or the other way: {ours:?} {:?}",
        read.as_ref().err()
    );
    if let Err(at) = ours {
        assert!(at <= data.len(), "an error beyond the text");
    }
    match serde_json::from_slice::<Value>(data) {
        Ok(theirs) => {
            // The other parser stops at 127 levels, ours at 128; nothing else may be refused.
            assert!(ours.is_ok(), "refused at {ours:?}, and another parser takes it");
            assert_eq!(read.ok(), Some(theirs), "read as something else");
        }
        Err(error) => {
            let words = error.to_string();
            let theirs_alone = ["surrogate", "unexpected end of hex escape", "out of range", "recursion limit"];
            if !theirs_alone.iter().any(|own| words.contains(own)) {
                assert!(ours.is_err(), "taken, and another parser says {words}");
            }
        }
    }
}

fn skipped(data: &[u8]) -> Result<(), usize> {
    let mut reader = Reader::new(data).map_err(|error| error.at)?;
    let span = reader.skip().map_err(|error| error.at)?;
    assert!(span.end <= data.len());
    reader.end().map_err(|error| error.at)
}

fn read(data: &[u8]) -> Result<Value, String> {
    let mut reader = Reader::new(data).map_err(|error| error.to_string())?;
    let value = value(&mut reader)?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

fn value(r: &mut Reader<'_>) -> Result<Value, String> {
    let words = |error: turnkeep_dialect::json::Invalid| error.to_string();
    Ok(match r.kind().map_err(words)? {
        Kind::Object => {
            let mut members = serde_json::Map::new();
            r.object::<Failed>(|r, key| {
                let value = value(r)?;
                members.insert(key.to_owned(), value);
                Ok(())
            })?;
            Value::Object(members)
        }
        Kind::Array => {
            let mut items = Vec::new();
            r.array::<Failed>(|r, index| {
                assert_eq!(index, items.len());
                items.push(value(r)?);
                Ok(())
            })?;
            Value::Array(items)
        }
        Kind::String => {
            let text = r.string().map_err(words)?.into_owned();
            let mut out = Vec::new();
            write_string(&mut out, &text);
            assert_eq!(serde_json::from_slice::<String>(&out).ok().as_ref(), Some(&text), "written as something else");
            Value::String(text)
        }
        // A number stays its text here; the other parser's is read from it.
        Kind::Number => serde_json::from_str(r.number().map_err(words)?).unwrap_or(Value::Null),
        Kind::Bool => Value::Bool(r.bool().map_err(words)?),
        Kind::Null => {
            assert!(r.null().map_err(words)?);
            Value::Null
        }
    })
}

struct Failed(String);

impl From<turnkeep_dialect::json::Invalid> for Failed {
    fn from(error: turnkeep_dialect::json::Invalid) -> Self {
        Failed(error.to_string())
    }
}

impl From<String> for Failed {
    fn from(error: String) -> Self {
        Failed(error)
    }
}

impl From<Failed> for String {
    fn from(error: Failed) -> Self {
        error.0
    }
}
