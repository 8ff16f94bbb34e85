//! `[[upstreams]]` and their accounts: where turns go.

mod account;
mod clocks;
mod kind;
mod process;
mod remote;
mod speaks;

pub use account::{Account, Credential, DEFAULT_MAX_IN_FLIGHT};
pub use clocks::Timeouts;
pub use kind::Kind;
pub use process::{EnvValue, Process};
pub use remote::Remote;
pub use speaks::{CascadeServer, Codec, Permissions, Rpc, RpcProtocol, Speaks, ToolActivity};

use super::read::{Item, Known, Names};
use turnkeep_engine::route::OnClientGone;

/// One endpoint of a provider.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// What it speaks, and where it is.
    pub speaks: Speaks,
    /// The clocks of a call.
    pub timeouts: Timeouts,
    /// What becomes of a call whose client leaves.
    pub on_client_gone: OnClientGone,
    /// In file order; more may come from the store.
    pub accounts: Vec<Account>,
}

const UPSTREAM: Known = Known {
    table: "[[upstreams]]",
    keys: &[
        "name",
        "kind",
        "base_url",
        "headers",
        "ca",
        "timeouts",
        "on_client_gone",
        "proxy",
        "accounts",
        "reuse",
        "protocol",
        "codec",
        "command",
        "memory",
        "permissions",
        "tool_activity",
        "quiet",
    ],
    later: &[],
};

/// Kinds whose driver is not here yet.
const LATER: &[Kind] = &[];

pub(super) fn read(item: Item<'_>, plain: bool, names: &mut Names) -> Option<Upstream> {
    let fields = item.table(&UPSTREAM)?;
    let name = fields.require("name", r#"name = "openai""#).and_then(|item| item.name(names));
    let kind = fields.require("kind", r#"kind = "openai" (or "openai-responses", "anthropic", "gemini", …)"#);
    let kind = kind.and_then(|item| {
        let here = Kind::ALL.iter().filter(|kind| !LATER.contains(kind)).map(|kind| (kind.name(), *kind));
        item.word(&here.collect::<Vec<_>>(), &LATER.iter().map(|kind| kind.name()).collect::<Vec<_>>())
    });
    let speaks = match kind {
        Some(kind) => speaks::read(&fields, kind, name.as_deref().unwrap_or_default(), plain),
        None => {
            // What any kind with an address is told, as most have one.
            if fields.get("command").is_none() {
                remote::read(&fields, Kind::Connect, plain, None);
            }
            None
        }
    };
    let timeouts = match fields.get("timeouts") {
        Some(item) => clocks::read_timeouts(&item, kind),
        None => kind.map(Timeouts::of).unwrap_or_default(),
    };
    let on_client_gone = match fields.get("on_client_gone") {
        Some(item) => clocks::read_on_client_gone(&item),
        None => Some(OnClientGone::Cancel),
    };
    let mut taken = Names::new();
    let accounts = fields.get("accounts").map(|item| item.list_of_tables()).unwrap_or_default();
    let may_start = kind.is_none_or(|kind| kind == Kind::Cascade) && fields.get("command").is_some();
    let started = kind == Some(Kind::Acp) || may_start;
    if let (true, Some(name)) = (started, name.as_deref().filter(|name| name.starts_with('.'))) {
        // Its folder would be hidden, or another's.
        let message = format!("{name:?} begins with a dot, and a folder is named by it; give it another name");
        fields.get("name").and_then(|item| item.fail::<()>(message));
    }
    let of = account::Of { upstream: name.as_deref().unwrap_or_default(), kind, started };
    let accounts: Vec<Account> =
        accounts.into_iter().filter_map(|item| account::read(item, plain, &of, &mut taken)).collect();
    Some(Upstream { name: name?, speaks: speaks?, timeouts, on_client_gone: on_client_gone?, accounts })
}
