//! The tables of errors: what a row asks for, and which row an error fits. Each provider's rows are data in its own file;
//! their order is the rule, the first that fits says what an error means, and what fits none is unclassified.

use super::said::Said;
use super::wording::{contains, says_only};
use turnkeep_base::FaultKind;

/// One row. An empty list, and `false`, ask for nothing; everything that is asked for must be there.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) statuses: &'static [u16],
    /// Compared with every code that the error names, in lower case.
    pub(crate) codes: &'static [&'static str],
    /// Looked for in the message, in lower case and outside quotations: for a row against the account in the beginning
    /// that is certainly the provider's, for one that speaks of the request outside each quotation, else outside the span
    /// of all quotations.
    pub(crate) words: &'static [&'static str],
    /// The message is one of these, and at most help on where to go. Where a message may hold the caller's own text,
    /// nothing less speaks against an account.
    pub(crate) sentences: &'static [&'static str],
    /// The field that the error names.
    pub(crate) params: &'static [&'static str],
    /// The body is a web page.
    pub(crate) html: bool,
    /// There is no status: the error came inside a stream, or in a reply that says 200.
    pub(crate) in_band: bool,
    /// The request continued a conversation that the upstream keeps.
    pub(crate) handle: bool,
    pub(crate) kind: FaultKind,
}

pub(crate) const ANY: Row = Row {
    statuses: &[],
    codes: &[],
    words: &[],
    sentences: &[],
    params: &[],
    html: false,
    in_band: false,
    handle: false,
    kind: FaultKind::Unclassified,
};

pub(crate) const fn code(codes: &'static [&'static str], kind: FaultKind) -> Row {
    Row { codes, kind, ..ANY }
}

pub(crate) const fn code_at(statuses: &'static [u16], codes: &'static [&'static str], kind: FaultKind) -> Row {
    Row { statuses, codes, kind, ..ANY }
}

/// A code whose meaning depends on the wording.
pub(crate) const fn code_words(codes: &'static [&'static str], words: &'static [&'static str], kind: FaultKind) -> Row {
    Row { codes, words, kind, ..ANY }
}

pub(crate) const fn words(statuses: &'static [u16], words: &'static [&'static str], kind: FaultKind) -> Row {
    Row { statuses, words, kind, ..ANY }
}

pub(crate) const fn sentence(statuses: &'static [u16], sentences: &'static [&'static str], kind: FaultKind) -> Row {
    Row { statuses, sentences, kind, ..ANY }
}

/// A code whose meaning depends on the whole message.
pub(crate) const fn code_sentences(
    codes: &'static [&'static str],
    sentences: &'static [&'static str],
    kind: FaultKind,
) -> Row {
    Row { codes, sentences, kind, ..ANY }
}

pub(crate) const fn status(statuses: &'static [u16], kind: FaultKind) -> Row {
    Row { statuses, kind, ..ANY }
}

pub(crate) const fn page(statuses: &'static [u16], kind: FaultKind) -> Row {
    Row { statuses, html: true, kind, ..ANY }
}

/// Statuses that mostly speak of the request.
const REQUEST: &[u16] = &[400, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 422, 431];

/// Whether a fault is held against the account.
fn convicts(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::CredentialRejected
            | FaultKind::AccountSuspended
            | FaultKind::QuotaExhausted
            | FaultKind::ModelNotEntitled
    )
}

/// Whether a fault is the request's own.
fn acquits(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::RequestInvalid | FaultKind::ModelNotFound | FaultKind::PolicyBlocked | FaultKind::ConversationGone
    )
}

/// The first row that an error fits. `status` is none where there was none, or one that says success.
pub(crate) fn fit<'r>(rows: &'r [Row], status: Option<u16>, said: &Said, handle: bool) -> Option<&'r Row> {
    // Then it speaks of that field, whatever codes and words it quotes from it.
    let names_a_field = said.param.is_some() && status.is_none_or(|status| REQUEST.contains(&status));
    rows.iter().find(|row| {
        let convicts = convicts(row.kind);
        let wording = if convicts {
            &said.lead
        } else if acquits(row.kind) {
            &said.unquoted
        } else {
            &said.outside
        };
        !(convicts && names_a_field && row.params.is_empty())
            && (row.statuses.is_empty() || status.is_some_and(|status| row.statuses.contains(&status)))
            && (!row.in_band || status.is_none())
            && (!row.html || said.html)
            && (!row.handle || handle)
            && (row.codes.is_empty() || row.codes.iter().any(|code| said.names(code)))
            && (row.params.is_empty() || said.param.as_deref().is_some_and(|param| row.params.contains(&param)))
            && (row.words.is_empty() || contains(wording, row.words))
            && (row.sentences.is_empty() || ((said.shaped || !convicts) && says_only(&said.lower, row.sentences)))
    })
}

/// What an error means.
pub(crate) fn judge(rows: &[Row], status: Option<u16>, said: &Said, handle: bool) -> FaultKind {
    fit(rows, status, said, handle).map_or(FaultKind::Unclassified, |row| row.kind)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes an error for every code, wording, sentence and status of every row, and checks that each means what its row
    /// says and that no row is out of reach.
    #[track_caller]
    pub(crate) fn every_row_is_reached_by_what_it_asks_for(rows: &[Row]) {
        let one = |list: &[&'static str]| if list.is_empty() { vec![""] } else { list.to_vec() };
        for (at, row) in rows.iter().enumerate() {
            let mut hit = false;
            let statuses = match row.statuses {
                [] if row.in_band => vec![None],
                [] => vec![None, Some(400), Some(401), Some(418), Some(500)],
                some => some.iter().copied().map(Some).collect(),
            };
            for status in statuses {
                for code in one(row.codes) {
                    for word in one(row.words) {
                        for sentence in one(row.sentences) {
                            let text = format!("{}{word}", sentence.replace('*', "abc."));
                            let said = Said {
                                code: code.into(),
                                param: row.params.first().map(|&param| param.into()),
                                html: row.html,
                                lower: text.clone(),
                                unquoted: text.clone(),
                                outside: text.clone(),
                                lead: text,
                                shaped: true,
                                ..Said::default()
                            };
                            let first = fit(rows, status, &said, row.handle);
                            // A more general row may come later; a row before it must agree, or ask for more.
                            hit |= first.is_some_and(|first| std::ptr::eq(first, row));
                            if !row.codes.is_empty() && row.words.is_empty() {
                                let stricter =
                                    first.is_some_and(|first| !first.statuses.is_empty() && row.statuses.is_empty());
                                assert!(
                                    stricter || first.map(|first| first.kind) == Some(row.kind),
                                    "row {at}: {status:?} {said:?} is {first:?}"
                                );
                            }
                        }
                    }
                }
            }
            assert!(hit, "row {at} is never reached: {row:?}");
        }
    }
}
