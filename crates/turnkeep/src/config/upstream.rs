//! `[[upstreams]]` and their accounts: where turns go.

use super::caller::some_patterns;
use super::listen::is_loopback;
use super::read::{Item, Known, Names};
use super::secret::{self, SecretRef};
use http::header::{HeaderName, HeaderValue};
use std::path::PathBuf;
use std::time::Duration;
use turnkeep_base::Secret;
use turnkeep_engine::route::OnClientGone;

/// One endpoint of a provider.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// The protocol it speaks.
    pub kind: Kind,
    /// What the vendor's SDK takes: with `/v1` for OpenAI kinds, without a version for Anthropic. No slash at its end.
    pub base_url: String,
    /// Sent with every call, beside the account's credential: valid names in lower case, and valid values.
    pub headers: Vec<(String, Secret)>,
    /// Roots trusted beside the system's, PEM.
    pub ca: Option<PathBuf>,
    /// The clocks of a call.
    pub timeouts: Timeouts,
    /// An `http`, `socks5` or `socks5h` URL; a secret, as it may hold a password.
    pub proxy: Option<Secret>,
    /// What becomes of a call whose client leaves.
    pub on_client_gone: OnClientGone,
    /// In file order; more may come from the store.
    pub accounts: Vec<Account>,
}

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// OpenAI Chat Completions.
    Openai,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [Kind::Openai, Kind::OpenaiResponses, Kind::Anthropic, Kind::Gemini];

    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Openai => "openai",
            Kind::OpenaiResponses => "openai-responses",
            Kind::Anthropic => "anthropic",
            Kind::Gemini => "gemini",
        }
    }
}

/// The clocks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, TCP and TLS together.
    pub connect: Duration,
    /// From the sent request to the first content.
    pub first_content: Duration,
    /// Between two events with content.
    pub between: Duration,
    /// A whole turn until its answer commits.
    pub total: Duration,
    /// A whole turn after that.
    pub max_turn: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            first_content: Duration::from_secs(120),
            between: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_turn: Duration::from_secs(3600),
        }
    }
}

/// A credential at an upstream, with its limits.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name, unlike any other of the upstream.
    pub name: String,
    /// Its credential. Without one it can serve only once the store gives it one.
    pub secret: Option<SecretRef>,
    /// How many attempts run on it at once, at least 1.
    pub max_in_flight: u32,
    /// Patterns of the upstream's model names it serves; `*` stands for any characters.
    pub models: Vec<String>,
    /// Accounts of the same group share a limit of the provider; one that names none is a group of its own.
    pub limit_group: Option<String>,
    /// How many attempts it may start a minute, at least 1; without: any number.
    pub requests_per_minute: Option<u32>,
    /// How many tokens, in and out, it may use a minute, at least 1; without: any number.
    pub tokens_per_minute: Option<u32>,
}

/// How many attempts run on an account at once when nothing else is said.
pub const DEFAULT_MAX_IN_FLIGHT: u32 = 16;

const UPSTREAM: Known = Known {
    table: "[[upstreams]]",
    keys: &["name", "kind", "base_url", "headers", "ca", "timeouts", "on_client_gone", "proxy", "accounts"],
    later: &["command", "permissions"],
};
const TIMEOUTS: Known =
    Known { table: "timeouts", keys: &["connect", "first_content", "between", "total", "max_turn"], later: &[] };
const ACCOUNT: Known = Known {
    table: "[[upstreams.accounts]]",
    keys: &["name", "secret", "max_in_flight", "requests_per_minute", "tokens_per_minute", "models", "limit_group"],
    later: &["home", "env", "organization"],
};
const LATER_KINDS: &[&str] = &["connect", "cascade", "acp", "devin"];

