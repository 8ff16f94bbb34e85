//! Before an attempt: is the answer there already, or about to be? And where would the turn best go?

use super::{Drive, Waiting};
use crate::ending::idempotency_key_reused;
use crate::engine::TurnInput;
use crate::kept::{Found, Lead, LookUp};
use crate::machine::Event;
use crate::ports::{Again, AnsweredAgain};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use turnkeep_base::{AccountId, Fingerprint};
use turnkeep_dialect::identity::{self, History};
use turnkeep_dialect::recorded::{self, Recorded};
use turnkeep_dialect::reply::ReplyOptions;
use turnkeep_dialect::request::Operation;
use turnkeep_policy::accounts::AccountKey;

/// The client's headers that change what a request asks for.
const ASKING_HEADERS: [&str; 3] = ["anthropic-version", "anthropic-beta", "openai-beta"];
/// Routes whose bindings are looked at.
const BOUND_ROUTES: usize = 4;

/// How long a request waits for what becomes of its own answer, which is on its way to the client.
const ARRIVING_WAIT: Duration = Duration::from_millis(300);

/// The answer of a turn that is joined, when it has one.
async fn answer_of(mut lead: watch::Receiver<Lead>) -> Option<Arc<Recorded>> {
    let ended = lead.wait_for(|lead| !matches!(lead, Lead::Running)).await;
    match ended.as_deref() {
        Ok(Lead::Answered(recorded)) => Some(recorded.clone()),
        Ok(Lead::Running | Lead::Ended) | Err(_) => None,
    }
}

/// Answers of this turn may be kept, and kept ones given.
pub(super) fn keeps(input: &TurnInput) -> bool {
    input.caller.is_scoped() && input.request.operation == Operation::Generate
}

/// What is known of the request's place among others; each part is worked out once, when it is first wanted.
#[derive(Debug, Default)]
pub(super) struct Known {
    request: Option<Fingerprint>,
    bytes: Option<Fingerprint>,
    /// `Some(None)`: the request's history cannot be read.
    history: Option<Option<History>>,
    preferred: Option<Vec<AccountKey>>,
    /// The accounts that made the answers of the history, as far as they are known, the last one first.
    pub(super) owners: Vec<AccountId>,
}

/// An answer that was made before, ready to be written.
#[derive(Debug)]
pub(super) struct KeptReply {
    pub(super) pieces: Vec<bytes::Bytes>,
    pub(super) how: Again,
    pub(super) recorded: Arc<Recorded>,
    /// The turn's idempotency key remembers it already.
    pub(super) remembered: bool,
}

impl Drive {
    /// As [`keeps`].
    pub(super) fn keeps(&self) -> bool {
        keeps(&self.input)
    }

    /// The request's fingerprint, with the headers that change what it asks for. One that was filled in is known by what its
    /// client sent as well: two conversations may hold the same, and an answer belongs to one of them.
    pub(super) fn request_print(&mut self) -> Fingerprint {
        let (key, input) = (&self.engine.hash_key, &self.input);
        *self.known.request.get_or_insert_with(|| {
            let request = identity::request(key, &input.request);
            let mut parts = vec![&request.0[..], if input.beta { b"beta" } else { b"" }];
            if let Some(shown) = &input.terms.shown {
                parts.extend([&b"shown"[..], shown]);
            }
            for name in ASKING_HEADERS {
                let values = input.headers.get_all(name).iter();
                parts.extend(values.flat_map(|value| [name.as_bytes(), value.as_bytes()]));
            }
            identity::of_parts(key, "request", &parts)
        })
    }

    /// The request as an idempotency key stands for it: what the client sent, not what was filled in. What is stored for
    /// the caller may have changed since the key was first used.
    pub(super) fn named_print(&mut self) -> Fingerprint {
        match &self.input.terms.shown {
            Some(shown) => identity::of_parts(&self.engine.hash_key, "shown", &[shown]),
            None => self.request_print(),
        }
    }

