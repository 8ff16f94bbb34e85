//! One running child: started as the leader of its own process group, watched until it ends, reaped after the rest of its
//! group has been killed.

use super::daemon::SECRET;
use super::group::Group;
use super::stderr::{Tail, log_lines};
use super::{Input, Launched, Output, ProcessSpec, environment, memory};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fmt;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;
use turnkeep_base::Secret;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// It used more than its bound, this many bytes.
    Memory(u64),
    /// We asked it to.
    Stopped,
    /// The system did not tell.
    Unknown,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exited(status) => write!(f, "it exited with status {status}"),
            Ended::Signalled(signal) => write!(f, "it was ended by signal {signal}"),
            Ended::Memory(bytes) => write!(f, "it was ended for using {} MiB of memory", bytes >> 20),
            Ended::Stopped => f.write_str("it was stopped"),
            Ended::Unknown => f.write_str("it ended"),
        }
    }
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How.
    pub ended: Ended,
    /// When.
    pub at: Instant,
}

/// A running child. Dropping the last hold of it asks its group to end (TERM, then KILL).
pub struct Process {
    name: Arc<str>,
    instance: u128,
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    stop: watch::Sender<bool>,
    tail: Tail,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Process { name, pid, .. } = self;
        f.debug_struct("Process").field("name", name).field("pid", pid).finish_non_exhaustive()
    }
}

impl Process {
    /// What it is called in logs.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// This start's own id.
    pub fn instance(&self) -> u128 {
        self.instance
    }

    /// Its number, and its group's; 0 for one that the system did not start.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its end, if it has ended.
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        let ended = match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.clone(),
            // Whoever watches it is gone, and has killed it.
            Err(_) => None,
        };
        ended.unwrap_or_else(|| Exit { ended: Ended::Unknown, at: Instant::now() })
    }

    /// Asks it to end. Does not wait.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The last lines of its standard error, bounded and without the secrets it was given; empty if there are none.
    pub fn last_words(&self) -> String {
        self.tail.text()
    }
}

/// A child and its ends of the pipes.
pub(super) struct Spawned {
    pub(super) process: Process,
    pub(super) stdin: Input,
    pub(super) stdout: Output,
}

/// Starts a process with these variables beside those of its spec.
pub(super) fn start(spec: &ProcessSpec, instance: u128, added: &[(String, String)]) -> io::Result<Spawned> {
    let (program, arguments) = spec
        .command
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
    let about = |what: &str, path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
    };
    if let Some(home) = &spec.home {
        private_directory(home).map_err(|error| about("home", home, error))?;
    }
    private_directory(&spec.directory).map_err(|error| about("working directory", &spec.directory, error))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment::variables(spec, |name| std::env::var_os(name), added))
        .current_dir(&spec.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| about("program", Path::new(program), error))?;
    let group = Group::of(child.id());
    let (pid, pipes) = (child.id(), (child.stdin.take(), child.stdout.take(), child.stderr.take()));
    let (Some(group), Some(pid), (Some(stdin), Some(stdout), Some(stderr))) = (group, pid, pipes) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let watched = Leader::new(child);
    let tail = Tail::default();
    let own = added.iter().filter(|(name, _)| name == SECRET).map(|(_, value)| Secret::new(value.clone()));
    let secrets = spec.env.values().cloned().chain(own).collect();
    tokio::spawn(log_lines(spec.name.clone(), secrets, stderr, tail.clone()));
    let (told, exit) = watch::channel(None);
    let (stop, asked) = watch::channel(false);
    let keeper = Keeper { group, leader: watched, pid, spec: spec.clone() };
    tokio::spawn(keeper.keep(asked, told));
    tracing::info!(process = %spec.name, pid, "started");
    let process = Process { name: spec.name.clone(), instance, pid, exit, stop, tail };
    Ok(Spawned { process, stdin: Box::new(stdin), stdout: Box::new(stdout) })
}

/// A process that somebody else has started.
pub(super) fn launched(spec: &ProcessSpec, instance: u128, launched: Launched) -> Spawned {
    let Launched { stdin, stdout, mut ended, stop } = launched;
    let (told, exit) = watch::channel(None);
    tokio::spawn(async move {
        let how = match ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or(Ended::Unknown),
            Err(_) => Ended::Unknown,
        };
        told.send_replace(Some(Exit { ended: how, at: Instant::now() }));
    });
    let process = Process { name: spec.name.clone(), instance, pid: 0, exit, stop, tail: Tail::default() };
    Spawned { process, stdin, stdout }
}

/// Makes a directory that only its owner may look into; one that is there stays as it is.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The child itself, whose end is seen before it is reaped, so that its group's number stays its own until then.
struct Leader {
    child: Child,
    pid: Option<Pid>,
    /// Comes whenever some child of ours has ended.
    signals: Option<Signal>,
}

impl Leader {
    fn new(child: Child) -> Leader {
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Leader { child, pid, signals: signal(SignalKind::child()).ok() }
    }

    /// Waits until it has ended.
    async fn ended(&mut self) {
        if let (Some(pid), Some(signals)) = (self.pid, &mut self.signals) {
            loop {
                let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                match waitid(WaitId::Pid(pid), look) {
                    Ok(None) => {}
                    Ok(Some(_)) => return,
                    Err(_) => break,
                }
                if signals.recv().await.is_none() {
                    break;
                }
            }
        }
        let _status = self.child.wait().await;
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }
}

/// Watches a child to its end. Dropped with its runtime, it kills the group first, then the child.
struct Keeper {
    group: Group,
    leader: Leader,
    pid: u32,
    spec: ProcessSpec,
}

impl Keeper {
    async fn keep(mut self, mut asked: watch::Receiver<bool>, told: watch::Sender<Option<Exit>>) {
        let limits = &self.spec.limits;
        let because = tokio::select! {
            biased;
            () = self.leader.ended() => None,
            // Also when nobody holds the process any more.
            _ = asked.wait_for(|asked| *asked) => Some(Ended::Stopped),
            used = over(self.pid, limits.memory, limits.memory_every) => Some(Ended::Memory(used)),
        };
        if because == Some(Ended::Stopped) {
            self.group.terminate();
            let _killed = tokio::time::timeout(limits.stop_within, self.leader.ended()).await;
        }
        let Keeper { group, mut leader, pid, spec } = self;
        group.kill();
        let status = leader.reap().await;
        let ended = because.unwrap_or_else(|| status.map_or(Ended::Unknown, of_status));
        match &ended {
            Ended::Stopped | Ended::Exited(0) => tracing::info!(process = %spec.name, pid, "{ended}"),
            Ended::Exited(_) | Ended::Signalled(_) | Ended::Memory(_) | Ended::Unknown => {
                tracing::warn!(process = %spec.name, pid, "{ended}");
            }
        }
        told.send_replace(Some(Exit { ended, at: Instant::now() }));
    }
}

fn of_status(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, Some(signal)) => Ended::Signalled(signal),
        (None, None) => Ended::Unknown,
    }
}

/// Waits until the group uses more than it may, and gives how much that is.
async fn over(pid: u32, bound: Option<u64>, every: Duration) -> u64 {
    let Some(bound) = bound else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(every.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let used = tokio::task::spawn_blocking(move || memory::of_group(pid)).await.unwrap_or(0);
        if used > bound {
            return used;
        }
    }
}
