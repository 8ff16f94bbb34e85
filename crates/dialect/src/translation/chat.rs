//! What becomes of a Chat request's fields.

use super::Fate::{Dropped, Heeded, Own, Refused};
use super::{Row, row, to};

const CALLED: &str = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"done"}]}"#;
const TOOLS: &str = r#"{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}]}"#;
const CUSTOM: &str = r#"{"tools":[{"type":"custom","custom":{"name":"f","description":"d"}}]}"#;

pub(super) const ROWS: &[Row] = &[
    row(
        "`messages[]` of `system` or `developer`, first",
        r#"{"messages":[{"role":"developer","content":"s"},{"role":"user","content":"hi"}]}"#,
        [Own, to("instructions", r#""s""#), to("system", r#""s""#), to("systemInstruction.parts[0].text", r#""s""#)],
    ),
    row(
        "`messages[]` of `system`, later",
        r#"{"messages":[{"role":"user","content":"hi"},{"role":"system","content":"s"},{"role":"user","content":"go"}]}"#,
        [
            Own,
            to("input[1].content[0].text", r#""s""#),
            to("messages[0].content[1].text", r#""<system>s</system>""#),
            to("contents[0].parts[1].text", r#""<system>s</system>""#),
        ],
    ),
    row(
        "content `text`",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#,
        [
            Own,
            to("input[0].content[1].text", r#""b""#),
            to("messages[0].content[1].text", r#""b""#),
            to("contents[0].parts[1].text", r#""b""#),
        ],
    ),
    row(
        "content `image_url` with a `data:` URL",
        r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#,
        [
            Own,
            to("input[0].content[0].image_url", r#""data:image/png;base64,AAAA""#),
            to("messages[0].content[0].source.data", r#""AAAA""#),
            to("contents[0].parts[0].inlineData.data", r#""AAAA""#),
        ],
    ),
    row(
        "content `file` with `file_data`",
        r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]}]}"#,
        [
            Own,
            to("input[0].content[0].filename", r#""a.pdf""#),
            to("messages[0].content[0].source.data", r#""AAAA""#),
            to("contents[0].parts[0].inlineData.mimeType", r#""application/pdf""#),
        ],
    ),
    row(
        "content `file` with `file_id`",
        r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#,
        [Own, Refused("messages[0].content[0]"), Refused("messages[0].content[0]"), Refused("messages[0].content[0]")],
    ),
    row(
        "content `input_audio`",
        r#"{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}"#,
        [
            Own,
            Refused("messages[0].content[0]"),
            Refused("messages[0].content[0]"),
            to("contents[0].parts[0].inlineData.mimeType", r#""audio/wav""#),
        ],
    ),
    row(
        "`tool_calls[]` and the message of `tool`: the call",
        CALLED,
        [
            Own,
            to("input[1].arguments", r#""{\"a\":1}""#),
            to("messages[1].content[0].input", r#"{"a":1}"#),
            to("contents[1].parts[0].functionCall.args", r#"{"a":1}"#),
        ],
    ),
    row(
        "`tool_calls[]` and the message of `tool`: the result",
        CALLED,
        [
            Own,
            to("input[2].output", r#""done""#),
            to("messages[2].content[0].content", r#""done""#),
            to("contents[2].parts[0].functionResponse.response", r#"{"output":"done"}"#),
        ],
    ),
    row(
        "`tools[]` of `function`",
        TOOLS,
        [
            Own,
            to("tools[0].name", r#""f""#),
            to("tools[0].name", r#""f""#),
            to("tools[0].functionDeclarations[0].name", r#""f""#),
        ],
    ),
    row(
        "`tools[]` of `custom`, as a function of one string but in Responses",
        CUSTOM,
        [
            Own,
            to("tools[0].type", r#""custom""#),
            to("tools[0].input_schema.required", r#"["input"]"#),
            to("tools[0].functionDeclarations[0].name", r#""f""#),
        ],
    ),
    row(
        "`tool_choice`",
        r#"{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"}"#,
        [
            Own,
            to("tool_choice", r#""required""#),
            to("tool_choice.type", r#""any""#),
            to("toolConfig.functionCallingConfig.mode", r#""ANY""#),
        ],
    ),
    row(
        "`tool_choice` of a function",
        r#"{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}"#,
        [
            Own,
            to("tool_choice.name", r#""f""#),
            to("tool_choice.name", r#""f""#),
            to("toolConfig.functionCallingConfig.allowedFunctionNames", r#"["f"]"#),
        ],
    ),
    row(
        "`parallel_tool_calls`",
        r#"{"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false}"#,
        [
            Own,
            to("parallel_tool_calls", "false"),
            to("tool_choice.disable_parallel_tool_use", "true"),
            Dropped("parallel_tool_calls"),
        ],
    ),
    row(
        "`max_completion_tokens`, `max_tokens`",
        r#"{"max_tokens":100}"#,
        [Own, to("max_output_tokens", "100"), to("max_tokens", "100"), to("generationConfig.maxOutputTokens", "100")],
    ),
    row(
        "`temperature`",
        r#"{"temperature":0.5}"#,
        [Own, to("temperature", "0.5"), to("temperature", "0.5"), to("generationConfig.temperature", "0.5")],
    ),
    row(
        "`temperature` above 1, as 1 in Messages",
        r#"{"temperature":1.5}"#,
        [Own, to("temperature", "1.5"), to("temperature", "1"), to("generationConfig.temperature", "1.5")],
    ),
    row(
        "`top_p`",
        r#"{"top_p":0.5}"#,
        [Own, to("top_p", "0.5"), to("top_p", "0.5"), to("generationConfig.topP", "0.5")],
    ),
    row(
        "`stop`",
        r#"{"stop":"X"}"#,
        [Own, Dropped("stop"), to("stop_sequences", r#"["X"]"#), to("generationConfig.stopSequences", r#"["X"]"#)],
    ),
    row("`seed`", r#"{"seed":7}"#, [Own, Dropped("seed"), Dropped("seed"), to("generationConfig.seed", "7")]),
    row(
        "`presence_penalty`",
        r#"{"presence_penalty":0.5}"#,
        [Own, Dropped("presence_penalty"), Dropped("presence_penalty"), to("generationConfig.presencePenalty", "0.5")],
    ),
    row(
        "`frequency_penalty`",
        r#"{"frequency_penalty":0.5}"#,
        [
            Own,
            Dropped("frequency_penalty"),
            Dropped("frequency_penalty"),
            to("generationConfig.frequencyPenalty", "0.5"),
        ],
    ),
    row(
        "`logit_bias`",
        r#"{"logit_bias":{"1":2}}"#,
        [Own, Dropped("logit_bias"), Dropped("logit_bias"), Dropped("logit_bias")],
    ),
    row("`logprobs`", r#"{"logprobs":true}"#, [Own, Dropped("logprobs"), Dropped("logprobs"), Dropped("logprobs")]),
    row("`n` above 1", r#"{"n":2}"#, [Own, Refused("n"), Refused("n"), Refused("n")]),
    row(
        "`response_format` of `json_schema`",
        r#"{"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}}"#,
        [
            Own,
            to("text.format.type", r#""json_schema""#),
            to("output_config.format.type", r#""json_schema""#),
            to("generationConfig.responseMimeType", r#""application/json""#),
        ],
    ),
    row(
        "`response_format` of `json_object`",
        r#"{"response_format":{"type":"json_object"}}"#,
        [
            Own,
            to("text.format.type", r#""json_object""#),
            Refused("response_format"),
            to("generationConfig.responseMimeType", r#""application/json""#),
        ],
    ),
    row(
        "`reasoning_effort`",
        r#"{"reasoning_effort":"high"}"#,
        [
            Own,
            to("reasoning.effort", r#""high""#),
            to("output_config.effort", r#""high""#),
            to("generationConfig.thinkingConfig.thinkingLevel", r#""HIGH""#),
        ],
    ),
    row(
        "`verbosity`",
        r#"{"verbosity":"low"}"#,
        [Own, to("text.verbosity", r#""low""#), Dropped("verbosity"), Dropped("verbosity")],
    ),
    row(
        "`user`, `safety_identifier`",
        r#"{"user":"u"}"#,
        [Own, to("user", r#""u""#), to("metadata.user_id", r#""u""#), Dropped("user")],
    ),
    row(
        "`prompt_cache_key`",
        r#"{"prompt_cache_key":"k"}"#,
        [Own, to("prompt_cache_key", r#""k""#), Dropped("prompt_cache_key"), Dropped("prompt_cache_key")],
    ),
    row(
        "`metadata`",
        r#"{"metadata":{"a":"b"}}"#,
        [Own, Dropped("metadata"), Dropped("metadata"), Dropped("metadata")],
    ),
    row(
        "`service_tier`",
        r#"{"service_tier":"flex"}"#,
        [Own, Dropped("service_tier"), Dropped("service_tier"), Dropped("service_tier")],
    ),
    row("`store`", r#"{"store":true}"#, [Own, Dropped("store"), Dropped("store"), Dropped("store")]),
    row(
        "`prediction`",
        r#"{"prediction":{"type":"content","content":"a"}}"#,
        [Own, Dropped("prediction"), Dropped("prediction"), Dropped("prediction")],
    ),
    row(
        "`modalities` with `audio`",
        r#"{"modalities":["text","audio"]}"#,
        [Own, Refused("modalities[1]"), Refused("modalities[1]"), Refused("modalities[1]")],
    ),
    row(
        "`web_search_options`",
        r#"{"web_search_options":{}}"#,
        [Own, Refused("web_search_options"), Refused("web_search_options"), Refused("web_search_options")],
    ),
    row("`stream`", r#"{"stream":true}"#, [Own, to("stream", "true"), to("stream", "true"), Heeded]),
    row(
        "`stream_options.include_usage`",
        r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
        [Own, Heeded, Heeded, Heeded],
    ),
];
