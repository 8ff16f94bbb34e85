//! The driver: a turn goes to an account's agent, in a new session or in the one that goes on.

use super::account::Account;
use super::answering::Answering;
use super::faults::{self, Asked, Failed};
use super::handle;
use super::mailbox::First;
use super::peer::CallFailed;
use super::process::Hold;
use super::prompt::{self, Prompt};
use super::rpc;
use super::sessions::{ModelChoice, Session};
use super::spec::{AcpAccount, AcpSpec};
use super::turn::{Place, Turn, Unbegun};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::turn;
use turnkeep_engine::ports::{Ask, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_policy::conversations::{Conversation, Handling, RefusalProof};

/// An ACP upstream. Its conversations are mutable ([`Acp::HANDLING`]), and a turn is not sent twice ([`Acp::REPLAY_SAFE`]).
/// Dropping it ends its processes, but for those that another one goes on with ([`Acp::after`]).
pub struct Acp {
    spec: Arc<AcpSpec>,
    accounts: BTreeMap<Arc<str>, Arc<Account>>,
    known: Arc<Known>,
}

/// What is known of the agent since one of its processes was ready.
#[derive(Debug, Default)]
struct Known {
    /// Whether its prompts may hold images.
    images: Mutex<Option<bool>>,
    /// Its sessions outlive its processes.
    resumes: Mutex<Option<bool>>,
}

impl fmt::Debug for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts: Vec<_> = self.accounts.keys().collect();
        f.debug_struct("Acp").field("spec", &self.spec).field("accounts", &accounts).finish_non_exhaustive()
    }
}

impl Acp {
    /// A session advances in place.
    pub const HANDLING: Handling = Handling::Mutable;
    /// An agent acts: a turn that it may have begun is not sent again.
    pub const REPLAY_SAFE: bool = false;

    /// A driver for this upstream. Nothing is started yet. To be made within a Tokio runtime, where its tasks run.
    pub fn new(spec: AcpSpec) -> Self {
        Acp::made(spec, None)
    }

    /// The driver for this upstream that comes after another one: the accounts that are the same, of the same agent, go on
    /// with their processes. The other one keeps them, too, until it is dropped; see [`Acp::let_go`].
    pub fn after(before: &Acp, spec: AcpSpec) -> Self {
        Acp::made(spec, Some(before))
    }

    fn made(mut spec: AcpSpec, before: Option<&Acp>) -> Self {
        // An account that goes on in a later driver keeps the spec, and is to keep no other account's secrets with it.
        let accounts = std::mem::take(&mut spec.accounts);
        let spec = Arc::new(spec);
        let account = |(name, account): (Arc<str>, AcpAccount)| {
            let kept = before.and_then(|before| before.accounts.get(&name)).filter(|kept| kept.is(&account, &spec));
            let made = match kept {
                Some(kept) => kept.clone(),
                None => Arc::new(Account::new(name.clone(), account, spec.clone())),
            };
            (name, made)
        };
        let accounts = accounts.into_iter().map(account).collect();
        let known = before.filter(|before| before.spec.is_of_agent(&spec)).map(|before| before.known.clone());
        Acp { accounts, known: known.unwrap_or_default(), spec }
    }

    /// It is in use no more, but for the turns that run: processes of accounts that `next` does not go on with end with their
    /// last turns, however long other turns last.
    pub fn let_go(&self, next: Option<&Acp>) {
        for (name, account) in &self.accounts {
            let kept = next.and_then(|next| next.accounts.get(name)).is_some_and(|kept| Arc::ptr_eq(kept, account));
            if !kept {
                account.let_go();
            }
        }
    }

    /// How many of its processes run and are ready.
    pub fn processes(&self) -> usize {
        self.accounts.values().map(|account| account.processes()).sum()
    }

