//! A client that holds a conversation and sends all of it back with each turn.

use super::client::{Client, Reply};
use super::dialects::{Pair, assert_said, say, saying};
use super::world::{KEY, World};
use serde_json::Value;
use std::net::SocketAddr;

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
        self.send(&mut client).await;
        client
    }

    /// Sends the turn to a gateway that is another process.
    pub async fn ask_at(&self, addr: SocketAddr) -> Client {
        let mut client = Client::tcp(addr).await;
        self.send(&mut client).await;
        client
    }

    async fn send(&self, client: &mut Client) {
        let bearer = format!("Bearer {}", self.secret);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_str())));
        client.ask_with(self.pair, &headers, self.body.to_string().as_bytes()).await;
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

    /// Sends the turn, which must be answered by `words`, and says more.
    pub async fn answered(&mut self, world: &World, words: &str, more: &str) {
        self.hears(world, words).await;
        self.says(more);
    }

    /// Says more.
    pub fn says(&mut self, words: &str) -> &mut Talk {
        say(self.pair, &mut self.body, "user", words);
        self
    }
}