    /// The fingerprint of the request's bytes as they came, and as they were filled in: cheaper than what they mean, and
    /// enough for a retry.
    pub(super) fn bytes_print(&mut self) -> Fingerprint {
        let (key, input) = (&self.engine.hash_key, &self.input);
        *self.known.bytes.get_or_insert_with(|| {
            let mut parts = vec![input.request.dialect.name().as_bytes(), &input.request.body];
            parts.extend(input.terms.shown.as_deref());
            identity::of_parts(key, "bytes", &parts)
        })
    }

    /// The request's history; `None` where it cannot be read.
    pub(super) fn history(&mut self) -> Option<&History> {
        let (key, request) = (&self.engine.hash_key, &self.input.request);
        let history = self.known.history.get_or_insert_with(|| {
            let turn = request.turn().ok()?;
            Some(identity::history(key, &turn))
        });
        history.as_ref()
    }

    /// Looks for an answer that is kept, or will be. A reply that this turn proves to have arrived is closed first.
    pub(super) fn look_up(&mut self) -> Option<Event> {
        if !self.keeps() {
            return Some(Event::NotKept);
        }
        if self.engine.bonds.awaits(&self.scope)
            && let Some(history) = self.history()
            && !history.answers.is_empty()
        {
            let (answers, engine) = (history.answers.clone(), self.engine.clone());
            let (caller, echo) = (self.scope.clone(), self.engine.echo.clone());
            self.waiting = Waiting::Echo(Box::pin(async move {
                engine.bonds.prove(&caller, &answers, |turn| echo.receipt(turn)).await;
            }));
            return None;
        }
        self.look_among_kept()
    }

    /// Looks for an answer; `None` while another turn that runs may have one.
    pub(super) fn look_among_kept(&mut self) -> Option<Event> {
        self.waiting = Waiting::Nothing;
        let terms = &self.input.terms;
        let (cache, bypass) = (terms.cache.is_some(), terms.bypass);
        if cache && !bypass {
            self.cache_word = "miss";
        }
        let idempotency = terms.idempotency.as_deref().map(|key| self.idempotency_print(key));
        let now = self.now();
        let first = !std::mem::replace(&mut self.waited_for_another, false);
        let wanted = cache || idempotency.is_some() || (!bypass && self.engine.kept.concerns(now, &self.scope));
        if !wanted {
            return self.run_unless_awaited(first && !bypass);
        }
        let request = self.request_print();
        let named = if idempotency.is_some() { self.named_print() } else { request };
        let look = LookUp { caller: &self.scope, request, named, idempotency, cache, bypass, first };
        // Of an earlier look; this one takes its own places.
        self.leading.clear();
        let (found, leading) = self.engine.kept.look_up(now, &look);
        self.leading = leading;
        match found {
            Found::Nothing => self.run_unless_awaited(first && !bypass),
            Found::Remembered(recorded) => Some(self.found(recorded, Again::Hit, true)),
            Found::Answer(recorded, how) => Some(self.found(recorded, how, false)),
            Found::Running(lead) => {
                self.waiting = Waiting::Lead(Box::pin(answer_of(lead)));
                None
            }
            Found::Reused => {
                self.uncarriable = Some(idempotency_key_reused());
                Some(Event::KeyReused)
            }
        }
    }

    /// Nothing is kept: the turn runs, unless the answer to these very bytes is on its way to the same caller. A client that
    /// asks again the moment it has reset its connection is faster than the news of the reset.
    fn run_unless_awaited(&mut self, may_wait: bool) -> Option<Event> {
        if !may_wait || !self.engine.kept.is_awaited(&self.scope) {
            return Some(Event::NotKept);
        }
        let bytes = self.bytes_print();
        let Some(lead) = self.engine.kept.awaited(&self.scope, bytes) else { return Some(Event::NotKept) };
        let verdict = tokio::time::timeout(ARRIVING_WAIT, answer_of(lead));
        self.waiting = Waiting::Lead(Box::pin(async move { verdict.await.ok().flatten() }));
        None
    }

