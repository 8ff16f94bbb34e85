//! Makes a plan that fails smaller: parts are left out for as long as it fails in the same way.

use crate::plan::Plan;

/// How a run fails: the invariants that it breaks, without the particulars.
pub fn kinds(broken: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = broken.iter().map(|what| what.split(':').next().unwrap_or_default()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Leaves out what is not needed for the first of its failures. `fails` runs a plan and tells what it breaks; `tell` hears
/// of each step. At most `most` runs.
pub fn shrink(mut plan: Plan, mut most: usize, fails: impl Fn(&Plan) -> Vec<String>, tell: impl Fn(&Plan)) -> Plan {
    let broken = fails(&plan);
    let Some(wanted) = kinds(&broken).first().map(|kind| (*kind).to_owned()) else { return plan };
    let still = |plan: &Plan| kinds(&fails(plan)).contains(&wanted.as_str());
    loop {
        let before = plan.clone();
        for part in [Part::Events, Part::Talks, Part::Faults, Part::Turns] {
            let mut size = part.count(&plan).div_ceil(2);
            while size > 0 && most > 0 {
                let mut at = 0;
                while at < part.count(&plan) && most > 0 {
                    let smaller = part.without(&plan, at, size);
                    most -= 1;
                    if still(&smaller) {
                        plan = smaller;
                        tell(&plan);
                    } else {
                        at += size;
                    }
                }
                size /= 2;
            }
        }
        if plan == before || most == 0 {
            return plan;
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Events,
    Talks,
    Faults,
    /// The last turns of talks.
    Turns,
}

impl Part {
    fn count(self, plan: &Plan) -> usize {
        match self {
            Part::Events => plan.events.len(),
            Part::Talks => plan.talks.len(),
            Part::Faults => plan.faults.len(),
            Part::Turns => plan.talks.iter().map(|talk| talk.turns.len()).max().unwrap_or_default(),
        }
    }

    fn without(self, plan: &Plan, at: usize, size: usize) -> Plan {
        let mut plan = plan.clone();
        fn cut<T>(all: &mut Vec<T>, at: usize, size: usize) {
            let end = (at + size).min(all.len());
            all.drain(at.min(end)..end);
        }
        match self {
            Part::Events => cut(&mut plan.events, at, size),
            Part::Talks => cut(&mut plan.talks, at, size),
            Part::Faults => cut(&mut plan.faults, at, size),
            Part::Turns => plan.talks.iter_mut().for_each(|talk| cut(&mut talk.turns, at, size)),
        }
        plan
    }
}
