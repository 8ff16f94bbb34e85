//! Local processes that the gateway starts and keeps ([`supervise`]), and the upstreams that are such a process: agents
//! that speak the Agent Client Protocol over their standard input and output ([`acp`]).
//!
//! A process gets nothing of the gateway's environment but what is named, lives in a process group of its own, and ends
//! with its owner.

pub mod acp;
pub mod supervise;
