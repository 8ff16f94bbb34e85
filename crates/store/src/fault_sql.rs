//! Proofs of faults in SQL.

use crate::error::RecordError;
use crate::ledger_sql::{attempt, key, signed, unsigned};
use rusqlite::{Connection, Row, params};
use std::collections::VecDeque;
use turnkeep_base::{AccountId, TurnId};
use turnkeep_engine::ports::FaultRecord;

/// Rows kept; beyond them the oldest give way.
pub(crate) const ROWS: i64 = 100_000;

/// Rows read of one turn, which has a handful.
const OF_TURN: i64 = 1_000;

const COLUMNS: &str = "at_ms, turn, attempt, upstream, account, model, fault, origin, phase, status, code, detail, \
                       \"offset\", clock, wait_ms, effect, until_ms";

/// Writes them from the front, oldest first, moving each to `written`; at an error the rest stays. Then makes the
/// oldest rows beyond `rows` give way: ids only rise, so those are the ids that far below the newest.
pub(crate) fn put(
    conn: &Connection,
    records: &mut VecDeque<FaultRecord>,
    written: &mut Vec<FaultRecord>,
    rows: i64,
) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO faults ({COLUMNS}) VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
    );
    let mut insert = conn.prepare_cached(&sql)?;
    while let Some(record) = records.front() {
        insert.execute(params![
            signed(record.at_ms),
            record.turn.bits().to_be_bytes(),
            record.attempt.map(key),
            record.account.as_ref().map(|id| &*id.upstream),
            record.account.as_ref().map(|id| &*id.account),
            &*record.model,
            record.fault,
            record.origin,
            record.phase,
            record.status,
            record.code,
            record.detail,
            record.offset.map(signed),
            record.clock,
            record.wait_ms.map(signed),
            record.effect,
            record.until_ms.map(signed),
        ])?;
        written.extend(records.pop_front());
    }
    conn.prepare_cached("DELETE FROM faults WHERE id <= ?1")?.execute([conn.last_insert_rowid() - rows])?;
    Ok(())
}

pub(crate) fn of_account(conn: &Connection, id: &AccountId, limit: usize) -> Result<Vec<FaultRecord>, RecordError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {COLUMNS} FROM faults WHERE upstream = ?1 AND account = ?2 ORDER BY at_ms DESC, id DESC LIMIT ?3"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params![&*id.upstream, &*id.account, limit], record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn of_turn(conn: &Connection, turn: TurnId) -> Result<Vec<FaultRecord>, RecordError> {
    let sql = format!("SELECT {COLUMNS} FROM faults WHERE turn = ?1 ORDER BY at_ms, id LIMIT ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params![turn.bits().to_be_bytes(), OF_TURN], record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes at most `limit` rows from before that time; answers how many.
pub(crate) fn prune(conn: &Connection, before_ms: u64, limit: usize) -> rusqlite::Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached(
        "DELETE FROM faults WHERE id IN (SELECT id FROM faults WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
    )?
    .execute(params![signed(before_ms), limit])
}

fn record(row: &Row<'_>) -> rusqlite::Result<FaultRecord> {
    let count = |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(unsigned));
    let account = match (row.get::<_, Option<String>>("upstream")?, row.get::<_, Option<String>>("account")?) {
        (Some(upstream), Some(account)) => Some(AccountId { upstream: upstream.into(), account: account.into() }),
        (Some(_), None) | (None, Some(_)) | (None, None) => None,
    };
    Ok(FaultRecord {
        at_ms: count("at_ms")?.unwrap_or(0),
        turn: TurnId::from_bits(u128::from_be_bytes(row.get("turn")?)),
        attempt: row.get::<_, Option<[u8; 17]>>("attempt")?.map(attempt),
        account,
        model: row.get::<_, String>("model")?.into(),
        fault: row.get("fault")?,
        origin: row.get("origin")?,
        phase: row.get("phase")?,
        status: row.get("status")?,
        code: row.get("code")?,
        detail: row.get("detail")?,
        offset: count("offset")?,
        clock: row.get("clock")?,
        wait_ms: count("wait_ms")?,
        effect: row.get("effect")?,
        until_ms: count("until_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::tests::record;

    fn database() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("../../../migrations/0001_store.sql")).unwrap();
        conn.execute_batch(include_str!("../../../migrations/0002_faults.sql")).unwrap();
        conn
    }

    fn times(conn: &Connection) -> Vec<i64> {
        let mut statement = conn.prepare("SELECT at_ms FROM faults ORDER BY id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn beyond_the_bound_the_oldest_rows_give_way() {
        let conn = database();
        for start in [0, 7, 14] {
            let mut records = (start..start + 7).map(record).collect();
            put(&conn, &mut records, &mut Vec::new(), 10).unwrap();
        }
        assert_eq!(times(&conn), (11..21).collect::<Vec<_>>());
        // Also where age has taken rows from the middle, there are never more.
        prune(&conn, 15, 100).unwrap();
        put(&conn, &mut (30..42).map(record).collect(), &mut Vec::new(), 10).unwrap();
        assert_eq!(times(&conn), (32..42).collect::<Vec<_>>());
    }

    #[test]
    fn at_an_error_the_rest_is_left_to_be_tried_again_and_what_went_in_is_told_apart() {
        let conn = database();
        conn.execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON faults WHEN NEW.at_ms = 2 BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
        let (mut records, mut written) = ((0..5).map(record).collect(), Vec::new());
        put(&conn, &mut records, &mut written, 10).unwrap_err();
        assert_eq!((written.len(), records.len(), times(&conn)), (2, 3, vec![0, 1]));
    }

    #[test]
    fn every_question_and_every_deletion_is_answered_by_an_index() {
        let conn = database();
        for (sql, index) in [
            (
                "SELECT * FROM faults WHERE upstream = 'u' AND account = 'a' ORDER BY at_ms DESC, id DESC",
                "faults_account",
            ),
            ("SELECT * FROM faults WHERE turn = x'00' ORDER BY at_ms, id", "faults_turn"),
            ("SELECT id FROM faults WHERE at_ms < 1 ORDER BY at_ms LIMIT 9", "faults_age"),
        ] {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> =
                statement.query_map([], |row| row.get("detail")).unwrap().map(Result::unwrap).collect();
            assert!(plan.len() == 1 && plan[0].contains(index), "{sql}: {plan:?}");
        }
    }
}
