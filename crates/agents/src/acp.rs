//! The Agent Client Protocol, version 1: JSON-RPC 2.0, a message a line, over a supervised agent's standard input and output.
//! The gateway is the client, the agent the upstream.
//!
//! An agent has tools of its own and acts with them, so a turn is not sent twice, and what it asks of its client is answered
//! by the operator's policy ([`Permissions`]). Each conversation is a session of the agent with an empty working directory
//! of its own. What the protocol cannot carry (a client's tools, a form of the answer) is refused by name.

mod account;
mod answering;
mod directories;
mod driver;
mod faults;
#[doc(hidden)]
pub mod fuzzed;
mod handle;
mod lines;
mod mailbox;
mod peer;
mod permissions;
mod process;
mod prompt;
mod rpc;
mod sessions;
mod spec;
mod turn;
mod update;
mod waiting;

pub use driver::Acp;
pub use spec::{AcpAccount, AcpSpec, Permissions, ToolActivity};