    async fn begin(&self, ask: &Ask) -> Result<Box<dyn NativeAnswer>, SendFault> {
        let Some(account) = self.accounts.get(&ask.account.account) else {
            let evidence = Evidence::text(format!("{} has no account {}", self.spec.name, ask.account));
            return Err(unsent(Fault::new(FaultKind::NoCredential, Phase::Unsent, evidence)));
        };
        let hold = account.process(&ask.caller).await.map_err(|not_ready| unsent(not_ready.fault()))?;
        hold.peer().shared.cancellations().await;
        // One that has not confirmed a cancellation is not used any more.
        let hold = account.process(&ask.caller).await.map_err(|not_ready| unsent(not_ready.fault()))?;
        let agent = &hold.peer().agent;
        *self.known.images.lock() = Some(agent.images);
        let resumes = agent.loads || agent.resumes;
        *self.known.resumes.lock() = Some(resumes);
        account.directories.outlive_us(resumes);
        let prompt: Prompt<'_> = serde_json::from_slice(&ask.body).map_err(|error| {
            let evidence = Evidence::text(format!("a prompt of our own: {error}"));
            unsent(Fault::new(FaultKind::GatewayBug, Phase::Unsent, evidence))
        })?;
        if let Some(path) = prompt.image.as_ref().filter(|_| !agent.images) {
            let evidence = Evidence::text(format!("{path}: this agent takes no images"));
            return Err(unsent(Fault::new(FaultKind::RequestInvalid, Phase::Unsent, evidence)));
        }
        let unbegun = match &ask.resume {
            Some(conversation) => self.go_on(account, hold, conversation).await?,
            None => self.new_session(account, hold, &ask.model).await?,
        };
        let resumed = ask.resume.is_some();
        let place = unbegun.place();
        let begun = place.hold.peer().shared.prompt(&place.session, prompt.prompt).await;
        let begun = begun.map_err(|failed| unsent(faults::of(&failed, Asked::New, Phase::Unsent)))?;
        // From here on a dropped future cancels the turn.
        let mut turn = Turn::new(unbegun.begins(), begun, self.spec.cancel_within);
        match poll_fn(|cx| turn.mailbox.poll_first(cx)).await {
            First::Begun => Ok(Box::new(Answering::new(turn, resumed))),
            First::Failed(failed) => {
                let session = turn.place.session.clone();
                let asked = Asked::turn(&session, resumed);
                let refused = match &failed {
                    Failed::Error(error) => {
                        turn.over();
                        faults::refusal(faults::kind_of(error, asked))
                    }
                    Failed::Broken(_) | Failed::TooSlow => {
                        if turn.place.hold.peer().shared.broken().is_some() {
                            turn.place.hold.condemn();
                        }
                        None
                    }
                };
                let fault = faults::of(&failed, asked, Phase::MaybeSent);
                // What is gone on with after a refusal is the same session, if there still is one.
                if refused.is_none() || !resumed || fault.kind == FaultKind::ConversationGone {
                    turn.place.give_up();
                }
                Err(SendFault { fault, refused })
            }
        }
    }

    /// A new session in a directory of its own.
    async fn new_session(&self, account: &Account, hold: Hold, model: &str) -> Result<Unbegun, SendFault> {
        let directory = account.directories.fresh().map_err(|not_ready| unsent(not_ready.fault()))?;
        let path = directory.path();
        let session = self.ask_for_session(account, &hold, "session/new", in_directory(&path), Asked::New).await?;
        let Some(id) = session.id.as_deref().filter(|id| !id.is_empty()) else {
            let evidence = Evidence::text("the answer to session/new has no sessionId");
            return Err(unsent(Fault::new(FaultKind::MalformedResponse, Phase::Unsent, evidence)));
        };
        let id: Arc<str> = id.into();
        let directories = account.directories.clone();
        let unbegun = Unbegun::fresh(Place { hold, directories, directory: directory.keep(), session: id });
        self.choose_model(unbegun.place(), &session, model).await?;
        Ok(unbegun)
    }

    /// The session that goes on: in its process as it stands, or in another one that takes it up.
    async fn go_on(&self, account: &Account, hold: Hold, conversation: &Conversation) -> Result<Unbegun, SendFault> {
        let gone = |why: &str| {
            let fault = Fault::new(FaultKind::ConversationGone, Phase::Unsent, Evidence::text(why));
            SendFault { fault, refused: None }
        };
        let Some(handle) = handle::read(&conversation.handle) else { return Err(gone("not a handle of this kind")) };
        let directory = handle.directory.to_owned();
        let session: Arc<str> = handle.session.into();
        account.directories.touch(&directory);
        if conversation.instance != Some(hold.instance()) {
            let agent = &hold.peer().agent;
            let method = match (agent.resumes, agent.loads) {
                (true, _) => "session/resume",
                (false, true) => "session/load",
                (false, false) => return Err(gone("the process that kept it has ended")),
            };
            let path = account.directories.path(&directory);
            crate::supervise::private_directory(&path)
                .map_err(|error| gone(&format!("its working directory {}: {error}", path.display())))?;
            let mut params = in_directory(&path);
            params["sessionId"] = json!(&*session);
            if let Err(failed) = self.ask_for_session(account, &hold, method, params, Asked::TakenUp).await {
                // What else fails says nothing of the session, which may well be taken up later.
                if !matches!(failed.fault.kind, FaultKind::ConversationGone | FaultKind::RequestInvalid) {
                    return Err(failed);
                }
                account.directories.remove(&directory);
                return Err(gone(&format!("{method}: {}", failed.fault)));
            }
        }
        Ok(Unbegun::goes_on(Place { hold, directories: account.directories.clone(), directory, session }))
    }

    /// Asks for a session; an agent that wants a login first gets it, and is asked once more.
    async fn ask_for_session(
        &self,
        account: &Account,
        hold: &Hold,
        method: &'static str,
        params: serde_json::Value,
        asked: Asked<'_>,
    ) -> Result<Session, SendFault> {
        let ask = || hold.peer().shared.call(method, &params, self.spec.answer_within);
        let session = match ask().await {
            Err(CallFailed::Failed(Failed::Error(error))) if faults::wants_login(&error, asked) => {
                self.log_in(account, hold, &error.message).await?;
                ask().await
            }
            other => other,
        };
        session.map_err(|failed| self.not_called(hold, &failed, asked))
    }

    async fn log_in(&self, account: &Account, hold: &Hold, asked: &str) -> Result<(), SendFault> {
        let offered = &hold.peer().agent.auth_methods;
        let by_key = || offered.iter().find(|method| method.by_key).map(|method| method.id.as_str());
        let Some(method) = account.auth_method().or_else(by_key) else {
            let ids: Vec<&str> = offered.iter().map(|method| method.id.as_str()).collect();
            let text = format!(
                "the agent wants a login: {asked}. Log in with the account's HOME, or name one of its methods: {}",
                ids.join(", ")
            );
            return Err(rejected(&text));
        };
        let params = json!({"methodId": method});
        let answer =
            hold.peer().shared.call::<serde_json::Value>("authenticate", params, self.spec.answer_within).await;
        match answer {
            Ok(_) => Ok(()),
            Err(CallFailed::Failed(Failed::Error(error))) => {
                Err(rejected(&format!("the agent refuses the login by {method}: {}", error.message)))
            }
            Err(failed) => Err(self.not_called(hold, &failed, Asked::New)),
        }
    }

    async fn choose_model(&self, place: &Place, session: &Session, model: &str) -> Result<(), SendFault> {
        let Some(choice) = session.choice_of(model) else { return Ok(()) };
        let (hold, id) = (&place.hold, &*place.session);
        let (method, params) = match choice {
            ModelChoice::Model => ("session/set_model", json!({"sessionId": id, "modelId": model})),
            ModelChoice::Option(option) => {
                let params = json!({"sessionId": id, "configId": option, "value": model});
                ("session/set_config_option", params)
            }
        };
        let answer = hold.peer().shared.call::<serde_json::Value>(method, params, self.spec.answer_within).await;
        match answer {
            Ok(_) => Ok(()),
            Err(failed) => Err(self.not_called(hold, &failed, Asked::New)),
        }
    }

    /// The fault of a call before the prompt: nothing of the turn has left.
    fn not_called(&self, hold: &Hold, failed: &CallFailed, asked: Asked<'_>) -> SendFault {
        // Others may be in turns of the same process: these end it only where nothing more can come from it.
        let give_up = || {
            if hold.peer().shared.broken().is_some() { hold.condemn() } else { hold.dismiss() }
        };
        match failed {
            CallFailed::Failed(failed) => {
                match failed {
                    Failed::Error(_) => {}
                    Failed::Broken(_) | Failed::TooSlow => give_up(),
                }
                unsent(faults::of(failed, asked, Phase::Unsent))
            }
            CallFailed::Late(method) => {
                give_up();
                let seconds = self.spec.answer_within.as_secs();
                let evidence = Evidence::text(format!("the agent did not answer {method} within {seconds} s"));
                unsent(Fault::new(FaultKind::UpstreamUnavailable, Phase::Unsent, evidence))
            }
        }
    }
}

