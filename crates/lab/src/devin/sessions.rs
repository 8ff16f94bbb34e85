//! The sessions: what was said in them, how they stand, and what is still to happen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::script::{DevinStep, DevinTurn};
use crate::gates::Gates;

/// How many sessions are kept.
const MAX_SESSIONS: usize = 10_000;
/// Messages of one page at most, by the reference.
const MAX_PAGE: usize = 200;

/// A message in a session of the lab's Devin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevinMessage {
    /// Its id.
    pub event_id: String,
    /// `devin` or `user`.
    pub source: String,
    /// Its text.
    pub message: String,
}

/// A session of the lab's Devin, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct DevinSession {
    /// Its id.
    pub session_id: String,
    /// The organisation.
    pub organization: String,
    /// The credential that made it.
    pub account: String,
    /// Its status.
    pub status: String,
    /// The status' detail.
    pub detail: Option<String>,
    /// What it has cost.
    pub acus: f64,
    /// How many times it has been asked for.
    pub polls: usize,
    /// All that was said, the first prompt included.
    pub messages: Vec<DevinMessage>,
}

#[derive(Debug)]
struct Running {
    seen: DevinSession,
    steps: VecDeque<DevinStep>,
    polls_since: u32,
    since: Instant,
    /// Counts what has happened: the time of the API's documents.
    moments: u64,
}

#[derive(Debug, Default)]
struct All {
    turns: Vec<DevinTurn>,
    used: Vec<u32>,
    page: Option<usize>,
    made: u64,
    sessions: BTreeMap<String, Running>,
}

/// Every session of the lab.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<All>);

/// Why a call was refused: the status, and the detail.
pub(super) type Refusal = (u16, Value);

/// Whose session it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) organization: &'a str,
    pub(super) account: &'a str,
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turns of a new script. Sessions stay.
    pub(crate) fn set_script(&self, turns: &[DevinTurn], page: Option<usize>) {
        let mut all = self.all();
        (all.turns, all.used, all.page) = (turns.to_vec(), vec![0; turns.len()], page);
    }

    /// All sessions, in the order of their making.
    pub(crate) fn list(&self) -> Vec<DevinSession> {
        self.all().sessions.values().map(|running| running.seen.clone()).collect()
    }

    /// The same as a document for programs that run the lab as a process.
    pub(crate) fn transcript(&self) -> Value {
        let shown = |session: DevinSession| {
            let said: Vec<Value> = session
                .messages
                .iter()
                .map(|said| json!({"event_id": said.event_id, "source": said.source, "message": said.message}))
                .collect();
            json!({
                "session_id": session.session_id, "organization": session.organization, "account": session.account,
                "status": session.status, "status_detail": session.detail, "acus": session.acus, "messages": said,
            })
        };
        self.list().into_iter().map(shown).collect()
    }

    pub(super) fn create(&self, owner: Owner<'_>, prompt: &str) -> Result<Value, Refusal> {
        let mut all = self.all();
        if all.sessions.len() >= MAX_SESSIONS {
            return Err((429, json!("too many sessions")));
        }
        all.made += 1;
        let session_id = format!("devin-lab{:06}", all.made);
        let seen = DevinSession {
            session_id: session_id.clone(),
            organization: owner.organization.to_owned(),
            account: owner.account.to_owned(),
            status: "new".to_owned(),
            detail: None,
            acus: 0.0,
            polls: 0,
            messages: Vec::new(),
        };
        let (steps, since) = (all.steps_for(prompt), Instant::now());
        let mut running = Running { seen, steps, polls_since: 0, since, moments: 0 };
        running.say("user", prompt);
        let shown = running.shown();
        all.sessions.insert(session_id, running);
        Ok(shown)
    }

    pub(super) fn say(&self, owner: Owner<'_>, id: &str, message: &str) -> Result<Value, Refusal> {
        let mut all = self.all();
        let steps = match all.of(owner, id)?.seen.status.as_str() {
            status @ ("exit" | "error") => return Err((400, json!(format!("The session has ended ({status}).")))),
            _ => all.steps_for(message),
        };
        let running = all.of(owner, id)?;
        if running.seen.status == "suspended" {
            (running.seen.status, running.seen.detail) = ("resuming".to_owned(), None);
        }
        (running.steps, running.polls_since, running.since) = (steps, 0, Instant::now());
        running.say("user", message);
        Ok(running.shown())
    }

    /// The session as it stands, after what was due has happened.
    pub(super) fn session(&self, owner: Owner<'_>, id: &str, gates: &Gates) -> Result<Value, Refusal> {
        let mut all = self.all();
        let running = all.of(owner, id)?;
        running.seen.polls += 1;
        running.polls_since = running.polls_since.saturating_add(1);
        running.go_on(gates);
        Ok(running.shown())
    }

    pub(super) fn messages(
        &self,
        owner: Owner<'_>,
        id: &str,
        after: Option<&str>,
        first: usize,
    ) -> Result<Value, Refusal> {
        let mut all = self.all();
        let most = all.page.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let said = &all.of(owner, id)?.seen.messages;
        let from = match after {
            None => 0,
            Some(cursor) => match cursor.strip_prefix("after ").and_then(|number| number.parse().ok()) {
                Some(from) if from <= said.len() => from,
                Some(_) | None => return Err((422, json!("no such cursor"))),
            },
        };
        let until = said.len().min(from + first.min(most));
        let items = said[from..until].iter().zip(from..).map(|(said, at)| {
            json!({
                "event_id": said.event_id, "source": said.source, "message": said.message, "created_at": 1_700_000_000 + at,
            })
        });
        let more = until < said.len();
        Ok(json!({
            "items": items.collect::<Vec<Value>>(),
            "end_cursor": more.then(|| format!("after {until}")),
            "has_next_page": more,
            "total": said.len(),
        }))
    }

    pub(super) fn page(&self, owner: Owner<'_>) -> Value {
        let all = self.all();
        let own = all.sessions.values().filter(|running| running.is_of(owner));
        json!({"items": own.map(Running::shown).collect::<Vec<Value>>(), "end_cursor": null, "has_next_page": false})
    }
}

