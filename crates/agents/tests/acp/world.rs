//! What the tests are made of: a driver over the fake agent, turns, and what becomes of them.

use crate::processes::LONG;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use turnkeep_agents::acp::{Acp, AcpAccount, AcpSpec};
use turnkeep_base::{AccountId, Fault, Secret};
use turnkeep_dialect::event::{Delta, Event, Finish, Order};
use turnkeep_dialect::turn::{At, Body, Message, Part, Role, Turn};
use turnkeep_engine::ports::{Ask, Happening, Native, NativeAnswer, SendFault, Writing};
use turnkeep_policy::conversations::Conversation;

/// A driver with one account, `me`, and what its agent leaves behind.
pub struct World {
    pub acp: Arc<Acp>,
    spec: AcpSpec,
    folder: tempfile::TempDir,
}

/// What a turn came to.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub thinking: String,
    pub alive: usize,
    pub finish: Option<Finish>,
    pub events: Vec<Event>,
    pub fault: Option<Fault>,
    pub conversation: Option<Conversation>,
}

impl World {
    /// An agent with these arguments.
    pub fn new(arguments: &[&str]) -> World {
        World::with(arguments, |_| {})
    }

    /// The same, with a change of the spec.
    pub fn with(arguments: &[&str], change: impl FnOnce(&mut AcpSpec)) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = vec![env!("CARGO_BIN_EXE_turnkeep-fake-agent").to_owned(), "agent".to_owned()];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let path = |name: &str| Secret::new(folder.path().join(name).display().to_string());
        let env = BTreeMap::from([
            ("FAKE_LOG".to_owned(), path("log")),
            ("FAKE_CANCELLED".to_owned(), path("cancelled")),
            ("FAKE_MARK".to_owned(), path("mark")),
            ("FAKE_ENVIRONMENT".to_owned(), path("environment")),
        ]);
        let mut spec = AcpSpec::new("agent", command, folder.path().join("state"));
        let account = AcpAccount { home: Some(folder.path().join("home")), env, auth_method: None };
        spec.accounts.insert("me".into(), account);
        change(&mut spec);
        World { acp: Arc::new(Acp::new(spec.clone())), spec, folder }
    }

    /// The same after a restart of the gateway.
    pub fn restarted(self) -> World {
        self.restarted_with(|_| {})
    }

    /// The same after a restart with another configuration.
    pub fn restarted_with(self, change: impl FnOnce(&mut AcpSpec)) -> World {
        let World { acp, mut spec, folder } = self;
        drop(acp);
        change(&mut spec);
        World { acp: Arc::new(Acp::new(spec.clone())), spec, folder }
    }

    /// A file of the agent's, read; empty if there is none.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The folder of the conversations' working directories.
    pub fn directories(&self) -> PathBuf {
        self.folder.path().join("state/me")
    }

    /// What the agent has heard of this method: the parameters.
    pub fn heard(&self, method: &str) -> Vec<serde_json::Value> {
        let messages = self.file("log");
        let messages = messages.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        messages.filter(|message| message["method"] == method).map(|mut message| message["params"].take()).collect()
    }

    /// Sends what a user says.
    pub async fn send(&self, said: &str, resume: Option<Conversation>) -> Result<Box<dyn NativeAnswer>, SendFault> {
        self.send_as("alice", said, resume).await
    }

    pub async fn send_as(
        &self,
        caller: &str,
        said: &str,
        resume: Option<Conversation>,
    ) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let ask = self.ask(caller, said, resume);
        tokio::time::timeout(LONG, self.acp.send(ask)).await.expect("in time")
    }

    /// What is asked of the driver.
    pub fn ask(&self, caller: &str, said: &str, resume: Option<Conversation>) -> Ask {
        let at = At::Content { message: 0, part: 0 };
        let parts = vec![Part { body: Body::Text(said.into()), at, cache: None }];
        let messages = vec![Message { role: Role::User, at: At::Message(0), parts }];
        let turn = Turn { messages, ..Turn::default() };
        let how = Writing { model: "m", goes_on: resume.is_some(), stream: true };
        let body = self.acp.write(&turn, how).expect("written").body;
        Ask {
            body,
            model: "m".into(),
            account: AccountId { upstream: "agent".into(), account: "me".into() },
            secret: Secret::new(String::new()),
            caller: Arc::from(caller),
            resume,
            reread: false,
            time_left: LONG,
            trace: Default::default(),
        }
    }

    /// A turn that is sent, and its answer.
    pub async fn turn(&self, said: &str, resume: Option<Conversation>) -> Answer {
        read(self.send(said, resume).await.expect("begun")).await
    }

    /// A turn that is not begun.
    pub async fn refused(&self, said: &str) -> SendFault {
        match self.send(said, None).await {
            Ok(_) => panic!("begun"),
            Err(fault) => fault,
        }
    }
}

/// The next thing that happens.
pub async fn next(answer: &mut Box<dyn NativeAnswer>) -> Option<Result<Happening, Fault>> {
    tokio::time::timeout(LONG, poll_fn(|cx| answer.poll_next(cx))).await.expect("in time")
}

/// Reads an answer to its end, whatever that is.
pub async fn read(mut answer: Box<dyn NativeAnswer>) -> Answer {
    let mut order = Order::default();
    let mut all = Answer {
        text: String::new(),
        thinking: String::new(),
        alive: 0,
        finish: None,
        events: Vec::new(),
        fault: None,
        conversation: None,
    };
    while let Some(happening) = next(&mut answer).await {
        match happening {
            Ok(Happening::Event(event)) => {
                order.event(&event).expect("in order");
                match &event {
                    Event::Delta { delta: Delta::Text(text), .. } => all.text.push_str(text),
                    Event::Delta { delta: Delta::Thinking(text), .. } => all.thinking.push_str(text),
                    Event::Finish { reason, .. } => all.finish = Some(*reason),
                    Event::End => all.conversation = answer.conversation(),
                    Event::Start { .. } | Event::BlockStart { .. } | Event::BlockStop { .. } | Event::Usage(_) => {}
                    Event::Delta { delta: Delta::Signature(_) | Delta::Arguments(_), .. } => panic!("{event:?}"),
                }
                all.events.push(event);
            }
            Ok(Happening::Alive) => all.alive += 1,
            Ok(Happening::Units(_)) => panic!("no units here"),
            Err(fault) => {
                all.fault = Some(fault);
                break;
            }
        }
    }
    all
}
