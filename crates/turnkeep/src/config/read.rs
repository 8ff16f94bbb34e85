//! Reading typed values out of a document, every mistake noted with its place instead of ending the reading, so that
//! one run tells all of them.

use super::document::{Entry, Node, Place, Value};
use super::error::Warning;
use super::problems::Problems;
use super::text::{nearest, quoted_list};
use super::units;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The keys of one table.
pub(super) struct Known {
    /// The table, as messages call it.
    pub(super) table: &'static str,
    /// What it may hold.
    pub(super) keys: &'static [&'static str],
    /// What later versions will take; refused by name.
    pub(super) later: &'static [&'static str],
}

/// Names already taken in a list, and where.
pub(super) type Names = BTreeMap<String, Place>;

/// A value to be read.
#[derive(Clone)]
pub(super) struct Item<'a> {
    node: &'a Node,
    /// Its path, as in `upstreams[0].kind`.
    pub(super) path: String,
    folder: &'a Path,
    problems: &'a Problems,
}

/// A table to be read; its keys were checked against its [`Known`].
pub(super) struct Fields<'a> {
    entries: &'a [Entry],
    item: Item<'a>,
}

impl<'a> Item<'a> {
    pub(super) fn root(node: &'a Node, folder: &'a Path, problems: &'a Problems) -> Self {
        Item { node, path: String::new(), folder, problems }
    }

    /// Notes a mistake here. Always `None`, to be returned.
    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Option<T> {
        self.problems.add(self.node.at.error(&self.path, message.into()));
        None
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        let (line, column) = self.node.at.shown();
        self.problems.warnings.borrow_mut().push(Warning {
            file: self.node.at.origin.shown(),
            line,
            column,
            key: self.path.clone(),
            message: message.into(),
        });
    }

    /// The variable it came from, if it is an override.
    pub(super) fn variable(&self) -> Option<String> {
        self.node.at.variable().map(str::to_owned)
    }

