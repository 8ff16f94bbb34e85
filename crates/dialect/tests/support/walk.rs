//! A generator of bad requests: it walks a full request of a dialect and puts every wrong value at every position, leaves
//! every field out, and gives every field twice. What is made of each is up to the caller, who must not be made to panic.
//!
//! Included by `#[path = "support/walk.rs"] mod walk;`.

use serde_json::{Map, Value};

/// What is put in the place of a value, as JSON text.
const WRONG: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "2.5",
    "1e400",
    "123456789012345678901234567890",
    "\"\"",
    "\" \"",
    "\"x\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"{\\\"a\\\":\"",
    "\"data:\"",
    "[]",
    "[null]",
    "[[]]",
    "[{}]",
    "[\"x\"]",
    "{}",
    "{\"type\":\"x\"}",
    "{\"type\":7}",
    "{\"a\":{\"b\":[{}]}}",
];

/// Stands for the wrong value until the text is made.
const HOLE: &str = "\u{1}hole\u{1}";

/// A bad request: what was done to it, where, and its body.
#[derive(Debug)]
pub struct Bad {
    /// For the message of a failed assertion.
    pub what: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Calls `check` with every bad form of a request.
pub fn every_wrong(request: &Value, mut check: impl FnMut(&Bad)) {
    let mut paths = Vec::new();
    positions(request, &mut Vec::new(), &mut paths);
    let hole = serde_json::to_string(HOLE).unwrap_or_default();
    for path in &paths {
        let mut holed = request.clone();
        if let Some(place) = at(&mut holed, path) {
            *place = HOLE.into();
        }
        let text = holed.to_string();
        for wrong in WRONG {
            let what = format!("{} is {wrong}", shown(path));
            check(&Bad { what, body: text.replace(&hole, wrong).into_bytes() });
        }
        let Some((Step::Key(key), above)) = path.split_last() else { continue };
        let mut without = request.clone();
        if let Some(Value::Object(fields)) = at(&mut without, above) {
            fields.remove(key);
        }
        check(&Bad { what: format!("{} is missing", shown(path)), body: without.to_string().into_bytes() });
        let mut twice = request.clone();
        let value = at(&mut twice, path).map(|value| value.to_string()).unwrap_or_default();
        if let Some(place) = at(&mut twice, path) {
            *place = HOLE.into();
        }
        let name = serde_json::to_string(key).unwrap_or_default();
        let text = twice.to_string().replace(&hole, &format!("{value},{name}:{value}"));
        check(&Bad { what: format!("{} stands twice", shown(path)), body: text.into_bytes() });
    }
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

fn positions(value: &Value, path: &mut Vec<Step>, out: &mut Vec<Vec<Step>>) {
    out.push(path.clone());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(Step::Key(key.clone()));
                positions(value, path, out);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                path.push(Step::Index(index));
                positions(value, path, out);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn at<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.as_object_mut().and_then(|fields: &mut Map<String, Value>| fields.get_mut(key)),
        Step::Index(index) => value.as_array_mut().and_then(|items| items.get_mut(*index)),
    })
}

fn shown(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Index(index) => format!("[{index}]"),
    });
    format!("${}", steps.collect::<String>())
}
