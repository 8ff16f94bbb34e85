//! Fuzz targets for every decoder of the gateway: what reads bytes that a client, an upstream, an operator or a file wrote.
//!
//! A target is a function of any bytes that ends, or panics where something that must hold does not. [`table`] lists them
//! all, and everything else is driven by that list: the tests on stable (seeds and mutants of them, bounded by count), the
//! command line (`run`, `replay`), the libFuzzer targets in `fuzz/` and the table in `docs/fuzzing.md`.
//!
//! Targets assert with their own reading of the rules (an oracle of a few lines, another parser, the same bytes in other
//! pieces), never by asking the decoder what it meant.

#![forbid(unsafe_code)]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

pub mod chance;
mod cuts;
pub mod differential;
pub mod docs;
mod mutate;
pub mod run;
pub mod said;
pub mod seeds;
pub mod table;
pub mod targets;

pub use table::{TARGETS, Target};
