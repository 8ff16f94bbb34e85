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

pub(super) fn read(item: Item<'_>, plain: bool, names: &mut Names) -> Option<Upstream> {
    let fields = item.table(&UPSTREAM)?;
    let name = fields.require("name", r#"name = "openai""#).and_then(|item| item.name(names));
    let kind = fields.require("kind", r#"kind = "openai" (or "openai-responses", "anthropic", "gemini", …)"#);
    let kind = kind.and_then(|item| item.word(&Kind::ALL.map(|kind| (kind.name(), kind)), &[]));
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
    let may_start = kind.is_none_or(|kind| kind == Kind::Cascade) && fields.get("command").is_some();
    let started = kind == Some(Kind::Acp) || may_start;
    let timeouts = match fields.get("timeouts") {
        Some(item) => clocks::read_timeouts(&item, kind, started),
        None => kind.map(Timeouts::of).unwrap_or_default(),
    };
    let on_client_gone = match fields.get("on_client_gone") {
        Some(item) => clocks::read_on_client_gone(&item),
        None => Some(OnClientGone::Cancel),
    };
    let mut taken = Names::new();
    let accounts = fields.get("accounts").map(|item| item.list_of_tables()).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    /// The mistakes of an upstream with these lines whose account has these: the keys, and what is told of each.
    fn mistakes(lines: &str, account: &str) -> Vec<(String, String)> {
        let text = format!(
            "[[upstreams]]\nname = \"up\"\nkind = \"cascade\"\n{lines}\n[[upstreams.accounts]]\nname = \"me\"\n{account}\n"
        );
        let errors = Config::parse(&text, Path::new("turnkeep.toml"), []).expect_err("the text is wrong");
        errors.errors().iter().map(|error| (error.key.clone(), error.message.clone())).collect()
    }

    #[test]
    fn the_way_to_an_address_is_not_bounded_where_a_process_is_started() {
        let told = mistakes("command = [\"server\"]\ntimeouts = { connect = \"1s\" }", "");
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, "upstreams[0].timeouts.connect");
        assert!(told[0].1.contains("command"), "{told:?}");
    }

    #[test]
    fn what_the_gateway_tells_a_process_no_account_can_set() {
        for name in ["TURNKEEP_LISTEN", "TURNKEEP_SECRET", "HOME"] {
            let told = mistakes("command = [\"server\"]", &format!("env = {{ {name} = \"x\" }}"));
            assert_eq!(told.len(), 1, "{name}: {told:?}");
            assert!(told[0].0.ends_with(name) && told[0].1.contains(name), "{told:?}");
        }
    }
}
