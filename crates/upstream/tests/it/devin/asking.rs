//! A lab, a driver in front of it, and turns.

use http::HeaderMap;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::{AccountId, Dialect, Fault, Secret};
use turnkeep_dialect::event::{Delta, Event, Order};
use turnkeep_dialect::request::{self, Operation};
use turnkeep_engine::ports::{Ask, Happening, Native as _, NativeAnswer, SendFault, Writing};
use turnkeep_lab::{Lab, LabOptions, Recorded, Script};
use turnkeep_policy::conversations::Conversation;
use turnkeep_upstream::{Devin, DevinSpec, Egress};

/// How long the driver waits for quiet: longer than a few looks, shorter than anybody minds.
pub const QUIET: Duration = Duration::from_millis(500);
/// The calls of the organisation `org-1`.
pub const SESSIONS: &str = "/v3/organizations/org-1/sessions";
/// The first session that a lab makes.
pub const FIRST: &str = "devin-lab000001";

pub struct Scene {
    pub lab: Lab,
    pub devin: Arc<Devin>,
}

/// What a turn came to.
#[derive(Debug)]
pub struct Told {
    pub text: String,
    /// As told last.
    pub units: Option<u64>,
    pub alive: usize,
    pub ended: bool,
    pub fault: Option<Fault>,
    pub conversation: Option<Conversation>,
}

pub fn spec(lab: &Lab) -> DevinSpec {
    DevinSpec {
        base_url: format!("http://{}", lab.addr()),
        organizations: BTreeMap::from([("one".into(), "org-1".into()), ("two".into(), "org-2".into())]),
        quiet: QUIET,
        poll_first: Duration::from_millis(4),
        poll_longest: Duration::from_millis(8),
        egress: Egress::Loopback,
        ..DevinSpec::new("devin")
    }
}

pub async fn scene(script: &str) -> Scene {
    let script = Script::parse(script).unwrap();
    let lab = Lab::start(LabOptions { script, ..LabOptions::default() }).await.unwrap();
    let devin = Arc::new(Devin::new(spec(&lab)).unwrap());
    Scene { lab, devin }
}

impl Scene {
    pub fn ask(&self, text: &str, resume: Option<Conversation>) -> Ask {
        let body = format!(r#"{{"model":"devin","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let request = request::read(Dialect::Chat, Operation::Generate, body.into()).unwrap();
        let how = Writing { model: "devin", goes_on: resume.is_some(), stream: true };
        let written = self.devin.write(&request.turn().unwrap(), how).unwrap();
        Ask {
            body: written.body,
            model: "devin".into(),
            account: AccountId { upstream: "devin".into(), account: "one".into() },
            secret: Secret::new("cog_1".into()),
            caller: "laptop".into(),
            resume,
            reread: false,
            time_left: Duration::from_secs(60),
            trace: HeaderMap::new(),
        }
    }

    pub async fn begin(&self, text: &str) -> Result<Box<dyn NativeAnswer>, SendFault> {
        self.devin.send(self.ask(text, None)).await
    }

    /// A whole turn in a new session.
    pub async fn turn(&self, text: &str) -> Told {
        whole(self.begin(text).await.unwrap_or_else(|failed| panic!("{failed:?}"))).await
    }

    /// A whole turn in a session that was left.
    pub async fn next(&self, text: &str, left: &Told) -> Told {
        let asked = self.ask(text, left.conversation.clone());
        whole(self.devin.send(asked).await.unwrap_or_else(|failed| panic!("{failed:?}"))).await
    }

    pub async fn refused(&self, ask: Ask) -> SendFault {
        match self.devin.send(ask).await {
            Err(failed) => failed,
            Ok(_) => panic!("it was not refused"),
        }
    }

    /// The calls that say something to Devin.
    pub fn posts(&self) -> Vec<Recorded> {
        self.lab.requests().into_iter().filter(|request| request.method == http::Method::POST).collect()
    }

    /// What the users have said, in all sessions.
    pub fn user_said(&self) -> Vec<String> {
        let said = self.lab.devin_sessions().into_iter().flat_map(|session| session.messages);
        said.filter(|said| said.source == "user").map(|said| said.message).collect()
    }
}

/// Reads an answer to its end, and sees to the order of its events.
pub async fn whole(mut answer: Box<dyn NativeAnswer>) -> Told {
    let mut order = Order::default();
    let mut told = Told { text: String::new(), units: None, alive: 0, ended: false, fault: None, conversation: None };
    while let Some(happening) = poll_fn(|cx| answer.poll_next(cx)).await {
        match happening {
            Ok(Happening::Event(event)) => {
                order.event(&event).unwrap();
                if let Event::Delta { delta: Delta::Text(text), .. } = &event {
                    told.text.push_str(text);
                }
                if event == Event::End {
                    told.ended = true;
                    told.conversation = answer.conversation();
                }
            }
            Ok(Happening::Alive) => told.alive += 1,
            Ok(Happening::Units(units)) => told.units = Some(units),
            Err(fault) => told.fault = Some(fault),
        }
    }
    told
}
