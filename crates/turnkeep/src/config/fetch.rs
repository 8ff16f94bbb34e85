//! `[fetch]`: what URLs in requests name, for upstreams that take bytes only.

use super::read::{Item, Known};
use std::time::Duration;
use turnkeep_upstream::{Allowed, FetchSpec};

/// `[fetch]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether anything is fetched.
    pub enabled: bool,
    /// Places beside public hosts on ports 80 and 443.
    pub allow: Vec<Allowed>,
    /// Bytes of one content, at most.
    pub max_bytes: u64,
    /// One fetch, its redirects included.
    pub timeout: Duration,
    /// Fetches at once, over all turns.
    pub at_once: u32,
}

impl Default for Fetch {
    fn default() -> Self {
        let FetchSpec { allow, max_bytes: _, timeout, at_once: _, ca_pem: _, loopback_only: _ } = FetchSpec::default();
        Fetch { enabled: true, allow, max_bytes: 20 << 20, timeout, at_once: 16 }
    }
}

impl Fetch {
    /// What the fetcher is made of; none where nothing is fetched.
    pub(crate) fn spec(&self, loopback_only: bool) -> Option<FetchSpec> {
        self.enabled.then(|| FetchSpec {
            allow: self.allow.clone(),
            max_bytes: usize::try_from(self.max_bytes).unwrap_or(usize::MAX),
            timeout: self.timeout,
            at_once: self.at_once as usize,
            ca_pem: None,
            loopback_only,
        })
    }
}

const FETCH: Known =
    Known { table: "[fetch]", keys: &["enabled", "allow", "max_bytes", "timeout", "at_once"], later: &[] };

pub(super) fn read(item: Item<'_>) -> Option<Fetch> {
    let fields = item.table(&FETCH)?;
    let mut fetch = Fetch::default();
    if let Some(enabled) = fields.get("enabled").and_then(|item| item.boolean()) {
        fetch.enabled = enabled;
    }
    let allow = fields.get("allow").map(|item| item.one_or_list()).unwrap_or_default();
    fetch.allow = allow.iter().filter_map(read_place).collect();
    if let Some(size) = fields.get("max_bytes").and_then(|item| item.size(1 << 10, 100 << 20)) {
        fetch.max_bytes = size;
    }
    let timeout = fields.get("timeout");
    if let Some(time) = timeout.and_then(|item| item.duration(Duration::from_millis(100), Duration::from_secs(300))) {
        fetch.timeout = time;
    }
    if let Some(number) = fields.get("at_once").and_then(|item| item.integer(1, 1_000)) {
        fetch.at_once = number;
    }
    Some(fetch)
}

fn read_place(item: &Item<'_>) -> Option<Allowed> {
    let text = item.filled_text()?;
    item.told(Allowed::parse(text))
}
