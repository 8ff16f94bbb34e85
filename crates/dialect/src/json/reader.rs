//! A pull reader over one JSON text. Callers walk objects and arrays by closure and take or skip each value; what they
//! skip is still checked. A lone surrogate escape, which real clients send, reads as U+FFFD.

use super::Invalid;
use std::borrow::Cow;
use std::ops::Range;
use turnkeep_base::limit::MAX_DEPTH;

/// The span of a value in the text, in bytes.
pub type Span = Range<usize>;

/// The kind of the value that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Object => "an object",
            Kind::Array => "an array",
            Kind::String => "a string",
            Kind::Number => "a number",
            Kind::Bool => "a boolean",
            Kind::Null => "null",
        }
    }
}

#[derive(Clone, Debug)]
enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

/// Reads one JSON text from front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: Vec<Step<'a>>,
    /// Nesting that is being skipped, below `path`.
    skipping: usize,
}

impl<'a> Reader<'a> {
    /// A reader over a body. Fails when it is not UTF-8.
    pub fn new(body: &'a [u8]) -> Result<Self, Invalid> {
        match std::str::from_utf8(body) {
            Ok(text) => Ok(Self::over(text)),
            Err(bad) => Err(Invalid {
                path: String::new(),
                message: "the body is not valid UTF-8".into(),
                at: bad.valid_up_to(),
            }),
        }
    }

    /// A reader over a text.
    pub fn over(text: &'a str) -> Self {
        Reader { text, at: 0, path: Vec::new(), skipping: 0 }
    }

