//! The one pass over every Gemini request: is it of the form the protocol asks for, and what must the gateway know of it.
//! It builds no tree and copies no text. Unknown fields, unknown words of an enumeration and unknown parts pass.

use super::fields::{
    self, BLOB, CALL, CALLING, CONFIG, CONTENT, DATA, DECLARATION, FILE, PART, REQUEST, RESPONSE, THINKING, TOOL,
    TOOL_CONFIG, list, missing, model_name,
};
use crate::json::{Invalid, Kind, Reader};
use crate::request::{BAD_NAME, ClientRequest, InPath, Made, Operation, Spans, is_name};
use bytes::Bytes;
use turnkeep_base::Dialect;

/// Checks a request body and notes what the gateway needs of it. The model, and whether and how the answer is streamed,
/// are in the path. `countTokens` takes the contents alone or a whole `generateContentRequest`.
pub fn read(operation: Operation, path: InPath, body: Bytes) -> Result<ClientRequest, Invalid> {
    let named = |message: &str| Invalid { path: "model".into(), message: message.into(), at: 0 };
    if path.model.is_empty() {
        return Err(named("expected the name of a model in the path, found none"));
    }
    if !is_name(&path.model) {
        return Err(named(BAD_NAME));
    }
    let mut seen = Seen::default();
    let mut r = Reader::new(&body)?;
    let counts = operation == Operation::CountTokens;
    request(&mut r, &path.model, counts, &mut seen)?;
    r.end()?;
    match (seen.contents, seen.wrapped) {
        (true, false) | (false, true) => {}
        (false, false) => return Err(missing(&Reader::over(""), "contents")),
        (true, true) => {
            let message = "expected either `contents` or `generateContentRequest`, found both".to_owned();
            return Err(Invalid { path: "contents".into(), message, at: 0 });
        }
    }
    Ok(ClientRequest {
        dialect: Dialect::Gemini,
        operation,
        body,
        model: path.model,
        stream: path.stream,
        max_output: seen.max_output,
        choices: seen.choices.unwrap_or(1),
        usage_wanted: false,
        form: path.form,
        spans: Spans::default(),
        made: Made::new(),
    })
}

#[derive(Default)]
struct Seen {
    contents: bool,
    wrapped: bool,
    max_output: Option<u64>,
    choices: Option<u64>,
}

fn request(r: &mut Reader<'_>, model: &str, counts: bool, seen: &mut Seen) -> Result<(), Invalid> {
    fields::object(r, REQUEST, |r, key| match key {
        "contents" => {
            seen.contents = true;
            contents(r)
        }
        "generateContentRequest" if counts => {
            let mut inner = Seen::default();
            request(r, model, false, &mut inner)?;
            if !inner.contents {
                return Err(missing(r, "contents"));
            }
            *seen = Seen { contents: seen.contents, wrapped: true, ..inner };
            Ok(())
        }
        "model" => {
            let named = r.string()?;
            if model_name(&named) != model_name(model) {
                return Err(r.fail("the body names another model than the path"));
            }
            Ok(())
        }
        "systemInstruction" => match r.kind()? {
            Kind::String => text(r),
            Kind::Array => parts(r),
            // Google's own SDKs give it the role `system`, or `user`: it is the prompt whatever it says.
            Kind::Object | Kind::Number | Kind::Bool | Kind::Null => content(r, |_| true),
        },
        "tools" => list(r, |r, _| tool(r)),
        "toolConfig" => fields::object(r, TOOL_CONFIG, |r, key| match key {
            "functionCallingConfig" => fields::object(r, CALLING, |r, key| match key {
                "mode" => text(r),
                "allowedFunctionNames" => r.array(|r, _| text(r)),
                _ => skip(r),
            }),
            _ => skip(r),
        }),
        "generationConfig" => config(r, seen),
        "cachedContent" => text(r),
        "safetySettings" => r.array(|r, _| any_object(r)),
        "labels" => any_object(r),
        _ => skip(r),
    })
}

fn contents(r: &mut Reader<'_>) -> Result<(), Invalid> {
    match r.kind()? {
        Kind::Array => {}
        Kind::String | Kind::Object => {
            return Err(r.fail("expected a list of contents; one alone stands in a list too, as [{\"parts\":[…]}]"));
        }
        // The typed call words the error.
        Kind::Number | Kind::Bool | Kind::Null => return r.array(|_, _| Ok(())),
    }
    let mut any = false;
    r.array::<Invalid>(|r, _| {
        any = true;
        content(r, |role| matches!(role, "" | "user" | "model" | "function"))
    })?;
    if any { Ok(()) } else { Err(r.fail("expected at least one content, found none")) }
}