    /// The turn that was joined has ended; without an answer this one looks again, and runs.
    pub(super) fn lead_ended(&mut self, recorded: Option<Arc<Recorded>>) -> Option<Event> {
        match recorded {
            Some(recorded) => Some(self.found(recorded, Again::Joined, false)),
            None => {
                self.waited_for_another = true;
                self.look_among_kept()
            }
        }
    }

    /// The fingerprint of an idempotency key.
    pub(super) fn idempotency_print(&self, key: &str) -> Fingerprint {
        identity::of_parts(&self.engine.hash_key, "idempotency", &[key.as_bytes()])
    }

    fn found(&mut self, recorded: Arc<Recorded>, how: Again, remembered: bool) -> Event {
        let options = ReplyOptions { upstream: self.input.request.dialect, ..self.reply_options() };
        match recorded::replay(&recorded, &options, self.input.request.stream) {
            Ok(pieces) => {
                let pieces = pieces.into_iter().map(|piece| piece.bytes).collect();
                self.kept_reply = Some(KeptReply { pieces, how, recorded, remembered });
                self.cache_word = how.name();
                self.note_again(how);
                Event::Kept
            }
            Err(fault) => {
                tracing::warn!(turn = %self.input.id, why = %fault.evidence.detail, "a kept answer cannot be given again");
                Event::NotKept
            }
        }
    }

    fn note_again(&self, how: Again) {
        let kept = &self.engine.kept;
        match how {
            Again::Hit => kept.cache_hits.add(),
            Again::Held => kept.held_served.add(),
            Again::Joined => kept.joins.add(),
        }
        let request = &self.input.request;
        self.engine.ledger.again(AnsweredAgain {
            turn: self.input.id,
            how,
            caller: self.input.caller.key().clone(),
            labels: self.input.terms.labels.clone(),
            model: request.model.as_str().into(),
            dialect: request.dialect,
            at_ms: self.engine.clock.unix_ms(),
        });
    }

    /// Whom the turn would best go to: the owner of its history, then those bound to what it asks.
    pub(super) fn preferred(&mut self) -> Vec<AccountKey> {
        if !self.keeps() || !self.engine.admission.has_choice() {
            return Vec::new();
        }
        if let Some(preferred) = &self.known.preferred {
            return preferred.clone();
        }
        let now = self.now();
        let Some(history) = self.history() else { return Vec::new() };
        let (asked, answers) = ((history.prefix, history.opening), history.answers.clone());
        let bonds = &self.engine.bonds;
        // The account of the last answer holds the whole history; earlier ones made parts of it.
        let owners: Vec<AccountId> =
            answers.iter().rev().filter_map(|&history| bonds.owner(now, &self.continuity_key(history))).collect();
        let mut accounts: Vec<_> = owners.first().cloned().into_iter().collect();
        for route in self.input.routes.iter().take(BOUND_ROUTES) {
            let key = self.affinity_key(asked, &route.upstream.name, &route.model);
            accounts.extend(bonds.bound(now, &key));
        }
        let preferred = self.engine.admission.keys_of(&accounts);
        self.known.owners = owners;
        self.known.preferred = Some(preferred.clone());
        preferred
    }

    /// The key of a history: the caller's own, as everything that is kept.
    pub(super) fn continuity_key(&self, history: Fingerprint) -> Fingerprint {
        identity::of_parts(&self.engine.hash_key, "continuity", &[self.scope.as_bytes(), &history.0])
    }

    /// The key of what is asked, at one upstream for one model. Where the client names no session, the conversation's
    /// opening stands for it: a system prompt alone, which many conversations share, would lead them all to one account.
    pub(super) fn affinity_key(&self, asked: (Fingerprint, Fingerprint), upstream: &str, model: &str) -> Fingerprint {
        let (prefix, opening) = asked;
        let session = self.input.terms.session.as_deref().map_or(&opening.0[..], str::as_bytes);
        let parts = [self.scope.as_bytes(), upstream.as_bytes(), model.as_bytes(), &prefix.0, session];
        identity::of_parts(&self.engine.hash_key, "affinity", &parts)
    }
}
