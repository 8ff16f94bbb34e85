//! Traps that translating gateways have fallen into, one test each, over every client and upstream where it can happen.
//! `docs/field-faults.md` lists them with their sources.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/heard.rs"]
mod heard;
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/sent.rs"]
mod sent;

mod traps {
    mod requests;
    mod streams;
    mod thinking;
    mod tools;
}
