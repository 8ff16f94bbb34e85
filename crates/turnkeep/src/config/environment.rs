//! Overrides: `TURNKEEP_<SECTION>__<KEY>` replaces that key of the document before it is read, so that an override is
//! checked by the same rules as the file. Entries of a list are addressed by their name.

use super::document::{self, Entry, Node, Origin, Value};
use super::error::ConfigError;
use super::problems::Problems;
use super::text::{nearest, quoted_list};
use std::ffi::OsString;
use std::sync::Arc;

const PREFIX: &str = "TURNKEEP_";
const PLAIN_SECRETS: &str = "ALLOW_PLAIN_SECRETS";

/// Applies every override in the order of the variables' names. Variables without a `__` are not overrides (but for
/// the top level's one key), and an empty one counts as not set.
pub(super) fn apply(root: &mut Node, environment: impl IntoIterator<Item = (OsString, OsString)>, problems: &Problems) {
    let mut overrides: Vec<(String, OsString)> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| is_override(name) && !value.is_empty())
        .collect();
    overrides.sort();
    for (name, value) in overrides {
        if let Err(error) = apply_one(root, &name, value) {
            problems.add(error);
        }
    }
}

fn is_override(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|rest| rest == PLAIN_SECRETS || rest.split_once("__").is_some_and(|(head, _)| !head.is_empty()))
}

fn apply_one(root: &mut Node, name: &str, value: OsString) -> Result<(), ConfigError> {
    let origin = Origin::Variable(Arc::from(name));
    let path: Vec<String> =
        name.strip_prefix(PREFIX).unwrap_or(name).split("__").map(str::to_ascii_lowercase).collect();
    let key = path.join(".");
    let place = document::Place { origin: origin.clone(), line: 1, column: 1 };
    let Ok(text) = value.into_string() else { return Err(place.error(&key, "is not UTF-8 text".into())) };
    let mut value = parse_value(&text, &origin, &place).map_err(|mut error| {
        error.key.clone_from(&key);
        error
    })?;
    let Some((last, above)) = path.split_last() else { return Ok(()) };
    let mut at = root;
    for step in above {
        at = descend(at, step, &place).map_err(|message| place.error(&key, message))?;
    }
    if matches!(at.value, Value::List(_)) {
        return Err(place.error(&key, format!("addresses a whole entry; name one of its keys: {name}__KEY")));
    }
    let kind = at.value.kind();
    let Value::Table(entries) = &mut at.value else {
        return Err(place.error(&key, format!("addresses something below {kind}, which has nothing below")));
    };
    match entries.iter_mut().find(|entry| entry.key == *last) {
        Some(entry) => std::mem::swap(&mut entry.node, &mut value),
        None => entries.push(Entry { key: last.clone(), key_at: place, node: value }),
    }
    Ok(())
}

/// TOML where the text can be nothing else; any other text is a string as it stands.
fn parse_value(text: &str, origin: &Origin, place: &document::Place) -> Result<Node, ConfigError> {
    let trimmed = text.trim();
    let float = trimmed.contains('.') && trimmed.starts_with(|c: char| c.is_ascii_digit());
    let number = trimmed.parse::<i64>().is_ok() || float && trimmed.parse::<f64>().is_ok();
    if number || trimmed == "true" || trimmed == "false" || trimmed.starts_with(['[', '{', '"', '\'']) {
        // "[::1]:4141" starts like an array, and is none.
        let parsed = document::parse_value(trimmed, origin);
        if parsed.is_ok() || !trimmed.starts_with("[:") && !trimmed.contains("]:") {
            return parsed;
        }
    }
    Ok(Node { value: Value::Text(text.to_owned()), at: place.clone() })
}

/// The table or entry one step below; a missing table is made.
fn descend<'a>(node: &'a mut Node, step: &str, place: &document::Place) -> Result<&'a mut Node, String> {
    let kind = node.value.kind();
    match &mut node.value {
        Value::Table(entries) => {
            let index = match entries.iter().position(|entry| entry.key == step) {
                Some(index) => index,
                None => {
                    let made = Node { value: Value::Table(Vec::new()), at: place.clone() };
                    entries.push(Entry { key: step.to_owned(), key_at: place.clone(), node: made });
                    entries.len() - 1
                }
            };
            entries.get_mut(index).map(|entry| &mut entry.node).ok_or_else(|| "cannot be addressed".into())
        }
        Value::List(nodes) => {
            let names: Vec<String> = nodes.iter().map(|node| folded_name(node).unwrap_or_default()).collect();
            let count = names.iter().filter(|name| *name == step).count();
            let index = names.iter().position(|name| name == step);
            match index.and_then(|index| nodes.get_mut(index)) {
                Some(node) if count == 1 => Ok(node),
                Some(_) => Err(format!("{step:?} stands for {count} entries; rename one in the file")),
                None => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let near = nearest(step, &names).map(|near| format!("; did you mean {near:?}?"));
                    let all = || format!("; there is {}", quoted_list(&names));
                    Err(format!("the file has no entry named {step:?}{}", near.unwrap_or_else(all)))
                }
            }
        }
        Value::Text(_) | Value::Integer(_) | Value::Float(..) | Value::Boolean(_) | Value::Date(_) => {
            Err(format!("addresses something below {kind}, which has nothing below"))
        }
    }
}

/// An entry's name as a variable spells it: lower case, anything but letters and digits an underscore.
fn folded_name(node: &Node) -> Option<String> {
    let Value::Table(entries) = &node.value else { return None };
    let Value::Text(name) = &entries.iter().find(|entry| entry.key == "name")?.node.value else { return None };
    let fold = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    Some(name.chars().map(fold).collect())
}
