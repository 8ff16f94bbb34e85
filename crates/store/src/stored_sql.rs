//! Stored responses and conversations in SQL. Their content is sealed for its own key: a row moved to another caller or
//! id does not open.

use crate::error::of_row;
use crate::ledger_sql::{signed, unsigned};
use crate::seal::SealKey;
use rusqlite::{Connection, OptionalExtension, params};
use turnkeep_base::Fingerprint;
use turnkeep_engine::ports::{StoreError, StoredKey, StoredThing};

/// Things kept at most, over all callers.
pub(crate) const THINGS: u64 = 200_000;
/// Bytes of them.
pub(crate) const BYTES: u64 = 4 << 30;

/// What the content is sealed for.
fn owner(kind: &str, key: &Fingerprint, caller: &str) -> String {
    format!("stored/{kind}/{key}/{caller}")
}

/// A thing with its content sealed.
pub(crate) fn sealed(seal: &SealKey, thing: &StoredThing) -> Result<StoredThing, StoreError> {
    let StoredKey { kind, caller, key } = &thing.key;
    let content = seal.seal_bytes(&owner(kind.name(), key, caller), &thing.content)?.into();
    Ok(StoredThing { content, ..thing.clone() })
}

/// Writes sealed things, and makes room for them.
pub(crate) fn put(conn: &Connection, things: &[StoredThing]) -> rusqlite::Result<()> {
    for thing in things {
        // In the place of another one: so that the triggers see both.
        remove(conn, &thing.key)?;
        let StoredKey { kind, caller, key } = &thing.key;
        conn.prepare_cached(
            "INSERT INTO stored (kind, caller, key, made_ms, until_ms, used, content) VALUES (?1, ?2, ?3, ?4, ?5, \
             (SELECT coalesce(max(used), 0) + 1 FROM stored WHERE caller = ?2), ?6)",
        )?
        .execute(params![
            kind.name(),
            &**caller,
            key.0,
            signed(thing.made_ms),
            signed(thing.until_ms),
            &*thing.content
        ])?;
    }
    bound(conn, THINGS, BYTES)
}

/// While there is too much, the caller with the largest share loses what it has not used for longest.
pub(crate) fn bound(conn: &Connection, most_things: u64, most_bytes: u64) -> rusqlite::Result<()> {
    loop {
        let (things, bytes) = conn
            .prepare_cached("SELECT things, bytes FROM stored_share WHERE caller = ''")?
            .query_row([], |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?;
        let largest = match (things > most_things, bytes > most_bytes) {
            (false, false) => return Ok(()),
            (true, _) => "SELECT caller FROM stored_share WHERE caller <> '' ORDER BY things DESC LIMIT 1",
            (false, true) => "SELECT caller FROM stored_share WHERE caller <> '' ORDER BY bytes DESC LIMIT 1",
        };
        let caller: Option<String> = conn.prepare_cached(largest)?.query_row([], |row| row.get(0)).optional()?;
        let Some(caller) = caller else { return Ok(()) };
        let gone = conn
            .prepare_cached(
                "DELETE FROM stored WHERE rowid = (SELECT rowid FROM stored WHERE caller = ?1 ORDER BY used LIMIT 1)",
            )?
            .execute([&caller])?;
        if gone == 0 {
            return Ok(());
        }
    }
}

/// One whose time is not over and that opens.
pub(crate) fn get(
    conn: &Connection,
    seal: &SealKey,
    key: &StoredKey,
    now_ms: u64,
) -> rusqlite::Result<Option<StoredThing>> {
    let row = conn
        .prepare_cached(
            "SELECT made_ms, until_ms, content FROM stored WHERE kind = ?1 AND caller = ?2 AND key = ?3 AND until_ms > ?4",
        )?
        .query_row(params![key.kind.name(), &*key.caller, key.key.0, signed(now_ms)], |row| {
            Ok((unsigned(row.get(0)?), unsigned(row.get(1)?), row.get::<_, Vec<u8>>(2)?))
        })
        .optional()?;
    let opened = row.and_then(|(made_ms, until_ms, content)| {
        let content = seal.open_bytes(&owner(key.kind.name(), &key.key, &key.caller), &content)?.into();
        Some(StoredThing { key: key.clone(), made_ms, until_ms, content })
    });
    Ok(opened)
}

/// It was used.
pub(crate) fn touch(conn: &Connection, key: &StoredKey, until_ms: u64) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE stored SET until_ms = ?4, used = (SELECT coalesce(max(used), 0) + 1 FROM stored WHERE caller = ?2) \
         WHERE kind = ?1 AND caller = ?2 AND key = ?3",
    )?
    .execute(params![key.kind.name(), &*key.caller, key.key.0, signed(until_ms)])?;
    Ok(())
}

