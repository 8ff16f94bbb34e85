//! Open files: as many as the system allows, and no more connections than they are enough for.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files that are kept for the store, the listeners and the logs.
const RESERVE: u64 = 64;
/// Fewer connections than this are no gateway.
const LEAST: usize = 16;

/// Raises the limit on open files as far as it goes, and gives how many connections fit in it, at most `most`.
pub fn connections(most: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "the limit on open files stays as it is");
        }
    }
    fitting(getrlimit(Resource::Nofile).current, most)
}

fn fitting(files: Option<u64>, most: usize) -> usize {
    let Some(files) = files else { return most };
    // A client's turn may need a connection to its upstream: half of the files are theirs.
    usize::try_from(files.saturating_sub(RESERVE) / 2).unwrap_or(most).clamp(LEAST, most.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(fitting(Some(1024), 20_000), 480);
        assert_eq!(fitting(Some(1 << 20), 20_000), 20_000);
        assert_eq!(fitting(Some(10), 20_000), LEAST);
        assert_eq!(fitting(None, 20_000), 20_000);
    }
}
