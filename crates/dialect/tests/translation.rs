//! The table of what becomes of each field is what the codecs do: every row's sample, written for every target.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::Value;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{Encoded, InPath, Operation, StreamForm, read, read_in_path, write_for};
use turnkeep_dialect::translation::{Fate, Row, minimal, model, rows, table};

/// The minimal request with the row's sample in it.
fn body(client: Dialect, row: &Row) -> String {
    let mut body: Value = serde_json::from_str(minimal(client)).unwrap();
    let sample: Value = serde_json::from_str(row.sample).unwrap_or_else(|error| panic!("{}: {error}", row.field));
    body.as_object_mut().unwrap().extend(sample.as_object().unwrap().clone());
    body.to_string()
}

fn written(client: Dialect, body: &str, target: Dialect) -> Result<Encoded, Invalid> {
    let bytes = Bytes::copy_from_slice(body.as_bytes());
    let request = match client {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => read(client, Operation::Generate, bytes),
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
            read_in_path(Operation::Generate, path, bytes)
        }
    };
    write_for(&request?, target, model(target), false)
}

/// The value at a path as `a.b[0].c`.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, step| {
        let mut names = step.split('[');
        let value = value.get(names.next()?)?;
        names.try_fold(value, |value, index| value.get(index.strip_suffix(']')?.parse::<usize>().ok()?))
    })
}

/// What is wrong with a fate; `None` when it is so.
fn wrong(client: Dialect, row: &Row, target: Dialect) -> Option<String> {
    let fate = row.fate(target);
    if client == target {
        return (fate != Fate::Own).then(|| "its own field, and not so in the table".to_owned());
    }
    let body = body(client, row);
    match (fate, written(client, &body, target)) {
        (Fate::Own, _) => Some("its own field only in its own dialect".to_owned()),
        (Fate::Refused(path), Err(error)) => {
            (error.path != path).then(|| format!("refused at {path} by the table, but: {error}"))
        }
        (Fate::Refused(path), Ok(encoded)) => {
            let sent = String::from_utf8_lossy(&encoded.body);
            Some(format!("refused at {path} by the table, but written: {sent}, dropped {:?}", encoded.dropped))
        }
        (fate, Err(error)) => Some(format!("{fate:?} by the table, but refused: {error}")),
        (Fate::Dropped(name), Ok(encoded)) => (!encoded.dropped.iter().any(|dropped| dropped == name)).then(|| {
            let sent = String::from_utf8_lossy(&encoded.body);
            format!("dropped as {name} by the table, but dropped {:?}: {sent}", encoded.dropped)
        }),
        (Fate::Carried { at: path, value }, Ok(encoded)) => {
            let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
            let value: Value = serde_json::from_str(value).unwrap_or_else(|error| panic!("{}: {error}", row.field));
            (at(&sent, path) != Some(&value))
                .then(|| format!("{value} at {path} by the table, but {sent}, dropped {:?}", encoded.dropped))
        }
        (Fate::Heeded, Ok(encoded)) => {
            (!encoded.dropped.is_empty()).then(|| format!("heeded by the table, but dropped {:?}", encoded.dropped))
        }
    }
}

#[test]
fn every_field_meets_the_fate_that_the_table_tells() {
    let mut found = Vec::new();
    for client in Dialect::ALL {
        for row in rows(client) {
            for target in Dialect::ALL {
                if let Some(what) = wrong(client, row, target) {
                    found.push(format!("{client} to {target}, {}: {what}", row.field));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} fates are not so:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_table_has_a_part_for_each_dialect_and_a_line_for_each_field() {
    let text = table();
    for client in Dialect::ALL {
        assert!(rows(client).len() > 20, "{client}");
        for row in rows(client) {
            assert!(text.contains(&format!("\n| {} |", row.field)), "{}", row.field);
        }
    }
    assert_eq!(text.matches("\n## From ").count() + 1, 4);
    let columns = |line: &str| line.matches(" |").count();
    assert!(text.lines().filter(|line| line.starts_with("| `")).all(|line| columns(line) == 4));
}
