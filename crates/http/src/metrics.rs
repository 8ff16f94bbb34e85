//! The Prometheus text, encoded from the counters at each scrape.

use crate::operator::{counters, of_conversations};
use crate::service::Gateway;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use turnkeep_engine::tally::Durations;
use turnkeep_policy::accounts::Snapshot;

/// The text of one scrape.
pub fn text(gateway: &Gateway) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape::of(gateway)));
    let mut out = String::new();
    encode(&mut out, &registry)?;
    Ok(out)
}

/// The counters as they are at one moment.
#[derive(Debug)]
struct Scrape {
    plain: Vec<(String, u64)>,
    labelled: Vec<Family>,
    gauges: Vec<Family>,
    cost: f64,
    durations: Vec<(&'static str, &'static str, u64, f64, Vec<u64>)>,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    rows: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl Scrape {
    fn of(gateway: &Gateway) -> Self {
        let tally = &gateway.engine.tally;
        let plain = counters(tally, gateway).into_iter().map(|(name, count)| (format!("turnkeep_{name}"), count));
        let held_answers = ("held", gateway.engine.kept.holds.get());
        let conversations = of_conversations(gateway).into_iter().chain([held_answers]);
        let plain = plain.chain(conversations.map(|(name, count)| (format!("turnkeep_conversations_{name}"), count)));
        let turns = tally.turns().into_iter().map(|(labels, count)| {
            let row = vec![
                ("dialect", labels.dialect.name().to_owned()),
                ("upstream", labels.upstream),
                ("model", labels.model),
                ("outcome", labels.outcome.to_owned()),
                ("delivery", labels.delivery.to_owned()),
            ];
            (row, count)
        });
        let attempts = tally
            .attempts()
            .into_iter()
            .map(|((upstream, fault), count)| (vec![("upstream", upstream), ("fault", fault.to_owned())], count));
        let faults = tally.upstream_faults().into_iter().map(|((kind, origin, upstream), count)| {
            let row = vec![("fault", kind.name().to_owned()), ("origin", origin.to_owned()), ("upstream", upstream)];
            (row, count)
        });
        let tokens = tally.tokens().into_iter().map(|(kind, count)| (vec![("kind", kind.to_owned())], count));
        let deliveries = [("delivered", tally.delivered.get()), ("undelivered", tally.undelivered.get())];
        let deliveries = deliveries.into_iter().map(|(result, count)| (vec![("result", result.to_owned())], count));
        let ends = gateway.engine.conversations.ends.all();
        let ends = ends.map(|(handling, end, count)| {
            (vec![("handling", handling.name().to_owned()), ("end", end.name().to_owned())], count)
        });
        let snapshots = gateway.engine.admission.snapshots();
        let labelled = vec![
            family("turnkeep_conversation_leases", "Leases that have ended, by how", ends.collect()),
            family("turnkeep_turns", "Turns that have ended", turns.collect()),
            family("turnkeep_attempts", "Attempts that have ended, by fault", attempts.collect()),
            family("turnkeep_faults", "Faults, by origin and upstream", faults.collect()),
            family("turnkeep_tokens", "Tokens, by kind", tokens.collect()),
            family("turnkeep_delivery", "Completed turns, by whether the reply arrived", deliveries.collect()),
        ];
        let durations = [
            ("turnkeep_queue_seconds", "Time until a slot was taken", &tally.queue),
            ("turnkeep_first_content_seconds", "Time to the first content", &tally.first_content),
            ("turnkeep_turn_seconds", "Whole turns", &tally.turn),
            ("turnkeep_overhead_seconds", "Last byte in to first byte out, less the upstream", &tally.overhead),
        ];
        let durations = durations.into_iter().map(|(name, help, durations)| {
            let (count, sum, buckets) = durations.read();
            (name, help, count, sum, buckets)
        });
        Scrape {
            plain: plain.collect(),
            labelled,
            gauges: vec![
                family("turnkeep_account_status", "1 for the status an account has", statuses(&snapshots)),
                family("turnkeep_in_flight", "Attempts under way, by upstream", in_flight(&snapshots)),
                family(
                    "turnkeep_upstream_ejected",
                    "1 while an upstream is set aside for its faults",
                    ejected(gateway),
                ),
                family(
                    "turnkeep_conversations",
                    "Upstreams' conversations, by whether a turn holds them",
                    held(gateway),
                ),
                family("turnkeep_egress_closed", "Models closed by a burst of the gateway's address", closed(gateway)),
            ],
            // Billionths as a fraction: a sum of money for dashboards; the ledger has it exactly.
            cost: tally.cost_nano_usd.get() as f64 / 1e9,
            durations: durations.collect(),
        }
    }
}

fn family(name: &'static str, help: &'static str, rows: Vec<(Vec<(&'static str, String)>, u64)>) -> Family {
    Family { name, help, rows }
}

fn statuses(snapshots: &[Snapshot]) -> Vec<(Vec<(&'static str, String)>, u64)> {
    let row = |snapshot: &Snapshot| {
        let status = snapshot.standing.status().name().to_owned();
        (vec![("account", snapshot.id.to_string()), ("status", status)], 1)
    };
    snapshots.iter().map(row).collect()
}

fn in_flight(snapshots: &[Snapshot]) -> Vec<(Vec<(&'static str, String)>, u64)> {
    let mut upstreams = std::collections::BTreeMap::<String, u64>::new();
    for snapshot in snapshots {
        *upstreams.entry(snapshot.id.upstream.to_string()).or_default() += u64::from(snapshot.in_flight);
    }
    upstreams.into_iter().map(|(upstream, count)| (vec![("upstream", upstream)], count)).collect()
}

fn held(gateway: &Gateway) -> Vec<(Vec<(&'static str, String)>, u64)> {
    let engine = &gateway.engine;
    let idle = engine.conversations.size(engine.admission.present()) as u64;
    let states = [("idle", idle), ("taken", engine.conversations.taken())];
    states.into_iter().map(|(state, count)| (vec![("state", state.to_owned())], count)).collect()
}

fn ejected(gateway: &Gateway) -> Vec<(Vec<(&'static str, String)>, u64)> {
    let all = gateway.engine.admission.upstreams().into_iter();
    all.map(|upstream| (vec![("upstream", upstream.name.to_string())], u64::from(upstream.ejected_until.is_some())))
        .collect()
}

fn closed(gateway: &Gateway) -> Vec<(Vec<(&'static str, String)>, u64)> {
    let all = gateway.engine.admission.upstreams().into_iter();
    all.map(|upstream| (vec![("upstream", upstream.name.to_string())], upstream.closed.len() as u64)).collect()
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, count) in &self.plain {
            encoder
                .encode_descriptor(name, "Count since start", None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        for family in &self.labelled {
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, MetricType::Counter)?;
            for (labels, count) in &family.rows {
                metric.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        for family in &self.gauges {
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, MetricType::Gauge)?;
            for (labels, count) in &family.rows {
                metric.encode_family(labels)?.encode_gauge(count)?;
            }
        }
        encoder
            .encode_descriptor(
                "turnkeep_cost_usd",
                "What attempts have cost, in US dollars",
                None,
                MetricType::Counter,
            )?
            .encode_counter::<NoLabelSet, _, u64>(&self.cost, None)?;
        for (name, help, count, sum, buckets) in &self.durations {
            let bounds = Durations::BOUNDS.iter().copied().zip(buckets.iter().copied());
            let beyond = count.saturating_sub(buckets.iter().sum());
            let buckets: Vec<(f64, u64)> = bounds.chain([(f64::MAX, beyond)]).collect();
            encoder
                .encode_descriptor(name, help, None, MetricType::Histogram)?
                .encode_histogram::<NoLabelSet>(*sum, *count, &buckets, None)?;
        }
        Ok(())
    }
}
