//! Devin's REST API, version 3. Its sessions are driven by the upstream's own driver; here are only its errors.

pub mod classify;
mod classify_table;
