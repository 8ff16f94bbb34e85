//! What the real Gemini API refuses. Bodies come here with their fields in one spelling.

use serde_json::Value;

use crate::frame::Refused;
use crate::gemini::standard_base64;
use crate::signature::Signatures;

const FIELDS: [&str; 10] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
];
const CONFIG: [&str; 24] = [
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "mediaResolution",
    "speechConfig",
    "imageConfig",
    "thinkingConfig",
    "enableEnhancedCivicAnswers",
    "continuationToken",
    "audioTranscriptionConfig",
    "routingConfig",
    "modelSelectionConfig",
];
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// Documented words that stand for a signature which nobody has.
const SENTINELS: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

fn only(value: &Value, at: &str, known: &[&str]) -> Result<(), Refused> {
    let unknown = value.as_object().and_then(|map| map.keys().find(|key| !known.contains(&key.as_str())));
    match unknown {
        None => Ok(()),
        Some(name) => {
            let place = if at.is_empty() { String::new() } else { format!(" at '{at}'") };
            Err(Refused::bad(format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
            )))
        }
    }
}

pub(crate) fn body(body: &Value, model: &str, signatures: &Signatures) -> Result<(), Refused> {
    only(body, "", &FIELDS)?;
    only(&body["generationConfig"], "generation_config", &CONFIG)?;
    if body["generationConfig"]["stopSequences"].as_array().is_some_and(|stops| stops.len() > 5) {
        return Err(Refused::bad("Invalid value at 'generation_config.stop_sequences': at most 5 are allowed."));
    }
    tools(body)?;
    let Some(contents) = body["contents"].as_array().filter(|contents| !contents.is_empty()) else {
        return Err(Refused::bad("* GenerateContentRequest.contents: contents is not specified"));
    };
    for (at, content) in contents.iter().enumerate() {
        if !matches!(content["role"].as_str(), None | Some("user" | "model")) {
            return Err(Refused::bad("Please use a valid role: user, model."));
        }
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if parts.is_empty() {
            let text = format!("* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.");
            return Err(Refused::bad(text));
        }
        for (nth, part) in parts.iter().enumerate() {
            one_part(at, nth, part)?;
        }
    }
    turns(contents)?;
    signed(contents, model, signatures)
}

