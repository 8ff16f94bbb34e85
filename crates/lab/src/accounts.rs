//! The accounts of this upstream, as the provider keeps them: what state each is in, and what it has used.
//!
//! An account is a credential as it is sent. One that was never spoken of is valid. A state can be changed while the lab
//! runs; what it refuses is said in the words of the path's dialect. Which rule a request gets is not decided here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use crate::answer::Usage;
use crate::ask::Dialect;
use crate::frame::Refused;
use crate::script::ErrorSpec;

/// How many accounts are counted one by one; requests of further ones are only in the totals.
pub const MAX_ACCOUNTS: usize = 10_000;

/// What the provider thinks of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountState {
    /// It is served.
    #[default]
    Valid,
    /// The credential is not known: 401.
    Revoked,
    /// Its money is used up: 429 in Chat, 400 "credit balance is too low" in Messages.
    Quota,
    /// The provider has closed it, and says so by name: 401 in Chat, 403 in Messages.
    Suspended,
    /// It sends too much: 429 with `retry-after`.
    RateLimited,
    /// It may not use the model: 403 in Chat, 403 in Messages.
    NotEntitled,
}

/// An account of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSpec {
    /// The credential as sent (the bearer token or `x-api-key`), exactly.
    pub secret: String,
    /// Its state when the script begins.
    #[serde(default)]
    pub state: AccountState,
    /// Seconds for the `retry-after` of `rate_limited` and `quota`; `rate_limited` says 1 without it, `quota` nothing.
    pub retry_after: Option<u64>,
}

/// What an account has sent and got so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountCounts {
    /// Requests read, of any kind.
    pub requests: usize,
    /// Replies with a status of 400 or more.
    pub refused: usize,
    /// Turns whose whole reply left, as the dialect ends it.
    pub completed: usize,
    /// Requests being answered now.
    pub in_flight: usize,
    /// The most that were ever answered at once.
    pub most_in_flight: usize,
    /// Input tokens of the completed turns, those of a cache included.
    pub input_tokens: u64,
    /// Output tokens of the completed turns, reasoning included.
    pub output_tokens: u64,
}

#[derive(Debug, Default)]
struct Account {
    state: AccountState,
    retry_after: Option<u64>,
    counts: AccountCounts,
}

/// One request of an account, for as long as it is being answered.
pub(crate) struct Visit {
    accounts: Arc<Accounts>,
    secret: String,
    usage: Option<Usage>,
    completed: bool,
}

impl Visit {
    /// What the reply will be.
    pub(crate) fn answered(&mut self, status: u16, usage: Option<Usage>) {
        self.usage = usage;
        if status >= 400 {
            self.accounts.count(&self.secret, |counts| counts.refused += 1);
        }
    }

    /// The reply's own end was sent. What the turn cost, of a reply that is one.
    pub(crate) fn complete(&mut self) -> Option<Usage> {
        self.completed = true;
        self.usage
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let usage = self.usage.filter(|_| self.completed);
        self.accounts.count(&self.secret, |counts| {
            counts.in_flight = counts.in_flight.saturating_sub(1);
            if let Some(usage) = usage {
                counts.completed += 1;
                counts.input_tokens += usage.prompt;
                counts.output_tokens += usage.completion;
            }
        });
    }
}

#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<BTreeMap<String, Account>>);

