//! The steps of one turn's answer as they come from one watch or several: which are new, when a watch that broke is opened
//! again and from where, and how the answer ends. Pure: it reads nothing and waits for nothing.
//!
//! Each step is taken once, in its order. What came before the offset that is due has been taken already (a watch that was
//! opened again may repeat it, and an earlier turn's step may come late) and is passed over. A step past it means that
//! some are missing here but not at the server: they are asked for again. Nothing is made up and nothing is skipped.

use std::time::Duration;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Evidence, Fault, FaultKind, Origin, Phase};

/// How often in a row a watch is opened again without a new step in between.
const IN_A_ROW: u32 = 4;
/// How often in all, for one turn.
const IN_ALL: u32 = 64;
/// How long the second opening in a row waits; each further one twice as long. The first does not wait.
const WAIT: Duration = Duration::from_millis(100);

/// What a watch brought.
#[derive(Debug)]
pub(super) enum Seen<E> {
    /// A step.
    Step {
        /// Its place in the conversation.
        offset: u64,
        /// What it is.
        what: What<E>,
    },
    /// The server is at work.
    Working,
    /// The stream has ended as its protocol wants it.
    Ended,
    /// The stream has failed, or could not be opened.
    Failed(Fault),
}

/// What a step is.
#[derive(Debug)]
pub(super) enum What<E> {
    /// A piece of the answer.
    Event(E),
    /// The answer is complete.
    Final,
    /// The turn has failed.
    Failed(Fault),
}

/// What follows.
#[derive(Debug)]
pub(super) enum Next<E> {
    /// A new piece of the answer.
    Event(E),
    /// A sign of life.
    Alive,
    /// Nothing: read on.
    Read,
    /// Open a watch anew.
    Open {
        /// From this offset.
        from: u64,
        /// After so long.
        after: Duration,
    },
    /// The answer is complete.
    Final,
    /// The answer has failed.
    Fault(Fault),
}

/// How far a turn's answer has come.
#[derive(Debug)]
pub(super) struct Steps {
    /// The offset that is due.
    next: u64,
    /// Openings without a new step.
    in_a_row: u32,
    in_all: u32,
    over: bool,
}

impl Steps {
    /// Of a turn whose answer begins at this offset.
    pub(super) fn new(offset: u64) -> Self {
        Steps { next: offset, in_a_row: 0, in_all: 0, over: false }
    }

    /// The offset that is due; after the final step, the conversation's position.
    pub(super) fn due(&self) -> u64 {
        self.next
    }

    /// Takes what a watch brought.
    pub(super) fn seen<E>(&mut self, seen: Seen<E>) -> Next<E> {
        if self.over {
            return Next::Read;
        }
        match seen {
            Seen::Working => Next::Alive,
            Seen::Step { offset, .. } if offset < self.next => Next::Read,
            Seen::Step { offset, .. } if offset > self.next => {
                let text = format!("step {offset} came where step {} was due", self.next);
                self.again(FaultKind::StreamTruncated, &text)
            }
            Seen::Step { what, .. } => {
                self.next = self.next.saturating_add(1);
                self.in_a_row = 0;
                match what {
                    What::Event(event) => Next::Event(event),
                    What::Final => {
                        self.over = true;
                        Next::Final
                    }
                    What::Failed(fault) => self.fail(fault),
                }
            }
            Seen::Ended => self.again(FaultKind::StreamTruncated, "the watch ended without the turn's final step"),
            Seen::Failed(fault) if is_break(&fault) => self.again(FaultKind::StreamTruncated, &fault.to_string()),
            Seen::Failed(fault) => self.fail(fault),
        }
    }

    fn again<E>(&mut self, kind: FaultKind, why: &str) -> Next<E> {
        if self.in_a_row >= IN_A_ROW || self.in_all >= IN_ALL {
            let text = format!("after {} watches: {why}", self.in_all + 1);
            return self.fail(Fault::new(kind, Phase::Answered, Evidence::text(text)));
        }
        let after = match self.in_a_row {
            0 => Duration::ZERO,
            more => WAIT.saturating_mul(1 << (more - 1)),
        };
        self.in_a_row += 1;
        self.in_all += 1;
        Next::Open { from: self.next, after }
    }

