//! The objects of the protocol. Its fields are read by either spelling, and one that is given twice is an error: the
//! upstream could read the other one.

use crate::dropped::MAX_NAMES;
use crate::json::{Invalid, Kind, Reader};
use crate::messages::nothing::says_nothing;
use std::borrow::Cow;

pub(super) const REQUEST: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "model",
    "generateContentRequest",
    "serviceTier",
    "store",
];
pub(super) const CONTENT: &[&str] = &["role", "parts"];
pub(super) const PART: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
];
/// How many of [`PART`], from its start, hold what a part says; a part has one of them.
pub(super) const DATA: usize = 9;
pub(super) const BLOB: &[&str] = &["mimeType", "data", "displayName"];
pub(super) const FILE: &[&str] = &["mimeType", "fileUri", "displayName"];
pub(super) const CALL: &[&str] = &["id", "name", "args"];
pub(super) const RESPONSE: &[&str] = &["id", "name", "response", "parts", "willContinue", "scheduling"];
pub(super) const TOOL: &[&str] = &["functionDeclarations"];
pub(super) const DECLARATION: &[&str] =
    &["name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"];
pub(super) const TOOL_CONFIG: &[&str] = &["functionCallingConfig"];
pub(super) const CALLING: &[&str] = &["mode", "allowedFunctionNames"];
pub(super) const CONFIG: &[&str] = &[
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "thinkingConfig",
    "continuationToken",
];
pub(super) const THINKING: &[&str] = &["includeThoughts", "thinkingBudget", "thinkingLevel"];

/// A key in camelCase, whichever spelling it has.
pub(in crate::gemini) fn camel(key: &str) -> Cow<'_, str> {
    if !key.contains('_') {
        return Cow::Borrowed(key);
    }
    let mut out = String::with_capacity(key.len());
    let mut after = false;
    for letter in key.chars() {
        match letter {
            '_' => after = true,
            _ if after => {
                out.push(letter.to_ascii_uppercase());
                after = false;
            }
            _ => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Reads an object of the protocol: `each` gets its keys in camelCase and must take or skip the value. A `null` is as if
/// the field were not there. A field of `known` may be given once, in one spelling.
pub(super) fn object<'a>(
    r: &mut Reader<'a>,
    known: &[&str],
    mut each: impl FnMut(&mut Reader<'a>, &str) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    let mut seen = 0u64;
    r.object(|r, key| {
        let key = camel(key);
        if let Some(at) = known.iter().take(64).position(|name| *name == key) {
            if seen & 1 << at != 0 {
                return Err(r.fail(format!("`{key}` is given twice: a field may be given once, in one spelling")));
            }
            seen |= 1 << at;
        }
        if r.null()? { Ok(()) } else { each(r, &key) }
    })
}

/// Reads a list; one object alone stands for a list of it, as Google reads it.
pub(super) fn list<'a>(
    r: &mut Reader<'a>,
    mut each: impl FnMut(&mut Reader<'a>, usize) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    if r.kind()? == Kind::Object { each(r, 0) } else { r.array(each) }
}

/// The name of a model, without the collection it is in.
pub(super) fn model_name(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// A field that is required is not there.
pub(super) fn missing(r: &Reader<'_>, name: &str) -> Invalid {
    let path = r.path();
    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    Invalid { path, message: "this field is required".into(), at: r.position() }
}

/// Fields without a canonical place, each named once, in the order they were met.
#[derive(Debug, Default)]
pub(super) struct Hints(Vec<String>);

impl Hints {
    /// Names a hint; only so many.
    pub(super) fn name(&mut self, name: &str) {
        if self.0.len() <= MAX_NAMES && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    /// Skips a field and names it if it says something.
    pub(super) fn skip(&mut self, r: &mut Reader<'_>, place: &str, key: &str) -> Result<(), Invalid> {
        if !says_nothing(r.raw()?) {
            self.name(&format!("{place}{key}"));
        }
        Ok(())
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name() {
        for name in [
            REQUEST,
            CONTENT,
            PART,
            BLOB,
            FILE,
            CALL,
            RESPONSE,
            TOOL,
            DECLARATION,
            TOOL_CONFIG,
            CALLING,
            CONFIG,
            THINKING,
        ]
        .concat()
        {
            let snake: String = name
                .chars()
                .flat_map(|c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] })
                .collect();
            assert_eq!((camel(&snake).as_ref(), camel(name).as_ref()), (name, name));
        }
        assert_eq!(camel("__a__b_"), "AB");
    }
}
