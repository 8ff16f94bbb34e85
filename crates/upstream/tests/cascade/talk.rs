//! A client that holds a conversation through an engine whose only upstream is the lab's Cascade server.

use crate::world::{Ask, Asking, Differs, Told, World, ask, different};
use std::sync::Arc;
use std::time::Duration;
use turnkeep_engine::route::{Clocks, Handling, OnClientGone, Reuse, Route, Speech, Tier, UpstreamEntry};
use turnkeep_lab::{Lab, LabOptions, Rule, Script, Transcript};
use turnkeep_upstream::rpc::{Protocol, RpcSpec};
use turnkeep_upstream::{Cascade, CascadeSpec, Egress};

pub const HEALTH: &str = "/turnkeep.cascade.v1.CascadeService/Health";
pub const START: &str = "/turnkeep.cascade.v1.CascadeService/Start";
pub const SEND: &str = "/turnkeep.cascade.v1.CascadeService/Send";
pub const WATCH: &str = "/turnkeep.cascade.v1.CascadeService/Watch";
pub const POSITION: &str = "/turnkeep.cascade.v1.CascadeService/Position";

pub const PROTOCOLS: [Protocol; 2] = [Protocol::Connect, Protocol::Grpc];

/// A rule for one method.
pub fn on(path: &str) -> Rule {
    Rule { path: Some(path.into()), ..Rule::default() }
}

pub async fn lab(rules: impl IntoIterator<Item = Rule>) -> Lab {
    Lab::start(LabOptions { script: Script::of(rules), ..LabOptions::default() }).await.unwrap()
}

pub fn spec(lab: &Lab, protocol: Protocol) -> CascadeSpec {
    let mut rpc = RpcSpec::new("up", format!("http://{}", lab.addr()));
    rpc.protocol = protocol;
    rpc.egress = Egress::Loopback;
    CascadeSpec::new(rpc)
}

/// A conversation as its client knows it.
pub struct Talk {
    pub world: World,
    pub lab: Lab,
    pub stream: bool,
    /// Roles and texts, as they go into the next request.
    pub history: Vec<(&'static str, String)>,
}

/// How a talk differs from the usual one.
pub struct Setting {
    pub protocol: Protocol,
    pub stream: bool,
    pub accounts: &'static [&'static str],
    pub clocks: Clocks,
}

impl Default for Setting {
    fn default() -> Self {
        Setting { protocol: Protocol::Connect, stream: true, accounts: &[], clocks: Clocks::default() }
    }
}

impl Talk {
    pub async fn new(setting: Setting, rules: impl IntoIterator<Item = Rule>) -> Talk {
        let lab = lab(rules).await;
        let mut world = different(Differs { more: setting.accounts, ..Differs::default() });
        let port = Arc::new(Cascade::new(spec(&lab, setting.protocol)).unwrap());
        let upstream = Arc::new(UpstreamEntry {
            name: "up".into(),
            speech: Speech::Native { conversations: Some(Handling::Mutable), replay_safe: true, port },
            reuse: Reuse::Prefer,
            clocks: setting.clocks,
            on_client_gone: OnClientGone::Cancel,
        });
        world.routes = [Route { upstream, model: "m".into(), tier: Tier::Own, name: "m".into(), price: None }].into();
        Talk { world, lab, stream: setting.stream, history: Vec::new() }
    }

    /// The request with what was said so far.
    pub fn request(&self) -> Ask {
        let messages: Vec<String> = self
            .history
            .iter()
            .map(|(role, text)| serde_json::json!({"role": role, "content": text}).to_string())
            .collect();
        Ask { cache: false, messages: messages.join(","), ..ask(self.stream) }
    }

    /// Says something, and takes the answer into the history if there is one.
    pub async fn say(&mut self, text: &str) -> Told {
        self.history.push(("user", text.into()));
        self.again().await
    }

    /// The same request once more.
    pub async fn again(&mut self) -> Told {
        let asking = self.begin();
        let told = asking.told().await;
        self.take(told).await
    }

    /// Begins a turn with what was said so far.
    pub fn begin(&self) -> Asking {
        self.world.start(&self.request())
    }

    /// The reply has arrived.
    pub async fn take(&mut self, told: Told) -> Told {
        let told = if told.ticket.is_some() { told.arrives() } else { told };
        self.world.idle().await;
        if told.status == 200
            && let Some(text) = answer_of(&told.body, self.stream)
        {
            self.history.push(("assistant", text));
        }
        told
    }

    /// Conversations that can be gone on with.
    pub fn pool(&self) -> usize {
        self.world.engine.conversations.size(self.world.engine.admission.present())
    }

    /// Hits, misses, restored, advanced, dropped.
    pub fn counts(&self) -> [u64; 5] {
        let desk = &self.world.engine.conversations;
        [&desk.hits, &desk.misses, &desk.restored, &desk.advanced, &desk.dropped].map(|counter| counter.get())
    }

    /// The conversations that the server still knows.
    pub fn open(&self) -> Vec<Transcript> {
        self.lab.transcripts().into_iter().filter(|kept| !kept.closed).collect()
    }

    /// Each conversation taken has come to one end, and no conversation was told a thing twice.
    #[track_caller]
    pub fn assert_told_once(&self) {
        let [hits, _, restored, advanced, dropped] = self.counts();
        assert_eq!(hits, restored + advanced + dropped, "each conversation that was taken has one end");
        for kept in self.lab.transcripts() {
            let said = kept.said();
            let mut once = said.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), said.len(), "told twice: {said:?}");
        }
    }
}

/// The answer's text; `None` if it has no success end.
pub fn answer_of(body: &str, stream: bool) -> Option<String> {
    if !stream {
        let body: serde_json::Value = serde_json::from_str(body).ok()?;
        return Some(body["choices"][0]["message"]["content"].as_str()?.to_owned());
    }
    let mut text = String::new();
    let mut whole = false;
    for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            whole = true;
            continue;
        }
        let chunk: serde_json::Value = serde_json::from_str(data).ok()?;
        text.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    whole.then_some(text)
}

/// Short clocks, for tests of silence.
pub fn short() -> Clocks {
    let short = Duration::from_millis(300);
    Clocks { first_content: short, between: short, ..Clocks::default() }
}
