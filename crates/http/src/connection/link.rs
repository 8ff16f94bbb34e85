//! A client's connection that is no socket of the kernel's: for programs that embed the gateway, and for simulation.

pub use super::kernel::Standing;

use std::fmt;
use std::io;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// A connection to a client, byte for byte as TCP would carry it. Several tasks may wait on it at once, each for something
/// else: all are woken.
pub trait Link: fmt::Debug + Send + Sync {
    /// Reads what has come; nothing read is the client's end.
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>>;
    /// Takes bytes, as many as there is room for.
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Ready when something can be read, or nothing more will come; `true` for the latter, also while something is unread.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<bool>;
    /// Ready when an error has ended the connection.
    fn poll_failed(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// How much of what was taken the client's host has acknowledged.
    fn standing(&self) -> Standing;
    /// Nothing more will be written.
    fn shut_down(&self);
}