pub(super) fn read(item: Item<'_>, plain: bool, names: &mut Names) -> Option<Upstream> {
    let fields = item.table(&UPSTREAM)?;
    let name = fields.require("name", r#"name = "openai""#).and_then(|item| item.name(names));
    let kind = fields.require("kind", r#"kind = "openai" (or "openai-responses", "anthropic", "gemini")"#);
    let kind = kind.and_then(|item| item.word(&Kind::ALL.map(|kind| (kind.name(), kind)), LATER_KINDS));
    let base_url = fields.require("base_url", r#"base_url = "https://…", the one the vendor's SDK takes"#);
    let base_url = base_url.and_then(|item| read_base_url(&item, kind));
    let headers = fields.get("headers").map(|item| read_headers(&item)).unwrap_or_default();
    let ca = fields.get("ca").and_then(|item| item.path());
    let timeouts = fields.get("timeouts").map(|item| read_timeouts(&item)).unwrap_or_default();
    let proxy = fields.get("proxy").and_then(|item| read_proxy(&item, plain));
    let on_client_gone = match fields.get("on_client_gone") {
        Some(item) => read_on_client_gone(&item),
        None => Some(OnClientGone::Cancel),
    };
    let mut taken = Names::new();
    let accounts = fields.get("accounts").map(|item| item.list_of_tables()).unwrap_or_default();
    let accounts: Vec<Account> =
        accounts.into_iter().filter_map(|item| read_account(item, plain, &mut taken)).collect();
    Some(Upstream {
        name: name?,
        kind: kind?,
        base_url: base_url?,
        headers,
        ca,
        timeouts,
        proxy,
        on_client_gone: on_client_gone?,
        accounts,
    })
}

fn read_base_url(item: &Item<'_>, kind: Option<Kind>) -> Option<String> {
    let text = item.filled_text()?.trim_end_matches('/');
    let uri = text.parse::<http::Uri>().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri, uri.scheme_str()?, uri.authority()?)));
    let Some((uri, scheme, authority)) = parts else {
        // The text may hold a password, so it is not repeated.
        return item.fail("is not a whole URL; it starts with https:// or http:// and a host");
    };
    if authority.as_str().contains('@') {
        return item.fail("must not hold a user or password; the account's secret is the credential");
    }
    if uri.query().is_some() || text.contains('#') {
        return item.fail("must not hold a query or fragment; it ends with its path");
    }
    match scheme {
        "https" => {}
        "http" => {
            if !is_loopback(authority.host().trim_matches(['[', ']'])) {
                item.warn("plain http to another machine: prompts and credentials cross the network readable");
            }
        }
        other => return item.fail(format!("{other:?} is not a scheme it can use; write https:// or http://")),
    }
    match kind {
        Some(kind @ (Kind::Openai | Kind::OpenaiResponses)) if uri.path().trim_matches('/').is_empty() => {
            let kind = kind.name();
            item.warn(format!("has no path; for kind {kind:?} it usually ends with /v1, as the vendor's SDK takes it"));
        }
        Some(kind @ (Kind::Anthropic | Kind::Gemini))
            if uri.path().ends_with("/v1") || uri.path().ends_with("/v1beta") =>
        {
            let kind = kind.name();
            item.warn(format!(
                "ends with a version; for kind {kind:?} it stands without one, as the vendor's SDK takes it"
            ));
        }
        Some(Kind::Openai | Kind::OpenaiResponses | Kind::Anthropic | Kind::Gemini) | None => {}
    }
    Some(text.to_owned())
}

/// Headers that are the driver's or the account's to set.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "accept-encoding",
];

fn read_headers(item: &Item<'_>) -> Vec<(String, Secret)> {
    let read_one = |(key, item): (&str, Item<'_>)| {
        let Ok(name) = HeaderName::try_from(key) else { return item.fail(format!("{key:?} is not a header name")) };
        if OWN_HEADERS.contains(&name.as_str()) {
            return item.fail(format!(
                "the gateway sets {name:?} itself; remove it (a credential is an account's secret)",
                name = name.as_str()
            ));
        }
        let value = item.text()?;
        match HeaderValue::from_str(value) {
            Ok(_) => Some((name.as_str().to_owned(), Secret::new(value.to_owned()))),
            Err(_) => item.fail("is not a header value: it holds a line break or another control character"),
        }
    };
    item.free_table().unwrap_or_default().into_iter().filter_map(read_one).collect()
}

fn read_timeouts(item: &Item<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    let Some(fields) = item.table(&TIMEOUTS) else { return timeouts };
    let read_one = |key: &str, target: &mut Duration| {
        let least = Duration::from_millis(1);
        if let Some(time) = fields.get(key).and_then(|i| i.duration(least, Duration::from_secs(86_400))) {
            *target = time;
        }
    };
    read_one("connect", &mut timeouts.connect);
    read_one("first_content", &mut timeouts.first_content);
    read_one("between", &mut timeouts.between);
    read_one("total", &mut timeouts.total);
    read_one("max_turn", &mut timeouts.max_turn);
    timeouts
}