/// Nothing of the turn has left.
fn unsent(fault: Fault) -> SendFault {
    SendFault { fault, refused: Some(RefusalProof::never_left()) }
}

fn rejected(text: &str) -> SendFault {
    let evidence = Evidence::text(text).with_code(rpc::AUTH_REQUIRED.to_string());
    unsent(Fault::new(FaultKind::CredentialRejected, Phase::Unsent, evidence))
}

fn in_directory(path: &Path) -> serde_json::Value {
    json!({"cwd": path, "mcpServers": []})
}

impl Native for Acp {
    fn write(&self, turn: &turn::Turn<'_>, how: Writing<'_>) -> Result<NativeWritten, Invalid> {
        prompt::write(turn, how, *self.known.images.lock())
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        Box::pin(async move { self.begin(&ask).await })
    }

    fn stands(&self, conversation: &Conversation) -> bool {
        let runs = |instance| self.accounts.values().any(|account| account.running(instance).is_some());
        // Before the agent has said whether it takes sessions up again it is asked, and may say that it is gone.
        self.known.resumes.lock().unwrap_or(true) || conversation.instance.is_some_and(runs)
    }

    fn forget(&self, account: &AccountId, conversation: Conversation) {
        let (Some(account), Some(handle)) = (self.accounts.get(&account.account), handle::read(&conversation.handle))
        else {
            return;
        };
        if let Some(hold) = conversation.instance.and_then(|instance| account.running(instance)) {
            // One whose last turn is being cancelled is closed with that.
            if hold.peer().shared.is_in_turn(handle.session) {
                return;
            }
            hold.peer().shared.close(handle.session);
        }
        account.directories.remove(handle.directory);
    }
}
