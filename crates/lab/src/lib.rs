//! A scriptable upstream: four dialects, the Connect and Cascade services and Devin's sessions over real sockets, with faults
//! down to TCP; and an agent of the Agent Client Protocol over its standard input and output ([`agent`]).
//!
//! It stands in for a provider in `turnkeep demo`, in `turnkeep lab` and in tests. Without a script it answers word by
//! word what it was told, calls tools when asked to, and refuses what the real APIs refuse. A [`Script`] replaces its
//! answers, holds them at gates, and breaks them at any place; `docs/lab.md` describes the format.
//!
//! It shares no code with the gateway's own dialects and framers on purpose: a mistake there must not be answered by
//! the same mistake here.

mod accounts;
mod acp;
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
mod devin;
mod embed;
mod encode;
mod fault;
mod frame;
mod gates;
mod gemini;
mod handler;
mod http2;
mod kept;
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
pub use acp::{AgentEnd, AgentLog, AgentScript, agent};
pub use cascade::{CascadeCounts, MAX_CONVERSATIONS, TakenTurn, Transcript};
pub use devin::{DevinMessage, DevinSession, DevinStep, DevinTurn};
pub use fault::{AcceptFault, Fault, Point};
pub use kept::KeptAnswer;
pub use lab::{Lab, LabError, LabOptions};
pub use ledger::{MAX_RECORDED, MAX_RECORDED_BODY_BYTES, Recorded};
pub use script::{
    AcceptRule, ContentEncoding, ErrorSpec, Gate, MAX_FAULT_BYTES, MAX_WORDS, RefusalSpec, Rule, Script, ScriptError,
    ToolCall, UsageSpec,
};
pub use socket::LabLink;
pub use tls::LabTls;
