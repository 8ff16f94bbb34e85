//! The working directories of an account's conversations: each empty at first, its owner's alone, and gone with its
//! conversation. What an earlier gateway has left, killed or for an agent that takes sessions up again, goes after a day.

use super::handle::NAME;
use crate::supervise::{NotReady, private_directory, random};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Directories that one account keeps at once; the ones that were used longest ago go first.
const KEPT: usize = 4096;
/// How long one lives that nobody lets go of: no conversation is older (`turnkeep_policy::conversations::AGE`).
const AGE: Duration = turnkeep_policy::conversations::AGE;

/// The directories of one account.
#[derive(Debug)]
pub(super) struct Directories {
    root: PathBuf,
    /// When each was last used.
    used: Mutex<BTreeMap<String, Instant>>,
    /// Conversations can go on in another process, and so after the gateway's next start.
    outlives: AtomicBool,
}

/// A new directory. Dropped before it is kept, it is removed.
#[derive(Debug)]
pub(super) struct Fresh {
    of: Arc<Directories>,
    name: String,
    kept: bool,
}

impl Directories {
    /// Those in this folder.
    pub(super) fn new(root: PathBuf) -> Self {
        Directories { root, used: Mutex::default(), outlives: AtomicBool::new(false) }
    }

    /// The folder that they are in.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether those that are used stay when these are let go of.
    pub(super) fn outlive_us(&self, outlives: bool) {
        self.outlives.store(outlives, Relaxed);
    }

    /// Where a directory is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Makes a new one.
    pub(super) fn fresh(self: &Arc<Self>) -> Result<Fresh, NotReady> {
        let name = format!("{:0width$x}", random()?, width = NAME);
        let path = self.path(&name);
        private_directory(&path).map_err(|error| NotReady {
            kind: turnkeep_base::FaultKind::GatewayExhausted,
            message: format!("no working directory {}: {error}", path.display()),
        })?;
        let now = Instant::now();
        let old = {
            let mut used = self.used.lock();
            used.insert(name.clone(), now);
            outlived(&mut used, now)
        };
        for name in old {
            self.remove(&name);
        }
        Ok(Fresh { of: self.clone(), name, kept: false })
    }

    /// It is used now.
    pub(super) fn touch(&self, name: &str) {
        self.used.lock().insert(name.to_owned(), Instant::now());
    }

    /// Removes one with what is in it. Never waits.
    pub(super) fn remove(&self, name: &str) {
        self.used.lock().remove(name);
        in_background({
            let path = self.path(name);
            move || drop(std::fs::remove_dir_all(path))
        });
    }

    /// Removes what an earlier gateway has left and no conversation can be in any more. Never waits.
    pub(super) fn sweep(&self) {
        let root = self.root.clone();
        in_background(move || {
            let Ok(entries) = std::fs::read_dir(root) else { return };
            for entry in entries.flatten() {
                let ours = entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.len() == NAME && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let changed = entry.metadata().and_then(|data| data.modified()).ok();
                let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
                if ours && age.is_some_and(|age| age > AGE) {
                    let _left = std::fs::remove_dir_all(entry.path());
                }
            }
        });
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if self.outlives.load(Relaxed) {
            return;
        }
        let left: Vec<String> = self.used.lock().keys().cloned().collect();
        for name in left {
            self.remove(&name);
        }
    }
}

/// Takes out those that are too old, or too many.
fn outlived(used: &mut BTreeMap<String, Instant>, now: Instant) -> Vec<String> {
    let mut out: Vec<String> =
        used.iter().filter(|(_, at)| now.saturating_duration_since(**at) > AGE).map(|(name, _)| name.clone()).collect();
    while used.len().saturating_sub(out.len()) > KEPT {
        let oldest = used.iter().filter(|(name, _)| !out.contains(name)).min_by_key(|(_, at)| **at);
        let Some((name, _)) = oldest else { break };
        out.push(name.clone());
    }
    for name in &out {
        used.remove(name);
    }
    out
}

fn in_background(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}

impl Fresh {
    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.of.path(&self.name)
    }

    /// It is a conversation's from now on.
    pub(super) fn keep(mut self) -> String {
        self.kept = true;
        std::mem::take(&mut self.name)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.kept {
            self.of.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_new_private_and_gone_unless_it_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let all = Arc::new(Directories::new(folder.path().join("state/me")));
        let (kept, dropped) = (all.fresh().expect("one"), all.fresh().expect("another"));
        assert_eq!(kept.path().metadata().expect("there").permissions().mode() & 0o777, 0o700);
        let lost = dropped.path();
        drop(dropped);
        assert!(!lost.exists());
        let name = kept.keep();
        assert!(all.path(&name).exists());
        all.remove(&name);
        assert!(!all.path(&name).exists());
        assert!(all.used.lock().is_empty());
        let left = all.path(&all.fresh().expect("a third").keep());
        assert!(left.exists());
        drop(all);
        assert!(!left.exists());
    }

    #[test]
    fn the_ones_used_longest_ago_go_when_there_are_too_many() {
        let now = Instant::now();
        let mut used: BTreeMap<String, Instant> =
            (0..KEPT + 2).map(|number| (format!("{number:05}"), now + Duration::from_millis(number as u64))).collect();
        assert_eq!(outlived(&mut used, now), ["00000", "00001"]);
        let later = now + AGE + Duration::from_secs(60);
        assert_eq!(outlived(&mut used, later).len(), KEPT);
        assert!(used.is_empty());
    }
}
