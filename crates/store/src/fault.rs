//! The bounds of a fault's proof as it is kept. What the proof says is its maker's business, redaction too; here it is
//! only made sure that no row is larger than it may be.

use turnkeep_engine::ports::FaultRecord;

/// Bytes of a word: the fault, its origin, its phase.
const WORD: usize = 64;
/// Bytes of a provider's code.
const CODE: usize = 120;
/// Bytes of a model's name, and of the words on a clock.
const NAME: usize = 256;
/// Bytes of the proof's own words, and of those on its effect.
const WORDS: usize = 512;

/// The record with every text cut to its bound, at the end of a character.
pub(crate) fn bounded(mut record: FaultRecord) -> FaultRecord {
    for word in [&mut record.fault, &mut record.origin, &mut record.phase] {
        cut(word, WORD);
    }
    for words in [&mut record.detail, &mut record.effect] {
        cut(words, WORDS);
    }
    if let Some(code) = &mut record.code {
        cut(code, CODE);
    }
    if let Some(clock) = &mut record.clock {
        cut(clock, NAME);
    }
    if record.model.len() > NAME {
        record.model = record.model[..record.model.floor_char_boundary(NAME)].into();
    }
    record
}

fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.shrink_to_fit();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use turnkeep_base::TurnId;

    /// A proof of that time, with nothing but what it must have.
    pub(crate) fn record(at_ms: u64) -> FaultRecord {
        FaultRecord {
            at_ms,
            turn: TurnId::new(at_ms, 0),
            attempt: None,
            account: None,
            model: "m".into(),
            fault: "pool_exhausted".into(),
            origin: "gateway".into(),
            phase: "unsent".into(),
            status: None,
            code: None,
            detail: String::new(),
            offset: None,
            clock: None,
            wait_ms: None,
            effect: String::new(),
            until_ms: None,
        }
    }

    #[test]
    fn a_text_beyond_its_bound_is_cut_at_the_end_of_a_character() {
        let long = || "é".repeat(1_000);
        let code = format!("x{}", long());
        let cut = bounded(FaultRecord { detail: long(), code: Some(code), model: long().into(), ..record(1) });
        assert_eq!((cut.detail.len(), cut.code.map(|code| code.len()), cut.model.len()), (512, Some(119), 256));
        assert_eq!(bounded(record(1)), record(1));
    }
}
