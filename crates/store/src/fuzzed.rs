//! What reads rows and sealed values by itself, for the fuzz targets and nobody else (the layer check looks).

use crate::kept_sql;
use crate::seal::{MasterKey, SealKey};
use crate::{account_sql, conversation_sql, fault_sql, key_sql, ledger_sql, migrate, standing_sql, stored_sql};
use crate::{switch_sql, usage_sql};
use rusqlite::Connection;
use std::path::Path;
use turnkeep_base::{AccountId, AttemptId, Fingerprint, Secret, TurnId};
use turnkeep_engine::ports::{
    ConversationKey, KeptAnswer, KeptConversation, KeptFor, KeptKey, StoreError, StoredKey, StoredKind, StoredThing,
};

/// A key that values are sealed with.
#[derive(Debug)]
pub struct Sealer(SealKey);

impl Sealer {
    /// Of a master key of 64 hexadecimal digits, and a salt.
    ///
    /// # Errors
    /// It is none.
    pub fn new(hex: &str, salt: &[u8; 32]) -> Result<Sealer, StoreError> {
        let master = MasterKey::parse(&Secret::new(hex.to_owned())).map_err(|error| StoreError(error.to_string()))?;
        SealKey::derive(&master, salt).map(Sealer)
    }

    /// Seals for an owner.
    ///
    /// # Errors
    /// The machine has no randomness.
    pub fn seal(&self, owner: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.seal_bytes(owner, plain)
    }

    /// `None` if it was not sealed by this key for this owner.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.0.open_bytes(owner, sealed)
    }

    /// As a secret's text.
    pub fn open_text(&self, owner: &str, sealed: &[u8]) -> Option<Secret> {
        self.0.open(owner, sealed)
    }
}

/// The caller of every row of [`database`].
const CALLER: &str = "laptop";
/// The account of every row of [`database`].
fn account() -> AccountId {
    AccountId { upstream: "up".into(), account: "one".into() }
}

/// An empty database in memory of the newest schema, with two rows of what the process makes for itself in each table that
/// it reads at its start: kept answers, stored things, upstreams' conversations.
///
/// # Errors
/// SQLite's words.
pub fn database(sealer: &Sealer) -> Result<Connection, String> {
    let mut conn = Connection::open_in_memory().map_err(|error| error.to_string())?;
    migrate::migrate(&mut conn, Path::new("memory")).map_err(|error| error.to_string())?;
    for number in [1, 2] {
        let key = Fingerprint([number; 16]);
        let content = vec![number; 40].into();
        let answer = KeptAnswer {
            key: KeptKey { kept: KeptFor::Held, caller: CALLER.into(), key },
            until_ms: u64::from(number) << 40,
            content,
        };
        let sealed = kept_sql::sealed(&sealer.0, &answer).map_err(|error| error.to_string())?;
        kept_sql::put(&conn, &answer.key, 0, answer.until_ms, &sealed).map_err(|error| error.to_string())?;
        let conversation = KeptConversation {
            key: ConversationKey { caller: CALLER.into(), key },
            until_ms: u64::from(number) << 40,
            content: vec![number; 40].into(),
        };
        let sealed = conversation_sql::sealed(&sealer.0, &conversation).map_err(|error| error.to_string())?;
        conversation_sql::put(&conn, &sealed).map_err(|error| error.to_string())?;
        let thing = StoredThing {
            key: StoredKey { kind: StoredKind::Response, caller: CALLER.into(), key },
            made_ms: 1,
            until_ms: u64::from(number) << 40,
            content: vec![number; 40].into(),
        };
        let sealed = stored_sql::sealed(&sealer.0, &thing).map_err(|error| error.to_string())?;
        stored_sql::put(&conn, &[sealed]).map_err(|error| error.to_string())?;
    }
    Ok(conn)
}

/// What the readers of a database make of it: `Ok` with how many rows were read and how many were left out, or the words
/// of a refusal.
pub type Read = Result<(usize, usize), String>;

/// Kept answers: those that open, and those that are of no use.
pub fn kept(conn: &Connection, sealer: &Sealer) -> Read {
    let (answers, useless) = kept_sql::load(conn, Some(&sealer.0), 1).map_err(|error| error.to_string())?;
    Ok((answers.len(), useless.len()))
}

/// Upstreams' conversations: those that open, and those that were deleted.
pub fn conversations(conn: &Connection, sealer: &Sealer) -> Read {
    let rows = || conn.query_row("SELECT count(*) FROM upstream_conversations", [], |row| row.get::<_, i64>(0));
    let before = rows().map_err(|error| error.to_string())?;
    let read = conversation_sql::load(conn, Some(&sealer.0), 1).map_err(|error| error.to_string())?;
    let after = rows().map_err(|error| error.to_string())?;
    Ok((read.len(), usize::try_from(before - after).unwrap_or_default()))
}

/// The stored thing of this number, if it is there and opens.
pub fn stored(conn: &Connection, sealer: &Sealer, number: u8) -> Read {
    let key = StoredKey { kind: StoredKind::Response, caller: CALLER.into(), key: Fingerprint([number; 16]) };
    let found = stored_sql::get(conn, &sealer.0, &key, 1).map_err(|error| error.to_string())?;
    Ok((usize::from(found.is_some()), 0))
}

/// Everything else that is read back, each by its name.
pub fn others(conn: &Connection) -> Vec<(&'static str, Read)> {
    fn told<T, E: std::fmt::Display>(read: Result<Vec<T>, E>) -> Read {
        read.map(|rows| (rows.len(), 0)).map_err(|error| error.to_string())
    }
    let turn = TurnId::from_bits(7);
    vec![
        ("standing", told(standing_sql::load(conn))),
        ("audit", told(standing_sql::audit_entries(conn, 100))),
        ("faults of an account", told(fault_sql::of_account(conn, &account(), 100))),
        ("faults of a turn", told(fault_sql::of_turn(conn, turn))),
        ("ledger", told(ledger_sql::newest(conn, 100))),
        ("ledger of a turn", told(ledger_sql::of_turn(conn, turn))),
        ("keys", told(key_sql::list(conn))),
        ("accounts", told(account_sql::list(conn))),
        ("switches", told(switch_sql::open(conn))),
        ("spent", told(usage_sql::spent(conn, 0))),
        ("recent", told(usage_sql::recent(conn, 0))),
        ("usage", told(usage_sql::usage(conn, 0, &[]))),
        ("recovered", ledger_sql::recover(conn, 1).map(|rows| (rows, 0)).map_err(|error| error.to_string())),
        ("open", ledger_sql::open_count(conn).map(|_| (0, 0)).map_err(|error| error.to_string())),
        (
            "pruned",
            ledger_sql::prune(conn, AttemptId { turn, number: 0 }, 1).map(|rows| (rows, 0)).map_err(|e| e.to_string()),
        ),
    ]
}
