//! A gateway over upstreams that keep conversations, those of clients with it, and what the counters say of them.

use crate::support::client::Client;
use crate::support::dialects::{assert_said, say, saying};
use crate::support::world::{KEY, Plan};
use crate::support::*;
use serde_json::Value;
use std::fmt::Write;

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

/// A client's conversation: what it has said and was told.
#[derive(Clone)]
pub struct Talk {
    pub pair: Pair,
    pub body: Value,
    secret: &'static str,
    headers: Vec<(&'static str, String)>,
}

impl Talk {
    /// Begins with these words.
    pub fn begin(pair: Pair, words: &str) -> Talk {
        Talk { pair, body: saying(pair, words), secret: KEY, headers: Vec::new() }
    }

    /// By another caller.
    pub fn by(self, secret: &'static str) -> Talk {
        Talk { secret, ..self }
    }

    /// With a header.
    pub fn header(mut self, name: &'static str, value: &str) -> Talk {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends the turn on a connection of its own.
    pub async fn ask(&self, world: &World) -> Client {
        let mut client = world.client().await;
        let bearer = format!("Bearer {}", self.secret);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_str())));
        client.ask_with(self.pair, &headers, self.body.to_string().as_bytes()).await;
        client
    }

    /// Sends the turn and reads the whole reply.
    pub async fn turn(&self, world: &World) -> Reply {
        self.ask(world).await.reply().await
    }

    /// Sends the turn, which must be answered by `words`, and takes them into the history.
    pub async fn hears(&mut self, world: &World, words: &str) {
        assert_said(self.pair, &self.turn(world).await, words);
        say(self.pair, &mut self.body, "assistant", words);
    }

    /// Says more.
    pub fn says(&mut self, words: &str) -> &mut Talk {
        say(self.pair, &mut self.body, "user", words);
        self
    }
}
