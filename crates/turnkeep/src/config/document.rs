//! A TOML document as a tree in which every key and value knows its place, whether it came from the file or from an
//! override. It knows nothing of what the keys mean.

use super::error::ConfigError;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file, by the name it is shown under.
    File(Arc<str>),
    /// An environment variable.
    Variable(Arc<str>),
}

impl Origin {
    pub(super) fn shown(&self) -> String {
        match self {
            Origin::File(name) => name.to_string(),
            Origin::Variable(name) => format!("environment variable {name}"),
        }
    }
}

/// A place in a text; line and column from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) origin: Origin,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) fn error(&self, key: &str, message: String) -> ConfigError {
        let (line, column) = self.shown();
        ConfigError { file: self.origin.shown(), line, column, key: key.to_owned(), message }
    }

    /// The variable, if it is in one.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.origin {
            Origin::File(_) => None,
            Origin::Variable(name) => Some(name),
        }
    }

    /// Line and column as they are told: of a variable's value as a whole, none (0, 0).
    pub(super) fn shown(&self) -> (usize, usize) {
        match (&self.origin, self.line, self.column) {
            (Origin::Variable(_), 1, 1) => (0, 0),
            (Origin::Variable(_) | Origin::File(_), line, column) => (line, column),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Place,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// `None`: it does not fit 64 bits.
    Integer(Option<i64>),
    /// And as it is written. `None`: the text is none that this program reads, such as one with too many digits.
    Float(Option<f64>, String),
    Boolean(bool),
    /// A date, with a time or without, as it is written.
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_at: Place,
    pub(super) node: Node,
}

impl Value {
    /// The kind of value, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(..) => "a float",
            Value::Boolean(_) => "true or false",
            Value::Date(_) => "a date",
            Value::List(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// Byte offsets of a text to places.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    origin: &'a Origin,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, origin: &'a Origin) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts, origin }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or("");
        Place { origin: self.origin.clone(), line, column: before.chars().count() + 1 }
    }
}

/// Parses a whole document; the root is always a table.
pub(super) fn parse(text: &str, origin: &Origin) -> Result<Node, ConfigError> {
    let lines = Lines::new(text, origin);
    let root = DeTable::parse(text).map_err(|error| syntax_error(&lines, &error))?;
    Ok(Node { value: Value::Table(entries(root.get_ref(), &lines)), at: lines.place(0) })
}

/// Parses a single value.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Result<Node, ConfigError> {
    let lines = Lines::new(text, origin);
    let value = DeValue::parse(text).map_err(|error| syntax_error(&lines, &error))?;
    Ok(node(&value, &lines))
}

fn entries(table: &DeTable<'_>, lines: &Lines<'_>) -> Vec<Entry> {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let text: &std::borrow::Cow<'_, str> = key.get_ref();
        Entry { key: text.to_string(), key_at: lines.place(key.span().start), node: node(value, lines) }
    };
    table.iter().map(entry).collect()
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let at = lines.place(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Value::Float(number.as_str().parse().ok(), number.as_str().to_owned()),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(table) => Value::Table(entries(table, lines)),
    };
    Node { value, at }
}

/// The parser names no key, so the key is read off the text: the nearest table header above, and what stands before
/// the equals sign.
fn syntax_error(lines: &Lines<'_>, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start);
    let place = lines.place(offset);
    let above: Vec<&str> = lines.text.lines().take(place.line).map(str::trim).collect();
    let header = above.iter().rev().find(|line| line.starts_with('[') && line.ends_with(']'));
    let header = header.map(|line| line.trim_matches(['[', ']'])).unwrap_or_default();
    let key = above.last().and_then(|line| line.split_once('=')).map(|(key, _)| key.trim()).unwrap_or_default();
    let dot = if header.is_empty() || key.is_empty() { "" } else { "." };
    place.error(&format!("{header}{dot}{key}"), format!("this is not valid TOML: {}", error.message()))
}