fn one_part(at: usize, nth: usize, part: &Value) -> Result<(), Refused> {
    let path = format!("contents[{at}].parts[{nth}]");
    let fields = part.as_object().map_or(0, |map| map.keys().filter(|key| DATA.contains(&key.as_str())).count());
    if fields != 1 {
        return Err(Refused::bad(format!(
            "Invalid value at '{path}': required oneof field 'data' must have one initialized field."
        )));
    }
    if let Some(signature) = part.get("thoughtSignature") {
        let text = signature.as_str().unwrap_or_default();
        if standard_base64(text).is_none() && !SENTINELS.contains(&text) {
            return Err(Refused::bad(format!(
                "Invalid value at '{path}.thought_signature' (TYPE_BYTES), Base64 decoding failed."
            )));
        }
    }
    let inline = &part["inlineData"];
    if !inline.is_null() {
        if !inline["mimeType"].as_str().is_some_and(|kind| kind.contains('/')) {
            return Err(Refused::bad(format!("Invalid value at '{path}.inline_data': mime_type is required.")));
        }
        if !inline["data"].as_str().is_some_and(|data| standard_base64(data).is_some()) {
            return Err(Refused::bad(format!(
                "Invalid value at '{path}.inline_data.data' (TYPE_BYTES), Base64 decoding failed."
            )));
        }
    }
    if let Some(uri) = part["fileData"]["fileUri"].as_str()
        && !uri.starts_with("gs://")
        && !uri.starts_with("https://generativelanguage.googleapis.com/")
    {
        return Err(Refused::bad(format!("Unsupported file URI: {uri}")));
    }
    let call = &part["functionCall"];
    if !call.is_null() && !(call["name"].is_string() && (call["args"].is_object() || call["args"].is_null())) {
        return Err(Refused::bad(format!("Invalid value at '{path}.function_call'.")));
    }
    let result = &part["functionResponse"];
    if !result.is_null()
        && !(result["name"].as_str().is_some_and(|name| !name.is_empty()) && result["response"].is_object())
    {
        return Err(Refused::bad(format!(
            "* GenerateContentRequest.{path}.function_response.name: Name cannot be empty."
        )));
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first && name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

fn tools(body: &Value) -> Result<(), Refused> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, tool) in tools.iter().enumerate() {
        let functions = tool["functionDeclarations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (nth, function) in functions.iter().enumerate() {
            let path = format!("tools[{at}].function_declarations[{nth}]");
            if !function["name"].as_str().is_some_and(is_name) {
                return Err(Refused::bad(format!("* GenerateContentRequest.{path}.name: Invalid function name.")));
            }
            if !function["parameters"].is_null() && !function["parametersJsonSchema"].is_null() {
                return Err(Refused::bad(format!(
                    "{path}: only one of parameters and parameters_json_schema may be set."
                )));
            }
            for unknown in ["$schema", "additionalProperties", "$defs", "$ref", "strict"] {
                if function["parameters"].get(unknown).is_some() {
                    let text = format!(
                        "Invalid JSON payload received. Unknown name \"{unknown}\" at '{path}.parameters': Cannot find field."
                    );
                    return Err(Refused::bad(text));
                }
            }
        }
    }
    let config = &body["toolConfig"]["functionCallingConfig"];
    if config["allowedFunctionNames"].as_array().is_some_and(|names| !names.is_empty()) && config["mode"] != "ANY" {
        return Err(Refused::bad("Function calling config: allowed_function_names is only valid with mode ANY."));
    }
    Ok(())
}

fn counted(content: &Value, kind: &str) -> usize {
    content["parts"].as_array().map_or(0, |parts| parts.iter().filter(|part| !part[kind].is_null()).count())
}

/// Calls come from the model, and what follows them is one response for each.
fn turns(contents: &[Value]) -> Result<(), Refused> {
    let mut due = 0;
    for content in contents {
        let (calls, results) = (counted(content, "functionCall"), counted(content, "functionResponse"));
        if due != results {
            let text = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
            return Err(Refused::bad(text));
        }
        if calls > 0 && content["role"] != "model" {
            return Err(Refused::bad("Please ensure that function call turn comes from the model."));
        }
        due = calls;
    }
    Ok(())
}

/// From the third generation on, the first call of each step of the current turn carries its signature.
fn signed(contents: &[Value], model: &str, signatures: &Signatures) -> Result<(), Refused> {
    let asked = |content: &Value| {
        content["role"] != "model"
            && content["parts"].as_array().is_some_and(|parts| parts.iter().any(|part| part["text"].is_string()))
    };
    let from = contents.iter().rposition(asked).unwrap_or(0);
    for (at, content) in contents.iter().enumerate() {
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (nth, part) in parts.iter().enumerate() {
            let signature = part["thoughtSignature"].as_str();
            if let Some(signature) = signature.filter(|text| !SENTINELS.contains(text))
                && !standard_base64(signature).is_some_and(|known| signatures.accepts("", &known))
            {
                return Err(Refused::bad("Corrupted thought signature."));
            }
            let first =
                !part["functionCall"].is_null() && !parts[..nth].iter().any(|part| !part["functionCall"].is_null());
            if first && at >= from && signature.is_none() && model.starts_with("gemini-3") {
                let text = format!(
                    "Function call is missing a thought_signature in functionCall parts. Function call `{}`, position {at}.",
                    part["functionCall"]["name"].as_str().unwrap_or_default()
                );
                return Err(Refused::bad(text));
            }
        }
    }
    Ok(())
}