/// Removes one, and tells whether it was there.
pub(crate) fn remove(conn: &Connection, key: &StoredKey) -> rusqlite::Result<bool> {
    let gone = conn
        .prepare_cached("DELETE FROM stored WHERE kind = ?1 AND caller = ?2 AND key = ?3")?
        .execute(params![key.kind.name(), &*key.caller, key.key.0])?;
    Ok(gone > 0)
}

/// Deletes at most `limit` whose time is over; answers how many.
pub(crate) fn prune(conn: &Connection, now_ms: u64, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM stored WHERE rowid IN (SELECT rowid FROM stored WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)",
    )?
    .execute(params![signed(now_ms), limit])
}

/// Seals every row anew. Rows that do not open go; answers how many were sealed.
pub(crate) fn reseal(conn: &Connection, old: &SealKey, new: &SealKey) -> Result<u64, StoreError> {
    let words = |error: rusqlite::Error| crate::error::plain(&error);
    let ids: Vec<i64> = conn
        .prepare("SELECT rowid FROM stored")
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
        .map_err(words)?;
    let mut read = conn.prepare("SELECT kind, caller, key, content FROM stored WHERE rowid = ?1").map_err(words)?;
    let mut write = conn.prepare("UPDATE stored SET content = ?2 WHERE rowid = ?1").map_err(words)?;
    let mut delete = conn.prepare("DELETE FROM stored WHERE rowid = ?1").map_err(words)?;
    let mut sealed = 0;
    for id in ids {
        let row = of_row(read.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))));
        let opened = row.map_err(words)?.and_then(|row: (String, String, [u8; 16], Vec<u8>)| {
            let (kind, caller, key, content) = row;
            let owner = owner(&kind, &Fingerprint(key), &caller);
            Some((old.open_bytes(&owner, &content)?, owner))
        });
        match opened {
            // Sealing adds the same to every content, so no share changes.
            Some((content, owner)) => {
                write.execute(params![id, new.seal_bytes(&owner, &content)?]).map_err(words)?;
                sealed += 1;
            }
            None => drop(delete.execute([id]).map_err(words)?),
        }
    }
    Ok(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnkeep_engine::ports::StoredKind;

    fn thing(caller: &str, number: u8, bytes: usize) -> StoredThing {
        let key = StoredKey { kind: StoredKind::Response, caller: Arc::from(caller), key: Fingerprint([number; 16]) };
        StoredThing { key, made_ms: 1, until_ms: 100, content: vec![number; bytes].into() }
    }

    fn database() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("../../../migrations/0005_stored.sql")).unwrap();
        conn
    }

    fn left(conn: &Connection) -> Vec<(String, u8)> {
        let mut all = conn.prepare("SELECT caller, key FROM stored ORDER BY caller, key").unwrap();
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get::<_, [u8; 16]>(1)?[0]))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn over_a_bound_the_largest_share_loses_what_was_not_used_for_longest() {
        let conn = database();
        put(&conn, &[thing("ann", 1, 10)]).unwrap();
        for number in 1..=4 {
            put(&conn, &[thing("bob", number, 10)]).unwrap();
        }
        touch(&conn, &thing("bob", 1, 0).key, 200).unwrap();
        bound(&conn, 4, 1_000).unwrap();
        let names = |all: &[(&str, u8)]| all.iter().map(|(who, n)| ((*who).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(left(&conn), names(&[("ann", 1), ("bob", 1), ("bob", 3), ("bob", 4)]));
        bound(&conn, 100, 20).unwrap();
        assert_eq!(left(&conn), names(&[("ann", 1), ("bob", 1)]));
    }

    #[test]
    fn a_thing_in_the_place_of_another_leaves_the_shares_right() {
        let conn = database();
        put(&conn, &[thing("ann", 1, 10)]).unwrap();
        put(&conn, &[thing("ann", 1, 30)]).unwrap();
        let share = |caller: &str| -> Option<(i64, i64)> {
            let sql = "SELECT things, bytes FROM stored_share WHERE caller = ?1";
            conn.query_row(sql, [caller], |row| Ok((row.get(0)?, row.get(1)?))).optional().unwrap()
        };
        assert_eq!((share("ann"), share("")), (Some((1, 30)), Some((1, 30))));
        assert!(remove(&conn, &thing("ann", 1, 0).key).unwrap());
        assert_eq!((share("ann"), share("")), (None, Some((0, 0))));
    }
}
