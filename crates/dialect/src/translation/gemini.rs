//! What becomes of a Gemini request's fields.

use super::Fate::{Dropped, Own, Refused};
use super::{Row, row, to};

const CALLED: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"done"}}}]}]}"#;

pub(super) const ROWS: &[Row] = &[
    row(
        "`systemInstruction`",
        r#"{"systemInstruction":{"parts":[{"text":"s"}]}}"#,
        [to("messages[0].content", r#""s""#), to("instructions", r#""s""#), to("system", r#""s""#), Own],
    ),
    row(
        "part `text`",
        r#"{"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]}]}"#,
        [
            to("messages[0].content[1].text", r#""b""#),
            to("input[0].content[1].text", r#""b""#),
            to("messages[0].content[1].text", r#""b""#),
            Own,
        ],
    ),
    row(
        "part `inlineData`, an image",
        r#"{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}"#,
        [
            to("messages[0].content[0].image_url.url", r#""data:image/png;base64,AAAA""#),
            to("input[0].content[0].image_url", r#""data:image/png;base64,AAAA""#),
            to("messages[0].content[0].source.data", r#""AAAA""#),
            Own,
        ],
    ),
    row(
        "part `inlineData`, a PDF",
        r#"{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"AAAA"}}]}]}"#,
        [
            to("messages[0].content[0].file.file_data", r#""data:application/pdf;base64,AAAA""#),
            to("input[0].content[0].file_data", r#""data:application/pdf;base64,AAAA""#),
            to("messages[0].content[0].source.data", r#""AAAA""#),
            Own,
        ],
    ),
    row(
        "part `functionCall`",
        CALLED,
        [
            to("messages[1].tool_calls[0].function.arguments", r#""{\"a\":1}""#),
            to("input[1].arguments", r#""{\"a\":1}""#),
            to("messages[1].content[0].input", r#"{"a":1}"#),
            Own,
        ],
    ),
    row(
        "part `functionResponse`",
        CALLED,
        [
            to("messages[2].content", r#""done""#),
            to("input[2].output", r#""done""#),
            to("messages[2].content[0].content", r#""done""#),
            Own,
        ],
    ),
    row(
        "`thoughtSignature` of Google's own, on a call or a text",
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"a","thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"text":"go"}]}]}"#,
        [Dropped("thinking"), Dropped("thinking"), Dropped("thinking"), Own],
    ),
    row(
        "part `executableCode`",
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}}]},{"role":"user","parts":[{"text":"go"}]}]}"#,
        [Refused("contents[1].parts[0]"), Refused("contents[1].parts[0]"), Refused("contents[1].parts[0]"), Own],
    ),
    row(
        "`tools[].functionDeclarations[]`",
        r#"{"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{}}}]}]}"#,
        [to("tools[0].function.name", r#""f""#), to("tools[0].name", r#""f""#), to("tools[0].name", r#""f""#), Own],
    ),
    row(
        "`tools[]` of Google's own",
        r#"{"tools":[{"googleSearch":{}}]}"#,
        [Refused("tools[0]"), Refused("tools[0]"), Refused("tools[0]"), Own],
    ),
    row(
        "`toolConfig.functionCallingConfig`",
        r#"{"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#,
        [
            to("tool_choice", r#""required""#),
            to("tool_choice", r#""required""#),
            to("tool_choice.type", r#""any""#),
            Own,
        ],
    ),
    row(
        "`generationConfig.maxOutputTokens`",
        r#"{"generationConfig":{"maxOutputTokens":100}}"#,
        [to("max_completion_tokens", "100"), to("max_output_tokens", "100"), to("max_tokens", "100"), Own],
    ),
    row(
        "`generationConfig.temperature`",
        r#"{"generationConfig":{"temperature":0.5}}"#,
        [to("temperature", "0.5"), to("temperature", "0.5"), to("temperature", "0.5"), Own],
    ),
    row(
        "`generationConfig.topP`",
        r#"{"generationConfig":{"topP":0.5}}"#,
        [to("top_p", "0.5"), to("top_p", "0.5"), to("top_p", "0.5"), Own],
    ),
    row(
        "`generationConfig.topK`",
        r#"{"generationConfig":{"topK":5}}"#,
        [Dropped("generationConfig.topK"), Dropped("generationConfig.topK"), to("top_k", "5"), Own],
    ),
    row(
        "`generationConfig.seed`",
        r#"{"generationConfig":{"seed":7}}"#,
        [to("seed", "7"), Dropped("generationConfig.seed"), Dropped("generationConfig.seed"), Own],
    ),
    row(
        "`generationConfig.stopSequences`",
        r#"{"generationConfig":{"stopSequences":["X"]}}"#,
        [to("stop", r#"["X"]"#), Dropped("generationConfig.stopSequences"), to("stop_sequences", r#"["X"]"#), Own],
    ),
    row(
        "`generationConfig.candidateCount` above 1",
        r#"{"generationConfig":{"candidateCount":2}}"#,
        [
            Refused("generationConfig.candidateCount"),
            Refused("generationConfig.candidateCount"),
            Refused("generationConfig.candidateCount"),
            Own,
        ],
    ),
    row(
        "`generationConfig.thinkingConfig`",
        r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}}"#,
        [
            to("reasoning_effort", r#""high""#),
            to("reasoning.effort", r#""high""#),
            to("output_config.effort", r#""high""#),
            Own,
        ],
    ),
    row(
        "`generationConfig.responseJsonSchema`",
        r#"{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}"#,
        [
            to("response_format.json_schema.schema.type", r#""object""#),
            to("text.format.type", r#""json_schema""#),
            to("output_config.format.type", r#""json_schema""#),
            Own,
        ],
    ),
    row(
        "`safetySettings`",
        r#"{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]}"#,
        [Dropped("safetySettings"), Dropped("safetySettings"), Dropped("safetySettings"), Own],
    ),
    row("`labels`", r#"{"labels":{"a":"b"}}"#, [Dropped("labels"), Dropped("labels"), Dropped("labels"), Own]),
    row(
        "`cachedContent`",
        r#"{"cachedContent":"cachedContents/1"}"#,
        [Refused("cachedContent"), Refused("cachedContent"), Refused("cachedContent"), Own],
    ),
];
