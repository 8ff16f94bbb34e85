//! The names of dropped fields, as the client is told them in a header. They come from the client's own JSON, so they may
//! hold anything and be any number of any length; a header holds little, and only visible ASCII.

use crate::json::Invalid;
use std::collections::BTreeSet;
use std::fmt::Write;
use turnkeep_base::Dialect;

/// Names that are told; of more the last name is [`MORE`]. Readers stop keeping names one above it.
pub const MAX_NAMES: usize = 64;
/// Bytes of one name that are told.
pub const MAX_NAME: usize = 96;
/// Stands for what is left out.
pub const MORE: &str = "...";

/// The names, each once and in the order they were met, in the letters of a header and within its bounds. Commas part them
/// there, so a comma in a name, `%` and all that is not visible ASCII are percent-encoded.
pub fn names(mut names: Vec<String>) -> Vec<String> {
    once(&mut names);
    let more = names.len() > MAX_NAMES;
    let told = names.iter().take(MAX_NAMES).map(|name| plain(name));
    told.chain(more.then(|| MORE.to_owned())).collect()
}

/// Each name once, where it was met first.
pub(crate) fn once(names: &mut Vec<String>) {
    let mut told = BTreeSet::new();
    names.retain(|name| told.insert(name.clone()));
}

/// An error's place in the words of a client's dialect.
pub fn place_in_words(client: Dialect, error: Invalid) -> Invalid {
    Invalid { path: in_words(client, &error.path).to_owned(), ..error }
}

/// A field of the canonical turn in the words of a client's dialect; a name that the dialect has no other word for stays.
pub fn in_words(client: Dialect, canonical: &str) -> &str {
    // In the order of `Dialect::ALL`.
    let words = match canonical {
        "messages" => ["messages", "input", "messages", "contents"],
        "stop" | "stop_sequences" => ["stop", "stop", "stop_sequences", "generationConfig.stopSequences"],
        "max_tokens" => ["max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens"],
        "temperature" => ["temperature", "temperature", "temperature", "generationConfig.temperature"],
        "top_p" => ["top_p", "top_p", "top_p", "generationConfig.topP"],
        "top_k" => ["top_k", "top_k", "top_k", "generationConfig.topK"],
        "seed" => ["seed", "seed", "seed", "generationConfig.seed"],
        "presence_penalty" => {
            ["presence_penalty", "presence_penalty", "presence_penalty", "generationConfig.presencePenalty"]
        }
        "frequency_penalty" => {
            ["frequency_penalty", "frequency_penalty", "frequency_penalty", "generationConfig.frequencyPenalty"]
        }
        "user" => ["user", "user", "metadata.user_id", "user"],
        "verbosity" => ["verbosity", "text.verbosity", "verbosity", "verbosity"],
        "effort" | "reasoning_effort" => [
            "reasoning_effort",
            "reasoning.effort",
            "output_config.effort",
            "generationConfig.thinkingConfig.thinkingLevel",
        ],
        "thinking_budget" => [
            "thinking_budget",
            "thinking_budget",
            "thinking.budget_tokens",
            "generationConfig.thinkingConfig.thinkingBudget",
        ],
        "tool_choice" => ["tool_choice", "tool_choice", "tool_choice", "toolConfig.functionCallingConfig"],
        "parallel_tool_calls" => [
            "parallel_tool_calls",
            "parallel_tool_calls",
            "tool_choice.disable_parallel_tool_use",
            "parallel_tool_calls",
        ],
        "response_format" => {
            ["response_format", "text.format", "output_config.format", "generationConfig.responseMimeType"]
        }
        "response_format.json_schema.name" => [canonical, "text.format.name", canonical, canonical],
        "response_format.json_schema.strict" => [canonical, "text.format.strict", canonical, canonical],
        "tools[].strict" => ["tools[].function.strict", "tools[].strict", "tools[].strict", "tools[].strict"],
        own => return own,
    };
    let [chat, responses, messages, gemini] = words;
    match client {
        Dialect::Chat => chat,
        Dialect::Responses => responses,
        Dialect::Messages => messages,
        Dialect::Gemini => gemini,
    }
}

fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len().min(MAX_NAME));
    for byte in name.bytes() {
        if out.len() >= MAX_NAME {
            out.push_str(MORE);
            break;
        }
        if byte.is_ascii_graphic() && byte != b',' && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_name_in_every_dialect() {
        let told = |name: &str| Dialect::ALL.map(|client| in_words(client, name).to_owned());
        assert_eq!(told("stop"), ["stop", "stop", "stop_sequences", "generationConfig.stopSequences"]);
        assert_eq!(told("user"), ["user", "user", "metadata.user_id", "user"]);
        assert_eq!(told("top_k")[3], "generationConfig.topK");
        assert_eq!(told("messages"), ["messages", "input", "messages", "contents"]);
        assert_eq!(told("a_hint_of_its_own"), ["a_hint_of_its_own"; 4]);
    }

    #[test]
    fn names_fit_a_header() {
        let given = ["plain[].name", "a,b", "größe", "a b\n%", "x".repeat(500).as_str()].map(String::from).to_vec();
        let told = names(given);
        assert_eq!(told[..4], ["plain[].name", "a%2Cb", "gr%C3%B6%C3%9Fe", "a%20b%0A%25"]);
        assert_eq!(told[4], format!("{}{MORE}", "x".repeat(MAX_NAME)));
    }

    #[test]
    fn of_too_many_names_the_last_says_so() {
        let told = names((0..1000).map(|number| number.to_string()).collect());
        assert_eq!((told.len(), told[MAX_NAMES].as_str()), (MAX_NAMES + 1, MORE));
        assert_eq!(names((0..MAX_NAMES).map(|number| number.to_string()).collect()).len(), MAX_NAMES);
    }
}
