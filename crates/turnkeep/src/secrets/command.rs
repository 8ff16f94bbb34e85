//! Runs a command for what it prints: without a shell, with the gateway's environment, within bounds of time and size.
//! When it has ended or is given up, everything it has started is killed, except what has left its process group (as
//! `setsid` does): that cannot be caught. What it says to stderr is counted and never kept: it may hold a secret in any
//! form.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

/// The most that a command may print, in bytes.
const MOST: usize = 64 * 1024;

/// How long the output of a command that has ended is waited for, where something it has started holds it open.
const GRACE: Duration = Duration::from_millis(200);

/// What the command prints, which may take `limit`, as `accept` takes it.
///
/// # Errors
/// In words that go on after the command's name, without anything it has printed anywhere: it cannot be started, runs
/// too long, prints too much, no text or what is not accepted, or ends with another status than 0; and how many bytes
/// it wrote to stderr.
pub(super) async fn output<T>(
    words: &[String],
    limit: Duration,
    accept: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("names no program".into()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that what it starts can be ended with it.
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let said = AtomicU64::new(0);
    let mut group = Group { child };
    let result = match tokio::time::timeout(limit, group.finish(&said)).await {
        Ok(result) => result,
        Err(_) => Err(format!("did not end within {}", crate::config::show_duration(limit))),
    };
    result.and_then(|printed| accept(&printed)).map_err(|why| told(&why, said.load(Ordering::Relaxed)))
}

/// The failure, and what the operator can do about it.
fn told(why: &str, said: u64) -> String {
    let said = match said {
        0 => "it wrote nothing to stderr".to_owned(),
        said => format!("the {said} bytes it wrote to stderr are not shown, as they may hold a secret"),
    };
    format!("{why}; {said}: run it by hand to see more, and try it with turnkeep check --probe")
}

/// A running command. Its group is killed when this is dropped, unless the command was reaped before.
struct Group {
    child: Child,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Group {
    /// Nothing once the command is reaped, as its number may then be another's.
    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
    }

    fn kill(&self) {
        if let Some(pid) = self.pid() {
            // It fails where everything has ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    async fn finish(&mut self, said: &AtomicU64) -> Result<String, String> {
        let (Some(mut out), Some(err)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err("has no output".into());
        };
        let Some(pid) = self.pid() else { return Err("has no number".into()) };
        let mut printed = Vec::new();
        {
            let reading = async {
                let both = tokio::try_join!(read(&mut out, &mut printed), count(err, said));
                both.map(|_| ())
            };
            let ended = ended(pid);
            tokio::pin!(reading, ended);
            tokio::select! {
                read = &mut reading => {
                    read?;
                    ended.await?;
                }
                ended = &mut ended => {
                    ended?;
                    // What holds the output open now is a child that was left behind; it is not waited for.
                    if let Ok(read) = tokio::time::timeout(GRACE, reading).await {
                        read?;
                    }
                }
            }
        }
        // All the command itself has written is there since it ended, also where this process got no time to read it.
        rest(&out, &mut printed)?;
        // Its number is its own until it is reaped.
        self.kill();
        let status = self.child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
        if !status.success() {
            return Err(how(status));
        }
        String::from_utf8(printed).map_err(|_| "printed something that is not UTF-8 text".to_owned())
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("cannot be read: {error}")
}

/// Waits until the process has ended, and leaves it to be reaped.
async fn ended(pid: Pid) -> Result<(), String> {
    let unwaitable = |error: std::io::Error| format!("cannot be waited for: {error}");
    // From before the first look, so that no end is missed between a look and the next signal.
    let mut children = signal(SignalKind::child()).map_err(unwaitable)?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(pid), look) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(unwaitable(error.into())),
        }
        children.recv().await;
    }
}

/// Reads everything into `all`, which holds what was read also where this is given up.
async fn read(from: &mut ChildStdout, all: &mut Vec<u8>) -> Result<(), String> {
    while from.read_buf(all).await.map_err(unreadable)? > 0 {
        within(all)?;
    }
    Ok(())
}

/// Reads what is there without waiting: the pipe is one that does not block.
fn rest(from: &ChildStdout, all: &mut Vec<u8>) -> Result<(), String> {
    let mut part = [0; 4096];
    loop {
        match rustix::io::read(from, &mut part) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(length) => all.extend_from_slice(part.get(..length).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(unreadable(error)),
        }
        within(all)?;
    }
}

fn within(printed: &[u8]) -> Result<(), String> {
    match printed.len() <= MOST {
        true => Ok(()),
        false => Err(format!("printed more than {}", crate::config::show_size(MOST as u64))),
    }
}

/// Reads everything, so that the command is not held up, and keeps only how much it was.
async fn count(mut from: ChildStderr, said: &AtomicU64) -> Result<(), String> {
    let mut part = [0; 4096];
    loop {
        let length = from.read(&mut part).await.map_err(unreadable)?;
        if length == 0 {
            return Ok(());
        }
        said.fetch_add(length as u64, Ordering::Relaxed);
    }
}