    /// Where the reader is, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The path of the value being read.
    pub fn path(&self) -> String {
        let mut out = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => {
                    if !out.is_empty() {
                        out.push('.');
                    }
                    out.push_str(key);
                }
                Step::Index(index) => {
                    out.push('[');
                    out.push_str(&index.to_string());
                    out.push(']');
                }
            }
        }
        out
    }

    /// An error about the value being read.
    pub fn fail(&self, message: impl Into<String>) -> Invalid {
        Invalid { path: self.path(), message: message.into(), at: self.at }
    }

    /// The text is not JSON here. The path stays empty: the field at hand is where it showed, not what is wrong.
    #[cold]
    #[inline(never)]
    fn broken(&self, what: &str) -> Invalid {
        Invalid { path: String::new(), message: format!("not JSON: {what}"), at: self.at }
    }

    #[cold]
    #[inline(never)]
    fn wrong(&mut self, wanted: &str) -> Invalid {
        match self.kind() {
            Ok(kind) => self.fail(format!("expected {wanted}, found {}", kind.words())),
            Err(error) => error,
        }
    }

    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn space(&mut self) {
        let bytes = self.bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// One level down. Room for a few is made at once, as nearly every text has some.
    #[inline]
    fn enter(&mut self, step: Step<'a>) {
        if self.path.capacity() == 0 {
            self.path.reserve_exact(8);
        }
        self.path.push(step);
    }

    /// The kind of the next value, which stays unread.
    #[inline]
    pub fn kind(&mut self) -> Result<Kind, Invalid> {
        self.space();
        match self.bytes().get(self.at) {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(self.broken("expected a value")),
            None => Err(self.broken("the text ends where a value should be")),
        }
    }

    /// Nothing but white space may follow.
    pub fn end(&mut self) -> Result<(), Invalid> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.broken("text after the end of the value")) }
    }

    #[inline]
    fn expect(&mut self, byte: u8, wanted: &str) -> Result<(), Invalid> {
        self.space();
        if self.bytes().get(self.at) == Some(&byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.missing(wanted))
        }
    }

    #[cold]
    #[inline(never)]
    fn missing(&self, wanted: &str) -> Invalid {
        self.broken(&format!("expected {wanted}"))
    }

    #[inline]
    fn deeper(&self) -> Result<(), Invalid> {
        if self.path.len() + self.skipping >= MAX_DEPTH {
            return Err(self.fail(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    /// Reads an object: `each` is called with every key, in order, duplicates too, and must take or skip the value.
    pub fn object<E: From<Invalid>>(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.kind()? != Kind::Object {
            return Err(self.wrong("an object").into());
        }
        self.deeper()?;
        self.at += 1;
        self.space();
        if self.bytes().get(self.at) == Some(&b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.bytes().get(self.at) != Some(&b'"') {
                return Err(self.broken("expected a key in quotes").into());
            }
            let key = self.text_value()?;
            self.expect(b':', "':' after a key")?;
            match key {
                Cow::Borrowed(key) => {
                    self.enter(Step::Key(Cow::Borrowed(key)));
                    each(self, key)?;
                }
                Cow::Owned(key) => {
                    self.enter(Step::Key(Cow::Owned(key.clone())));
                    each(self, &key)?;
                }
            }
            self.path.pop();
            self.space();
            match self.bytes().get(self.at) {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) | None => return Err(self.broken("expected ',' or '}'").into()),
            }
        }
    }

    /// Reads an array: `each` is called with every index and must take or skip the value.
    pub fn array<E: From<Invalid>>(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.kind()? != Kind::Array {
            return Err(self.wrong("an array").into());
        }
        self.deeper()?;
        self.at += 1;
        self.space();
        if self.bytes().get(self.at) == Some(&b']') {
            self.at += 1;
            return Ok(());
        }
        for index in 0.. {
            self.enter(Step::Index(index));
            each(self, index)?;
            self.path.pop();
            self.space();
            match self.bytes().get(self.at) {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(_) | None => return Err(self.broken("expected ',' or ']'").into()),
            }
        }
        Ok(())
    }

    /// A string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Invalid> {
        if self.kind()? != Kind::String {
            return Err(self.wrong("a string"));
        }
        self.text_value()
    }

    /// A string, or nothing for `null`.
    pub fn optional_string(&mut self) -> Result<Option<Cow<'a, str>>, Invalid> {
        if self.null()? { Ok(None) } else { self.string().map(Some) }
    }

    /// Takes a `null`, if one comes next.
    pub fn null(&mut self) -> Result<bool, Invalid> {
        if self.kind()? != Kind::Null {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// A boolean.
    pub fn bool(&mut self) -> Result<bool, Invalid> {
        if self.kind()? != Kind::Bool {
            return Err(self.wrong("a boolean"));
        }
        if self.bytes()[self.at] == b't' {
            self.word("true").map(|()| true)
        } else {
            self.word("false").map(|()| false)
        }
    }

    /// A number, as it is written.
    pub fn number(&mut self) -> Result<&'a str, Invalid> {
        if self.kind()? != Kind::Number {
            return Err(self.wrong("a number"));
        }
        let start = self.at;
        self.skip_number()?;
        Ok(&self.text[start..self.at])
    }

    /// A whole number of at least 0. `1.0` and `1e3` are taken for what they are.
    pub fn u64(&mut self) -> Result<u64, Invalid> {
        let text = self.number()?;
        if let Ok(number) = text.parse::<u64>() {
            return Ok(number);
        }
        match text.parse::<f64>() {
            Ok(number) if number >= 0.0 && number.fract() == 0.0 && number < 9.0e15 => Ok(number as u64),
            Ok(_) | Err(_) => Err(self.fail(format!("expected a whole number of at least 0, found {text}"))),
        }
    }

    /// The text of the next value, whatever it is, checked.
    pub fn raw(&mut self) -> Result<&'a str, Invalid> {
        let span = self.skip()?;
        Ok(&self.text[span])
    }

    /// Skips the next value, checking it, and tells its span.
    #[inline]
    pub fn skip(&mut self) -> Result<Span, Invalid> {
        let kind = self.kind()?;
        let start = self.at;
        match kind {
            Kind::String => self.skip_string()?,
            Kind::Number => self.skip_number()?,
            Kind::Bool => {
                self.bool()?;
            }
            Kind::Null => self.word("null")?,
            Kind::Object | Kind::Array => self.skip_nested()?,
        }
        Ok(start..self.at)
    }

    /// Objects and arrays without recursion: the open brackets are the stack.
    fn skip_nested(&mut self) -> Result<(), Invalid> {
        let base = self.path.len();
        let mut open: [u8; MAX_DEPTH / 8 + 1] = [0; MAX_DEPTH / 8 + 1];
        let mut depth = 0usize;
        let is_object = |open: &[u8], depth: usize| open[depth / 8] >> (depth % 8) & 1 == 1;
        // Each turn of the loop reads one value's start; the inner loop closes what ends there.
        loop {
            match self.kind()? {
                kind @ (Kind::Object | Kind::Array) => {
                    if base + depth >= MAX_DEPTH {
                        return Err(self.fail(format!("nested deeper than {MAX_DEPTH} levels")));
                    }
                    let object = kind == Kind::Object;
                    depth += 1;
                    if object {
                        open[depth / 8] |= 1 << (depth % 8);
                    } else {
                        open[depth / 8] &= !(1 << (depth % 8));
                    }
                    self.at += 1;
                    self.space();
                    let close = if object { b'}' } else { b']' };
                    if self.bytes().get(self.at) != Some(&close) {
                        if object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    depth -= 1;
                }
                Kind::String => self.skip_string()?,
                Kind::Number => self.skip_number()?,
                Kind::Bool => {
                    self.bool()?;
                }
                Kind::Null => self.word("null")?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                self.space();
                let object = is_object(&open, depth);
                match self.bytes().get(self.at) {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    Some(_) | None => {
                        let close = if object { '}' } else { ']' };
                        return Err(self.broken(&format!("expected ',' or '{close}'")));
                    }
                }
                self.at += 1;
                depth -= 1;
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), Invalid> {
        self.space();
        if self.bytes().get(self.at) != Some(&b'"') {
            return Err(self.broken("expected a key in quotes"));
        }
        self.skip_string()?;
        self.expect(b':', "':' after a key")
    }

    fn word(&mut self, word: &str) -> Result<(), Invalid> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.missing(word))
        }
    }

    fn skip_number(&mut self) -> Result<(), Invalid> {
        let bytes = self.bytes();
        let start = self.at;
        let digits = |at: &mut usize| {
            let from = *at;
            while let Some(b'0'..=b'9') = bytes.get(*at) {
                *at += 1;
            }
            *at - from
        };
        let mut at = start + usize::from(bytes[start] == b'-');
        let leading_zero = bytes.get(at) == Some(&b'0');
        let whole = digits(&mut at);
        let mut good = whole > 0 && !(leading_zero && whole > 1);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            good &= digits(&mut at) > 0;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = bytes.get(at) {
                at += 1;
            }
            good &= digits(&mut at) > 0;
        }
        if !good {
            return Err(self.broken("a malformed number"));
        }
        self.at = at;
        Ok(())
    }

    /// From the opening quote to behind the closing one; tells whether there was an escape.
    fn scan_string(&mut self) -> Result<bool, Invalid> {
        let bytes = self.bytes();
        let mut at = self.at + 1;
        let mut escaped = false;
        loop {
            // Eight bytes at a time to the next quote, backslash or control character.
            while let Some(eight) = bytes.get(at..at + 8) {
                let word = u64::from_le_bytes([
                    eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7],
                ]);
                let special = specials(word);
                if special != 0 {
                    at += special.trailing_zeros() as usize / 8;
                    break;
                }
                at += 8;
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    at += match bytes.get(at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u') if hex4(bytes, at + 2).is_some() => 6,
                        Some(_) | None => {
                            self.at = at;
                            return Err(self.broken("a malformed escape in a string"));
                        }
                    };
                }
                Some(0..=0x1f) => {
                    self.at = at;
                    return Err(self.broken("a control character in a string"));
                }
                Some(_) => at += 1,
                None => {
                    self.at = at;
                    return Err(self.broken("a string without an end"));
                }
            }
        }
    }

    #[inline]
    fn skip_string(&mut self) -> Result<(), Invalid> {
        self.scan_string().map(|_| ())
    }

    #[inline]
    fn text_value(&mut self) -> Result<Cow<'a, str>, Invalid> {
        let start = self.at + 1;
        let escaped = self.scan_string()?;
        let inside = &self.text[start..self.at - 1];
        Ok(if escaped { Cow::Owned(unescape(inside)) } else { Cow::Borrowed(inside) })
    }
}

