//! State that only its maker can read (signed thinking, encrypted reasoning, thought signatures) on its way through
//! dialects that have another place for such state. In the canonical turn and events it stands in one form that names
//! its origin: Anthropic's own as it is, every other as `turnkeep.<dialect>.<state>`. A client gets the state with its
//! origin, unless it is of the client's own dialect, and sends it back so; what reaches an upstream is the bare state, and
//! only where the upstream is of the state's own dialect.

use std::borrow::Cow;
use turnkeep_base::Dialect;

/// What a marked state begins with.
pub const PREFIX: &str = "turnkeep.";

/// Stands where a proof must stand and nobody gave one.
pub const UNSIGNED: &str = "turnkeep.unsigned";

/// What state begins with, in a place for proofs, that is no proof of a text but a whole thinking which only its maker can
/// read: whoever does not know the mark takes it for nobody's.
pub(crate) const REDACTED: &str = "turnkeep.redacted.";

/// What marks Anthropic's state for a client of another dialect, whose own state carries no mark.
pub(crate) const FROM_MESSAGES: &str = "turnkeep.messages.";

/// A state that came from an upstream, or a client, of this dialect. Where it carries the mark already (the client sends
/// back what another upstream made), it stays as it is.
pub fn seal(origin: Dialect, state: &str) -> Cow<'_, str> {
    if let Some(bare) = state.strip_prefix(FROM_MESSAGES) {
        return Cow::Borrowed(bare);
    }
    if origin == Dialect::Messages || state.starts_with(PREFIX) {
        Cow::Borrowed(state)
    } else {
        Cow::Owned(format!("{PREFIX}{}.{state}", origin.name()))
    }
}

/// Whose state it is; `None` for nobody's.
pub fn origin(sealed: &str) -> Option<Dialect> {
    if sealed.is_empty() {
        return None;
    }
    match sealed.strip_prefix(PREFIX) {
        None => Some(Dialect::Messages),
        Some(rest) => Dialect::from_name(rest.split_once('.')?.0),
    }
}

/// The bare state, if an upstream of this dialect can read it.
pub fn open(sealed: &str, upstream: Dialect) -> Option<&str> {
    if origin(sealed)? != upstream {
        return None;
    }
    match sealed.strip_prefix(PREFIX) {
        None => Some(sealed),
        Some(rest) => rest.split_once('.').map(|(_, state)| state),
    }
}

/// The form for a client of this dialect: bare if the state is of its own dialect, so that nothing changes where nothing
/// needs to; else with its origin. [`seal`] undoes it.
pub fn shown(sealed: &str, client: Dialect) -> Cow<'_, str> {
    match (open(sealed, client), origin(sealed)) {
        (Some(bare), _) => Cow::Borrowed(bare),
        (None, Some(Dialect::Messages)) if !sealed.starts_with(PREFIX) => {
            Cow::Owned(format!("{FROM_MESSAGES}{sealed}"))
        }
        (None, Some(_) | None) => Cow::Borrowed(sealed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_bare_to_its_own_dialect_and_to_no_other() {
        for made_by in Dialect::ALL {
            let sealed = seal(made_by, "c3RhdGU=.x");
            for upstream in Dialect::ALL {
                assert_eq!(
                    open(&sealed, upstream),
                    (made_by == upstream).then_some("c3RhdGU=.x"),
                    "{made_by} {upstream}"
                );
            }
            for client in Dialect::ALL {
                assert_eq!(seal(client, &shown(&sealed, client)), sealed, "{made_by} by way of {client}");
            }
        }
    }

    #[test]
    fn what_nobody_signed_is_nobodys() {
        for text in ["", UNSIGNED, "turnkeep.", "turnkeep.other.x"] {
            assert_eq!(origin(text), None, "{text}");
            assert!(Dialect::ALL.iter().all(|dialect| open(text, *dialect).is_none()), "{text}");
        }
    }
}