    fn fail<E>(&mut self, mut fault: Fault) -> Next<E> {
        self.over = true;
        // The turn was taken: whatever broke, it broke after that.
        fault.phase = Phase::Answered;
        Next::Fault(fault)
    }
}

/// The watch has broken, and the steps are still where they were.
fn is_break(fault: &Fault) -> bool {
    verdict(fault).origin == Origin::Network || fault.kind == FaultKind::UpstreamUnavailable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offset: u64) -> Seen<u64> {
        Seen::Step { offset, what: What::Event(offset) }
    }

    fn broke(kind: FaultKind) -> Seen<u64> {
        Seen::Failed(Fault::new(kind, Phase::MaybeSent, Evidence::text("it broke")))
    }

    fn kind(next: &Next<u64>) -> Option<FaultKind> {
        match next {
            Next::Fault(fault) => Some(fault.kind),
            Next::Event(_) | Next::Alive | Next::Read | Next::Open { .. } | Next::Final => None,
        }
    }

    #[test]
    fn each_step_is_taken_once_whatever_is_repeated_or_comes_late() {
        let mut steps = Steps::new(5);
        let mut taken = Vec::new();
        for offset in [3, 5, 5, 4, 6, 5, 6, 7] {
            if let Next::Event(event) = steps.seen(step(offset)) {
                taken.push(event);
            }
        }
        assert_eq!(taken, [5, 6, 7]);
        assert!(matches!(steps.seen::<u64>(Seen::Step { offset: 8, what: What::Final }), Next::Final));
        assert_eq!(steps.due(), 9, "the position after the final step");
        assert!(matches!(steps.seen(step(9)), Next::Read), "nothing follows the end");
    }

    #[test]
    fn a_watch_that_breaks_is_opened_again_from_the_step_that_is_due() {
        let mut steps = Steps::new(1);
        steps.seen(step(1));
        for kind in [FaultKind::ConnectionReset, FaultKind::StreamTruncated, FaultKind::UpstreamUnavailable] {
            assert!(matches!(steps.seen(broke(kind)), Next::Open { from: 2, .. }), "{kind}");
        }
        assert!(matches!(steps.seen(Seen::Ended::<u64>), Next::Open { from: 2, .. }));
    }

    #[test]
    fn steps_that_are_missing_are_asked_for_and_not_skipped() {
        let mut steps = Steps::new(1);
        assert!(matches!(steps.seen(step(3)), Next::Open { from: 1, after } if after.is_zero()));
        assert!(matches!(steps.seen(step(1)), Next::Event(1)));
    }

    #[test]
    fn a_watch_is_opened_again_a_bounded_number_of_times_each_wait_longer_and_then_the_stream_is_truncated() {
        let mut steps = Steps::new(1);
        let mut waits = Vec::new();
        let end = loop {
            let next = steps.seen(broke(FaultKind::ConnectRefused));
            let Next::Open { after, .. } = next else { break next };
            waits.push(after.as_millis());
        };
        assert_eq!(waits, [0, 100, 200, 400]);
        assert_eq!(kind(&end), Some(FaultKind::StreamTruncated));
        assert!(matches!(end, Next::Fault(fault) if fault.phase == Phase::Answered));
    }

    #[test]
    fn a_new_step_begins_the_count_anew_but_not_for_ever() {
        let mut steps = Steps::new(0);
        let mut opened = 0;
        let end = loop {
            let next = steps.seen(Seen::Ended::<u64>);
            let Next::Open { from, .. } = next else { break next };
            opened += 1;
            steps.seen(step(from));
        };
        assert_eq!((opened, kind(&end)), (IN_ALL, Some(FaultKind::StreamTruncated)));
    }

    #[test]
    fn what_the_server_says_of_the_turn_ends_it_at_once() {
        let mut steps = Steps::new(0);
        let failed = Fault::new(FaultKind::PolicyBlocked, Phase::MaybeSent, Evidence::text("no"));
        let end = steps.seen::<u64>(Seen::Step { offset: 0, what: What::Failed(failed) });
        assert_eq!(kind(&end), Some(FaultKind::PolicyBlocked));
        let mut steps = Steps::new(0);
        assert_eq!(kind(&steps.seen(broke(FaultKind::ConversationGone))), Some(FaultKind::ConversationGone));
        assert_eq!(kind(&Steps::new(0).seen(broke(FaultKind::MalformedResponse))), Some(FaultKind::MalformedResponse));
    }
}
