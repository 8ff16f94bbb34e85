//! A Devin of the lab's own, made from the public reference of its REST API, version 3: sessions that go on by themselves
//! while they are asked for, with their transcripts.
//!
//! Any organisation's id is taken; a session belongs to the organisation and the credential that made it. What the
//! reference does not say (the bodies of errors) is as older versions had it: a `detail`.

mod call;
mod script;
mod sessions;

pub(crate) use call::{Call, Done, call, detail_of};
pub use script::{DevinStep, DevinTurn};
pub(crate) use sessions::Sessions;
pub use sessions::{DevinMessage, DevinSession};