/// The high bit of the first byte, from the low end, that ends a run of plain text; bits above that one may be wrong.
#[inline]
pub(super) fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let has_zero = |x: u64| x.wrapping_sub(ONES) & !x & HIGHS;
    let quote = has_zero(word ^ (ONES * b'"' as u64));
    let backslash = has_zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    quote | backslash | control
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0u32, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

/// Takes the escapes out of the inside of a string that has been scanned.
fn unescape(inside: &str) -> String {
    let bytes = inside.as_bytes();
    let mut out = String::with_capacity(inside.len());
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        out.push_str(&inside[at..at + found]);
        at += found + 2;
        match bytes.get(at - 1) {
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'n') => out.push('\n'),
            Some(b'r') => out.push('\r'),
            Some(b't') => out.push('\t'),
            Some(b'u') => {
                let unit = hex4(bytes, at).unwrap_or(0xfffd);
                at += 4;
                let low = if (0xd800..0xdc00).contains(&unit) && bytes[at..].starts_with(b"\\u") {
                    hex4(bytes, at + 2).filter(|low| (0xdc00..0xe000).contains(low))
                } else {
                    None
                };
                let code = match low {
                    Some(low) => {
                        at += 6;
                        0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                    }
                    None => unit,
                };
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            Some(&other) => out.push(char::from(other)),
            None => {}
        }
    }
    out.push_str(&inside[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> Result<Span, Invalid> {
        let mut reader = Reader::over(text);
        let span = reader.skip()?;
        reader.end()?;
        Ok(span)
    }

    #[test]
    fn an_error_names_the_path_and_the_place() {
        let mut reader = Reader::over(r#"{"messages":[{"role":"user"},{"role":7}]}"#);
        let error =
            reader.object::<Invalid>(|r, _| r.array(|r, _| r.object(|r, _| r.string().map(|_| ())))).unwrap_err();
        assert_eq!((error.path.as_str(), error.at), ("messages[1].role", 37));
        assert_eq!(error.message, "expected a string, found a number");
    }

    #[test]
    fn ten_thousand_levels_are_refused_without_recursion() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
            assert!(check(&deep).unwrap_err().message.contains("nested deeper than 128"));
            let fine = format!("{}1{}", open.repeat(128), close.repeat(128));
            assert!(check(&fine).is_ok());
        }
    }

    #[test]
    fn a_lone_surrogate_reads_as_the_replacement_character() {
        assert_eq!(Reader::over(r#""a\ud83dz\ud83d\ude00""#).string().unwrap(), "a\u{fffd}z😀");
    }

    #[test]
    fn whole_numbers_are_taken_in_every_form() {
        for (text, number) in [("7", 7), ("7.0", 7), ("1e3", 1000)] {
            assert_eq!(Reader::over(text).u64(), Ok(number));
        }
        for text in ["-1", "1.5", "1e99", "\"7\""] {
            assert!(Reader::over(text).u64().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_accepts_exactly_what_serde_json_accepts(text in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\"", "\"\\x\"", "\"\u{1}\"", "\"longer than eight\"", "1", "-0.5e+3", "01", "1.", "true",
            "nul", "null", " ", "\n", "\""]), 0..12)) {
            let text = text.concat();
            let ours = check(&text).is_ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(ours, theirs, "{}", text);
        }

        #[test]
        fn strings_read_as_serde_json_reads_them(value in any::<String>()) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(&*Reader::over(&text).string().unwrap(), &value);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let outcome = Reader::new(&bytes).and_then(|mut reader| reader.skip());
            prop_assert_eq!(outcome.is_ok() || outcome.is_err(), true);
        }
    }
}
