//! A gateway over upstreams that keep conversations, those of clients with it, and what the counters say of them.

use crate::support::world::Plan;
use crate::support::*;
use serde_json::Value;
use std::fmt::Write;

pub use crate::support::talk::Talk;

/// The secret of another caller.
pub const OTHER: &str = "the-key-of-another";
/// The secret of a key that many share, so that nobody is known to stand behind it.
pub const SHARED: &str = "the-key-of-many";

/// Clients of every dialect, streamed and not. What the upstream of a pair is does not matter here.
pub fn clients() -> Vec<Pair> {
    let of = |client| [true, false].map(|stream| Pair { client, upstream: Dialect::Chat, stream });
    Dialect::ALL.into_iter().flat_map(of).collect()
}

/// One client, streamed and not: where the dialect does not matter.
pub fn streamed_and_plain() -> [Pair; 2] {
    [true, false].map(|stream| Pair { client: Dialect::Chat, upstream: Dialect::Chat, stream })
}

/// A gateway over these upstreams, whose model `m` goes to each of them in turn, for three callers.
pub fn plan(upstreams: &[(&str, String)]) -> Plan {
    let key = |name: &str, secret: &str, more: &str| {
        format!("[[keys]]\nname = {name:?}\nsecret = {secret:?}\nscopes = [\"chat\"]\n{more}\n")
    };
    let routes: Vec<String> =
        upstreams.iter().map(|(name, _)| format!("{{ upstream = {name:?}, model = \"upstream-m\" }}")).collect();
    let mut text: String = upstreams.iter().map(|(_, text)| text.as_str()).collect();
    write!(text, "[[models]]\nname = \"m\"\nroutes = [{}]\n", routes.join(", ")).unwrap();
    let more = key("other", OTHER, "") + &key("many", SHARED, "shared = true");
    Plan { more, ..Plan::over([]) }.models(&text).tuning("backoff = \"1ms\"\nlongest_backoff = \"1ms\"")
}

/// The counters, once no turn is under way any more.
pub async fn at_rest(world: &World) -> Value {
    world.until_at_rest().await;
    world.until("the end of turns", |counters| counters["now"]["turns_open"] == 0).await
}

/// A count of the counters' conversations.
pub fn count(counters: &Value, name: &str) -> u64 {
    counters["conversations"][name].as_u64().unwrap()
}

/// Asserts how many conversations are kept once nothing is under way, and how many turns found theirs.
pub async fn assert_kept(world: &World, size: u64, hits: u64, case: &str) -> Value {
    let counters = at_rest(world).await;
    let kept = &counters["conversations"];
    assert_eq!((&kept["size"], &kept["hits"]), (&size.into(), &hits.into()), "{case}: {counters:#}");
    counters
}

/// A conversation of one whole turn, which its upstream answers by `one`, ready for its second.
pub async fn begun(world: &World, pair: Pair) -> Talk {
    let mut talk = Talk::begin(pair, "first");
    talk.hears(world, "one").await;
    at_rest(world).await;
    talk.says("second");
    talk
}
