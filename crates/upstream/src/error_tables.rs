//! The rows by which `classify` names raw errors, as data: by `io::ErrorKind`, by the operating system's number where
//! the library has no kind for it, and by text where the HTTP library hands errors on without a type of their own.
//!
//! What is in no table is `unclassified`, which charges nobody. An error that cannot come from a socket has no row.

use std::io;
use turnkeep_base::FaultKind;

/// Errors of a socket that is connecting.
pub(crate) const CONNECTING: &[(io::ErrorKind, FaultKind)] = &[
    (io::ErrorKind::ConnectionRefused, FaultKind::ConnectRefused),
    (io::ErrorKind::TimedOut, FaultKind::ConnectTimeout),
    (io::ErrorKind::HostUnreachable, FaultKind::Unreachable),
    (io::ErrorKind::NetworkUnreachable, FaultKind::Unreachable),
    (io::ErrorKind::NetworkDown, FaultKind::Unreachable),
    // IPv6 that is switched off; or every local port towards this address is in use, which another address mends.
    (io::ErrorKind::AddrNotAvailable, FaultKind::Unreachable),
    (io::ErrorKind::AddrInUse, FaultKind::Unreachable),
    // A firewall's local refusal.
    (io::ErrorKind::PermissionDenied, FaultKind::Unreachable),
];

/// Errors of a connection that stood.
pub(crate) const CONNECTED: &[(io::ErrorKind, FaultKind)] = &[
    (io::ErrorKind::ConnectionReset, FaultKind::ConnectionReset),
    (io::ErrorKind::ConnectionAborted, FaultKind::ConnectionReset),
    (io::ErrorKind::BrokenPipe, FaultKind::ConnectionReset),
    (io::ErrorKind::NotConnected, FaultKind::ConnectionReset),
    (io::ErrorKind::WriteZero, FaultKind::ConnectionReset),
    (io::ErrorKind::UnexpectedEof, FaultKind::ConnectionReset),
    // The kernel gave up: keepalive or retransmission ran out on a peer that vanished.
    (io::ErrorKind::TimedOut, FaultKind::ConnectionReset),
    // An ICMP message or a firewall's rule that came in the middle.
    (io::ErrorKind::ConnectionRefused, FaultKind::ConnectionReset),
    (io::ErrorKind::HostUnreachable, FaultKind::ConnectionReset),
    (io::ErrorKind::NetworkUnreachable, FaultKind::ConnectionReset),
    (io::ErrorKind::NetworkDown, FaultKind::ConnectionReset),
    (io::ErrorKind::PermissionDenied, FaultKind::ConnectionReset),
    // The HTTP library's kinds for a bad chunk, trailer or frame.
    (io::ErrorKind::InvalidInput, FaultKind::HttpProtocolError),
    (io::ErrorKind::InvalidData, FaultKind::HttpProtocolError),
    (io::ErrorKind::OutOfMemory, FaultKind::GatewayExhausted),
];

/// ENOMEM, ENFILE, EMFILE, ENOBUFS: the same numbers on Linux; ENOBUFS differs elsewhere and is then unclassified.
pub(crate) const OURS: &[i32] = &[12, 23, 24, 105];

/// Linux' numbers that the standard library has no kind for: those of connecting, and those of a connection that stood.
pub(crate) const BY_NUMBER: &[(i32, FaultKind, FaultKind)] = &[
    // ENONET, EPROTONOSUPPORT, EAFNOSUPPORT, EHOSTDOWN
    (64, FaultKind::Unreachable, FaultKind::ConnectionReset),
    (93, FaultKind::Unreachable, FaultKind::ConnectionReset),
    (97, FaultKind::Unreachable, FaultKind::ConnectionReset),
    (112, FaultKind::Unreachable, FaultKind::ConnectionReset),
    // EPROTO: what TLS in other places reports by this name.
    (71, FaultKind::TlsFailure, FaultKind::TlsFailure),
    // ENETRESET, ESHUTDOWN
    (102, FaultKind::ConnectionReset, FaultKind::ConnectionReset),
    (108, FaultKind::ConnectionReset, FaultKind::ConnectionReset),
];

/// The resolver's words for its own want of memory.
pub(crate) const RESOLVER_OURS: &str = "Memory allocation failure";

/// What an error's text says of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The peer says that it has not processed the request.
    Unprocessed,
    /// Only this stream ended, by the peer's word: its connection lives.
    Stream,
    /// The connection.
    Connection,
}

/// Errors that have no type, by how their text begins; the first that fits.
pub(crate) const BY_TEXT: &[(&str, FaultKind, Reach)] = &[
    ("stream error received: refused stream before", FaultKind::ConnectionReset, Reach::Unprocessed),
    // A stream is told of a GOAWAY only if it is above the last one that the peer will process.
    ("connection error received: not a result", FaultKind::ConnectionReset, Reach::Unprocessed),
    ("connection error received: detected excessive load", FaultKind::ConnectionReset, Reach::Unprocessed),
    ("connection error received: security properties", FaultKind::TlsFailure, Reach::Unprocessed),
    ("connection error received: ", FaultKind::HttpProtocolError, Reach::Unprocessed),
    ("stream error received: not a result", FaultKind::ConnectionReset, Reach::Stream),
    ("stream error received: unexpected internal", FaultKind::ConnectionReset, Reach::Stream),
    ("stream error received: stream no longer needed", FaultKind::ConnectionReset, Reach::Stream),
    ("stream error received: detected excessive load", FaultKind::ConnectionReset, Reach::Stream),
    ("stream error received: security properties", FaultKind::TlsFailure, Reach::Stream),
    ("stream error received: ", FaultKind::HttpProtocolError, Reach::Stream),
    ("stream error detected: ", FaultKind::HttpProtocolError, Reach::Stream),
    ("connection error detected: ", FaultKind::HttpProtocolError, Reach::Connection),
    ("protocol error: ", FaultKind::HttpProtocolError, Reach::Connection),
    ("stream closed because of a broken pipe", FaultKind::ConnectionReset, Reach::Connection),
    ("connection closed because of a broken pipe", FaultKind::ConnectionReset, Reach::Connection),
    ("received unexpected message from connection", FaultKind::HttpProtocolError, Reach::Connection),
];
