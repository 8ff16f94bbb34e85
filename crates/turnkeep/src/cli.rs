//! The command line: what can be typed. What it does is in [`crate::commands`].

use crate::config::{MOST_IN_FLIGHT, Scope};
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_base::Dialect;
use turnkeep_policy::limits::Budget;

mod store;

pub use store::{BackupArgs, NewMasterKey, RekeyArgs, RestoreArgs, Since, UsageArgs};

/// Turnkeep, a self-hosted gateway for language models.
#[derive(Debug, Parser)]
#[command(name = "turnkeep", version, about, propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    Serve(ConfigFile),
    /// Try it without keys or config: a gateway over a lab upstream, one turn through each dialect
    Demo(DemoArgs),
    /// Write a commented config for the providers whose environment variables are set
    Init(InitArgs),
    /// Tell whether the config is right and its secrets are there
    Check(CheckArgs),
    /// Callers' keys in the store
    Keys {
        /// What to do with them.
        #[command(subcommand)]
        command: KeysTopic,
    },
    /// Upstream accounts in the store
    Accounts {
        /// What to do with them.
        #[command(subcommand)]
        command: AccountsCommand,
    },
    /// Tokens and cost, from the ledger
    Usage(UsageArgs),
    /// Copy the store into a file, while the gateway may run
    Backup(BackupArgs),
    /// Put a backup in the place of the store; the gateway must not run
    Restore(RestoreArgs),
    /// Print what the gateway knows
    Explain {
        /// Of what.
        #[command(subcommand)]
        topic: Topic,
    },
    /// Check a recorded answer, streamed or plain, against its dialect's rules
    Validate(ValidateArgs),
    /// Run an incident trace through this build's decisions, beside the recorded ones
    Replay(ReplayArgs),
    /// Run a scriptable upstream that speaks every dialect, to test against
    Lab(LabArgs),
}

/// `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The trace, as `explain turn ID --export` writes it; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// The dialect: chat, responses, messages or gemini
    #[arg(value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Dialect,
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        format!("expected one of {}", known.join(", "))
    })
}

/// Where the configuration is.
#[derive(Clone, Debug, Args)]
pub struct ConfigFile {
    /// The config file
    #[arg(long, value_name = "FILE", default_value = crate::config::DEFAULT_FILE)]
    pub config: PathBuf,
}

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Exit after the turns; non-zero if any failed
    #[arg(long)]
    pub once: bool,
}

/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to write.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What to check.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Also list each account's models at its upstream; costs no tokens
    #[arg(long)]
    pub probe: bool,
}

/// `keys …`, the master key's rotation too.
#[derive(Debug, Subcommand)]
pub enum KeysTopic {
    /// What is done with callers' keys.
    #[command(flatten)]
    Records(KeysCommand),
    /// Rotate the store's master key: seal everything anew; the gateway must not run
    Rekey(RekeyArgs),
}

/// `keys …`, callers' keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key and print its secret, which is shown this once
    Create(KeyCreateArgs),
    /// List the keys, without their secrets
    List(ListArgs),
    /// End a key; it can no longer be used
    Revoke(NameArgs),
    /// Give a key a new secret and print it
    Rotate(KeyRotateArgs),
}

/// `keys create`.
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// The key's name, unlike any other's
    pub name: String,
    /// What it opens: chat, metrics, viewer or admin; several allowed
    #[arg(long = "scope", value_name = "SCOPE", default_value = "chat", value_delimiter = ',', value_parser = scope)]
    pub scopes: Vec<Scope>,
    /// Patterns of the models it may use; several allowed
    #[arg(long = "model", value_name = "PATTERN", default_value = "*", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Turns it may begin in a minute; any number unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_minute: Option<u32>,
    /// Tokens it may use in a minute, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_minute: Option<u32>,
    /// Turns it may run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_IN_FLIGHT)))]
    pub max_in_flight: Option<u32>,
    /// What it may spend in a day, week or month (UTC), as in 20usd/day or 1000000tokens/week
    #[arg(long, value_name = "BUDGET", value_parser = crate::config::parse_budget)]
    pub budget: Option<Budget>,
    /// A word to add usage up by; several allowed
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Many users stand behind it
    #[arg(long)]
    pub shared: bool,
    /// When it ends by itself: a date (its first moment in UTC), or a moment as in 2026-12-31T18:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = crate::config::parse_expiry)]
    pub expires: Option<u64>,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A listing.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A record by its name.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Its name
    pub name: String,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `keys rotate`.
