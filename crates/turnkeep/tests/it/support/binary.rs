//! The real binary as a process of its own.

use super::world::{Plan, soon};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Starts it over a plan in a folder, with so many open files if that is said, and waits until it listens. It runs until it
/// is killed or dropped.
pub async fn serve(plan: &Plan, folder: &Path, files: Option<u64>) -> (Child, SocketAddr) {
    let file = folder.join("turnkeep.toml");
    std::fs::write(&file, plan.toml(folder)).unwrap();
    let limit = files.map_or(String::new(), |files| format!("ulimit -n {files}; "));
    // The shell gives its place to the binary: signals reach it.
    let mut child = Command::new("sh")
        .args(["-c", &format!("{limit}exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_turnkeep"), "serve", "--config"])
        .arg(&file)
        .env("TURNKEEP_EGRESS", "loopback")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = soon(lines.next_line()).await.unwrap().expect("it listens");
    let addr = line.strip_prefix("listening on http://").expect(&line).parse().unwrap();
    // The pipe stays open as long as the process.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, addr)
}
