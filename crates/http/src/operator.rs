//! What probes and operators read: readiness, the counters as JSON, the Prometheus text.

use crate::limits::Used;
use crate::metrics;
use crate::reply_body::ReplyBody;
use crate::respond;
use crate::service::Gateway;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use turnkeep_base::id::BadTurnId;
use turnkeep_base::{ClientError, FaultKind, TurnId};
use turnkeep_engine::tally::Tally;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Scope, Snapshot, Status, UpstreamSnapshot};
use turnkeep_policy::limits::{Amount, LeftOf, Spend};

/// How long the store may take to say whether it can write.
const HEALTH_WAIT: Duration = Duration::from_secs(2);

/// Whether turns can be served.
pub async fn ready(gateway: &Gateway) -> Response<ReplyBody> {
    let wrong = if gateway.is_draining() {
        Some("draining".to_owned())
    } else if !gateway.engine.admission.has_usable() {
        Some("no usable account".to_owned())
    } else {
        match tokio::time::timeout(HEALTH_WAIT, gateway.health.check()).await {
            Ok(Ok(())) => None,
            Ok(Err(what)) => Some(format!("the store cannot write: {what}")),
            Err(_) => Some("the store does not answer".to_owned()),
        }
    };
    match wrong {
        None => respond::text(StatusCode::OK, "ready\n"),
        Some(what) => respond::text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {what}\n")),
    }
}

/// The Prometheus text.
pub fn metrics(gateway: &Gateway) -> Response<ReplyBody> {
    match metrics::text(gateway) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            respond::with_type(StatusCode::OK, kind, text)
        }
        Err(_) => respond::text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n"),
    }
}

/// The incident trace of a turn that runs, or has ended not long ago.
///
/// # Errors
/// 400: this is no turn's id. 404: nothing is kept of it.
pub fn incident(gateway: &Gateway, turn: &str) -> Result<Response<ReplyBody>, ClientError> {
    let id: TurnId =
        turn.parse().map_err(|error: BadTurnId| ClientError::new(400, "bad_turn_id", error.to_string()))?;
    let incidents = &gateway.engine.incidents;
    let Some(trace) = incidents.trace(id) else {
        let words = format!(
            "no trace of {id} is kept: traces are in this gateway's memory, of the turns that run and the latest {} that \
             have ended, fewer where there is no room, since its start",
            incidents.bounds().turns
        );
        return Err(ClientError::new(404, "no_incident", words));
    };
    match serde_json::to_vec_pretty(&trace) {
        Ok(body) => Ok(respond::json(StatusCode::OK, body)),
        Err(error) => Err(ClientError::new(500, "internal", format!("the trace could not be written: {error}"))),
    }
}

/// Named counters, which `/metrics` carries too.
pub fn counters(tally: &Tally, gateway: &Gateway) -> Vec<(&'static str, u64)> {
    let out =
        |snapshot: &Snapshot| matches!(snapshot.standing.status(), Status::Errored { .. } | Status::Suspended { .. });
    let dead = gateway.engine.admission.snapshots().iter().filter(|snapshot| out(snapshot)).count() as u64;
    let config = gateway.health.config();
    let mut list = vec![
        ("failover_hops", tally.failover_hops.get()),
        ("quota_failover_hops", tally.quota_failover_hops.get()),
        ("failover_exhausted", tally.failover_exhausted.get()),
        ("pool_exhausted", tally.pool_exhausted.get()),
        ("transient_replays", tally.transient_replays.get()),
        ("corroborated", tally.corroborated.get()),
        ("paused_for_client", tally.paused_for_client.get()),
        ("fault_records_lost", gateway.health.faults_lost()),
        ("unrecorded_turns", tally.unrecorded.get()),
        ("echoed", gateway.engine.bonds.echoes.get()),
        ("ledger_lost", gateway.health.ledger_lost()),
        ("answers_lost", gateway.health.answers_lost()),
        ("fetches", tally.fetches.get()),
        ("fetches_failed", tally.fetches_failed.get()),
        ("fetched_bytes", tally.fetched_bytes.get()),
        ("config_reloads", config.reloads),
        ("config_refused", config.refused),
        ("dead_credentials", dead),
        ("transport_fault", tally.transport_faults()),
        ("delivered", tally.delivered.get()),
        ("undelivered", tally.undelivered.get()),
        ("client_gone_before_answer", tally.client_gone_before_answer.get()),
        ("client_gone_mid_answer", tally.client_gone_mid_answer.get()),
    ];
    list.extend(FaultKind::ALL.iter().map(|&kind| (kind.counter(), tally.faults(kind))));
    list
}

