//! What Turnkeep aims for, as limits on the figures of one run: the goal, and what a first version may cost.

use crate::metric::Metric;

/// What a limit is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The figure over the bare proxy's of the same run.
    Ratio,
    /// The figure itself.
    Figure,
}

/// One limit.
#[derive(Debug)]
pub struct Goal {
    /// In the reader's words.
    pub what: &'static str,
    /// The column it is about.
    pub peer: &'static str,
    /// The figure.
    pub metric: Metric,
    /// On what the limits are.
    pub measure: Measure,
    /// Of the limits, when they are not ratios.
    pub unit: &'static str,
    /// At most this is the goal.
    pub best: f64,
    /// At most this is enough for a first version.
    pub acceptable: f64,
}

impl Goal {
    /// How `value` compares.
    pub fn verdict(&self, value: f64) -> &'static str {
        if value <= self.best {
            "met"
        } else if value <= self.acceptable {
            "first version only"
        } else {
            "missed"
        }
    }
}

const fn ratio(what: &'static str, peer: &'static str, metric: Metric, best: f64, acceptable: f64) -> Goal {
    Goal { what, peer, metric, measure: Measure::Ratio, unit: "", best, acceptable }
}

const fn figure(
    what: &'static str,
    peer: &'static str,
    metric: Metric,
    unit: &'static str,
    best: f64,
    acceptable: f64,
) -> Goal {
    Goal { what, peer, metric, measure: Measure::Figure, unit, best, acceptable }
}

const CHAT: &str = "turnkeep chat";
const MESSAGES: &str = "turnkeep messages";
const TRANSLATE: &str = "turnkeep translate";

/// Every limit, in the order of the report. The cost's growth with accounts, conversations and ledger rows is not
/// measured by this bench.
pub const GOALS: &[Goal] = &[
    ratio("CPU, small turn", CHAT, Metric::SmallCpu, 1.5, 3.0),
    ratio("CPU, small turn", MESSAGES, Metric::SmallCpu, 1.5, 3.0),
    ratio("CPU, small turn", TRANSLATE, Metric::SmallCpu, 3.0, 5.0),
    ratio("CPU, 60 KB agent turn", CHAT, Metric::AgentCpu, 1.5, 3.0),
    ratio("CPU, 60 KB agent turn", MESSAGES, Metric::AgentCpu, 1.5, 3.0),
    ratio("CPU, 60 KB agent turn", TRANSLATE, Metric::AgentCpu, 4.0, 8.0),
    ratio("CPU, streamed event", CHAT, Metric::EventCpu, 1.5, 2.5),
    ratio("CPU, streamed event", MESSAGES, Metric::EventCpu, 1.5, 2.5),
    ratio("CPU, streamed event", TRANSLATE, Metric::EventCpu, 3.0, 4.0),
    ratio("added p50 at half load", CHAT, Metric::Added50AtHalf, 1.3, 2.0),
    ratio("added p99 at half load", CHAT, Metric::Added99AtHalf, 1.5, 2.5),
    ratio("added p50 at half load", MESSAGES, Metric::Added50AtHalf, 1.3, 2.0),
    ratio("added p99 at half load", MESSAGES, Metric::Added99AtHalf, 1.5, 2.5),
    figure("memory per open stream, 5 000", CHAT, Metric::PerStream, " KiB", 45.0, 80.0),
    figure("memory per open stream, 5 000", MESSAGES, Metric::PerStream, " KiB", 45.0, 80.0),
    figure("memory per open stream, 5 000", TRANSLATE, Metric::PerStream, " KiB", 45.0, 80.0),
    figure("idle memory", CHAT, Metric::IdleRss, " MiB", 15.0, 40.0),
    figure("cold start", CHAT, Metric::ColdStart, " ms", 50.0, 200.0),
];
