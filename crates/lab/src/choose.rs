//! Which rule a request gets, and how often each has been used.

use std::collections::HashMap;

use crate::fault::AcceptFault;
use crate::script::{Rule, Script};

/// What a rule's conditions look at.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub path: &'a str,
    pub method: &'a str,
    pub model: &'a str,
    pub account: &'a str,
    pub stream: bool,
    pub body: &'a [u8],
    /// The lab's own checks refuse it.
    pub refused: bool,
}

/// How often a rule's conditions held, and how often it answered.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    seen: u32,
    used: u32,
}

/// A script and its running counts.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    script: Script,
    /// Of each rule, by account where the rule says so.
    counts: Vec<HashMap<String, Count>>,
    accepts_used: Vec<u32>,
}

impl Chooser {
    pub(crate) fn new(script: Script) -> Self {
        let (rules, accepts) = (script.rule.len(), script.accept.len());
        Self { script, counts: vec![HashMap::new(); rules], accepts_used: vec![0; accepts] }
    }

    pub(crate) fn models(&self) -> &[String] {
        &self.script.models
    }

    /// The first rule that matches and is not spent; it is counted as used.
    pub(crate) fn rule(&mut self, facts: &Facts<'_>) -> Option<Rule> {
        for (rule, counts) in self.script.rule.iter().zip(&mut self.counts) {
            if !meets(rule, facts) {
                continue;
            }
            let who = if rule.per_account { facts.account } else { "" };
            let count = match counts.get_mut(who) {
                Some(count) => count,
                None => counts.entry(who.to_owned()).or_default(),
            };
            count.seen += 1;
            let is_nth = rule.nth.is_none_or(|nth| nth == count.seen);
            let is_due = rule.every.is_none_or(|every| count.seen % every.max(1) == 0);
            let is_fresh = rule.times.is_none_or(|times| count.used < times);
            if is_nth && is_due && is_fresh {
                count.used += 1;
                return Some(rule.clone());
            }
        }
        None
    }

    /// The fault of the connection being accepted.
    pub(crate) fn accept(&mut self) -> Option<AcceptFault> {
        for (at, rule) in self.script.accept.iter().enumerate() {
            if rule.times.is_none_or(|times| self.accepts_used[at] < times) {
                self.accepts_used[at] += 1;
                return Some(rule.fault);
            }
        }
        None
    }
}

fn meets(rule: &Rule, facts: &Facts<'_>) -> bool {
    (!facts.refused || rule.skip_checks)
        && rule.path.as_deref().is_none_or(|path| path == facts.path)
        && rule.method.as_deref().is_none_or(|method| method == facts.method)
        && rule.model.as_deref().is_none_or(|model| glob(model, facts.model))
        && rule.account.as_deref().is_none_or(|account| glob(account, facts.account))
        && rule.stream.is_none_or(|stream| stream == facts.stream)
        && rule.body_contains.as_deref().is_none_or(|text| contains(facts.body, text.as_bytes()))
}

fn contains(body: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || body.windows(wanted.len()).any(|window| window == wanted)
}

/// Whether a text fits a pattern in which `*` stands for any run of characters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn a_star_stands_for_any_run_of_characters_and_nothing_else_does() {
        for (pattern, text) in
            [("*", ""), ("a*", "a"), ("a*c", "abc"), ("*b*", "abc"), ("a*b*c", "a-b-b-c"), ("x", "x")]
        {
            assert!(glob(pattern, text), "{pattern} should fit {text}");
        }
        for (pattern, text) in [("a*", "b"), ("a*c", "ab"), ("x", "xy"), ("a*a", "a"), ("a.c", "abc")] {
            assert!(!glob(pattern, text), "{pattern} should not fit {text}");
        }
    }
}