/// The counters of upstreams' conversations, by name.
pub(crate) fn of_conversations(gateway: &Gateway) -> [(&'static str, u64); 5] {
    let conversations = &gateway.engine.conversations;
    [
        ("hits", conversations.hits.get()),
        ("misses", conversations.misses.get()),
        ("restored", conversations.restored.get()),
        ("advanced", conversations.advanced.get()),
        ("dropped", conversations.dropped.get()),
    ]
}

/// The counters as JSON.
pub fn connect_metrics(gateway: &Gateway) -> Response<ReplyBody> {
    let tally = &gateway.engine.tally;
    // What is under way is read before what is counted: a turn that is told as ended is in the counts beside it.
    let open = tally.turns_open.load(Ordering::Acquire);
    let accounts = gateway.engine.admission.snapshots();
    let mut object = Map::new();
    let uptime = u64::try_from(gateway.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    object.insert("uptime_ms".into(), json!(uptime));
    object.insert("waiting".into(), json!(gateway.engine.admission.waiting()));
    for (name, count) in counters(tally, gateway) {
        object.insert(name.into(), json!(count));
    }
    let engine = &gateway.engine;
    let (bonds, kept, now) = (&engine.bonds, &engine.kept, engine.admission.present());
    let conversations = &engine.conversations;
    let ((bindings, histories), (cached, held)) = (bonds.sizes(now), kept.sizes(now));
    let mut of_upstreams = Map::new();
    of_upstreams.insert("size".into(), json!(conversations.size(now)));
    of_upstreams.extend(of_conversations(gateway).map(|(name, count)| (name.to_owned(), json!(count))));
    of_upstreams.insert("held".into(), json!(held));
    object.insert("conversations".into(), Value::Object(of_upstreams));
    object.insert("affinity".into(), json!({"size": bindings, "binds": bonds.binds.get(), "hits": bonds.hits.get()}));
    object.insert("continuity".into(), json!({"size": histories, "commits": bonds.commits.get()}));
    object.insert(
        "cache".into(),
        json!({"size": cached, "stores": kept.cache_stores.get(), "hits": kept.cache_hits.get()}),
    );
    object.insert(
        "held".into(),
        json!({"size": held, "stores": kept.holds.get(), "served": kept.held_served.get(), "joined": kept.joins.get()}),
    );
    object.insert("now".into(), json!({"turns_open": open, "recorded_bytes": engine.recorded_bytes()}));
    let (running, ended) = engine.incidents.len();
    object.insert("incidents".into(), json!({"running": running, "ended": ended, "bytes": engine.incidents.drawn()}));
    object.insert("accounts".into(), accounts.iter().map(|snapshot| account(gateway, snapshot)).collect());
    let upstreams = gateway.engine.admission.upstreams();
    object.insert("upstreams".into(), upstreams.iter().map(|snapshot| upstream(gateway, snapshot)).collect());
    object.insert("callers".into(), gateway.meters.used().iter().map(caller).collect());
    object.insert("config".into(), config(gateway));
    respond::json(StatusCode::OK, Value::Object(object).to_string())
}

/// A moment as RFC 3339.
fn shown_moment(gateway: &Gateway, at: Moment) -> String {
    let left = gateway.engine.admission.present().until(at);
    let wall = gateway.engine.clock.unix_ms();
    shown_time(wall.saturating_add(u64::try_from(left.as_millis()).unwrap_or(0)))
}

/// Unix milliseconds as RFC 3339.
fn shown_time(ms: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(ms / 1000).unwrap_or(i64::MAX)).ok();
    at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default()
}

fn caller(used: &Used) -> Value {
    let of = |left: &LeftOf| json!({"limit": left.limit, "left": left.left, "reset_ms": ms(left.reset)});
    let spend = |spend: &Spend| json!({"tokens": spend.tokens, "usd": spend.nano_usd as f64 / 1e9});
    let budget = used.left.budget.map(|(budget, left)| {
        let reset = ms(left.reset);
        match budget.amount {
            Amount::NanoUsd(_) => json!({
                "unit": "usd", "per": budget.per.name(), "limit": left.limit as f64 / 1e9,
                "left": left.left as f64 / 1e9, "reset_ms": reset,
            }),
            Amount::Tokens(_) => json!({
                "unit": "tokens", "per": budget.per.name(), "limit": left.limit, "left": left.left, "reset_ms": reset,
            }),
        }
    });
    json!({
        "name": &*used.name,
        "in_flight": used.in_flight,
        "max_in_flight": used.limits.max_in_flight,
        "requests_per_minute": used.left.requests.as_ref().map(of),
        "tokens_per_minute": used.left.tokens.as_ref().map(of),
        "budget": budget,
        "spent": spend(&used.spent),
        "reserved": spend(&used.reserved),
    })
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn config(gateway: &Gateway) -> Value {
    let state = gateway.health.config();
    json!({
        "loaded": shown_time(state.loaded_ms),
        "reloads": state.reloads,
        "refused": state.refused,
        "problem": state.problem,
        "needs_restart": state.needs_restart,
    })
}

fn upstream(gateway: &Gateway, snapshot: &UpstreamSnapshot) -> Value {
    let closed =
        snapshot.closed.iter().map(|(model, until)| json!({"model": &**model, "until": shown_moment(gateway, *until)}));
    json!({
        "name": &*snapshot.name,
        "egress": &*snapshot.egress,
        "faults_in_a_row": snapshot.faults_in_a_row,
        "ejections": snapshot.ejections,
        "ejected_until": snapshot.ejected_until.map(|until| shown_moment(gateway, until)),
        "closed": closed.collect::<Vec<_>>(),
    })
}

fn account(gateway: &Gateway, snapshot: &Snapshot) -> Value {
    let now = gateway.engine.admission.present();
    let cooldowns: Vec<Value> = snapshot
        .standing
        .cooldowns()
        .running(now)
        .map(|(scope, cooldown)| {
            let (word, model) = match scope {
                Scope::Account => ("account", None),
                Scope::Model(model) => ("model", Some(model.as_str())),
                Scope::Quota => ("quota", None),
                Scope::Rate => ("rate", None),
            };
            let mut entry =
                json!({"scope": word, "fault": cooldown.cause.name(), "until": shown_moment(gateway, cooldown.until)});
            if let (Some(model), Some(entry)) = (model, entry.as_object_mut()) {
                entry.insert("model".into(), json!(model));
            }
            entry
        })
        .collect();
    let retry_at = match snapshot.standing.status() {
        Status::Errored { retry_at, .. } => Some(shown_moment(gateway, *retry_at)),
        Status::Active | Status::Suspended { .. } | Status::Disabled => None,
    };
    json!({
        "id": snapshot.id.to_string(),
        "name": &*snapshot.id.account,
        "upstream": &*snapshot.id.upstream,
        "status": snapshot.standing.status().name(),
        "retry_at": retry_at,
        "episode": snapshot.standing.episode(),
        "budget_used": snapshot.standing.budget_used(now),
        "in_flight": snapshot.in_flight,
        "has_secret": snapshot.has_secret,
        "secret_problem": gateway.health.secret_problem(&snapshot.id),
        "cooldowns": cooldowns,
    })
}
