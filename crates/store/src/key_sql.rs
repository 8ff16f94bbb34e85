//! Keys in SQL. Lists are kept as JSON: nothing searches in them.

use crate::error::RecordError;
use crate::key::{KeyHash, KeyRecord};
use crate::ledger_sql::{signed, unsigned};
use crate::migrate::raise_revision;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use turnkeep_engine::ports::StoreError;

const COLUMNS: &str = "name, hash, old_hash, old_until_ms, scopes, models, limits, labels, shared, created_ms, \
                       expires_ms, revoked_ms";

pub(crate) fn insert(conn: &Connection, key: &KeyRecord) -> Result<(), RecordError> {
    if get(conn, &key.name)?.is_some() {
        return Err(RecordError::Exists(format!("a key named {:?}", key.name)));
    }
    put(conn, key)
}

/// Writes the record over the one of its name.
pub(crate) fn put(conn: &Connection, key: &KeyRecord) -> Result<(), RecordError> {
    let sql = format!("INSERT OR REPLACE INTO keys ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)");
    conn.prepare_cached(&sql)?.execute(params![
        key.name,
        key.hash.bytes(),
        key.old_hash.as_ref().map(|(hash, _)| hash.bytes()),
        key.old_hash.as_ref().map(|(_, until_ms)| signed(*until_ms)),
        json(&key.scopes)?,
        json(&key.models)?,
        json(&key.limits)?,
        json(&key.labels)?,
        key.shared,
        signed(key.created_ms),
        key.expires_ms.map(signed),
        key.revoked_ms.map(signed),
    ])?;
    raise_revision(conn)?;
    Ok(())
}

pub(crate) fn get(conn: &Connection, name: &str) -> Result<Option<KeyRecord>, RecordError> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE name = ?1");
    conn.prepare_cached(&sql)?.query_row([name], |row| Ok(record(row))).optional()?.transpose()
}

pub(crate) fn expect(conn: &Connection, name: &str) -> Result<KeyRecord, RecordError> {
    get(conn, name)?.ok_or_else(|| RecordError::Unknown(format!("key named {name:?}")))
}

pub(crate) fn list(conn: &Connection) -> Result<Vec<KeyRecord>, RecordError> {
    let sql = format!("SELECT {COLUMNS} FROM keys ORDER BY name");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(record(row)?);
    }
    Ok(keys)
}

fn record(row: &Row<'_>) -> Result<KeyRecord, RecordError> {
    let old_hash: Option<[u8; 32]> = row.get("old_hash")?;
    let old_until: Option<i64> = row.get("old_until_ms")?;
    Ok(KeyRecord {
        name: row.get("name")?,
        hash: KeyHash::from_bytes(row.get("hash")?),
        old_hash: old_hash.zip(old_until).map(|(hash, until)| (KeyHash::from_bytes(hash), unsigned(until))),
        scopes: from_json(row, "scopes")?,
        models: from_json(row, "models")?,
        limits: from_json(row, "limits")?,
        labels: from_json(row, "labels")?,
        shared: row.get("shared")?,
        created_ms: unsigned(row.get("created_ms")?),
        expires_ms: row.get::<_, Option<i64>>("expires_ms")?.map(unsigned),
        revoked_ms: row.get::<_, Option<i64>>("revoked_ms")?.map(unsigned),
    })
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, RecordError> {
    serde_json::to_string(value).map_err(|error| RecordError::Invalid(format!("cannot be written down: {error}")))
}

pub(crate) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, RecordError> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| StoreError(format!("the column {column} of a record is damaged: {error}")).into())
}
