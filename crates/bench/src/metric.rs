//! The figures a round takes of each peer, and how rounds become one figure: the median, because one disturbed round on a
//! shared machine would move a mean.

use std::collections::BTreeMap;

/// One measured quantity; the smaller the better, but for the two rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// CPU seconds per 10 000 small turns.
    SmallCpu,
    /// Small turns a second, 16 connections.
    SmallRate,
    /// Small turns a second, 64 connections.
    Peak,
    /// CPU seconds per 10 000 agent turns of 60 KB.
    AgentCpu,
    /// Agent turns a second.
    AgentRate,
    /// CPU microseconds per streamed content event.
    EventCpu,
    /// Streams of 100 events a second.
    StreamRate,
    /// Added median latency at 1 000 turns a second, ms.
    Added50At1000,
    /// Added 99th percentile at the same.
    Added99At1000,
    /// Half the peer's own peak, turns a second.
    HalfRate,
    /// Added median latency at that rate, ms.
    Added50AtHalf,
    /// Added 99th percentile at the same.
    Added99AtHalf,
    /// Added median time to first content, 20 paced streams at once, ms.
    First50,
    /// Added 99th percentile of the same.
    First99,
    /// Start to first 200 on /healthz, ms.
    ColdStart,
    /// Resident memory before any traffic, MiB.
    IdleRss,
    /// Resident memory with 1 000 open streams, MiB.
    Rss1000,
    /// Resident memory with 5 000 open streams, MiB.
    Rss5000,
    /// Memory per open stream at 5 000, KiB over idle.
    PerStream,
}

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Self; 19] = [
        Self::SmallCpu,
        Self::SmallRate,
        Self::Peak,
        Self::AgentCpu,
        Self::AgentRate,
        Self::EventCpu,
        Self::StreamRate,
        Self::Added50At1000,
        Self::Added99At1000,
        Self::HalfRate,
        Self::Added50AtHalf,
        Self::Added99AtHalf,
        Self::First50,
        Self::First99,
        Self::ColdStart,
        Self::IdleRss,
        Self::Rss1000,
        Self::Rss5000,
        Self::PerStream,
    ];

    /// What the report calls it, with its unit.
    pub fn label(self) -> &'static str {
        match self {
            Self::SmallCpu => "CPU s per 10 000 small turns (16 connections)",
            Self::SmallRate => "small turns/s, 16 connections",
            Self::Peak => "small turns/s, 64 connections (peak)",
            Self::AgentCpu => "CPU s per 10 000 agent turns of 60 KB (16 connections)",
            Self::AgentRate => "agent turns/s, 16 connections",
            Self::EventCpu => "CPU µs per streamed event (16 streams of 100)",
            Self::StreamRate => "streams/s, 16 at once",
            Self::Added50At1000 => "added latency p50 ms, 1 000 turns/s",
            Self::Added99At1000 => "added latency p99 ms, 1 000 turns/s",
            Self::HalfRate => "half of its peak, turns/s",
            Self::Added50AtHalf => "added latency p50 ms, half of its peak",
            Self::Added99AtHalf => "added latency p99 ms, half of its peak",
            Self::First50 => "added time to first content p50 ms, 20 streams at once",
            Self::First99 => "added time to first content p99 ms, 20 streams at once",
            Self::ColdStart => "cold start ms (first 200)",
            Self::IdleRss => "idle memory MiB",
            Self::Rss1000 => "memory MiB, 1 000 open streams",
            Self::Rss5000 => "memory MiB, 5 000 open streams",
            Self::PerStream => "memory KiB per open stream (5 000, over idle)",
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        match self {
            Self::SmallRate | Self::Peak | Self::AgentRate | Self::StreamRate | Self::HalfRate => true,
            Self::SmallCpu
            | Self::AgentCpu
            | Self::EventCpu
            | Self::Added50At1000
            | Self::Added99At1000
            | Self::Added50AtHalf
            | Self::Added99AtHalf
            | Self::First50
            | Self::First99
            | Self::ColdStart
            | Self::IdleRss
            | Self::Rss1000
            | Self::Rss5000
            | Self::PerStream => false,
        }
    }
}

/// One peer's figures over all rounds.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    values: BTreeMap<Metric, Vec<f64>>,
    /// What went wrong, once each.
    pub faults: Vec<String>,
}

impl Figures {
    /// Adds one round's value.
    pub fn add(&mut self, metric: Metric, value: f64) {
        if value.is_finite() {
            self.values.entry(metric).or_default().push(value);
        }
    }

    /// Notes what went wrong, unless it is known.
    pub fn fault(&mut self, what: String) {
        if !self.faults.contains(&what) {
            self.faults.push(what);
        }
    }

    /// The median of the rounds.
    pub fn median(&self, metric: Metric) -> Option<f64> {
        let mut sorted = self.values.get(&metric)?.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some((upper + lower) / 2.0)
    }

    /// The least and the greatest of the rounds.
    pub fn range(&self, metric: Metric) -> Option<(f64, f64)> {
        let values = self.values.get(&metric)?;
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        Some((least, most))
    }
}

/// Three significant digits, thousands apart, no needless zeros after the point.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        let digits = format!("{:.0}", size);
        let mut out = String::new();
        for (n, digit) in digits.chars().enumerate() {
            if n > 0 && (digits.len() - n).is_multiple_of(3) {
                out.push(' ');
            }
            out.push(digit);
        }
        return if value < 0.0 { format!("-{out}") } else { out };
    }
    let decimals = if size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_rounds_is_reported_with_their_range() {
        let mut figures = Figures::default();
        for value in [3.0, 100.0, 1.0, f64::NAN] {
            figures.add(Metric::SmallCpu, value);
        }
        assert_eq!(figures.median(Metric::SmallCpu), Some(3.0));
        assert_eq!(figures.range(Metric::SmallCpu), Some((1.0, 100.0)));
        figures.add(Metric::SmallCpu, 5.0);
        assert_eq!(figures.median(Metric::SmallCpu), Some(4.0));
        assert_eq!(figures.median(Metric::Peak), None);
    }

    #[test]
    fn numbers_keep_three_digits_and_part_their_thousands() {
        let shown: Vec<_> = [0.1634, 12.34, 123.4, 51_646.2, 1_234_567.0, -0.5].map(number).to_vec();
        assert_eq!(shown, ["0.16", "12.3", "123", "51 646", "1 234 567", "-0.50"]);
    }
}
