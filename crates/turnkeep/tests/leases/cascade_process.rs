//! Cascade servers that are processes of a gateway: this test's own binary, started by it.

use crate::cascade_server::PROCESS;
use crate::scene::{Talk, at_rest, plan};
use crate::support::dialects::say;
use crate::support::world::Plan;
use crate::support::*;
use std::fmt::Write;

/// How the server is started.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// By the gateway itself.
    Itself,
    /// By a shell that lives on when the server has died.
    Launcher,
}

/// An upstream whose servers are started so, with these accounts and their own lines. `lines` stand in the upstream.
pub fn upstream(by: By, accounts: &[(&str, &str)], lines: &str) -> String {
    let binary = std::env::current_exe().unwrap();
    let binary = binary.to_str().unwrap();
    let server = ["--exact", "cascade_server::a_process_that_is_told_to_is_a_server", "--nocapture"];
    let launcher = ["sh", "-c", "\"$0\" \"$@\"; exec sleep 1000"];
    let command: Vec<&str> = match by {
        By::Itself => [binary].into_iter().chain(server).collect(),
        By::Launcher => launcher.into_iter().chain([binary]).chain(server).collect(),
    };
    let mut text = format!("[[upstreams]]\nname = \"up\"\nkind = \"cascade\"\ncommand = {command:?}\n{lines}\n");
    for (account, own) in accounts {
        let env = format!("env = {{ {PROCESS} = \"yes\" }}");
        let own = if own.is_empty() { &env } else { *own };
        write!(text, "[[upstreams.accounts]]\nname = {account:?}\n{own}\n").unwrap();
    }
    text
}

/// A gateway over one such upstream.
pub fn over(by: By, accounts: &[&str], lines: &str) -> Plan {
    let accounts: Vec<(&str, &str)> = accounts.iter().map(|name| (*name, "")).collect();
    plan(&[("up", upstream(by, &accounts, lines))])
}

/// A gateway whose servers it starts itself.
pub async fn place(accounts: &[&str]) -> World {
    World::of(&over(By::Itself, accounts, "")).await
}

/// The turn's answer, and then no turn is under way any more.
pub async fn heard(talk: &mut Talk, world: &World) -> (u32, u32) {
    let heard = answered(talk, world).await;
    at_rest(world).await;
    heard
}

/// The turn's answer: the process that gave it, and how many messages it was sent. It goes into the history.
pub async fn answered(talk: &mut Talk, world: &World) -> (u32, u32) {
    let reply = talk.turn(world).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let words = said(talk.pair, &reply);
    say(talk.pair, &mut talk.body, "assistant", &words);
    let (process, count) = words.split_once(" heard ").unwrap_or_else(|| panic!("{words}"));
    (process.parse().unwrap(), count.parse().unwrap())
}
