//! Google's Gemini API. So far only its errors are known, for the upstreams and clients that are to speak it.

pub mod classify;
mod classify_table;
