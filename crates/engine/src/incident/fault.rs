//! A fault as a trace has it: all that a decision is made from, and none of the provider's words.

use crate::machine::corroborate::normal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use turnkeep_base::limit::WINDOWS;
use turnkeep_base::{Clock, ClockKind, Declared, Evidence, Fault, FaultKind, LimitScope, Phase, Window};
use turnkeep_dialect::identity;
use turnkeep_policy::Span;

/// The longest code that is written as it is, in bytes. The classifiers keep no longer one.
const CODE_BYTES: usize = 120;

/// A kind of fault, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub FaultKind);

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let kind = FaultKind::ALL.iter().copied().find(|kind| kind.name() == name);
        kind.map(Kind).ok_or_else(|| D::Error::custom("there is no fault of this name in the blame table"))
    }
}

mirror! {
    /// How far the request had gone.
    PhaseName of Phase {
        Unsent = "Certainly not a byte had left.",
        MaybeSent = "Some of it may have left.",
        Answered = "The upstream had begun to answer.",
    }
}

mirror! {
    /// A clock of the turn.
    ClockName of ClockKind {
        Connect = "Name, TCP and TLS handshake.",
        FirstContent = "Until the first content.",
        Between = "Between two events.",
        Total = "The whole turn.",
        MaxTurn = "A streamed turn after its answer began.",
        Provider = "The provider's own.",
    }
}

mirror! {
    /// What a provider's limit covers.
    ScopeName of LimitScope {
        Account = "The whole account.",
        Requests = "The account's rate of requests.",
        Quota = "The account's money or plan.",
        Model = "The account with the model that was asked for.",
    }
}

/// The clock that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockFacts {
    /// Which.
    pub kind: ClockName,
    /// The caller had asked for a shorter time than ours.
    pub set_by_caller: bool,
}

/// A window that a reply shows as used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowFacts {
    /// What it covers.
    pub scope: ScopeName,
    /// Until it opens again.
    pub wait: Span,
}

/// A fault and the facts of its proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultFacts {
    /// What.
    pub kind: Kind,
    /// How far the request had gone.
    pub phase: PhaseName,
    /// The status of the upstream's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's code, where it is one word; else a hash of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A keyed hash of the provider's words, by which two refusals are told to be the same; empty where nothing asks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// The clock that fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFacts>,
    /// The wait that the reply asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// The windows that it shows as used up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowFacts>,
    /// It names the model as what the limit covers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub names_model: bool,
    /// The request is longer than the model's window.
    #[serde(default, skip_serializing_if = "is_false")]
    pub context_too_long: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

impl FaultFacts {
    /// The facts without what only corroboration asks for: that of two refusals' words.
    pub fn of(fault: &Fault, key: &[u8; 32]) -> FaultFacts {
        let Fault { kind, phase, evidence, clock, declared, context_too_long } = fault;
        let window = |window: &Window| WindowFacts { scope: window.scope.into(), wait: Span(window.wait) };
        FaultFacts {
            kind: Kind(*kind),
            phase: (*phase).into(),
            status: evidence.status,
            code: evidence.code.as_deref().map(|code| code_or_hash(code, key)),
            words: String::new(),
            clock: clock.map(|clock| ClockFacts { kind: clock.kind.into(), set_by_caller: clock.set_by_caller }),
            wait: declared.wait.map(Span),
            windows: declared.windows.iter().take(WINDOWS).map(window).collect(),
            names_model: declared.names_model,
            context_too_long: *context_too_long,
        }
    }

    /// All the facts, the hash of the words too.
    pub fn with_words(fault: &Fault, key: &[u8; 32]) -> FaultFacts {
        let words = &fault.evidence.detail;
        let words = if words.is_empty() { String::new() } else { hash(&normal(words), key) };
        FaultFacts { words, ..FaultFacts::of(fault, key) }
    }

    /// A fault of these facts. Its proof has hashes where words were.
    pub fn fault(&self) -> Fault {
        let windows = self.windows.iter().take(WINDOWS);
        let windows = windows.map(|window| Window { scope: window.scope.into(), wait: window.wait.0 });
        Fault {
            kind: self.kind.0,
            phase: self.phase.into(),
            evidence: Evidence {
                status: self.status,
                code: self.code.clone(),
                detail: self.words.clone(),
                offset: None,
            },
            clock: self.clock.map(|clock| Clock { kind: clock.kind.into(), set_by_caller: clock.set_by_caller }),
            declared: Declared {
                wait: self.wait.map(|wait| wait.0),
                windows: windows.collect(),
                names_model: self.names_model,
            },
            context_too_long: self.context_too_long,
        }
    }

