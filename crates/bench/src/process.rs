//! The processes under test: started on one core with room for many descriptors, and read from outside through /proc,
//! so that every peer is accounted for by the same hand. Linux only. Nothing here asks a peer for its own figures.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// The unit of times in /proc/PID/stat: USER_HZ, 100 on every architecture this runs on.
const TICKS: f64 = 100.0;
/// Descriptors asked for; a lower hard limit is taken as it is.
const DESCRIPTORS: u32 = 65_535;
/// A peer that takes longer to answer its first request is given up.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A child on its core. Killed when dropped; [`Pinned::stop`] also kills what the child started itself.
pub struct Pinned {
    child: Child,
    pid: u32,
    begun: Instant,
    log: PathBuf,
}

/// What to start.
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Where its output goes.
    pub log: PathBuf,
}

impl Pinned {
    /// Starts `launch` on `core` (on any core when there is only one).
    pub fn start(launch: &Launch, core: Option<usize>) -> Result<Self> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n {DESCRIPTORS} 2>/dev/null || ulimit -n \"$(ulimit -Hn)\"; exec \"$@\""));
        command.arg("sh");
        if let Some(core) = core {
            command.args(["taskset", "-c", &core.to_string()]);
        }
        let log = File::create(&launch.log)?;
        command
            .args(&launch.argv)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        let begun = Instant::now();
        let child = command.spawn().context("starting a peer (sh and taskset are needed)")?;
        // The shell and taskset give way to the program, so this is the program's own number.
        let pid = child.id().context("the peer ended at once")?;
        Ok(Self { child, pid, begun, log: launch.log.clone() })
    }

    /// Waits for the first 200 on `/healthz` and returns the time since the start (the shell's and taskset's few
    /// milliseconds included, for every peer alike).
    pub async fn ready(&mut self, addr: SocketAddr) -> Result<Duration> {
        loop {
            if healthy(addr).await {
                return Ok(self.begun.elapsed());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("ended with {status} before it answered: {}", self.last_words());
            }
            if self.begun.elapsed() > START_LIMIT {
                bail!("no 200 on /healthz within {} s: {}", START_LIMIT.as_secs(), self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// CPU seconds, user and system, of the process and everything below it.
    pub fn cpu(&self) -> Result<f64> {
        let mut ticks = 0u64;
        for pid in self.tree()? {
            // A child may end between the listing and here; its time is then in its parent's.
            if let Ok(stat) = Stat::read(pid) {
                ticks += stat.ticks;
            }
        }
        Ok(ticks as f64 / TICKS)
    }

    /// CPU seconds as the scheduler counts them, in nanoseconds, of the threads that live; for loads too small for
    /// [`Pinned::cpu`]'s hundredths of a second. Falls back to those where the kernel keeps no such account.
    pub fn exact_cpu(&self) -> Result<f64> {
        let mut nanos = 0u64;
        for pid in self.tree()? {
            let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for thread in threads.flatten() {
                let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
                nanos += text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
            }
        }
        if nanos == 0 { self.cpu() } else { Ok(nanos as f64 / 1e9) }
    }

    /// Resident memory of the process and everything below it, MiB.
    pub fn rss_mib(&self) -> Result<f64> {
        let mut kib = 0u64;
        for pid in self.tree()? {
            if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
                let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
                kib += line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
            }
        }
        if kib == 0 {
            bail!("it is gone: {}", self.last_words());
        }
        Ok(kib as f64 / 1024.0)
    }

    /// The process and its descendants.
    fn tree(&self) -> Result<Vec<u32>> {
        let all: Vec<(u32, u32)> = fs::read_dir("/proc")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, Stat::read(pid).ok()?.parent)))
            .collect();
        let mut tree = vec![self.pid];
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            tree.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            next += 1;
        }
        Ok(tree)
    }

    /// Ends the process and its descendants and waits for it.
    pub async fn stop(mut self) -> Result<()> {
        let below: Vec<String> = self.tree()?.iter().skip(1).map(u32::to_string).collect();
        self.child.kill().await?;
        if !below.is_empty() {
            Command::new("kill").arg("-KILL").args(below).stderr(Stdio::null()).status().await?;
        }
        Ok(())
    }

    /// The end of what it wrote.
    pub fn last_words(&self) -> String {
        tail(&self.log)
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(1500)..]).trim().to_owned()
}

async fn healthy(addr: SocketAddr) -> bool {
    let ask = async {
        let mut conn = crate::h1::Conn::new(tokio::net::TcpStream::connect(addr).await?)?;
        conn.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").await?;
        Ok::<_, std::io::Error>(conn.head().await?.is_some_and(|head| head.status == 200))
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), ask).await, Ok(Ok(true)))
}

struct Stat {
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
    }

    /// The name is in parentheses and may hold anything; fields count from after it. Ticks are utime and stime, and
    /// those of children that ended (cutime, cstime).
    fn parse(text: &str) -> Result<Self> {
        let after = text.rsplit_once(')').context("no name in stat")?.1;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        let number = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).context("short stat");
        let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
        Ok(Self { parent: u32::try_from(number(1)?)?, ticks })
    }
}

/// Puts this process on `core` with all its threads and raises its descriptor limit, through the system's own tools.
/// Returns what could not be done.
pub async fn settle_self(core: Option<usize>) -> Vec<String> {
    let me = std::process::id().to_string();
    let mut missing = Vec::new();
    let raised = run_quiet("prlimit", &["--pid", &me, &format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}")]).await;
    if !raised && !run_quiet("sh", &["-c", &format!("prlimit --pid {me} --nofile=$(ulimit -Hn):$(ulimit -Hn)")]).await {
        missing.push("the load generator's descriptor limit was not raised".to_owned());
    }
    if let Some(core) = core
        && !run_quiet("taskset", &["-a", "-p", "-c", &core.to_string(), &me]).await
    {
        missing.push("the load generator was not pinned to its core".to_owned());
    }
    missing
}

async fn run_quiet(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    status.is_ok_and(|status| status.success())
}

/// The first line that `program` prints (to either output), for version notes.
pub async fn first_line(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().await.ok()?;
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_name_with_spaces_and_parentheses() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 1 0 5 1000 10";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.ticks), (7, 110));
        assert!(Stat::parse("42 (x) S").is_err());
    }

    #[tokio::test]
    async fn a_child_is_seen_with_its_descendants_and_ends_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let argv = ["sh", "-c", "sleep 60 & echo $!; wait"].map(OsString::from).to_vec();
        let log = dir.path().join("log");
        let child = Pinned::start(&Launch { argv, env: Vec::new(), log: log.clone() }, None).unwrap();
        let below: u32 = tokio::time::timeout(Duration::from_secs(10), async {
            loop {
                if let Ok(pid) = fs::read_to_string(&log).unwrap().trim().parse() {
                    return pid;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        assert!(child.tree().unwrap().contains(&below));
        assert!(child.rss_mib().unwrap() > 0.1);
        child.stop().await.unwrap();
        // Whoever adopts the orphan reaps it when it likes: gone or a zombie is ended.
        let ended = || fs::read_to_string(format!("/proc/{below}/stat")).map_or(true, |s| s.contains(") Z"));
        tokio::time::timeout(Duration::from_secs(10), async {
            while !ended() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
}
