//! What must outlive a turn: the usage ledger and what callers have spent, answers that are kept, the proofs of faults,
//! callers' keys, accounts and their standing. One contract ([`Store`]) and two stores that keep it: [`SqliteStore`], one file, and [`MemoryStore`], for demonstrations and tests.
//!
//! The store writes down and reads back. It decides nothing: what an entry, a cooldown or a key's limit means is the
//! business of the rooms that hand them over. It knows no socket and no configuration file.
//!
//! **Durability.** An acknowledged write of [`SqliteStore`] survives the death of this process at any instruction,
//! `kill -9` included. It does not wait for the disk (`synchronous = NORMAL`): a power cut or a kernel crash may lose
//! the commits since the last checkpoint, about five seconds' worth, and never damages the file or tears a commit apart.

#![forbid(unsafe_code)]

mod account;
mod account_sql;
mod backup;
mod checkpoint;
mod clock;
mod contract;
mod conversation_sql;
mod error;
mod fault;
mod fault_sql;
mod file;
#[doc(hidden)]
pub mod fuzzed;
mod kept_queue;
mod kept_sql;
mod key;
mod key_sql;
mod ledger_sql;
mod memory;
mod memory_conversations;
mod memory_faults;
mod memory_kept;
mod memory_stored;
mod memory_usage;
mod migrate;
mod prune;
mod record;
mod rekey;
mod restore;
mod seal;
mod side_queue;
mod sqlite;
mod sqlite_ports;
mod standing_sql;
mod stored_sql;
mod switch_sql;
mod trouble;
#[cfg(test)]
mod trouble_tests;
mod unopened;
mod url;
mod usage_sql;
mod writer;
#[cfg(test)]
mod writer_tests;

pub use account::{AccountRecord, NewAccount, OpenedSecret, SecretInput, SecretKind, SecretRef};
pub use backup::{BackupError, Progress, copy as backup};
pub use clock::SystemClock;
pub use contract::Store;
pub use error::{OpenError, RecordError};
pub use key::{Budget, KeyHash, KeyLimits, KeyRecord, KeySnapshot, NewKey, Pepper, hash_key};
pub use memory::MemoryStore;
pub use prune::{Keep, Pruned};
pub use record::{
    AuditEntry, CooldownRecord, CooldownScope, LedgerClose, LedgerEntry, Recent, Spend, StandingRecord, StandingStatus,
    Switch, UsageBy, UsageRow,
};
pub use rekey::{RekeyError, Rekeyed, rekey};
pub use restore::{RestoreError, Restored, restore};
pub use seal::{MasterKey, MasterKeyError};
pub use sqlite::{Role, SqliteStore, StoreOptions};
pub use turnkeep_engine::ports::{
    AnswerStore, ContentStore, ConversationStore, FaultLog, FaultRecord, KeptAnswer, KeptConversation, Ledger,
    StoreError,
};
pub use url::{BadStoreUrl, StoreUrl};
