//! What becomes of a Responses request's fields.

use super::Fate::{Dropped, Heeded, Own, Refused};
use super::{Row, row, to};

const CALLED: &str = r#"{"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"call_1","output":"done"}]}"#;

pub(super) const ROWS: &[Row] = &[
    row(
        "`instructions`",
        r#"{"instructions":"s"}"#,
        [
            to("messages[0].content", r#""s""#),
            Own,
            to("system", r#""s""#),
            to("systemInstruction.parts[0].text", r#""s""#),
        ],
    ),
    row(
        "`input` as a text",
        r#"{"input":"a"}"#,
        [
            to("messages[0].content", r#""a""#),
            Own,
            to("messages[0].content", r#""a""#),
            to("contents[0].parts[0].text", r#""a""#),
        ],
    ),
    row(
        "content `input_image`",
        r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}"#,
        [
            to("messages[0].content[0].image_url.url", r#""data:image/png;base64,AAAA""#),
            Own,
            to("messages[0].content[0].source.data", r#""AAAA""#),
            to("contents[0].parts[0].inlineData.data", r#""AAAA""#),
        ],
    ),
    row(
        "content `input_file` with `file_data`",
        r#"{"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}]}]}"#,
        [
            to("messages[0].content[0].file.filename", r#""a.pdf""#),
            Own,
            to("messages[0].content[0].source.data", r#""AAAA""#),
            to("contents[0].parts[0].inlineData.data", r#""AAAA""#),
        ],
    ),
    row(
        "content with `file_id`",
        r#"{"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]}"#,
        [Refused("input[0].content[0]"), Own, Refused("input[0].content[0]"), Refused("input[0].content[0]")],
    ),
    row(
        "item `function_call`",
        CALLED,
        [
            to("messages[1].tool_calls[0].function.arguments", r#""{\"a\":1}""#),
            Own,
            to("messages[1].content[0].input", r#"{"a":1}"#),
            to("contents[1].parts[0].functionCall.args", r#"{"a":1}"#),
        ],
    ),
    row(
        "item `function_call_output`",
        CALLED,
        [
            to("messages[2].content", r#""done""#),
            Own,
            to("messages[2].content[0].content", r#""done""#),
            to("contents[2].parts[0].functionResponse.response", r#"{"output":"done"}"#),
        ],
    ),
    row(
        "item `reasoning` with `encrypted_content`",
        r#"{"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"role":"assistant","content":"a"},{"role":"user","content":"go"}]}"#,
        [Dropped("thinking"), Own, Dropped("thinking"), Dropped("thinking")],
    ),
    row(
        "item of a provider's own tool",
        r#"{"input":[{"role":"user","content":"hi"},{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},{"role":"user","content":"go"}]}"#,
        [Refused("input[1]"), Own, Refused("input[1]"), Refused("input[1]")],
    ),
    row(
        "`tools[]` of `function`",
        r#"{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]}"#,
        [
            to("tools[0].function.name", r#""f""#),
            Own,
            to("tools[0].name", r#""f""#),
            to("tools[0].functionDeclarations[0].name", r#""f""#),
        ],
    ),
    row(
        "`tools[]` of `custom`, as a function of one string",
        r#"{"tools":[{"type":"custom","name":"f","description":"d"}]}"#,
        [
            to("tools[0].function.parameters.required", r#"["input"]"#),
            Own,
            to("tools[0].input_schema.required", r#"["input"]"#),
            to("tools[0].functionDeclarations[0].name", r#""f""#),
        ],
    ),
    row(
        "`tools[]` of `namespace`",
        r#"{"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]}]}"#,
        [
            to("tools[0].function.name", r#""n__f""#),
            Own,
            to("tools[0].name", r#""n__f""#),
            to("tools[0].functionDeclarations[0].name", r#""n__f""#),
        ],
    ),
    row(
        "`tool_choice`",
        r#"{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],"tool_choice":{"type":"function","name":"f"}}"#,
        [
            to("tool_choice.function.name", r#""f""#),
            Own,
            to("tool_choice.name", r#""f""#),
            to("toolConfig.functionCallingConfig.allowedFunctionNames", r#"["f"]"#),
        ],
    ),
    row(
        "`parallel_tool_calls`",
        r#"{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}],"parallel_tool_calls":false}"#,
        [
            to("parallel_tool_calls", "false"),
            Own,
            to("tool_choice.disable_parallel_tool_use", "true"),
            Dropped("parallel_tool_calls"),
        ],
    ),
    row(
        "`max_output_tokens`",
        r#"{"max_output_tokens":100}"#,
        [
            to("max_completion_tokens", "100"),
            Own,
            to("max_tokens", "100"),
            to("generationConfig.maxOutputTokens", "100"),
        ],
    ),
    row(
        "`temperature`",
        r#"{"temperature":0.5}"#,
        [to("temperature", "0.5"), Own, to("temperature", "0.5"), to("generationConfig.temperature", "0.5")],
    ),
    row(
        "`top_p`",
        r#"{"top_p":0.5}"#,
        [to("top_p", "0.5"), Own, to("top_p", "0.5"), to("generationConfig.topP", "0.5")],
    ),
    row(
        "`reasoning.effort`",
        r#"{"reasoning":{"effort":"high"}}"#,
        [
            to("reasoning_effort", r#""high""#),
            Own,
            to("output_config.effort", r#""high""#),
            to("generationConfig.thinkingConfig.thinkingLevel", r#""HIGH""#),
        ],
    ),
    row(
        "`text.format` of `json_schema`",
        r#"{"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"}}}}"#,
        [
            to("response_format.json_schema.name", r#""a""#),
            Own,
            to("output_config.format.type", r#""json_schema""#),
            to("generationConfig.responseMimeType", r#""application/json""#),
        ],
    ),
    row(
        "`text.verbosity`",
        r#"{"text":{"verbosity":"low"}}"#,
        [to("verbosity", r#""low""#), Own, Dropped("text.verbosity"), Dropped("text.verbosity")],
    ),
    row(
        "`prompt_cache_key`",
        r#"{"prompt_cache_key":"k"}"#,
        [to("prompt_cache_key", r#""k""#), Own, Dropped("prompt_cache_key"), Dropped("prompt_cache_key")],
    ),
    row(
        "`user`, `safety_identifier`",
        r#"{"user":"u"}"#,
        [to("user", r#""u""#), Own, to("metadata.user_id", r#""u""#), Dropped("user")],
    ),
    row(
        "`metadata`",
        r#"{"metadata":{"a":"b"}}"#,
        [Dropped("metadata"), Own, Dropped("metadata"), Dropped("metadata")],
    ),
    row(
        "`truncation` of `auto`",
        r#"{"truncation":"auto"}"#,
        [Dropped("truncation"), Own, Dropped("truncation"), Dropped("truncation")],
    ),
    row(
        "`include` of `reasoning.encrypted_content`",
        r#"{"include":["reasoning.encrypted_content"]}"#,
        [Heeded, Own, Heeded, Heeded],
    ),
    row("`store`", r#"{"store":false}"#, [Heeded, Own, Heeded, Heeded]),
    row("`prompt`", r#"{"prompt":{"id":"pmpt_1"}}"#, [Refused("prompt"), Own, Refused("prompt"), Refused("prompt")]),
    row("`stream`", r#"{"stream":true}"#, [to("stream", "true"), Own, to("stream", "true"), Heeded]),
];
