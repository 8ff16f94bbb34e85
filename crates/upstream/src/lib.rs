//! The way out: drivers that carry a call to a provider's HTTP endpoint and its answer back, and those that speak a protocol
//! of its own.
//!
//! An [`Endpoint`] owns the connections to one base URL, apart for every account, and knows where its provider wants the
//! credential. It names what went wrong (a fault with its phase and proof), once, where it saw it. It does not know what
//! a body says, judge an account, replay a turn that may have been sent, or set any clock but the connect clock.

#![forbid(unsafe_code)]
// A fault is what every call may end with; it is moved a few times in a turn, never copied in a loop.
#![allow(clippy::result_large_err)]

mod answer;
mod cascade;
mod classify;
mod connect;
mod connect_chat;
mod devin;
mod dial;
mod endpoint;
mod error_tables;
mod fetch;
#[doc(hidden)]
pub mod fuzzed;
mod inflate;
mod kind;
mod line;
mod origin;
mod pool;
mod pools;
mod proxy;
mod request;
pub mod rpc;
mod socks;
mod spec;
mod target;
mod tls;

pub use cascade::{Cascade, CascadeHost, CascadePlace, CascadeSpec};
pub use connect_chat::{ConnectChat, ConnectSpec};
pub use devin::{Devin, DevinSpec};
pub use dial::{Dial, Dialled, Egress};
pub use endpoint::Endpoint;
pub use fetch::{Allowed, FetchSpec, Fetcher};
pub use kind::Kind;
pub use spec::{EndpointError, EndpointSpec};
