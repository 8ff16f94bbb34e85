//! A gateway whose one model has a response cache, what its counters say of deliveries, and the turns of these tests.

use crate::asking::{Asking, Exit, Takes, Way};
use crate::support::listen::{Served, served};
use crate::support::world::{Plan, assert_unblamed};
use crate::support::*;
use serde_json::Value;
use turnkeep_lab::Lab;

/// The secret of another caller.
pub const OTHER: &str = "the-key-of-another";
/// The secret of a key that many share, so that nobody is known to stand behind it.
pub const SHARED: &str = "the-key-of-many";
/// A master key.
pub const MASTER: &str = "master_key = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n";

/// More than a client takes that reads nothing, and less than the kernel holds for the gateway.
pub const IN_THE_KERNEL: usize = 1 << 20;
/// More than the kernel holds at all.
pub const BEYOND_IT: usize = 8 << 20;

/// What the provider reports of every answer.
pub const USAGE: UsageSpec =
    UsageSpec { prompt: Some(100), completion: Some(40), cached: Some(20), cache_write: None, reasoning: None };

/// A model whose answers may be used again for five minutes.
const CACHED: &str = "[[models]]\nname = \"m\"\ncache = { ttl = \"5m\" }\n\
                      routes = [{ upstream = \"up0\", model = \"upstream-m\" }]\n";

/// A gateway over one account of this lab, for three callers.
pub fn plan(up: Up) -> Plan {
    let key = |name: &str, secret: &str, more: &str| {
        format!("[[keys]]\nname = {name:?}\nsecret = {secret:?}\nscopes = [\"chat\"]\n{more}\n")
    };
    let more = key("other", OTHER, "") + &key("many", SHARED, "shared = true");
    Plan { more, ..Plan::over([up.slots(100)]).models(CACHED) }
}

/// A gateway and its upstream.
pub struct Place {
    pub served: Served,
    pub lab: Lab,
}

impl Place {
    /// Whose lab answers by this rule, reached this way.
    pub async fn of(way: Way, pair: Pair, rule: Rule) -> Place {
        Place::changed(way, pair, rule, |plan| plan).await
    }

    /// The same, with a change of the plan.
    pub async fn changed(way: Way, pair: Pair, rule: Rule, change: impl FnOnce(Plan) -> Plan) -> Place {
        let lab = lab([Rule { usage: USAGE, ..rule }]).await;
        let plan = change(plan(Up::at(pair.upstream, &lab)));
        Place { served: served(plan, way.is_tls()).await, lab }
    }

    pub fn world(&self) -> &World {
        &self.served.world
    }

    /// Sends the usual turn on a connection of its own.
    pub async fn ask(&self, way: Way, pair: Pair, takes: Takes) -> Asking {
        let mut asking = Asking::connect(&self.served, way, takes).await;
        asking.ask(pair, &[], &request(pair).to_string()).await;
        asking
    }

    /// The usual turn, read whole.
    pub async fn turn(&self, way: Way, pair: Pair) -> Reply {
        self.ask(way, pair, Takes::Everything).await.reply().await
    }

    /// Until the upstream has answered so many turns whole, and its account is free.
    pub async fn upstream_done(&self, turns: usize) -> Value {
        soon(self.lab.wait_for_requests(turns)).await;
        soon(self.lab.wait_idle()).await;
        self.world().until_at_rest().await
    }

    /// The same, and one client has still to get its reply.
    pub async fn answered(&self, turns: usize) {
        let counters = self.upstream_done(turns).await;
        assert_eq!(counters["now"]["turns_open"], 1, "a reply is on its way: {counters:#}");
    }

    /// Sends the usual turn, whose answer must be larger than what its client takes, and leaves when the upstream is done.
    pub async fn lose(&self, way: Way, pair: Pair, exit: Exit) {
        let turns = self.lab.requests().len() + 1;
        let asking = self.ask(way, pair, Takes::Little).await;
        self.answered(turns).await;
        drop(asking.leave(exit).await);
        self.world().until("the end of the turn", |counters| counters["now"]["turns_open"] == 0).await;
    }

    /// Waits until so many turns have been closed, and none is open.
    pub async fn closed(&self, turns: u64) -> Value {
        self.closed_but(turns, 0).await
    }

    /// Waits until so many turns have been closed, and so many are open.
    pub async fn closed_but(&self, turns: u64, open: u64) -> Value {
        let all = |counters: &Value| {
            ends(counters).iter().sum::<u64>() == turns && counters["now"]["turns_open"].as_u64() == Some(open)
        };
        self.world().until("the end of turns", all).await
    }
}

/// What only a delivered turn writes: histories committed, answers stored in the cache, bindings made.
pub fn commits(counters: &Value) -> [u64; 3] {
    let count = |group: &str, name: &str| counters[group][name].as_u64().unwrap();
    [count("continuity", "commits"), count("cache", "stores"), count("affinity", "binds")]
}

/// How turns have ended: delivered, undelivered, left before their answer, left in the middle of it.
pub fn ends(counters: &Value) -> [u64; 4] {
    ["delivered", "undelivered", "client_gone_before_answer", "client_gone_mid_answer"]
        .map(|name| counters[name].as_u64().unwrap())
}

/// Asserts that one turn completed without a receipt: nothing is committed, nobody is blamed.
pub fn assert_undelivered(counters: &Value, case: &str) {
    assert_eq!((ends(counters), commits(counters)), ([0, 1, 0, 0], [0, 0, 0]), "{case}: {counters:#}");
    assert_eq!(counters["client_gone"], 0, "{case}");
    assert_unblamed(counters, "a");
}

/// Asserts that the ledger holds this one attempt, completed, with what the provider reported.
pub async fn assert_paid(served: Served, case: &str) {
    let entries = served.world.into_ledger().await;
    assert_eq!(entries.len(), 1, "{case}: {entries:?}");
    let closed = entries[0].closed.as_ref().unwrap();
    assert_eq!((closed.outcome.as_str(), closed.exact), ("completed", true), "{case}");
    let usage = closed.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (80, 20, 40), "{case}");
}

/// Every transport with every client dialect, streamed and not; upstreams of every kind, by turns.
pub fn matrix() -> Vec<(Way, Pair)> {
    let mut out = Vec::new();
    for (number, way) in Way::ALL.into_iter().enumerate() {
        for (at, client) in Dialect::ALL.into_iter().enumerate() {
            for stream in [true, false] {
                let upstream = Dialect::ALL[(at + number + usize::from(stream)) % Dialect::ALL.len()];
                out.push((way, Pair { client, upstream, stream }));
            }
        }
    }
    out
}

/// A text of which a reply of so many bytes is made. A stream of Responses says it five times over: as it comes, and in
/// four endings.
pub fn text_for(pair: Pair, bytes: usize) -> String {
    let times = if pair.client == Dialect::Responses && pair.stream { 5 } else { 1 };
    "x".repeat(bytes / times)
}

/// An answer in one event, which makes a reply of so many bytes.
pub fn large(pair: Pair, bytes: usize) -> Rule {
    Rule { text: Some(text_for(pair, bytes)), ..Rule::default() }
}

/// Four words, held before the third.
pub fn held_after_two_words() -> Rule {
    let text = Some("one two three four".into());
    Rule { text, gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..Rule::default() }
}
