//! What the kernel knows of a TCP connection: how much of what was written the peer's host has acknowledged, and whether
//! a reset has ended it. The only place of this crate with unsafe code: two calls that fill a buffer of ours.
//!
//! Only Linux tells; elsewhere the answer is `None`, and what was flushed has to do.

/// How a TCP connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Bytes that the peer's host has acknowledged since the connection began; the handshake may count for one.
    pub acked: u64,
    /// It is over: a reset, or both sides have closed. What is not acknowledged by now never will be.
    pub over: bool,
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "getsockopt(TCP_INFO) and ioctl(SIOCOUTQ) have no safe wrapper among the dependencies")]
mod linux {
    use super::Standing;
    use std::os::fd::{AsRawFd, BorrowedFd};

    /// `TCP_CLOSE` of the kernel's states.
    const CLOSE: u8 = 7;
    /// Where `tcpi_bytes_acked` lies in `struct tcp_info`, which only ever grows at its end.
    const BYTES_ACKED: std::ops::Range<usize> = 120..128;

    /// How the connection stands, of which `written` bytes were given to the kernel.
    pub fn standing(socket: BorrowedFd<'_>, written: u64) -> Option<Standing> {
        let info = info(socket)?;
        // One that never says more than 0 does not count them: the queue tells below.
        if let Some(acked) = info.bytes_acked.filter(|&acked| acked > 0 || written == 0) {
            return Some(Standing { acked, over: info.state == CLOSE });
        }
        // A kernel before 4.1, or something that only looks like Linux. A reset empties the queue, which then looks like one that was acknowledged: the queue is
        // read first, and believed only if the connection still stands after that.
        let queued = queued(socket)?;
        let over = self::info(socket)?.state == CLOSE;
        Some(Standing { acked: if over { 0 } else { written.saturating_sub(queued) }, over })
    }

    struct Info {
        state: u8,
        bytes_acked: Option<u64>,
    }

    fn info(socket: BorrowedFd<'_>) -> Option<Info> {
        let mut buffer = [0_u8; 256];
        let mut length = buffer.len() as libc::socklen_t;
        // SAFETY: the descriptor is open while it is borrowed; the kernel writes at most `length` bytes into `buffer`,
        // which is that long, and sets `length` to what it wrote.
        let code = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                buffer.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if code != 0 {
            return None;
        }
        let filled = buffer.get(..length as usize)?;
        let bytes_acked = filled.get(BYTES_ACKED).and_then(|eight| eight.try_into().ok()).map(u64::from_ne_bytes);
        Some(Info { state: *filled.first()?, bytes_acked })
    }

    fn queued(socket: BorrowedFd<'_>) -> Option<u64> {
        let mut queued: libc::c_int = 0;
        // SAFETY: the descriptor is open while it is borrowed; this request writes one int, into `queued`.
        let code = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) };
        (code == 0).then_some(queued)?.try_into().ok()
    }
}

#[cfg(target_os = "linux")]
pub use linux::standing;

/// How the connection stands, of which `written` bytes were given to the kernel.
#[cfg(not(target_os = "linux"))]
pub fn standing(_: std::os::fd::BorrowedFd<'_>, _written: u64) -> Option<Standing> {
    None
}
