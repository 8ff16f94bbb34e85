//! Processes that a gateway has started, as the system sees them.

use crate::support::soon;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Sends a process a signal.
pub fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Kills it, and waits until its parent has noticed.
pub async fn kill(process: u32) {
    signal(process, "-9");
    gone(process).await;
}

/// Waits until it is there no more.
pub async fn gone(process: u32) {
    until(|| !Path::new(&format!("/proc/{process}")).exists()).await;
}

/// Waits until it is stopped by a signal.
pub async fn stopped(process: u32) {
    until(|| stat(process).starts_with('T')).await;
}

/// The process that started it.
pub fn parent(process: u32) -> u32 {
    stat(process).split(' ').nth(1).unwrap().parse().unwrap()
}

/// What the system says of it, from its state on.
fn stat(process: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.to_owned()
}

/// The account that it serves, whose name its working directory has.
pub fn account(process: u32) -> String {
    let directory = std::fs::read_link(format!("/proc/{process}/cwd")).unwrap();
    directory.file_name().unwrap().to_str().unwrap().to_owned()
}

async fn until(reached: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    soon(async {
        while !reached() {
            looks.tick().await;
        }
    })
    .await;
}
