//! Writes JSON text into a byte buffer, object by object; no tree, no second copy.

use super::reader::specials;

/// Appends a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let (mut from, mut look) = (0, 0);
    while let Some((at, byte)) = next_special(bytes, look) {
        look = at + 1;
        let short: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=0x1f => {
                out.extend_from_slice(&bytes[from..at]);
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(hex[usize::from(byte >> 4)]);
                out.push(hex[usize::from(byte & 15)]);
                from = look;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(short);
        from = look;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// The next byte from `at` on that a string cannot hold as it is, and where it stands.
fn next_special(bytes: &[u8], mut at: usize) -> Option<(usize, u8)> {
    // Eight bytes at a time, as nearly all of them are plain.
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let special = specials(u64::from_le_bytes(*eight));
        if special != 0 {
            let found = at + special.trailing_zeros() as usize / 8;
            return bytes.get(found).map(|byte| (found, *byte));
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
    rest.get(found).map(|byte| (at + found, *byte))
}

/// Appends a whole number.
pub(crate) fn write_number(out: &mut Vec<u8>, value: u64) {
    // The longest has twenty digits.
    let (mut digits, mut rest, mut from) = ([b'0'; 20], value, 20usize);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        from -= 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(from..).unwrap_or_default());
}

/// An object being written; it closes when dropped.
#[derive(Debug)]
pub struct Object<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Object<'b> {
    /// Opens an object.
    pub fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, first: true }
    }

    /// Goes on with an object that has been opened, and some of whose fields have been written.
    pub(crate) fn resume(out: &'b mut Vec<u8>) -> Self {
        Object { out, first: false }
    }

    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// A string field.
    pub fn string(&mut self, key: &str, value: &str) {
        write_string(self.key(key), value);
    }

    /// A whole number field.
    pub fn number(&mut self, key: &str, value: u64) {
        write_number(self.key(key), value);
    }

    /// A boolean field.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.key(key).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A `null` field.
    pub fn null(&mut self, key: &str) {
        self.key(key).extend_from_slice(b"null");
    }

    /// A string field, `null` when there is none.
    pub fn optional_string(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.string(key, value),
            None => self.null(key),
        }
    }

    /// A field whose value is JSON text already.
    pub fn raw(&mut self, key: &str, json: &str) {
        self.key(key).extend_from_slice(json.as_bytes());
    }

    /// A field whose value is JSON text already.
    pub(crate) fn raw_bytes(&mut self, key: &str, json: &[u8]) {
        self.key(key).extend_from_slice(json);
    }

    /// Fields that are JSON text already, with commas between them and none around them; not empty.
    pub(crate) fn fields(&mut self, json: &[u8]) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.extend_from_slice(json);
    }

    /// An object field.
    pub fn object(&mut self, key: &str) -> Object<'_> {
        Object::open(self.key(key))
    }

    /// An array field.
    pub fn array(&mut self, key: &str) -> Array<'_> {
        Array::open(self.key(key))
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        self.out.push(b'}');
    }
}

/// An array being written; it closes when dropped.
#[derive(Debug)]
pub struct Array<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Array<'b> {
    /// Opens an array.
    pub fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'[');
        Array { out, first: true }
    }

    fn item(&mut self) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out
    }

    /// A string item.
    pub fn string(&mut self, value: &str) {
        write_string(self.item(), value);
    }

    /// An item that is JSON text already.
    pub fn raw(&mut self, json: &str) {
        self.item().extend_from_slice(json.as_bytes());
    }

    /// An item that is JSON text already.
    pub(crate) fn raw_bytes(&mut self, json: &[u8]) {
        self.item().extend_from_slice(json);
    }

    /// An object item.
    pub fn object(&mut self) -> Object<'_> {
        Object::open(self.item())
    }

    /// Nothing was written.
    pub fn is_empty(&self) -> bool {
        self.first
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        self.out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_objects_and_arrays_close_in_order() {
        let mut out = Vec::new();
        let mut object = Object::open(&mut out);
        object.string("a", "\u{1}\"");
        {
            let mut array = object.array("b");
            array.raw("1");
            array.object().null("c");
            array.object();
        }
        object.bool("d", true);
        drop(object);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":"\u0001\"","b":[1,{"c":null},{}],"d":true}"#);
    }

    #[test]
    fn numbers_are_written_in_full() {
        for (value, text) in
            [(0, "0"), (7, "7"), (10, "10"), (1_796_073_800, "1796073800"), (u64::MAX, "18446744073709551615")]
        {
            let mut out = Vec::new();
            Object::open(&mut out).number("n", value);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{{\"n\":{text}}}"));
        }
    }

    proptest! {
        #[test]
        fn every_string_reads_back(value in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &value);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), value);
        }
    }
}
