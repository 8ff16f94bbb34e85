//! Stored responses, conversations and answers that are made in the background, over a Chat upstream and real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod background;
mod chains;
mod conversations;
mod scene;
mod stored;
