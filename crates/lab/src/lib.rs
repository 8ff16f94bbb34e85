//! A scriptable upstream: four dialects, and the Connect and Cascade services, over real sockets, with faults down to TCP.
//!
//! It stands in for a provider in `turnkeep demo`, in `turnkeep lab` and in tests. Without a script it answers word by
//! word what it was told, calls tools when asked to, and refuses what the real APIs refuse. A [`Script`] replaces its
//! answers, holds them at gates, and breaks them at any place; `docs/lab.md` describes the format.
//!
//! It shares no code with the gateway's own dialects and framers on purpose: a mistake there must not be answered by
//! the same mistake here.

mod accounts;
mod answer;
mod ask;
mod brain;
mod cascade;
mod chat;
mod check;
mod check_chat;
mod check_gemini;
mod check_messages;
mod check_responses;
mod choose;
mod completions;
mod connections;
mod embed;
mod encode;
mod fault;
mod frame;
mod gates;
mod gemini;
mod handler;
mod http2;
mod lab;
mod ledger;
mod messages;
mod models;
mod moment;
mod paths;
mod plan;
mod play;
mod responses;
mod rpc;
mod rpc_chat;
mod rpc_frames;
mod rpc_reply;
mod schema;
mod script;
mod signature;
mod socket;
mod spelling;
mod tls;

pub use accounts::{AccountCounts, AccountSpec, AccountState, MAX_ACCOUNTS};
pub use cascade::{CascadeCounts, MAX_CONVERSATIONS, TakenTurn, Transcript};
pub use fault::{AcceptFault, Fault, Point};
pub use lab::{Lab, LabError, LabOptions};
pub use ledger::{MAX_RECORDED, MAX_RECORDED_BODY_BYTES, Recorded};
pub use script::{
    AcceptRule, ContentEncoding, ErrorSpec, Gate, MAX_FAULT_BYTES, MAX_WORDS, RefusalSpec, Rule, Script, ScriptError,
    ToolCall, UsageSpec,
};
pub use tls::LabTls;