impl Accounts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an account into a state; its counts stay.
    pub(crate) fn set(&self, secret: &str, state: AccountState, retry_after: Option<u64>) {
        let mut all = self.all();
        let account = all.entry(secret.to_owned()).or_default();
        (account.state, account.retry_after) = (state, retry_after);
    }

    /// The states of a new script: accounts it does not name are valid again.
    pub(crate) fn reset(&self, specs: &[AccountSpec]) {
        for account in self.all().values_mut() {
            (account.state, account.retry_after) = (AccountState::Valid, None);
        }
        for spec in specs {
            self.set(&spec.secret, spec.state, spec.retry_after);
        }
    }

    pub(crate) fn counts(&self, secret: &str) -> AccountCounts {
        self.all().get(secret).map(|account| account.counts).unwrap_or_default()
    }

    pub(crate) fn every_count(&self) -> BTreeMap<String, AccountCounts> {
        self.all().iter().map(|(secret, account)| (secret.clone(), account.counts)).collect()
    }

    fn count(&self, secret: &str, change: impl FnOnce(&mut AccountCounts)) {
        let mut all = self.all();
        if let Some(account) = all.get_mut(secret) {
            change(&mut account.counts);
        } else if all.len() < MAX_ACCOUNTS {
            change(&mut all.entry(secret.to_owned()).or_default().counts);
        }
    }

    /// A request of this account has come.
    pub(crate) fn begin(self: &Arc<Self>, secret: &str) -> Visit {
        self.count(secret, |counts| {
            counts.requests += 1;
            counts.in_flight += 1;
            counts.most_in_flight = counts.most_in_flight.max(counts.in_flight);
        });
        Visit { accounts: Arc::clone(self), secret: secret.to_owned(), usage: None, completed: false }
    }

    /// An account's state, and how many seconds it is to wait where that is said.
    pub(crate) fn state(&self, secret: &str) -> (AccountState, Option<u64>) {
        self.all().get(secret).map(|account| (account.state, account.retry_after)).unwrap_or_default()
    }

    /// Refuses what the account's state does not allow.
    pub(crate) fn check(&self, dialect: Dialect, secret: &str, model: &str) -> Result<(), Refused> {
        let (state, wait) = match self.all().get(secret) {
            Some(account) => (account.state, account.retry_after),
            None => return Ok(()),
        };
        let (status, kind, code, message, wait) = match (state, dialect) {
            (AccountState::Valid, _) => return Ok(()),
            (AccountState::Revoked, Dialect::Chat | Dialect::Completions | Dialect::Responses) => {
                (401, Some("invalid_request_error"), Some("invalid_api_key"), "Incorrect API key provided.", None)
            }
            (AccountState::Revoked, Dialect::Gemini) => {
                (400, None, Some("api_key_invalid"), "API key not valid. Please pass a valid API key.", None)
            }
            (AccountState::Quota, Dialect::Gemini) => (429, None, None, "Your prepayment credits are depleted.", wait),
            (AccountState::Suspended, Dialect::Gemini) => {
                (403, None, Some("consumer_suspended"), "Permission denied: Consumer has been suspended.", None)
            }
            (AccountState::RateLimited, Dialect::Gemini) => {
                (429, None, None, "Resource has been exhausted (e.g. check quota).", Some(wait.unwrap_or(1)))
            }
            (AccountState::NotEntitled, Dialect::Gemini) => {
                let message = format!("You do not have access to model {model}.");
                return if model.is_empty() { Ok(()) } else { Err(Refused::new(403, message)) };
            }
            (AccountState::Revoked, Dialect::Messages) => (401, None, None, "invalid x-api-key", None),
            (AccountState::Quota, Dialect::Chat | Dialect::Completions | Dialect::Responses) => {
                let message = "You exceeded your current quota, please check your plan and billing details.";
                (429, Some("insufficient_quota"), Some("credit_balance_exhausted"), message, wait)
            }
            (AccountState::Quota, Dialect::Messages) => {
                (400, None, None, "Your credit balance is too low to access the Anthropic API.", wait)
            }
            (AccountState::Suspended, Dialect::Chat | Dialect::Completions | Dialect::Responses) => {
                let message = "The account associated with this API key has been deactivated.";
                (401, Some("invalid_request_error"), Some("account_deactivated"), message, None)
            }
            (AccountState::Suspended, Dialect::Messages) => {
                (403, None, Some("account_suspended"), "This organization has been disabled.", None)
            }
            (AccountState::RateLimited, Dialect::Chat | Dialect::Completions | Dialect::Responses) => {
                let message = "Rate limit reached for requests.";
                (429, Some("requests"), Some("rate_limit_exceeded"), message, Some(wait.unwrap_or(1)))
            }
            (AccountState::RateLimited, Dialect::Messages) => {
                (429, None, None, "This request would exceed your account's rate limit.", Some(wait.unwrap_or(1)))
            }
            (AccountState::NotEntitled, Dialect::Chat | Dialect::Completions | Dialect::Responses) => {
                let message = format!("Project does not have access to model `{model}`.");
                return if model.is_empty() { Ok(()) } else { Err(Refused::new(403, message).code("model_not_found")) };
            }
            (AccountState::NotEntitled, Dialect::Messages) => {
                let message = format!("Your account does not have access to model: {model}");
                return if model.is_empty() { Ok(()) } else { Err(Refused::new(403, message)) };
            }
        };
        let spec = ErrorSpec {
            status: Some(status),
            kind: kind.map(str::to_owned),
            code: code.map(str::to_owned),
            message: Some(message.to_owned()),
            retry_after: wait,
            ..ErrorSpec::default()
        };
        Err(Refused { status, spec: Box::new(spec) })
    }
}
