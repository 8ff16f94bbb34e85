//! What an earlier run has left for this one: what callers have spent and asked for, the answers that were kept, and
//! the conversations that upstreams keep.

use crate::commands::Failure;
use std::sync::Arc;
use turnkeep_http::Gateway;
use turnkeep_policy::limits::Spend;
use turnkeep_store::Store;

/// The window of the limits per minute.
const MINUTE_MS: u64 = 60_000;

/// Takes it up; the keys and their limits are known by now, and nobody is served yet.
pub(super) async fn take_up(gateway: &Arc<Gateway>, store: &dyn Store) -> Result<(), Failure> {
    let meters = gateway.meters();
    let since = u32::try_from(meters.counts_since()).unwrap_or(u32::MAX);
    for spent in store.spent(since).await.map_err(Failure::operation)? {
        let spend = Spend { tokens: spent.tokens, nano_usd: spent.nano_usd };
        meters.remember(&spent.caller, u64::from(spent.day), spend);
    }
    let minute_ago = gateway.engine().clock.unix_ms().saturating_sub(MINUTE_MS);
    for recent in store.recent(minute_ago).await.map_err(Failure::operation)? {
        meters.remember_rates(&recent.caller, recent.requests, recent.tokens);
    }
    gateway.engine().take_up_kept(store.kept_answers().await.map_err(Failure::operation)?);
    gateway.engine().take_up_conversations(store.kept_conversations().await.map_err(Failure::operation)?);
    Ok(())
}
