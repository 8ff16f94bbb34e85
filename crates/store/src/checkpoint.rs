//! Moves what the write-ahead log holds into the database file, on a thread and a connection of its own: this is the
//! part that waits for the disk, and an attempt's ledger entry must not wait behind it.

use rusqlite::Connection;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

pub(crate) struct Checkpointer {
    ask: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub fn start(conn: Connection) -> std::io::Result<Self> {
        // One place: a request that finds one waiting has nothing to add.
        let (ask, asked) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new().name("store-checkpoint".into()).spawn(move || {
            while asked.recv().is_ok() {
                // PASSIVE blocks neither the writer nor readers; what it leaves, the next one takes.
                let done = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                if let Err(error) = done {
                    tracing::warn!(%error, "the store could not move its log into the database file");
                }
            }
        })?;
        Ok(Checkpointer { ask, thread })
    }

    /// Asks for a checkpoint. False if one is waiting already.
    pub fn ask(&self) -> bool {
        self.ask.try_send(()).is_ok()
    }

    /// Ends the thread and its connection.
    pub fn stop(self) {
        drop(self.ask);
        if self.thread.join().is_err() {
            tracing::error!("the store's checkpoint thread ended in a panic");
        }
    }
}
