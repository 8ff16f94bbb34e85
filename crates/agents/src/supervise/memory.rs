//! How much memory a process group uses, from `/proc`.

use std::path::Path;

/// Bytes of resident memory of all processes in the group that `leader` leads; 0 where there is no `/proc`.
pub(super) fn of_group(leader: u32) -> u64 {
    members_in(Path::new("/proc"), leader).into_iter().map(|(_, pages)| pages).sum::<u64>().saturating_mul(page_size())
}

/// The numbers of the processes in the group.
pub(super) fn members(leader: u32) -> Vec<u32> {
    members_in(Path::new("/proc"), leader).into_iter().map(|(pid, _)| pid).collect()
}

fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Each member's number and resident pages.
fn members_in(proc: &Path, leader: u32) -> Vec<(u32, u64)> {
    let Ok(entries) = std::fs::read_dir(proc) else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |pid: u32| {
        let stat = std::fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        let (group, pages) = group_and_pages(&stat)?;
        (group == leader).then_some((pid, pages))
    };
    pids.filter_map(of).collect()
}

/// The process group and the resident pages of a line of `/proc/PID/stat`. The second field, a name in parentheses, may hold
/// anything, so what follows its last parenthesis counts: state, parent, group are its first three, and the resident pages
/// are the 22nd.
fn group_and_pages(stat: &str) -> Option<(u32, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let pages = fields.nth(18)?.parse().ok()?;
    Some((group, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_and_pages_are_read_behind_a_name_that_looks_like_fields() {
        let stat =
            "12 (a) R 1 2 (b) S 1 77 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1000000 321 18446744073709551615";
        assert_eq!(group_and_pages(stat), Some((77, 321)));
        assert_eq!(group_and_pages("12 (a) R 1 2"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory_in_its_group() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let group = u32::try_from(group).expect("a group");
        assert!(of_group(group) > 0);
        assert!(members(group).contains(&std::process::id()));
    }
}
