//! Connections over real sockets, with a service whose turns the test holds.

mod http1;
mod http2;
mod support;
