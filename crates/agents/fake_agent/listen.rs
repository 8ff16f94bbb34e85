//! Processes that listen, or do not.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Waits until whoever started it is gone.
pub fn until_stdin_ends() {
    let _all = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Listens where it is told to, and takes what is said.
pub fn listen() {
    let place = std::env::var("TURNKEEP_LISTEN").expect("TURNKEEP_LISTEN");
    match place.strip_prefix("unix:") {
        Some(path) => {
            let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
            std::thread::spawn(move || listener.incoming().for_each(drop));
        }
        None => {
            let listener = std::net::TcpListener::bind(place).expect("a port");
            std::thread::spawn(move || listener.incoming().for_each(drop));
        }
    }
    until_stdin_ends();
}

/// Has another process group listen in its place, and says which process that is in the file in `FAKE_LOG`.
pub fn foreign() {
    let own = std::env::current_exe().expect("itself");
    let mut other = Command::new(own).arg("listen").process_group(0).stdin(Stdio::piped()).spawn().expect("another");
    std::fs::write(std::env::var("FAKE_LOG").expect("FAKE_LOG"), other.id().to_string()).expect("a file to write to");
    until_stdin_ends();
    let _ended = other.wait();
}

/// Has a child in its group, says both numbers in the file in `FAKE_LOG`, and does not end when it is asked to.
pub fn stubborn() {
    let script = "trap '' TERM; (while true; do sleep 60; done) & \
                  printf '%s %s' $$ $! >\"$FAKE_LOG.new\"; mv \"$FAKE_LOG.new\" \"$FAKE_LOG\"; wait; sleep 600";
    // In the place of this very process.
    let error = Command::new("sh").args(["-c", script]).exec();
    panic!("{error}");
}
