//! A gateway over a Cascade server.

use crate::cascade_server::{Cascade, Next};
use crate::scene::{self, Talk, at_rest, plan};
use crate::support::world::Plan;
use crate::support::*;
use serde_json::Value;
use std::fmt::Write;
use std::net::SocketAddr;

/// An upstream of a Cascade server, with these accounts: the secret of `a` is `secret-a`. `lines` stand in the upstream.
pub fn upstream(name: &str, addr: SocketAddr, accounts: &[&str], lines: &str) -> String {
    let mut text =
        format!("[[upstreams]]\nname = {name:?}\nkind = \"cascade\"\nbase_url = \"http://{addr}\"\n{lines}\n");
    for account in accounts {
        write!(text, "[[upstreams.accounts]]\nname = {account:?}\nsecret = \"secret-{account}\"\n").unwrap();
    }
    text
}

/// A gateway and its upstream.
pub struct Place {
    pub world: World,
    pub server: Cascade,
}

impl Place {
    /// With these accounts.
    pub async fn of(accounts: &[&str]) -> Place {
        Place::with(accounts, "", |plan| plan).await
    }

    /// With these accounts, lines of the upstream, and a change of the plan.
    pub async fn with(accounts: &[&str], lines: &str, change: impl FnOnce(Plan) -> Plan) -> Place {
        let server = Cascade::start().await;
        let world = World::of(&change(plan(&[("up", upstream("up", server.addr(), accounts, lines))]))).await;
        Place { world, server }
    }

    /// The plan of the same gateway with other accounts or lines, to be taken up.
    pub fn other(&self, accounts: &[&str], lines: &str) -> Plan {
        plan(&[("up", upstream("up", self.server.addr(), accounts, lines))])
    }

    /// The counters, once no turn is under way any more.
    pub async fn at_rest(&self) -> Value {
        at_rest(&self.world).await
    }

    /// Asserts how many conversations are kept once nothing is under way, and how many turns found theirs.
    pub async fn assert_kept(&self, size: u64, hits: u64, case: &str) -> Value {
        let counters = scene::assert_kept(&self.world, size, hits, case).await;
        self.server.assert_transcripts_are_whole();
        counters
    }

    /// A conversation of one whole turn, ready for its second.
    pub async fn begun(&self, pair: Pair) -> Talk {
        self.server.script([Next::Say("one".into())]);
        scene::begun(&self.world, pair).await
    }
}
