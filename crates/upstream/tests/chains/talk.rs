//! A client that holds a conversation through an engine whose only upstream is a lab that keeps its answers.

use crate::world::{Ask, World, ask, receipt, world};
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::Dialect;
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::TurnInput;
use turnkeep_engine::pipe::{ReplyReader, Ticket};
use turnkeep_engine::route::{Clocks, OnClientGone, Reuse, Route, Speech, Tier, UpstreamEntry};
use turnkeep_lab::{Lab, LabOptions, Rule, Script};
use turnkeep_upstream::{Egress, Endpoint, EndpointSpec, Kind};

/// What the lab answers, in words that come one by one.
pub const ANSWER: &str = "noted so far";

pub struct Talk {
    pub world: World,
    pub lab: Lab,
    pub client: Dialect,
    pub stream: bool,
    /// Roles and texts, as they go into the next request.
    pub history: Vec<(&'static str, String)>,
}

/// A reply as far as it came.
pub struct Reply {
    pub status: Option<StatusCode>,
    pub body: String,
    pub ticket: Option<Ticket>,
}

/// Reads a reply to its end, which may come early.
pub async fn read(mut reader: ReplyReader) -> Reply {
    let head = poll_fn(|cx| reader.poll_head(cx)).await;
    let mut body = Vec::new();
    while let Some(bytes) = poll_fn(|cx| reader.poll_chunk(cx)).await {
        body.extend_from_slice(&bytes);
    }
    let ticket = reader.ticket();
    Reply { status: head.map(|head| head.status), body: String::from_utf8(body).unwrap(), ticket }
}

impl Talk {
    pub async fn new(client: Dialect, stream: bool) -> Talk {
        let rule = Rule { text: Some(ANSWER.into()), word_delay_ms: 1, ..Rule::default() };
        let lab = Lab::start(LabOptions { script: Script::of([rule]), ..LabOptions::default() }).await.unwrap();
        let base_url = format!("http://{}/v1", lab.addr());
        let spec =
            EndpointSpec { egress: Egress::Loopback, ..EndpointSpec::new("up", Kind::OpenAiResponses, base_url) };
        let port = Arc::new(Endpoint::new(spec).unwrap());
        let upstream = Arc::new(UpstreamEntry {
            name: "up".into(),
            speech: Speech::Dialect { dialect: Dialect::Responses, chains: true, port },
            reuse: Reuse::Prefer,
            clocks: Clocks::default(),
            on_client_gone: OnClientGone::Cancel,
        });
        let mut world = world();
        world.routes = [Route { upstream, model: "m".into(), tier: Tier::Own, name: "m".into(), price: None }].into();
        Talk { world, lab, client, stream, history: Vec::new() }
    }

    /// The request with what was said so far.
    fn input(&self) -> TurnInput {
        let mut input = self.world.input(&Ask { cache: false, ..ask(self.stream) });
        let turn = |(role, text): &(&str, String)| json!({"role": role, "content": text});
        let said: Vec<Value> = self.history.iter().map(turn).collect();
        let list = if self.client == Dialect::Responses { "input" } else { "messages" };
        let body = json!({"model": "m", "stream": self.stream, list: said}).to_string();
        input.request = request::read(self.client, Operation::Generate, body.into()).unwrap();
        input
    }

    /// The turn for the test to poll, and its reply.
    pub fn by_hand(&self) -> (BoxFuture<'static, ()>, ReplyReader) {
        self.world.engine.prepare(self.input())
    }

    /// Asks with what was said so far, and takes the answer, which must come whole and arrive, into the history.
    pub async fn answered(&mut self, case: &str) {
        let input = self.input();
        let turn = input.id;
        let reading = tokio::time::timeout(Duration::from_secs(10), read(self.world.engine.start(input)));
        let Reply { status, body, ticket } = reading.await.unwrap_or_else(|_| panic!("{case}: no answer"));
        assert_eq!(status, Some(StatusCode::OK), "{case}: {body}");
        assert_eq!(self.text(&body).as_deref(), Some(ANSWER), "{case}: {body}");
        ticket.expect("the reply was read to its end").turn_in(receipt(turn));
        self.world.idle().await;
        self.history.push(("assistant", ANSWER.into()));
    }

    /// The text of a whole answer; `None` if it has no success end.
    pub fn text(&self, body: &str) -> Option<String> {
        let events = || body.lines().filter_map(|line| line.strip_prefix("data: "));
        let documents = || events().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        if self.client == Dialect::Responses {
            let whole = match self.stream {
                true => documents().find(|event| event["type"] == "response.completed")?["response"].clone(),
                false => serde_json::from_str(body).ok()?,
            };
            return Some(whole["output"][0]["content"][0]["text"].as_str()?.to_owned());
        }
        if !self.stream {
            let body: Value = serde_json::from_str(body).ok()?;
            return Some(body["choices"][0]["message"]["content"].as_str()?.to_owned());
        }
        let pieces = documents().filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()));
        events().any(|data| data == "[DONE]").then(|| pieces.collect())
    }

    /// Conversations that can be gone on with.
    pub fn pool(&self) -> u64 {
        self.world.engine.conversations.size(self.world.engine.admission.present()) as u64
    }

    /// Hits, misses, restored, advanced, dropped.
    pub fn counts(&self) -> [u64; 5] {
        let desk = &self.world.engine.conversations;
        [&desk.hits, &desk.misses, &desk.restored, &desk.advanced, &desk.dropped].map(|counter| counter.get())
    }

    /// Each lease that was taken has come to one end.
    #[track_caller]
    pub fn assert_ended_once(&self, case: &str) {
        let [hits, _, restored, advanced, dropped] = self.counts();
        assert_eq!(hits, restored + advanced + dropped, "{case}: {:?}", self.counts());
        assert_eq!(self.world.engine.conversations.taken(), 0, "{case}: a lease lives");
        assert_eq!(self.world.engine.admission.in_flight(), 0, "{case}: a slot is taken");
    }

    /// Which answer each request to the upstream went on from.
    pub fn went_on_from(&self) -> Vec<Option<String>> {
        let previous = |body: Value| body["previous_response_id"].as_str().map(str::to_owned);
        self.lab.requests().iter().map(|asked| previous(serde_json::from_slice(&asked.body).unwrap())).collect()
    }

    /// In no chain that the upstream keeps the user says a thing twice.
    #[track_caller]
    pub fn assert_told_once(&self, case: &str) {
        for kept in self.lab.kept_answers() {
            let users = kept.items.iter().filter(|item| item["role"] == "user");
            let said: Vec<String> = users.map(|item| item["content"].to_string()).collect();
            let mut once = said.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), said.len(), "{case}: told twice: {said:?}");
            let told: Vec<bool> =
                ["first", "second", "third"].iter().map(|text| said.iter().any(|one| one.contains(text))).collect();
            assert!(told.is_sorted_by(|one, next| one >= next), "{case}: with what was said before: {said:?}");
        }
    }
}
