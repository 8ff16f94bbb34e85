//! The messages of the published schemas in `proto/`, one module a package: [`prost`] for the binary form, serde in the
//! rules of protobuf's JSON. Unknown fields are skipped in both.
//!
//! `src/generated` is written by `cargo xtask proto` and compared by `cargo xtask proto --check`; nothing there is edited.

#![forbid(unsafe_code)]

include!("generated/packages.rs");
