//! Incident traces: what a turn decided and what it decided it from, kept for a while and run again later.
//!
//! While a turn runs its [`tape`] takes down each event of its machine with the time and what the machine did, and each
//! decision beside it: judgements of accounts, the holds and ends of upstreams' conversations, the three closings. The
//! [`ring`] keeps the tapes of the turns that run and of the latest that have ended. A tape reads as a [`Trace`], which is a
//! file's content; [`replay`] runs one through the same code on its own times, and shows where the two part.
//!
//! A trace has no place for content: no text of a request or an answer, no header, no provider's words, no secret. Where a
//! decision is made from words (the same refusal of a second account), the trace has a keyed hash of them.

/// An enum of another crate by the same names, with a form in a file.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident of $of:ident { $($variant:ident = $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $(#[doc = $what] $variant,)* }

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                match of { $($of::$variant => $name::$variant,)* }
            }
        }

        impl From<$name> for $of {
            fn from(of: $name) -> Self {
                match of { $($name::$variant => $of::$variant,)* }
            }
        }
    };
}

pub mod effect;
pub mod event;
pub mod fault;
pub mod read;
pub mod replay;
pub mod ring;
pub mod settled;
pub mod tape;
pub mod trace;

pub use read::{MAX_BYTES, Unreadable, read};
pub use replay::{Line, Replayed, replay};
pub use ring::{Bounds, Ring};
pub use trace::{Cut, CutBy, FORMAT, State, Step, Trace, What};
