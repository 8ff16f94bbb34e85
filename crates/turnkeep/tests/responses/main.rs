//! Stored responses, conversations and answers that are made in the background, over every kind of upstream and real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "../it/support/mod.rs"]
mod support;

mod background;
mod chains;
mod conversations;
mod every_kind;
mod hostile;
mod killed;
mod repeated;
mod scene;
mod stored;