fn read_proxy(item: &Item<'_>, plain: bool) -> Option<Secret> {
    let shape = r#"it takes "http://HOST:PORT", "socks5://HOST:PORT" or "socks5h://HOST:PORT""#;
    let text = item.filled_text()?.trim_end_matches('/');
    let uri = text.parse::<http::Uri>().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
    let Some((scheme, authority)) = parts else {
        // The text may hold a password, so it is not repeated.
        return item.fail(format!("is not the URL of a proxy; {shape}"));
    };
    if !["http", "socks5", "socks5h"].contains(&scheme) {
        return item.fail(format!("{scheme:?} is not a kind of proxy; {shape}"));
    }
    let ends = uri.as_ref().is_some_and(|uri| matches!(uri.path(), "" | "/") && uri.query().is_none());
    if !ends || authority.port_u16() == Some(0) || authority.port().is_none() && authority.as_str().ends_with(':') {
        return item.fail(format!("a proxy's URL ends after its host and port; {shape}"));
    }
    if authority.as_str().contains('@') && !plain && item.variable().is_none() {
        return item.fail(
            "a password must not stand in this file; give the URL by an environment variable, or set \
             allow_plain_secrets = true at the top",
        );
    }
    Some(Secret::new(text.to_owned()))
}

const GONE: Known = Known { table: "on_client_gone", keys: &["finish"], later: &[] };
const FINISH: Known = Known { table: "finish", keys: &["max_tokens", "max_seconds"], later: &[] };

fn read_on_client_gone(item: &Item<'_>) -> Option<OnClientGone> {
    if !item.is_table() {
        let shape = "{ finish = { max_tokens = 2000, max_seconds = 30 } }";
        return match item.text()? {
            "cancel" => Some(OnClientGone::Cancel),
            "finish" => item.fail(format!("to finish needs bounds; write {shape}")),
            other => item.fail(format!("{other:?} is not known; it takes \"cancel\" or {shape}")),
        };
    }
    let fields = item.table(&GONE)?;
    let finish = fields.require("finish", "finish = { max_tokens = 2000, max_seconds = 30 }")?.table(&FINISH)?;
    let tokens = finish.require("max_tokens", "max_tokens = 2000").and_then(|item| item.integer(1, u32::MAX));
    let seconds = finish.require("max_seconds", "max_seconds = 30").and_then(|item| item.integer(1, 86_400));
    let max_time = Duration::from_secs(u64::from(seconds?));
    Some(OnClientGone::Finish { max_tokens: u64::from(tokens?), max_time })
}

fn read_account(item: Item<'_>, plain: bool, names: &mut Names) -> Option<Account> {
    let fields = item.table(&ACCOUNT)?;
    let name = fields.require("name", r#"name = "main""#).and_then(|item| item.name(names));
    let secret = match fields.get("secret") {
        Some(item) => Some(secret::read_of_account(&item, plain)?),
        None => {
            fields.item().warn("has no secret, so it serves nothing (no_credential); add one");
            None
        }
    };
    let max_in_flight = match fields.get("max_in_flight") {
        Some(item) => item.integer(1, 100_000)?,
        None => DEFAULT_MAX_IN_FLIGHT,
    };
    let models = match fields.get("models") {
        Some(item) => some_patterns(&item)?,
        None => vec!["*".to_owned()],
    };
    let per_minute = |key: &str| fields.get(key).map(|item| item.integer(1, u32::MAX));
    let limit_group = fields.get("limit_group").map(|item| item.free_name());
    let (requests, tokens) = (per_minute("requests_per_minute"), per_minute("tokens_per_minute"));
    Some(Account {
        name: name?,
        secret,
        max_in_flight,
        models,
        limit_group: whole(limit_group)?,
        requests_per_minute: whole(requests)?,
        tokens_per_minute: whole(tokens)?,
    })
}

/// A key that need not be there, and that is right where it is.
fn whole<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
        None => Some(None),
    }
}
