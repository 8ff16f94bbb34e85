//! What is read back from the database.

use crate::chance::Chance;
use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::sync::OnceLock;
use turnkeep_base::{Dialect, Fingerprint};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::recorded::{Recorded, replay};
use turnkeep_dialect::reply::Progress;
use turnkeep_store::fuzzed::{self, Sealer};

/// The sealer of everything here; none where the machine cannot make one, which fails every target at once.
fn sealer() -> &'static Sealer {
    static SEALER: OnceLock<Option<Sealer>> = OnceLock::new();
    let made = SEALER.get_or_init(|| Sealer::new(&"5a".repeat(32), &[9; 32]).ok());
    assert!(made.is_some(), "no key to seal with");
    match made {
        Some(sealer) => sealer,
        None => std::process::abort(),
    }
}

/// Sealed values: bytes that were never sealed, and sealed ones that were changed.
pub fn sealed(data: &[u8]) {
    let sealer = sealer();
    assert!(sealer.open("owner", data).is_none() && sealer.open_text("owner", data).is_none(), "nobody sealed that");
    let Ok(sealed) = sealer.seal("owner", data) else { return };
    assert_eq!(sealer.open("owner", &sealed).as_deref(), Some(data));
    assert_eq!(sealer.open_text("owner", &sealed).is_some(), std::str::from_utf8(data).is_ok());
    assert!(sealer.open("other", &sealed).is_none(), "opened for another");
    let mut chance = Chance::over("sealed", data);
    let mut bent = sealed.clone();
    if let Some(byte) = bent.get_mut(chance.below(sealed.len())) {
        *byte ^= 1 << chance.below(8);
    }
    assert!(sealer.open("owner", &bent).is_none(), "opened after a change");
    assert!(sealer.open("owner", &sealed[..chance.below(sealed.len())]).is_none(), "opened where it was cut");
}

/// Answers as they are kept.
pub fn kept_record(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Some(record) = Recorded::from_bytes(bytes.clone()) {
        assert_eq!(record.to_bytes(), bytes, "another record when written again");
        replayed(&record);
    }
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let record = Recorded { dialect, stream, bytes: bytes.clone(), facts: Default::default() };
            assert_eq!(Recorded::from_bytes(record.to_bytes()).as_ref(), Some(&record), "not itself");
            replayed(&record);
        }
    }
}

fn replayed(record: &Recorded) {
    for wanted in [false, true] {
        let options = crate::differential::options(record.dialect, record.dialect);
        let Ok(pieces) = replay(record, &options, wanted) else { continue };
        let terminal = pieces.iter().position(|piece| piece.class == Class::Terminal);
        assert_eq!(terminal.map(|at| at + 1), Some(pieces.len()), "the last piece, and only it, is terminal");
        let given: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        if wanted {
            // A client of it must be able to read it to its end.
            let codec = crate::differential::through(&options, &[&given]);
            assert!(
                codec.fault.is_none() && codec.progress == Progress::Done,
                "{:?} of {}",
                codec.fault,
                String::from_utf8_lossy(&given)
            );
        } else {
            let error = serde_json::from_slice::<&serde_json::value::RawValue>(&given).err();
            assert!(error.is_none_or(|error| error.to_string().contains("recursion")), "no JSON body");
        }
    }
}

/// Reads a record and writes it again.
type Reader = fn(&[u8]) -> Option<Bytes>;

fn conversation(bytes: &[u8]) -> Option<Bytes> {
    turnkeep_engine::conversations::fuzzed::kept(&Bytes::copy_from_slice(bytes), Fingerprint([b'p'; 16]))
}

/// Responses, conversations, and upstreams' conversations, as they are stored.
pub fn stored_record(data: &[u8]) {
    let readers: [Reader; 3] =
        [turnkeep_http::fuzzed::stored_response, turnkeep_http::fuzzed::stored_conversation, conversation];
    for read in readers {
        let Some(written) = read(data) else { continue };
        assert_eq!(read(&written).as_ref(), Some(&written), "another record when written again: {:?}", written);
    }
}