    /// Bytes that it takes in memory beside its own size.
    pub(super) fn heap(&self) -> usize {
        let windows = self.windows.capacity() * size_of::<WindowFacts>();
        self.code.as_ref().map_or(0, String::capacity) + self.words.capacity() + windows
    }
}

impl fmt::Display for FaultFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.0)?;
        if let Some(status) = self.status {
            write!(f, " {status}")?;
        }
        if let Some(wait) = self.wait {
            write!(f, " wait {wait}")?;
        }
        if self.phase == PhaseName::Unsent {
            f.write_str(" unsent")?;
        }
        Ok(())
    }
}

/// A code that is one word stays; another one could hold anything. What corroboration sees of it stays either way: whether
/// it is a general type (`…_error`), and whether two are the same but for their case.
fn code_or_hash(code: &str, key: &[u8; 32]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/');
    if code.len() <= CODE_BYTES && code.bytes().all(is_plain) {
        return code.to_owned();
    }
    let general = if code.ends_with("_error") { "_error" } else { "" };
    format!("hashed-{}{general}", hash(&code.to_lowercase(), key))
}

/// As letters alone: words with digits are not compared.
fn hash(text: &str, key: &[u8; 32]) -> String {
    let print = identity::of_parts(key, "incident", &[text.as_bytes()]);
    let letter = |half: u8| char::from(b'a' + (half & 15));
    print.0.iter().flat_map(|byte| [letter(byte >> 4), letter(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::corroborate::Likeness;

    const KEY: [u8; 32] = [7; 32];

    fn refusal(code: Option<&str>, words: &str) -> Fault {
        let evidence = Evidence::text(words).with_status(403);
        let evidence = Evidence { code: code.map(str::to_owned), ..evidence };
        Fault::new(FaultKind::Unclassified, Phase::Answered, evidence)
    }

    #[test]
    fn two_refusals_are_the_same_without_their_words_exactly_if_they_were_with_them() {
        let said = [
            refusal(None, "Not from your country (request req_01)"),
            refusal(None, "not from your country (request req_02)"),
            refusal(None, "Not today"),
            refusal(None, ""),
            refusal(Some("permission_error"), "Not today"),
            refusal(Some("permission_error"), "Not from here"),
            refusal(Some("blocked"), "Not from here"),
            refusal(Some("Blocked"), "Not today"),
            refusal(Some("this is prose, and no code"), "x"),
            refusal(Some("This is prose, and no code"), "y"),
            refusal(Some("this is prose of an_error"), "Not today"),
            refusal(Some("this is prose of an_error"), "Not from here"),
        ];
        let read = |fault: &Fault| Likeness::of(&FaultFacts::with_words(fault, &KEY).fault()).unwrap();
        for a in &said {
            for b in &said {
                assert_eq!(Likeness::of(a) == Likeness::of(b), read(a) == read(b), "{a} / {b}");
            }
        }
    }

    #[test]
    fn a_trace_has_none_of_a_providers_words() {
        let fault = refusal(Some("your prompt was: tell me a secret"), "I will not say SECRET-WORDS");
        let text = serde_json::to_string(&FaultFacts::with_words(&fault, &KEY)).unwrap();
        assert!(!text.contains("SECRET") && !text.contains("prompt") && text.contains("hashed-"), "{text}");
    }

    #[test]
    fn facts_come_back_as_the_fault_that_they_were() {
        let windows = vec![Window { scope: LimitScope::Quota, wait: std::time::Duration::from_millis(20_500) }];
        let declared = Declared { wait: Some(std::time::Duration::from_secs(3)), windows, names_model: true };
        let clock = Some(Clock { kind: ClockKind::Between, set_by_caller: false });
        let fault = Fault { context_too_long: true, clock, ..refusal(Some("blocked"), "").declaring(declared) };
        let facts = FaultFacts::with_words(&fault, &KEY);
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<FaultFacts>(&text).unwrap(), facts);
        assert_eq!(facts.fault(), fault);
    }
}
