//! The file that `turnkeep init` writes: short, commented, and valid as it stands.

use super::upstream::Kind;
use std::fmt::Write;

/// A provider that `init` knows how to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The upstream's name.
    pub name: &'static str,
    /// The protocol it speaks.
    pub kind: Kind,
    /// What its SDK takes.
    pub base_url: &'static str,
    /// The environment variable its SDK reads.
    pub variable: &'static str,
}

/// The known providers, in the order they are written.
pub const PROVIDERS: &[Provider] = &[
    provider("openai", Kind::Openai, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    provider("anthropic", Kind::Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    provider("gemini", Kind::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    provider("openrouter", Kind::Openai, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    provider("groq", Kind::Openai, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    provider("deepseek", Kind::Openai, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    provider("mistral", Kind::Openai, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
];

const fn provider(name: &'static str, kind: Kind, base_url: &'static str, variable: &'static str) -> Provider {
    Provider { name, kind, base_url, variable }
}

/// The providers whose variable is set and not empty.
pub fn find(is_set: impl Fn(&str) -> bool) -> Vec<Provider> {
    PROVIDERS.iter().filter(|provider| is_set(provider.variable)).copied().collect()
}

/// A configuration for these providers; for none, one with the upstreams commented out.
pub fn template(found: &[Provider]) -> String {
    let mut text = String::from(HEAD);
    for (at, provider) in found.iter().enumerate() {
        write_upstream(&mut text, provider, if at == 0 { CLIENT_GONE } else { "" }, "");
        if at == 0 {
            text.push_str(SECOND_ACCOUNT);
        }
    }
    if found.is_empty() {
        text.push_str("# No provider's usual environment variable was set. Set one, and take the marks away here.\n\n");
        for provider in PROVIDERS.iter().take(2) {
            write_upstream(&mut text, provider, "", "# ");
        }
    }
    text.push_str(AGENTS);
    write_models(&mut text, found);
    text.push_str(TAIL);
    text
}

/// `more` stands below the upstream's own keys; `mark` before each line but those of `more`.
fn write_upstream(text: &mut String, provider: &Provider, more: &str, mark: &str) {
    let Provider { name, kind, base_url, variable } = provider;
    let kind = kind.name();
    let upstream = [
        "[[upstreams]]".to_owned(),
        format!("name = \"{name}\""),
        format!("kind = \"{kind}\""),
        format!("base_url = \"{base_url}\""),
    ];
    let account = [
        "[[upstreams.accounts]]".to_owned(),
        "name = \"main\"".to_owned(),
        format!("secret = {{ env = \"{variable}\" }}"),
        match *name {
            // So that a turn goes only to the provider whose model it names.
            "openai" => r#"models = ["gpt-*", "chatgpt-*", "o1*", "o3*", "o4*"]"#.to_owned(),
            "anthropic" => r#"models = ["claude-*"]"#.to_owned(),
            "gemini" => r#"models = ["gemini-*", "gemma-*"]"#.to_owned(),
            _ => r#"# models = ["…"]  # patterns of the names it serves; all without"#.to_owned(),
        },
    ];
    // The vendor's newer API, with the same credential.
    let more = match *name {
        "openai" if mark.is_empty() => format!("{OPENAI_RESPONSES}{more}"),
        _ => more.to_owned(),
    };
    let more = more.as_str();
    let mut write = |lines: &[String], more: &str| {
        for line in lines {
            text.push_str(mark);
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(more);
    };
    write(&upstream, more);
    write(&account, "\n");
}

fn write_models(text: &mut String, found: &[Provider]) {
    text.push_str(
        "# Without a [[models]] entry any model name goes to the upstreams above, in their order. Entries name what\n\
         # clients may ask for, and where it goes; \"*\" stands for every other name.\n",
    );
    let upstream = found.first().map_or("openai", |provider| provider.name);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "# [[models]]\n# name = \"fast\"\n# aliases = [\"default\"]\n\
         # routes = [{{ upstream = \"{upstream}\", model = \"MODEL-NAME\" }}]\n\
         # Other entries that answer when no route can (the client is told), and that take too long requests.\n\
         # fallbacks = [\"large\"]\n# larger = [\"large\"]\n\
         # US dollars per million tokens.\n# price = {{ input = 3.0, output = 15.0 }}\n\
         # Complete answers may be used again for the same request of the same caller.\n# cache = {{ ttl = \"5m\" }}\n\
         # [[models]]\n# name = \"large\"\n\
         # routes = [{{ upstream = \"{upstream}\", model = \"LARGER-MODEL-NAME\" }}]\n\
         # [[models]]\n# name = \"*\"\n# routes = [{{ upstream = \"{upstream}\" }}]\n\n"
    );
}

/// Within the first upstream.
const CLIENT_GONE: &str = "\
# A client that leaves ends its call (\"cancel\"), or the call goes on so far and its answer is held for the same request.
# on_client_gone = { finish = { max_tokens = 2000, max_seconds = 30 } }
";

/// Within OpenAI's.
const OPENAI_RESPONSES: &str = "\
# The kind \"openai-responses\" asks the same models by OpenAI's Responses API.
";

/// Below the first upstream.
const SECOND_ACCOUNT: &str = "\
# More accounts of the same provider, each with what is its own. A command prints a secret that does not live long.
# [[upstreams.accounts]]
# name = \"second\"
# secret = { command = [\"print-token\", \"second\"], every = \"50m\" }
# max_in_flight = 16
# requests_per_minute = 600
# tokens_per_minute = 400000
# Accounts that share a limit at the provider, as those of one organisation do, have the same word here.
# limit_group = \"org-1\"

";

/// Below all upstreams.
const AGENTS: &str = "\
# Agents and servers that keep the conversation; docs/upstreams/ tells of each kind. An agent that is a program, by the
# Agent Client Protocol: one runs for each account, in a home of its own, where it has logged in.
# [[upstreams]]
# name = \"agent\"
# kind = \"acp\"
# command = [\"devin\", \"acp\"]
# permissions = \"deny\"
# [[upstreams.accounts]]
# name = \"me\"
# home = \"agents/me\"
# Devin's own sessions.
# [[upstreams]]
# name = \"devin\"
# kind = \"devin\"
# [[upstreams.accounts]]
# name = \"team\"
# organization = \"org-ID\"
# secret = { env = \"DEVIN_API_KEY\" }
# A server of your own: \"connect\" takes single turns, \"cascade\" keeps conversations.
# [[upstreams]]
# name = \"own\"
# kind = \"cascade\"
# command = [\"cascade-server\"]
# [[upstreams.accounts]]
# name = \"main\"

";

const HEAD: &str = "\
# Turnkeep's configuration. `turnkeep check` tells whether it is right, `turnkeep serve` runs it.
# Any key can be given by the environment instead: TURNKEEP_SERVER__LISTEN=0.0.0.0:4141
# Secrets stay out of this file: { env = \"NAME\" } or { file = \"path\" }.

[server]
listen = \"127.0.0.1:4141\"
# tls = { cert = \"cert.pem\", key = \"key.pem\" }
# max_body = \"32MiB\"
# shutdown_grace = \"30s\"
# When a reply counts as delivered: \"acked\", by the client's host, or \"flushed\", to our kernel.
# delivery = \"acked\"
# Proxies that name the user behind a shared key, and the header in which they do.
# trusted_proxies = [\"10.0.0.0/8\"]
# user_header = \"x-user\"

[store]
url = \"sqlite:turnkeep.db\"
# Encrypts secrets and kept answers at rest: 64 hex digits, or a passphrase of at least 16 characters.
# master_key = { env = \"TURNKEEP_MASTER_KEY\" }
# How long records are kept.
# keep = { turns = \"7d\", evidence = \"30d\", ledger = \"400d\", responses = \"30d\" }
# Go on, unrecorded, when the store cannot write.
# on_failure = \"serve\"

";

const TAIL: &str = "\
# Who may call. Without a key the gateway makes one at its first start and prints it once, on a loopback address only.
# [[keys]]
# name = \"laptop\"
# secret = { env = \"TURNKEEP_KEY\" }
# scopes = [\"chat\"]
# models = [\"*\"]
# labels = { team = \"infra\" }
# requests_per_minute = 60
# tokens_per_minute = 400000
# max_in_flight = 8
# In US dollars, which needs the models' prices, or { tokens = 1000000, per = \"week\" }.
# budget = { usd = 20.0, per = \"day\" }
# expires = 2030-12-31
# Many users stand behind it: nothing is kept of their answers unless a trusted proxy names the user.
# shared = true

# What image URLs name is fetched for upstreams that take bytes only (Gemini), from public hosts. More places:
# [fetch]
# allow = [\"files.example.com:8443\"]
# enabled = true

[telemetry]
log = \"info\"
log_format = \"pretty\"

# The numbers of blame, standing, admission and retries; docs/configuration.md tells all of them.
# [tuning]
# max_queue_wait = \"30s\"
# heartbeat = \"15s\"
";
