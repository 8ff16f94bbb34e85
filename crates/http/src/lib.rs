//! The gateway's face: its own accept loop, the routes of the dialects, caller authentication, and what operators and
//! probes read. It gets the engine and its ports; it knows no store, no driver and no configuration file.

#![deny(unsafe_code)]

mod accept;
pub mod callers;
pub mod catalog;
mod client_body;
mod connection;
mod dialects;
#[doc(hidden)]
pub mod fuzzed;
mod headers;
pub mod limits;
mod metrics;
mod models;
mod operator;
pub mod proxies;
mod read_body;
mod receipts;
mod remote;
mod reply_body;
mod respond;
mod responses;
mod service;
mod tls;
mod turns;

pub use accept::{Bound, Listener, Peer, ServeError, serve};
pub use connection::{Link, Standing};
pub use receipts::{Delivery, Receipts};
pub use service::{ConfigState, Gateway, GatewayParts, Health, Limits};
pub use tls::{TlsError, tls_config};
