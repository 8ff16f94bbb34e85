//! What every test of the whole gateway needs: a gateway over labs ([`world`]), a client whose socket the test holds
//! ([`client`]; [`listen`] for other ways in), the gateway as a process of its own ([`binary`]), the shapes of the dialects ([`dialects`]), and a client's
//! conversation in any of them ([`talk`]).

#![allow(dead_code, unused_imports, reason = "each of the test binaries that share this uses its part of it")]

pub mod binary;
pub mod client;
pub mod dialects;
pub mod listen;
pub mod talk;
pub mod world;

pub use client::{Leave, Reply};
pub use dialects::{Pair, pairs, request, said};
pub use turnkeep_base::Dialect;
pub use turnkeep_lab::{AcceptFault, AcceptRule, ErrorSpec, Fault, Point, Rule, Script, UsageSpec};
pub use world::{KEY, Up, World, lab, plain_lab, soon, tls_lab};