/// A content. `function` is the role of results in SDKs of all ages, and means the user's.
fn content(r: &mut Reader<'_>, known: impl Fn(&str) -> bool) -> Result<(), Invalid> {
    fields::object(r, CONTENT, |r, key| match key {
        "role" => {
            let role = r.string()?;
            if known(&role) {
                return Ok(());
            }
            let brief: String = role.chars().take(40).collect();
            Err(r.fail(format!("expected `user` or `model`, found `{brief}`")))
        }
        "parts" => parts(r),
        _ => skip(r),
    })
}

fn parts(r: &mut Reader<'_>) -> Result<(), Invalid> {
    list(r, |r, _| part(r))
}

fn part(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut data: Option<usize> = None;
    let mut says = false;
    fields::object(r, PART, |r, key| {
        let place = PART.iter().position(|name| *name == key);
        if let Some(place) = place.filter(|place| *place < DATA)
            && let Some(other) = data.replace(place).and_then(|other| PART.get(other))
        {
            return Err(r.fail(format!("a part has one kind of content, and this one has `{other}` too")));
        }
        // A field that is not known may be content of a kind that is not known yet.
        says |= place.is_none_or(|place| place < DATA) || key == "thoughtSignature";
        match key {
            "text" | "thoughtSignature" => text(r),
            "thought" => r.bool().map(drop),
            "inlineData" => blob(r),
            "fileData" => {
                let mut uri = false;
                fields::object(r, FILE, |r, key| match key {
                    "fileUri" => {
                        uri = true;
                        text(r)
                    }
                    "mimeType" | "displayName" => text(r),
                    _ => skip(r),
                })?;
                if uri { Ok(()) } else { Err(missing(r, "fileUri")) }
            }
            "functionCall" => call(r),
            "functionResponse" => response(r),
            "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse" => any_object(r),
            _ => skip(r),
        }
    })?;
    if says {
        Ok(())
    } else {
        Err(r.fail("a part without content: expected `text`, `functionCall` or another kind of it"))
    }
}

fn blob(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let (mut media_type, mut data) = (false, false);
    fields::object(r, BLOB, |r, key| match key {
        "mimeType" => {
            media_type = true;
            text(r)
        }
        "data" => {
            data = true;
            text(r)
        }
        "displayName" => text(r),
        _ => skip(r),
    })?;
    match (media_type, data) {
        (true, true) => Ok(()),
        (false, _) => Err(missing(r, "mimeType")),
        (true, false) => Err(missing(r, "data")),
    }
}

fn call(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut name = false;
    fields::object(r, CALL, |r, key| match key {
        "name" => {
            name = true;
            text(r)
        }
        "id" => text(r),
        "args" => any_object(r),
        _ => skip(r),
    })?;
    if name { Ok(()) } else { Err(missing(r, "name")) }
}

fn response(r: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut name = false;
    fields::object(r, RESPONSE, |r, key| match key {
        "name" => {
            name = true;
            text(r)
        }
        "id" => text(r),
        "response" => any_object(r),
        "parts" => list(r, |r, _| part(r)),
        _ => skip(r),
    })?;
    if name { Ok(()) } else { Err(missing(r, "name")) }
}

fn tool(r: &mut Reader<'_>) -> Result<(), Invalid> {
    fields::object(r, TOOL, |r, key| {
        if key != "functionDeclarations" {
            return skip(r);
        }
        list(r, |r, _| {
            let mut name = false;
            fields::object(r, DECLARATION, |r, key| match key {
                "name" => {
                    name = true;
                    text(r)
                }
                "description" => text(r),
                "parameters" | "parametersJsonSchema" => any_object(r),
                _ => skip(r),
            })?;
            if name { Ok(()) } else { Err(missing(r, "name")) }
        })
    })
}

fn config(r: &mut Reader<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    fields::object(r, CONFIG, |r, key| {
        match key {
            "maxOutputTokens" => seen.max_output = Some(r.u64()?),
            "candidateCount" => seen.choices = Some(r.u64()?),
            "temperature" | "topP" | "topK" | "seed" | "presencePenalty" | "frequencyPenalty" => {
                r.number()?;
            }
            "stopSequences" | "responseModalities" => r.array(|r, _| text(r))?,
            "responseMimeType" => text(r)?,
            "responseSchema" => any_object(r)?,
            "thinkingConfig" => fields::object(r, THINKING, |r, key| match key {
                "includeThoughts" => r.bool().map(drop),
                "thinkingBudget" => r.number().map(drop),
                "thinkingLevel" => text(r),
                _ => skip(r),
            })?,
            _ => skip(r)?,
        }
        Ok(())
    })
}

fn skip(r: &mut Reader<'_>) -> Result<(), Invalid> {
    r.skip().map(drop)
}

/// A string, not unescaped. The typed call in the other arm words the error.
fn text(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::String { skip(r) } else { r.string().map(drop) }
}

/// An object whose inside is not looked at.
fn any_object(r: &mut Reader<'_>) -> Result<(), Invalid> {
    if r.kind()? == Kind::Object { skip(r) } else { r.object(|_, _| Ok(())) }
}
