//! `metadata`, which clients attach to responses and conversations: strings by name, within the protocol's bounds.

use super::items::text_of;
use turnkeep_dialect::json::{Invalid, Object, Reader};

/// Pairs of metadata, and the bytes of a name and of a value.
const PAIRS: usize = 16;
const NAME_BYTES: usize = 64;
const VALUE_BYTES: usize = 512;

/// Reads an object of strings within the bounds; answers it as it is written down.
pub(super) fn read(r: &mut Reader<'_>) -> Result<String, Invalid> {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    let mut count = 0;
    r.object::<Invalid>(|r, key| {
        count += 1;
        let key = key.to_owned();
        let value = r.string()?;
        if count > PAIRS {
            return Err(r.fail(format!("expected at most {PAIRS} pairs")));
        }
        if key.len() > NAME_BYTES || value.len() > VALUE_BYTES {
            return Err(r.fail(format!("expected a name of at most {NAME_BYTES} bytes and a value of {VALUE_BYTES}")));
        }
        object.string(&key, &value);
        Ok(())
    })?;
    drop(object);
    Ok(text_of(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_within_the_bounds_are_read_and_all_else_is_refused_with_its_path() {
        let read = |text: &str| read(&mut Reader::over(text));
        assert_eq!(read(r#"{"a":"b", "c": ""}"#).unwrap(), r#"{"a":"b","c":""}"#);
        let name = "k".repeat(NAME_BYTES);
        let value = "v".repeat(VALUE_BYTES);
        assert!(read(&format!(r#"{{"{name}":"{value}"}}"#)).is_ok());
        let pairs = |count: usize| (0..count).map(|n| format!(r#""k{n}":"v""#)).collect::<Vec<_>>().join(",");
        assert!(read(&format!("{{{}}}", pairs(PAIRS))).is_ok());
        for text in [
            format!("{{{}}}", pairs(PAIRS + 1)),
            format!(r#"{{"{name}k":"v"}}"#),
            format!(r#"{{"k":"{value}v"}}"#),
            r#"{"k":1}"#.into(),
            "[]".into(),
        ] {
            assert!(read(&text).is_err(), "{text}");
        }
    }
}