#[derive(Debug, Args)]
pub struct KeyRotateArgs {
    /// Which one.
    #[command(flatten)]
    pub key: NameArgs,
    /// How long the old secret is still accepted, as in 10m; it ends at once unless given
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub overlap: Option<Duration>,
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| "it is one of chat, metrics, viewer and admin".into())
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, as in team=infra")?;
    crate::config::check_label(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn duration(text: &str) -> Result<Duration, String> {
    crate::config::parse_duration(text).ok_or_else(|| "write a whole number and ms, s, m, h or d, as in 10m".into())
}

/// `accounts …`.
#[derive(Debug, Subcommand)]
pub enum AccountsCommand {
    /// Add an account to an upstream of the config
    Add(AccountAddArgs),
    /// List the accounts, without their secrets
    List(ListArgs),
    /// Let an account serve again
    Enable(AccountArgs),
    /// Keep an account from serving
    Disable(AccountArgs),
    /// Give an account another secret
    Rotate(AccountRotateArgs),
    /// Take an account out of the store; what runs on it may finish
    Remove(AccountArgs),
}

/// An account by its upstream and name.
#[derive(Debug, Args)]
pub struct AccountArgs {
    /// The upstream's name in the config
    pub upstream: String,
    /// The account's name
    pub name: String,
    /// Which store.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `accounts add`.
#[derive(Debug, Args)]
pub struct AccountAddArgs {
    /// Which one.
    #[command(flatten)]
    pub account: AccountArgs,
    /// Its secret.
    #[command(flatten)]
    pub secret: SecretSource,
    /// How many attempts run on it at once
    #[arg(long, value_name = "N", default_value_t = crate::config::DEFAULT_MAX_IN_FLIGHT,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_in_flight: u32,
    /// Requests it may get in a minute; without it the provider's own limit binds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_minute: Option<u32>,
    /// Tokens it may get in a minute, counted in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_minute: Option<u32>,
    /// The name of a limit at the provider that it shares with others
    #[arg(long, value_name = "NAME")]
    pub limit_group: Option<String>,
    /// Patterns of the upstream's models it serves; several allowed
    #[arg(long = "model", value_name = "PATTERN", default_value = "*", value_delimiter = ',')]
    pub models: Vec<String>,
}

/// `accounts rotate`.
#[derive(Debug, Args)]
pub struct AccountRotateArgs {
    /// Which one.
    #[command(flatten)]
    pub account: AccountArgs,
    /// Its new secret.
    #[command(flatten)]
    pub secret: SecretSource,
}

/// Where a secret comes from. Never from the command line: others on the machine can read that.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SecretSource {
    /// Keep a reference to this environment variable of the gateway
    #[arg(long, value_name = "NAME")]
    pub secret_env: Option<String>,
    /// Keep a reference to this file
    #[arg(long, value_name = "PATH")]
    pub secret_file: Option<PathBuf>,
    /// Read the secret from standard input and store it encrypted; needs [store] master_key
    #[arg(long)]
    pub secret_stdin: bool,
}

/// What `explain` explains.
#[derive(Debug, Subcommand)]
pub enum Topic {
    /// The blame table: every fault, what tells it, and what follows from it, as Markdown
    Faults,
    /// What becomes of each field of a request that is translated, as Markdown
    Translation,
    /// Why an account stands as it does: its status, its cooldowns and when they end, and the faults with their proofs
    Account(ExplainAccountArgs),
    /// What happened to a turn: its attempts, the faults with their proofs, and what they did
    Turn(ExplainTurnArgs),
}

/// `explain account`.
#[derive(Debug, Args)]
pub struct ExplainAccountArgs {
    /// The account: its name, or UPSTREAM/NAME where several upstreams have one of that name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How many faults to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Which config.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `explain turn`.
#[derive(Debug, Args)]
pub struct ExplainTurnArgs {
    /// The turn, as the header x-turnkeep-turn and the log name it
    #[arg(value_name = "ID")]
    pub id: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Write its incident trace into this file instead, for `turnkeep replay`; asks the running gateway
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub export: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, requires = "export")]
    pub force: bool,
    /// Where the gateway listens: http://HOST:PORT, https://HOST:PORT or unix:PATH; the config's first address unless given
    #[arg(long, value_name = "URL", requires = "export")]
    pub url: Option<String>,
    /// The environment variable with a key of the scope viewer; the config's first such key unless given
    #[arg(long, value_name = "NAME", requires = "export")]
    pub key_env: Option<String>,
    /// Which config.
    #[command(flatten)]
    pub file: ConfigFile,
}

/// `lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What to answer and where to break, in TOML
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Be an agent of the Agent Client Protocol over standard input and output instead
    #[arg(long, conflicts_with = "listen")]
    pub agent: bool,
    /// Where the agent writes down every line of both sides
    #[arg(long, value_name = "FILE", requires = "agent")]
    pub transcript: Option<PathBuf>,
}