impl All {
    fn of(&mut self, owner: Owner<'_>, id: &str) -> Result<&mut Running, Refusal> {
        let found = self.sessions.get_mut(id).filter(|running| running.is_of(owner));
        found.ok_or_else(|| (404, json!("Session not found")))
    }

    fn steps_for(&mut self, said: &str) -> VecDeque<DevinStep> {
        for (turn, used) in self.turns.iter().zip(&mut self.used) {
            let fits = turn.contains.as_deref().is_none_or(|text| said.contains(text));
            if fits && turn.times.is_none_or(|times| *used < times) {
                *used += 1;
                return turn.steps.clone().into();
            }
        }
        DevinStep::usual(said).into()
    }
}

impl Running {
    fn is_of(&self, owner: Owner<'_>) -> bool {
        self.seen.organization == owner.organization && self.seen.account == owner.account
    }

    fn say(&mut self, source: &str, message: &str) {
        self.moments += 1;
        let event_id = format!("event-{}-{}", self.seen.session_id, self.seen.messages.len());
        let (source, message) = (source.to_owned(), message.to_owned());
        self.seen.messages.push(DevinMessage { event_id, source, message });
    }

    fn go_on(&mut self, gates: &Gates) {
        while let Some(step) = self.steps.front() {
            let waited = self.since.elapsed() >= Duration::from_millis(step.delay_ms);
            let due = self.polls_since >= step.polls && waited;
            if !due || step.gate.as_deref().is_some_and(|gate| !gates.is_open_to(gate)) {
                return;
            }
            let Some(step) = self.steps.pop_front() else { return };
            self.moments += 1;
            (self.polls_since, self.since) = (0, Instant::now());
            if let Some(status) = step.status {
                (self.seen.status, self.seen.detail) = (status, None);
            }
            if let Some(detail) = step.detail {
                self.seen.detail = Some(detail);
            }
            if let Some(text) = &step.say {
                self.say("devin", text);
            }
            self.seen.acus += step.acus;
        }
    }

    fn shown(&self) -> Value {
        let seen = &self.seen;
        json!({
            "session_id": seen.session_id, "org_id": seen.organization, "status": seen.status,
            "status_detail": seen.detail, "created_at": 1_700_000_000, "updated_at": 1_700_000_000 + self.moments,
            "acus_consumed": seen.acus, "pull_requests": [], "tags": [], "title": null, "structured_output": null,
            "url": format!("https://app.devin.ai/sessions/{}", seen.session_id), "is_archived": false,
            "parent_session_id": null, "child_session_ids": null, "user_id": null,
        })
    }
}
