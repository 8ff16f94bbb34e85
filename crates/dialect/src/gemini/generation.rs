//! What the name of a Gemini model tells about it.

/// The number in `gemini-2.5-pro` before the dot; `None` for other names (`gemini-flash-latest`, an operator's own).
fn major(model: &str) -> Option<u32> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let rest = name.strip_prefix("gemini-")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// The model is of the third generation or later: it asks for its signatures back, and thinks by levels.
pub(super) fn wants_signatures(model: &str) -> bool {
    major(model).is_some_and(|major| major >= 3)
}

/// The model is of a generation that never asks for signatures. An unknown name is not: it may stand for any.
pub(super) fn is_before_signatures(model: &str) -> bool {
    major(model).is_some_and(|major| major < 3)
}

/// The model cannot think, and refuses to be told how much.
pub(super) fn cannot_think(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gemini-1.", "gemini-2.0", "gemma"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_read_from_the_name() {
        for (model, wants, before, cannot) in [
            ("gemini-3-pro-preview", true, false, false),
            ("models/gemini-3.5-flash", true, false, false),
            ("gemini-12", true, false, false),
            ("gemini-2.5-flash", false, true, false),
            ("google/gemini-2.0-flash", false, true, true),
            ("gemini-1.5-pro", false, true, true),
            ("gemini-flash-latest", false, false, false),
            ("gemini-99999999999", false, false, false),
            ("gemini-", false, false, false),
            ("größe", false, false, false),
        ] {
            assert_eq!(
                (wants_signatures(model), is_before_signatures(model), cannot_think(model)),
                (wants, before, cannot),
                "{model}"
            );
        }
    }
}
