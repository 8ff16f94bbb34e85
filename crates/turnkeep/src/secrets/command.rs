//! Runs a command for what it prints: without a shell, with the gateway's environment, within bounds of time and size.
//! A command that is given up is killed with everything it has started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use turnkeep_base::Secret;

/// The most that a command may print, in bytes.
const MOST: usize = 64 * 1024;

/// The most that is told of what a command said of its failure, in characters.
const TOLD: usize = 300;

/// A part of what was printed that is shorter is not looked for in what is told, in bytes: it would hide common words.
const SHORT: usize = 6;

/// What the command prints, which may take `limit`. `known` is not told of in an error, whatever the command says.
///
/// # Errors
/// In words that go on after the command's name, without anything it has printed as its output: it cannot be started,
/// runs too long, prints too much or no text, or ends with another status than 0; then with what it said to stderr,
/// shortened.
pub(super) async fn output(words: &[String], limit: Duration, known: Option<&Secret>) -> Result<String, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("names no program".into()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that nothing it starts outlives it.
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let mut group = Group { child, done: false };
    match tokio::time::timeout(limit, group.finish(known)).await {
        Ok(result) => result,
        Err(_) => Err(format!("did not end within {}", crate::config::show_duration(limit))),
    }
}

/// A running command; dropped before it is done, it is killed with its group.
struct Group {
    child: Child,
    done: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let (false, Some(pid)) = (self.done, pid) {
            // It fails where everything has ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Group {
    async fn finish(&mut self, known: Option<&Secret>) -> Result<String, String> {
        let (Some(mut out), Some(mut err)) = (self.child.stdout.take(), self.child.stderr.take()) else {
            return Err("has no output".into());
        };
        // The child is reaped only after its output has ended, so its group's number cannot be another's before.
        let told = |error: std::io::Error| format!("cannot be read: {error}");
        let printed = async { read(&mut out, MOST).await.map_err(told)?.ok_or_else(too_much) };
        let said = async { drain(&mut err).await.map_err(told) };
        let (printed, said) = tokio::try_join!(printed, said)?;
        let status = self.child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
        self.done = true;
        if !status.success() {
            let how = match (status.code(), status.signal()) {
                (Some(code), _) => format!("ended with status {code}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "failed".to_owned(),
            };
            let said = shortened(&said, &String::from_utf8_lossy(&printed), known);
            return Err(if said.is_empty() { how } else { format!("{how}: {said}") });
        }
        String::from_utf8(printed).map_err(|_| "printed something that is not UTF-8 text".to_owned())
    }
}

fn too_much() -> String {
    format!("printed more than {}", crate::config::show_size(MOST as u64))
}

/// Everything, or nothing if it is more than `most` bytes.
async fn read(from: &mut (impl AsyncRead + Unpin), most: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut all = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut all).await?;
    Ok((all.len() <= most).then_some(all))
}

/// The beginning; the rest is read and thrown away, so that the command is not held up.
async fn drain(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut kept = Vec::new();
    from.take(MOST as u64).read_to_end(&mut kept).await?;
    let cut = tokio::io::copy(from, &mut tokio::io::sink()).await? > 0;
    let text = String::from_utf8_lossy(&kept);
    // A word that was cut in two may be half of a secret.
    let whole = if cut { text.rfind(char::is_whitespace).and_then(|end| text.get(..end)).unwrap_or("") } else { &text };
    Ok(whole.to_owned())
}

/// What was said, on one line, without what was printed and without the known secret.
fn shortened(said: &str, printed: &str, known: Option<&Secret>) -> String {
    let mut hidden: Vec<&str> = printed.lines().chain(printed.split_whitespace()).map(str::trim).collect();
    hidden.extend(known.map(Secret::expose));
    hidden.retain(|text| text.len() >= SHORT);
    // The longest first: it may hold the others.
    hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let mut said = said.to_owned();
    for text in hidden {
        said = said.replace(text, "[secret]");
    }
    let said: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let said: Vec<&str> = said.split_whitespace().collect();
    let said = said.join(" ");
    match said.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", said.get(..end).unwrap_or_default()),
        None => said,
    }
}
