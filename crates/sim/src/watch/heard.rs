//! What upstreams that keep conversations have heard: each question once, in conversations that hold what the client's own
//! history holds and nothing else, of one caller, and of an account that was there all the time.

use super::{Watch, without_echoes};
use crate::client::Outcome;
use crate::store::{Event, Seen};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::AccountId;

/// How long a configuration may take until it is taken up.
const TAKES_UP: Duration = Duration::from_secs(1);

/// What clients have asked, and what befell accounts meanwhile.
pub struct Heard<'a> {
    /// By the first word of the question.
    asked: BTreeMap<&'a str, &'a Outcome>,
    /// Questions that were asked more than once: when is not told by one of them.
    often: BTreeSet<&'a str>,
    /// Who was asked for a turn, by its id.
    accounts: BTreeMap<String, &'a AccountId>,
    removed: Vec<(Instant, &'a AccountId)>,
}

impl<'a> Heard<'a> {
    /// Of a run.
    pub fn of(outcomes: &'a [Outcome], seen: &'a Seen) -> Heard<'a> {
        let mut heard =
            Heard { asked: BTreeMap::new(), often: BTreeSet::new(), accounts: BTreeMap::new(), removed: Vec::new() };
        for outcome in outcomes {
            if let Some(first) = outcome.asked.split_whitespace().next()
                && heard.asked.insert(first, outcome).is_some()
            {
                heard.often.insert(first);
            }
        }
        for (at, event) in seen.since(0) {
            match event {
                Event::Opened(attempt, id) => {
                    heard.accounts.insert(attempt.turn.to_string(), id);
                }
                Event::Removed(id) => heard.removed.push((*at, id)),
                Event::Again(_)
                | Event::Opens(_)
                | Event::GoesOn(_)
                | Event::Closed(_)
                | Event::Fault(_)
                | Event::Died
                | Event::Ended
                | Event::Jumped
                | Event::Rotated(_) => {}
            }
        }
        heard
    }

    /// What was said in one conversation, turn by turn.
    pub fn conversation(&self, what: &str, turns: &[String], watch: &Watch) {
        let mut before: Vec<String> = Vec::new();
        let mut callers = BTreeSet::new();
        let mut last: Option<&Outcome> = None;
        for text in turns {
            let text = without_echoes(text);
            let words: Vec<&str> = text.split_whitespace().collect();
            let pairs = words.windows(2).filter(|pair| pair[0] == "of" && pair[1].starts_with('c'));
            callers.extend(pairs.map(|pair| pair[1].trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned()));
            let questions: Vec<&str> =
                words.iter().copied().filter(|word| word.starts_with('q') && word.ends_with('x')).collect();
            for question in &questions {
                if before.iter().any(|known| known == question) {
                    watch.broken(4, format_args!("{what} was told {question} a second time"));
                }
            }
            let outcome = questions.last().and_then(|question| self.asked.get(question)).copied();
            if let Some(outcome) = outcome {
                let known =
                    |question: &String| outcome.history.iter().any(|asked| asked.starts_with(question.as_str()));
                if let Some(stray) = before.iter().find(|question| !known(question)) {
                    let asks = questions.last().copied().unwrap_or_default();
                    watch.broken(
                        4,
                        format_args!("{what} holds {stray}, which the client of {asks} does not know as answered"),
                    );
                }
                if let Some(last) = last {
                    self.between(what, last, outcome, watch);
                }
            }
            last = outcome;
            before.extend(questions.into_iter().map(str::to_owned));
        }
        if callers.len() > 1 {
            watch.broken(15, format_args!("{what} has heard several callers: {callers:?}"));
        }
    }

    /// The account of a conversation was not taken away between two of its turns.
    fn between(&self, what: &str, first: &Outcome, second: &Outcome, watch: &Watch) {
        let often =
            |outcome: &Outcome| outcome.asked.split_whitespace().next().is_some_and(|first| self.often.contains(first));
        if often(first) || often(second) {
            return;
        }
        let account = |outcome: &Outcome| self.accounts.get(&outcome.head.as_ref()?.0).copied();
        let (Some(account), Some(other)) = (account(first), account(second)) else { return };
        if account != other {
            return;
        }
        let (from, to) = (first.began + first.took, second.began);
        let removed = |(at, id): &&(Instant, &AccountId)| *id == account && *at > from && *at + TAKES_UP < to;
        if self.removed.iter().any(|one| removed(&one)) {
            watch.broken(4, format_args!("{what} was gone on with though {account} had been taken away in between"));
        }
    }
}
