//! Whether whoever listens at an address is the process that was told to: a foreign listener is never talked to.

use super::memory;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

/// A loopback port that is free now.
pub(super) fn free_port() -> std::io::Result<SocketAddr> {
    let probe = std::net::TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    probe.local_addr()
}

/// Who listens at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Nobody does.
    Nobodys,
    /// Members of the process group, and nobody else.
    Groups,
    /// Somebody else.
    Anothers,
    /// Cannot be told (without `/proc`).
    Unknown,
}

/// Whether members of the group that `leader` leads listen at this port.
pub(super) fn whose(leader: u32, port: u16) -> Whose {
    let Ok(mut table) = std::fs::read_to_string("/proc/net/tcp") else { return Whose::Unknown };
    // A machine without IPv6 has none.
    table.push_str(&std::fs::read_to_string("/proc/net/tcp6").unwrap_or_default());
    let inodes = listening(&table, port);
    if inodes.is_empty() {
        return Whose::Nobodys;
    }
    let held: Vec<u64> = memory::members(leader).into_iter().flat_map(sockets_of).collect();
    if inodes.iter().all(|inode| held.contains(inode)) { Whose::Groups } else { Whose::Anothers }
}

/// The inodes of the sockets that listen at this port at any address, from `/proc/net/tcp` and the table after it.
fn listening(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (_, local_port) = fields.nth(1)?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        (state == LISTEN && u16::from_str_radix(local_port, 16) == Ok(port)).then_some(inode)
    };
    table.lines().filter_map(of_line).collect()
}

/// The inodes of the sockets that a process holds.
fn sockets_of(pid: u32) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")) else { return Vec::new() };
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let inode = |link: std::path::PathBuf| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    links.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_at_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0\n   \
             1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 20 4 30 10 -1\n   \
             2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4244 1 0 100 0 0 10 0\n";
        assert_eq!(listening(table, 8080), [4242]);
        assert_eq!(listening(table, 8081), [4244]);
        assert!(listening(table, 1).is_empty());
    }
}