    fn wrong_kind<T>(&self, wanted: &str) -> Option<T> {
        self.fail(format!("must be {wanted}, not {}", self.node.value.kind()))
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.node.value, Value::Text(_))
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Table(_))
    }

    /// A string, or nothing noted: for looking ahead.
    pub(super) fn quiet_text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            Value::Integer(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    /// The value below a key of a table, nothing noted: for looking ahead.
    pub(super) fn quiet_get(&self, key: &str) -> Option<Item<'a>> {
        let Value::Table(entries) = &self.node.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| self.below(entry))
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            Value::Integer(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => self.wrong_kind("a string"),
        }
    }

    pub(super) fn filled_text(&self) -> Option<&'a str> {
        let text = self.text()?;
        if text.trim().is_empty() { self.fail("must not be empty") } else { Some(text) }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match &self.node.value {
            Value::Boolean(value) => Some(*value),
            Value::Integer(_)
            | Value::Float(..)
            | Value::Text(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => self.wrong_kind("true or false"),
        }
    }

    pub(super) fn integer(&self, least: u32, most: u32) -> Option<u32> {
        let wanted = || format!("must be an integer from {least} to {most}");
        match &self.node.value {
            Value::Integer(number) => match number.and_then(|number| u32::try_from(number).ok()) {
                Some(number) if (least..=most).contains(&number) => Some(number),
                Some(_) | None => self.fail(wanted()),
            },
            Value::Text(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Table(_) => self.fail(format!("{}, not {}", wanted(), self.node.value.kind())),
        }
    }

    /// A number, whole or not.
    pub(super) fn number(&self, least: f64, most: f64) -> Option<f64> {
        let number = match &self.node.value {
            Value::Float(number, _) => *number,
            Value::Integer(number) => number.and_then(|number| i32::try_from(number).ok()).map(f64::from),
            Value::Text(_) | Value::Boolean(_) | Value::Date(_) | Value::List(_) | Value::Table(_) => {
                return self.fail(format!("must be a number from {least} to {most}, not {}", self.node.value.kind()));
            }
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Some(number),
            None => self.fail(format!("must be a number from {least} to {most}")),
        }
    }

    /// A number as it is written, so that nothing is lost by reading it.
    pub(super) fn decimal(&self) -> Option<String> {
        match &self.node.value {
            Value::Float(_, text) => Some(text.clone()),
            Value::Integer(Some(number)) => Some(number.to_string()),
            Value::Integer(None) => self.fail("is too large"),
            Value::Text(_) | Value::Boolean(_) | Value::Date(_) | Value::List(_) | Value::Table(_) => {
                self.wrong_kind("a number")
            }
        }
    }

    /// A date, or a string that may hold one; as it is written.
    pub(super) fn date(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Date(text) | Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Float(..) | Value::Boolean(_) | Value::List(_) | Value::Table(_) => {
                self.wrong_kind("a date")
            }
        }
    }

    /// The value, or a note of what is wrong with it.
    pub(super) fn told<T>(&self, read: Result<T, String>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(why) => self.fail(why),
        }
    }

    /// A duration, as in `"30s"`.
    pub(super) fn duration(&self, least: Duration, most: Duration) -> Option<Duration> {
        let shape = r#"must be a duration with its unit, as in "500ms", "30s", "2m", "1h" or "7d""#;
        let Value::Text(text) = &self.node.value else { return self.fail(shape) };
        let Some(duration) = units::duration(text) else { return self.fail(format!("{shape}; it is {text:?}")) };
        if duration < least || duration > most {
            let (least, most) = (units::show_duration(least), units::show_duration(most));
            return self.fail(format!("must be from {least} to {most}"));
        }
        Some(duration)
    }

    /// A size in bytes, as in `"32MiB"` or an integer.
    pub(super) fn size(&self, least: u64, most: u64) -> Option<u64> {
        let shape = r#"must be a size, as in "32MiB", "512KiB" or a number of bytes"#;
        let size = match &self.node.value {
            Value::Text(text) => units::size(text),
            Value::Integer(number) => number.and_then(|number| u64::try_from(number).ok()),
            Value::Float(..) | Value::Boolean(_) | Value::Date(_) | Value::List(_) | Value::Table(_) => None,
        };
        match size {
            Some(size) if (least..=most).contains(&size) => Some(size),
            Some(_) => self.fail(format!("must be from {} to {}", units::show_size(least), units::show_size(most))),
            None => self.fail(shape),
        }
    }

    /// A path; a relative one starts at the configuration's folder.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.filled_text().map(|text| self.folder.join(text))
    }

    pub(super) fn in_folder(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// The items of an array.
    pub(super) fn list(&self) -> Option<Vec<Item<'a>>> {
        match &self.node.value {
            Value::List(nodes) => Some(nodes.iter().enumerate().map(|(i, node)| self.within(i, node)).collect()),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Table(_) => self.wrong_kind("an array"),
        }
    }

    /// The items of an array, or the one value itself.
    pub(super) fn one_or_list(&self) -> Vec<Item<'a>> {
        match &self.node.value {
            Value::List(nodes) => nodes.iter().enumerate().map(|(i, node)| self.within(i, node)).collect(),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Table(_) => {
                vec![self.clone()]
            }
        }
    }

    /// The entries of `[[this]]`.
    pub(super) fn list_of_tables(&self) -> Vec<Item<'a>> {
        if self.is_table() {
            let name = self.path.rsplit('.').next().unwrap_or_default();
            let header = self.path.clone();
            self.fail::<()>(format!("{name} are a list: write [[{header}]] with two brackets"));
            return Vec::new();
        }
        self.list().unwrap_or_default()
    }

    /// The strings of an array; none may be empty.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        Some(self.list()?.iter().filter_map(|item| item.filled_text()).map(str::to_owned).collect())
    }

    fn within(&self, index: usize, node: &'a Node) -> Item<'a> {
        Item { node, path: format!("{}[{index}]", self.path), folder: self.folder, problems: self.problems }
    }

    /// Every key and value of a table whose keys are free.
    pub(super) fn free_table(&self) -> Option<Vec<(&'a str, Item<'a>)>> {
        match &self.node.value {
            Value::Table(entries) => Some(entries.iter().map(|e| (e.key.as_str(), self.below(e))).collect()),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Float(..)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::List(_) => self.wrong_kind("a table"),
        }
    }

    fn below(&self, entry: &'a Entry) -> Item<'a> {
        let path = if self.path.is_empty() { entry.key.clone() } else { format!("{}.{}", self.path, entry.key) };
        Item { node: &entry.node, path, folder: self.folder, problems: self.problems }
    }

    /// A table with known keys. Unknown ones are noted; the known ones can be read all the same.
    pub(super) fn table(&self, known: &Known) -> Option<Fields<'a>> {
        let Value::Table(entries) = &self.node.value else { return self.wrong_kind("a table") };
        for entry in entries {
            let key = entry.key.as_str();
            if known.keys.contains(&key) {
                continue;
            }
            let message = if known.later.contains(&key) {
                match entry.key_at.variable() {
                    Some(name) => format!("{key:?} is not in this version; unset {name}"),
                    None => format!("{key:?} is not in this version; remove it"),
                }
            } else {
                unknown(key, known, entry.key_at.variable())
            };
            self.problems.add(entry.key_at.error(&self.below(entry).path, message));
        }
        Some(Fields { entries, item: self.clone() })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], later: &[&str]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let all = quoted_list(&words);
        if later.contains(&text) {
            return self.fail(format!("{text:?} is not in this version; it takes {all}"));
        }
        match nearest(text, &words) {
            Some(near) => self.fail(format!("{text:?} is not known; did you mean {near:?}? It takes {all}")),
            None => self.fail(format!("{text:?} is not known; it takes {all}")),
        }
    }

    /// A name that nothing else in the list has.
    pub(super) fn name(&self, taken: &mut Names) -> Option<String> {
        let name = self.free_name()?;
        self.claim(&name, taken)?;
        Some(name)
    }

    /// A name that others may have too.
    pub(super) fn free_name(&self) -> Option<String> {
        let name = self.filled_text()?;
        let bad = |c: char| c.is_control() || c == '/';
        if name.trim() != name || name.chars().count() > 128 || name.chars().any(bad) {
            return self.fail("a name is 1 to 128 characters: no slash, no control character, no blank at its ends");
        }
        Some(name.to_owned())
    }

    /// Takes a name, or notes who has it.
    pub(super) fn claim(&self, name: &str, taken: &mut Names) -> Option<()> {
        if let Some(place) = taken.get(name) {
            let taken = match place.variable() {
                Some(variable) => format!("by {variable}"),
                None => format!("at line {}", place.line),
            };
            return self.fail(format!("{name:?} is already used {taken}; names must differ"));
        }
        taken.insert(name.to_owned(), self.node.at.clone());
        Some(())
    }
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| self.item.below(entry))
    }

    /// A key that must be there; `how` shows how to write it.
    pub(super) fn require(&self, key: &str, how: &str) -> Option<Item<'a>> {
        let found = self.get(key);
        if found.is_none() {
            let path = if self.item.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.item.path) };
            let variable = self.item.node.at.variable().and_then(|name| name.rsplit_once("__"));
            let or_set = variable.map(|(above, _)| format!(", or set {above}__{}", key.to_uppercase()));
            let message = format!("is missing; add {how}{}", or_set.unwrap_or_default());
            self.item.problems.add(self.item.node.at.error(&path, message));
        }
        found
    }

    /// The table itself.
    pub(super) fn item(&self) -> &Item<'a> {
        &self.item
    }
}

/// `variable`: the override that addresses the key.
fn unknown(key: &str, known: &Known, variable: Option<&str>) -> String {
    let table = known.table;
    let all: Vec<&str> = known.keys.iter().chain(known.later).copied().collect();
    match nearest(key, &all) {
        Some(near) if known.later.contains(&near) => {
            format!("unknown key {key:?} in {table}; the nearest, {near:?}, is not in this version")
        }
        Some(near) => {
            // The variable is told as it should have been spelled.
            let meant = variable.and_then(|name| renamed(name, key, near)).map(|name| format!(" Then set {name}"));
            format!("unknown key {key:?} in {table}; did you mean {near:?}?{}", meant.unwrap_or_default())
        }
        None => format!("unknown key {key:?} in {table}; it takes {}", quoted_list(known.keys)),
    }
}

/// A variable with the step that spells `key` spelled `near` instead.
fn renamed(variable: &str, key: &str, near: &str) -> Option<String> {
    let at = variable.rfind(&key.to_uppercase())?;
    let (before, rest) = variable.split_at_checked(at)?;
    Some(format!("{before}{}{}", near.to_uppercase(), rest.get(key.len()..)?))
}
