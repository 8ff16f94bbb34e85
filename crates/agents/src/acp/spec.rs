//! What an ACP upstream is built from.

use crate::supervise::{Launch, ProcessLimits};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_base::Secret;

/// What an agent may do when it asks for permission. What it does without asking is not ours to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// Nothing: each request is rejected. Callers share a process.
    #[default]
    Deny,
    /// To read and search (the protocol's kinds `read`, `search` and `think`). A process for each caller.
    AllowRead,
    /// Anything. A process for each caller.
    Allow,
}

impl Permissions {
    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Permissions::Deny => "deny",
            Permissions::AllowRead => "allow-read",
            Permissions::Allow => "allow",
        }
    }

    /// The one with this word.
    pub fn from_name(word: &str) -> Option<Self> {
        [Permissions::Deny, Permissions::AllowRead, Permissions::Allow].into_iter().find(|one| one.name() == word)
    }

    /// Callers must not share a process: what one makes the agent do, another could see.
    pub fn one_process_per_caller(self) -> bool {
        match self {
            Permissions::Deny => false,
            Permissions::AllowRead | Permissions::Allow => true,
        }
    }
}

/// What a client is shown of an agent's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolActivity {
    /// Nothing: it only keeps the clocks from running out.
    #[default]
    Drop,
    /// A line of reasoning for each step.
    Notes,
}

impl ToolActivity {
    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            ToolActivity::Drop => "drop",
            ToolActivity::Notes => "notes",
        }
    }

    /// The one with this word.
    pub fn from_name(word: &str) -> Option<Self> {
        [ToolActivity::Drop, ToolActivity::Notes].into_iter().find(|one| one.name() == word)
    }
}

/// One account: a login of the agent's own, which the operator made in its home.
#[derive(Clone, Default)]
pub struct AcpAccount {
    /// Its `HOME`, where the operator logged in. `None`: the agent has none.
    pub home: Option<PathBuf>,
    /// Variables that the agent gets beside `PATH`, `HOME`, `LANG` and `TMPDIR`. Nothing else reaches it.
    pub env: BTreeMap<String, Secret>,
    /// The method that is asked for (`authenticate`) when the agent wants a login. `None`: one of the agent's that takes a
    /// key from its environment, if it has one; others would want a person.
    pub auth_method: Option<String>,
}

impl AcpAccount {
    /// It is the same, with the same secrets.
    pub(super) fn is(&self, other: &AcpAccount) -> bool {
        let AcpAccount { home, env, auth_method } = self;
        let exposed = |(name, value): (&String, &Secret)| (name.clone(), value.expose().to_owned());
        let same_env = env.len() == other.env.len() && env.iter().map(exposed).eq(other.env.iter().map(exposed));
        same_env && *home == other.home && *auth_method == other.auth_method
    }
}

/// Without the environment's values.
impl fmt::Debug for AcpAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpAccount")
            .field("home", &self.home)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("auth_method", &self.auth_method)
            .finish()
    }
}

/// An ACP upstream.
#[derive(Clone, Debug)]
pub struct AcpSpec {
    /// The upstream's name.
    pub name: Arc<str>,
    /// The program, looked up in `PATH`, and its arguments, as `["gemini", "--acp"]`.
    pub command: Vec<String>,
    /// What the agent may do when it asks.
    pub permissions: Permissions,
    /// What the client is shown of its tools.
    pub tool_activity: ToolActivity,
    /// Its accounts, by name.
    pub accounts: BTreeMap<Arc<str>, AcpAccount>,
    /// Where the working directories of its conversations are, in a folder for each account; made if it is not there.
    pub state: PathBuf,
    /// The bounds of each process.
    pub limits: ProcessLimits,
    /// Processes of one account at once, where callers do not share one.
    pub processes: usize,
    /// How long the agent may take to answer anything but a prompt (a new session, a login).
    pub answer_within: Duration,
    /// How long it may take to confirm that a turn is cancelled; one that takes longer gets no new turns, and is ended with
    /// its last one.
    pub cancel_within: Duration,
    /// Who starts the processes.
    pub launch: Launch,
}

impl AcpSpec {
    /// A spec with the defaults: nothing is permitted, tools are not shown, no account yet, 8 processes an account, 60 s for
    /// an answer, 5 s for a cancellation.
    pub fn new(name: impl Into<Arc<str>>, command: Vec<String>, state: impl Into<PathBuf>) -> Self {
        AcpSpec {
            name: name.into(),
            command,
            permissions: Permissions::default(),
            tool_activity: ToolActivity::default(),
            accounts: BTreeMap::new(),
            state: state.into(),
            limits: ProcessLimits::default(),
            processes: 8,
            answer_within: Duration::from_secs(60),
            cancel_within: Duration::from_secs(5),
            launch: Launch::System,
        }
    }

    /// All but the accounts is the same.
    pub(super) fn is_of_agent(&self, other: &AcpSpec) -> bool {
        let AcpSpec {
            name,
            command,
            permissions,
            tool_activity,
            accounts: _,
            state,
            limits,
            processes,
            answer_within,
            cancel_within,
            // One gateway has one.
            launch: _,
        } = self;
        (name, command, permissions, tool_activity)
            == (&other.name, &other.command, &other.permissions, &other.tool_activity)
            && (state, limits, processes) == (&other.state, &other.limits, &other.processes)
            && (answer_within, cancel_within) == (&other.answer_within, &other.cancel_within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_the_same_only_with_the_same_values_of_its_environment() {
        let of = |name: &str, value: &str| AcpAccount {
            env: BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))]),
            ..AcpAccount::default()
        };
        assert!(of("A", "1").is(&of("A", "1")));
        for other in [of("A", "2"), of("B", "1"), AcpAccount::default()] {
            assert!(!of("A", "1").is(&other) && !other.is(&of("A", "1")), "{other:?}");
        }
        let elsewhere = AcpAccount { home: Some("/b".into()), ..AcpAccount::default() };
        let by = AcpAccount { auth_method: Some("by".into()), ..AcpAccount::default() };
        assert!(!elsewhere.is(&AcpAccount::default()) && !by.is(&AcpAccount::default()));
    }

    #[test]
    fn words_are_read_back() {
        for one in [Permissions::Deny, Permissions::AllowRead, Permissions::Allow] {
            assert_eq!(Permissions::from_name(one.name()), Some(one));
        }
        for one in [ToolActivity::Drop, ToolActivity::Notes] {
            assert_eq!(ToolActivity::from_name(one.name()), Some(one));
        }
        assert_eq!(Permissions::from_name("ask"), None);
    }
}
