//! The words every other room speaks: ids, limits, secrets, faults and their verdicts, token usage and prices, receipts.
//!
//! Nothing here does I/O, reads a clock, draws a random number or knows JSON.

#![forbid(unsafe_code)]

pub mod caller;
pub mod dialect;
pub mod error;
pub mod fault;
pub mod fingerprint;
pub mod id;
pub mod limit;
pub mod price;
pub mod receipt;
pub mod secret;
pub mod seeded;
pub mod usage;
pub mod verdict;

pub use caller::CallerScope;
pub use dialect::Dialect;
pub use error::ClientError;
pub use fault::{Clock, ClockKind, Declared, Evidence, Fault, FaultKind, LimitScope, Phase, Window};
pub use fingerprint::Fingerprint;
pub use id::{AccountId, AttemptId, TurnId};
pub use price::{NanoUsd, Price};
pub use receipt::{Mint, Receipt};
pub use secret::Secret;
pub use usage::Usage;
pub use verdict::{Charge, ClientView, Effect, Health, Lease, Next, Origin, Row, Shells, Verdict};
