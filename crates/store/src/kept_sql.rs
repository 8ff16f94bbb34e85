//! Kept answers in SQL. Their content is sealed for its own key: a row moved to another key does not open.

use crate::error::of_row;
use crate::kept_queue::Change;
use crate::ledger_sql::{signed, unsigned};
use crate::seal::SealKey;
use rusqlite::{Connection, Row, params};
use turnkeep_base::Fingerprint;
use turnkeep_engine::ports::{KeptAnswer, KeptFor, KeptKey, StoreError};

/// Rows kept at most after a pruning.
pub(crate) const ROWS: u64 = 32 * 1024;
/// Bytes of content kept at most after a pruning.
pub(crate) const BYTES: u64 = 512 << 20;

/// What the content is sealed for.
fn owner(key: &KeptKey) -> String {
    format!("kept/{}/{}/{}", key.kept.name(), key.key, key.caller)
}

/// Seals an answer; the error says only why not.
pub(crate) fn sealed(seal: &SealKey, answer: &KeptAnswer) -> Result<Vec<u8>, StoreError> {
    seal.seal_bytes(&owner(&answer.key), &answer.content)
}

/// Applies a change. `sealed` is the content of an answer that is kept.
pub(crate) fn apply(conn: &Connection, change: &Change, sealed: &[u8], now_ms: u64) -> rusqlite::Result<()> {
    match change {
        Change::Keep(answer) => put(conn, &answer.key, now_ms, answer.until_ms, sealed),
        Change::Forget(key) => forget(conn, key),
    }
}

pub(crate) fn put(
    conn: &Connection,
    key: &KeptKey,
    kept_ms: u64,
    until_ms: u64,
    sealed: &[u8],
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO kept (kind, caller, key, kept_ms, until_ms, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (kind, caller, key) DO UPDATE SET kept_ms = excluded.kept_ms, until_ms = excluded.until_ms, \
         content = excluded.content",
    )?
    .execute(params![key.kept.name(), &*key.caller, key.key.0, signed(kept_ms), signed(until_ms), sealed])?;
    Ok(())
}

pub(crate) fn forget(conn: &Connection, key: &KeptKey) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM kept WHERE kind = ?1 AND caller = ?2 AND key = ?3")?.execute(params![
        key.kept.name(),
        &*key.caller,
        key.key.0
    ])?;
    Ok(())
}

/// Every answer that is not past its time and opens, the soonest to end first, and the rows of all others.
pub(crate) fn load(
    conn: &Connection,
    seal: Option<&SealKey>,
    now_ms: u64,
) -> rusqlite::Result<(Vec<KeptAnswer>, Vec<i64>)> {
    let mut statement =
        conn.prepare_cached("SELECT rowid, kind, caller, key, until_ms, content FROM kept ORDER BY until_ms, rowid")?;
    let mut rows = statement.query([])?;
    let (mut answers, mut useless) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match (seal, of_row(answer(row))?.flatten()) {
            (Some(seal), Some(answer)) if answer.until_ms > now_ms => {
                match seal.open_bytes(&owner(&answer.key), &answer.content) {
                    Some(content) => answers.push(KeptAnswer { content: content.into(), ..answer }),
                    None => useless.push(row.get("rowid")?),
                }
            }
            (Some(_) | None, Some(_) | None) => useless.push(row.get("rowid")?),
        }
    }
    Ok((answers, useless))
}

/// A row as it is, its content sealed; `None` if its words are not ours. One whose values are not of their kind is an error,
/// which [`of_row`] makes none of.
fn answer(row: &Row<'_>) -> rusqlite::Result<Option<KeptAnswer>> {
    let Some(kept) = KeptFor::from_name(&row.get::<_, String>("kind")?) else { return Ok(None) };
    let key = Fingerprint(row.get("key")?);
    let key = KeptKey { kept, caller: row.get::<_, String>("caller")?.into(), key };
    let content = row.get::<_, Vec<u8>>("content")?.into();
    Ok(Some(KeptAnswer { key, until_ms: unsigned(row.get("until_ms")?), content }))
}

/// Deletes these rows, unless they were written anew.
pub(crate) fn delete(conn: &Connection, rows: &[i64], until_ms: u64) -> rusqlite::Result<()> {
    let mut delete = conn.prepare_cached("DELETE FROM kept WHERE rowid = ?1 AND kept_ms <= ?2")?;
    for row in rows {
        delete.execute(params![row, signed(until_ms)])?;
    }
    Ok(())
}

/// Deletes at most `limit` rows whose time is over, or that were written before `kept_from`; answers how many.
pub(crate) fn prune(conn: &Connection, now_ms: u64, kept_from: u64, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM kept WHERE rowid IN (SELECT rowid FROM kept WHERE until_ms <= ?1 OR kept_ms < ?2 \
         ORDER BY until_ms LIMIT ?3)",
    )?
    .execute(params![signed(now_ms), signed(kept_from), limit])
}

/// Deletes at most `limit` rows, the soonest to end, of which there are too many or too large ones.
pub(crate) fn shrink(conn: &Connection, limit: usize) -> rusqlite::Result<usize> {
    let (rows, bytes) = conn
        .prepare_cached("SELECT count(*), coalesce(sum(length(content)), 0) FROM kept")?
        .query_row([], |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?;
    if rows <= ROWS && bytes <= BYTES {
        return Ok(0);
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached("DELETE FROM kept WHERE rowid IN (SELECT rowid FROM kept ORDER BY until_ms LIMIT ?1)")?
        .execute([limit])
}

/// Seals every row anew. Rows that do not open go; answers how many were sealed.
pub(crate) fn reseal(conn: &Connection, old: &SealKey, new: &SealKey) -> Result<u64, StoreError> {
    let words = |error: rusqlite::Error| crate::error::plain(&error);
    let ids: Vec<i64> = conn
        .prepare("SELECT rowid FROM kept")
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
        .map_err(words)?;
    let mut read =
        conn.prepare("SELECT kind, caller, key, until_ms, content FROM kept WHERE rowid = ?1").map_err(words)?;
    let mut write = conn.prepare("UPDATE kept SET content = ?2 WHERE rowid = ?1").map_err(words)?;
    let mut delete = conn.prepare("DELETE FROM kept WHERE rowid = ?1").map_err(words)?;
    let mut sealed = 0;
    for id in ids {
        let answer = of_row(read.query_row([id], answer)).map_err(words)?.flatten();
        let opened = answer.and_then(|answer| {
            let content = old.open_bytes(&owner(&answer.key), &answer.content)?;
            Some((answer.key, content))
        });
        match opened {
            Some((key, content)) => {
                let content = new.seal_bytes(&owner(&key), &content)?;
                write.execute(params![id, content]).map_err(words)?;
                sealed += 1;
            }
            None => drop(delete.execute([id]).map_err(words)?),
        }
    }
    Ok(sealed)
}
