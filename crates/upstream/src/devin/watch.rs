//! From looks at a session to the events of an answer, and to its end. Pure: the time comes in.
//!
//! A turn ends at the first of: the session has exited, has failed, waits or is suspended; or Devin has said something and
//! then nothing has happened for a while, which is a rule of thumb. A session that was waiting before the turn's message
//! was sent may go on looking so until Devin takes the message up: that counts only after the same while, or once Devin has
//! said something.

use super::session::{Message, Session, Source};
use super::stand::Stand;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_engine::ports::Happening;

/// The session before the turn's message.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// What it had cost.
    pub(super) milli_acus: Option<u64>,
    /// How it stood; `None` for a new one.
    pub(super) stood: Option<String>,
    /// What Devin has said since the last turn ended.
    pub(super) late: Vec<String>,
}

/// Where a turn stands after a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look again.
    Goes {
        /// Something happened: look soon.
        changed: bool,
        /// If nothing happens until then, the turn is over.
        over_at: Option<Instant>,
    },
    /// The turn is over.
    Over {
        /// Its session can be gone on with.
        goes_on: bool,
    },
    /// The turn has failed.
    Failed(Fault),
}

/// One turn being watched.
#[derive(Debug)]
pub(super) struct Watch {
    quiet: Duration,
    /// What the session had cost before. Without a number there it is not known what the turn costs.
    cost_before: Option<u64>,
    /// How the session stood before, while nothing says that the turn's message has changed that.
    stale: Option<String>,
    stood: Option<String>,
    /// Devin has said something in this turn.
    spoke: bool,
    last_sign: Instant,
    told_units: Option<u64>,
    /// The answer's one block of text is open.
    open: bool,
}

impl Watch {
    /// Begins: `out` has the answer's start, and what Devin had said before.
    pub(super) fn begin(before: Before, quiet: Duration, now: Instant, out: &mut VecDeque<Happening>) -> Watch {
        let Before { milli_acus, stood, late } = before;
        let mut watch = Watch {
            quiet,
            cost_before: if stood.is_some() { milli_acus } else { Some(0) },
            stale: stood.clone(),
            stood,
            spoke: false,
            last_sign: now,
            told_units: None,
            open: false,
        };
        out.push_back(Happening::Event(Event::Start { id: None, model: None, usage: None }));
        for text in &late {
            watch.say(text, out);
        }
        watch
    }

    /// What was said, whether or not the rest of the look came about.
    pub(super) fn heard(&mut self, news: &[Message], now: Instant, out: &mut VecDeque<Happening>) {
        for message in news {
            self.last_sign = now;
            out.push_back(Happening::Alive);
            match message.source {
                Source::Devin => {
                    self.spoke = true;
                    self.say(&message.text, out);
                }
                Source::Other => {}
            }
        }
    }

    /// How the session stands.
    pub(super) fn seen(&mut self, session: &Session, now: Instant, out: &mut VecDeque<Happening>) -> Verdict {
        let stood = Some(session.status_text());
        if stood != self.stood {
            self.stood = stood;
            self.last_sign = now;
            out.push_back(Happening::Alive);
        }
        let units = session.milli_acus.zip(self.cost_before).map(|(now, before)| now.saturating_sub(before));
        if let Some(units) = units
            && self.told_units != Some(units)
        {
            self.told_units = Some(units);
            out.push_back(Happening::Units(units));
        }
        let changed = self.last_sign == now;
        let over_at = self.last_sign + self.quiet;
        let stand = session.stand();
        if self.spoke || stand == Stand::Working || self.stale != self.stood {
            self.stale = None;
        }
        if self.stale.is_some() && now < over_at {
            return Verdict::Goes { changed, over_at: Some(over_at) };
        }
        match stand {
            Stand::Working if self.spoke && now >= over_at => self.over(true, out),
            Stand::Working => Verdict::Goes { changed, over_at: self.spoke.then_some(over_at) },
            Stand::Waits => self.over(true, out),
            Stand::Exited => self.over(false, out),
            Stand::Failed(kind) => Verdict::Failed(fault(kind, session)),
        }
    }

    fn say(&mut self, text: &str, out: &mut VecDeque<Happening>) {
        if text.is_empty() {
            return;
        }
        let text = if self.open {
            format!("\n\n{text}")
        } else {
            self.open = true;
            out.push_back(Happening::Event(Event::BlockStart { block: 0, kind: Block::Text }));
            text.to_owned()
        };
        out.push_back(Happening::Event(Event::Delta { block: 0, delta: Delta::Text(text) }));
    }

    fn over(&mut self, goes_on: bool, out: &mut VecDeque<Happening>) -> Verdict {
        if std::mem::take(&mut self.open) {
            out.push_back(Happening::Event(Event::BlockStop { block: 0 }));
        }
        out.push_back(Happening::Event(Event::Finish { reason: Finish::Stop, stop_sequence: None }));
        out.push_back(Happening::Event(Event::End));
        Verdict::Over { goes_on }
    }
}

/// What a session's own end means. Its words are the proof; there is no reply that says it by a status.
fn fault(kind: FaultKind, session: &Session) -> Fault {
    let text = format!("Devin's session stands at: {}", session.status_text());
    Fault::new(kind, Phase::Answered, Evidence::text(text))
}
