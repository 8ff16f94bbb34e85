//! Upstreams' conversations in SQL. Their content is sealed for its own key: a row moved to another caller or key does not
//! open.

use crate::error::of_row;
use crate::ledger_sql::{signed, unsigned};
use crate::seal::SealKey;
use rusqlite::{Connection, Row, params};
use turnkeep_base::Fingerprint;
use turnkeep_engine::ports::{ConversationKey, KeptConversation, StoreError};

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keep(KeptConversation),
    /// All that went at once: a sweep of thousands takes one place in the queue.
    Forget(Vec<ConversationKey>),
}

/// What the content is sealed for.
fn owner(key: &ConversationKey) -> String {
    format!("conversation/{}/{}", key.key, key.caller)
}

/// A conversation with its content sealed.
pub(crate) fn sealed(seal: &SealKey, kept: &KeptConversation) -> Result<KeptConversation, StoreError> {
    let content = seal.seal_bytes(&owner(&kept.key), &kept.content)?.into();
    Ok(KeptConversation { content, ..kept.clone() })
}

/// Writes a sealed one, in the place of what stood under its key.
pub(crate) fn put(conn: &Connection, sealed: &KeptConversation) -> rusqlite::Result<()> {
    let KeptConversation { key, until_ms, content } = sealed;
    conn.prepare_cached(
        "INSERT INTO upstream_conversations (caller, key, until_ms, content) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (caller, key) DO UPDATE SET until_ms = excluded.until_ms, content = excluded.content",
    )?
    .execute(params![&*key.caller, key.key.0, signed(*until_ms), &**content])?;
    Ok(())
}

/// Removes one, if it is there.
pub(crate) fn remove(conn: &Connection, key: &ConversationKey) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM upstream_conversations WHERE caller = ?1 AND key = ?2")?
        .execute(params![&*key.caller, key.key.0])?;
    Ok(())
}

/// Every one that is not past its time and opens, the soonest to end first. The others are deleted.
pub(crate) fn load(conn: &Connection, seal: Option<&SealKey>, now_ms: u64) -> rusqlite::Result<Vec<KeptConversation>> {
    let (mut all, mut useless) = (Vec::new(), Vec::new());
    {
        // The bytes of the caller and the key name a row also where they are no caller and no key.
        let mut read = conn.prepare(
            "SELECT caller, key, until_ms, content, CAST(caller AS BLOB), CAST(key AS BLOB) FROM upstream_conversations \
             ORDER BY until_ms",
        )?;
        let mut rows = read.query([])?;
        while let Some(row) = rows.next()? {
            let opened = of_row(kept(row))?.and_then(|kept| {
                let seal = seal.filter(|_| kept.until_ms > now_ms)?;
                let content = seal.open_bytes(&owner(&kept.key), &kept.content)?.into();
                Some(KeptConversation { content, ..kept })
            });
            match opened {
                Some(kept) => all.push(kept),
                None => useless.push((row.get::<_, Vec<u8>>(4)?, row.get::<_, Vec<u8>>(5)?)),
            }
        }
    }
    let sql = "DELETE FROM upstream_conversations WHERE CAST(caller AS BLOB) = ?1 AND CAST(key AS BLOB) = ?2";
    let mut delete = conn.prepare(sql)?;
    for (caller, key) in &useless {
        delete.execute([caller, key])?;
    }
    Ok(all)
}

/// A row as it is, its content sealed.
fn kept(row: &Row<'_>) -> rusqlite::Result<KeptConversation> {
    let key = ConversationKey { caller: row.get::<_, String>(0)?.into(), key: Fingerprint(row.get(1)?) };
    Ok(KeptConversation { key, until_ms: unsigned(row.get(2)?), content: row.get::<_, Vec<u8>>(3)?.into() })
}

/// Deletes at most `limit` whose time is over; answers how many.
pub(crate) fn prune(conn: &Connection, now_ms: u64, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM upstream_conversations WHERE (caller, key) IN (SELECT caller, key FROM upstream_conversations \
         WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)",
    )?
    .execute(params![signed(now_ms), limit])
}

/// Seals every row anew. Rows that do not open go; answers how many were sealed.
pub(crate) fn reseal(conn: &Connection, old: &SealKey, new: &SealKey) -> Result<u64, StoreError> {
    let words = |error: rusqlite::Error| crate::error::plain(&error);
    // Those past their time are of no use under any key.
    let all = load(conn, Some(old), 0).map_err(words)?;
    for kept in &all {
        put(conn, &sealed(new, kept)?).map_err(words)?;
    }
    Ok(all.len() as u64)
}