/// Columns of rows that the gateway makes for itself, which it reads at its start and can do without.
const OWN: &[(&str, &[&str])] = &[
    ("kept", &["kind", "caller", "key", "kept_ms", "until_ms", "content"]),
    ("upstream_conversations", &["caller", "key", "until_ms", "content"]),
    ("stored", &["kind", "caller", "key", "made_ms", "until_ms", "used", "content"]),
];

/// Rows of records that are refused by name when damaged: a row each, all columns of it drawn.
const RECORDS: &[&str] =
    &["standing", "cooldowns", "audit", "faults", "ledger", "keys", "accounts", "switches", "spend"];

/// The first byte says where, the second what kind of value; the rest is the value.
pub fn stored_rows(data: &[u8]) {
    let [place, kind, rest @ ..] = data else { return };
    let made = fuzzed::database(sealer());
    assert!(made.is_ok(), "{:?}", made.err());
    let Ok(conn) = made else { return };
    // What a file may hold that was damaged is not held to what is checked when a row is written.
    let open = conn.execute_batch("PRAGMA ignore_check_constraints = 1");
    assert!(open.is_ok());
    own(&conn, usize::from(*place), *kind, rest);
    record(&conn, usize::from(*place), data);
}

fn value(kind: u8, rest: &[u8]) -> (&'static str, Value) {
    match kind % 4 {
        0 => ("?1", Value::Blob(rest.to_vec())),
        // Text of any bytes.
        1 => ("CAST(?1 AS TEXT)", Value::Blob(rest.to_vec())),
        2 => ("?1", Value::Integer(rest.iter().fold(0_i64, |number, byte| (number << 8) | i64::from(*byte)))),
        _ => ("?1", Value::Null),
    }
}

/// One row of two is changed in one column: the other one is read all the same, and nothing fails.
fn own(conn: &Connection, place: usize, kind: u8, rest: &[u8]) {
    let (table, columns) = OWN[place % OWN.len()];
    let column = columns[(place / OWN.len()) % columns.len()];
    let (expression, value) = value(kind, rest);
    let key = "x'01010101010101010101010101010101'";
    let changed = conn.execute(&format!("UPDATE {table} SET {column} = {expression} WHERE key = {key}"), [&value]);
    let changed = changed.is_ok();
    let what = format!("{table}.{column} = {value:?}");
    let read = match table {
        "kept" => fuzzed::kept(conn, sealer()),
        "stored" => fuzzed::stored(conn, sealer(), 2),
        _ => fuzzed::conversations(conn, sealer()),
    };
    assert!(read.is_ok(), "{what} stops a start: {read:?}");
    let (there, left_out) = read.unwrap_or_default();
    assert!(there >= 1, "{what}: the row beside it is lost");
    if table != "stored" {
        assert_eq!(there + left_out, 2, "{what}: a row that is neither read nor counted");
        assert!(changed || there == 2, "{what}: nothing was changed, and a row is gone");
    } else {
        let first = fuzzed::stored(conn, sealer(), 1);
        assert!(first.is_ok(), "{what}: {first:?}");
    }
}

/// A record of drawn values: read, or refused in words.
fn record(conn: &Connection, place: usize, data: &[u8]) {
    let table = RECORDS[place % RECORDS.len()];
    let columns: Result<Vec<String>, _> = conn
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect());
    let columns = columns.unwrap_or_default();
    assert!(!columns.is_empty(), "no table {table}");
    let mut chance = Chance::over("record", data);
    let values: Vec<(&str, Value)> = columns
        .iter()
        .map(|_| {
            let (from, length) = (chance.below(data.len()), chance.below(20));
            let bytes = data.get(from..).unwrap_or_default();
            value(chance.byte(), &bytes[..length.min(bytes.len())])
        })
        .collect();
    let places: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(at, (expression, _))| expression.replace("?1", &format!("?{}", at + 1)))
        .collect();
    let sql = format!("INSERT OR REPLACE INTO {table} ({}) VALUES ({})", quoted(&columns), places.join(", "));
    // A value of a kind that the column does not take is refused by the schema, as it would be in a file.
    let _ = conn.execute(&sql, rusqlite::params_from_iter(values.iter().map(|(_, value)| value)));
    for (name, read) in fuzzed::others(conn) {
        if let Err(words) = read {
            assert!(!words.is_empty(), "{name}: refused without a word");
        }
    }
}

fn quoted(columns: &[String]) -> String {
    columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
}
