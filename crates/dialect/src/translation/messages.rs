//! What becomes of a Messages request's fields.

use super::Fate::{Dropped, Heeded, Own, Refused};
use super::{Row, row, to};

const CALLED: &str = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"done"}]}]}"#;
const FAILED: &str = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"no","is_error":true}]}]}"#;
const THOUGHT: &str = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"EqQB"},{"type":"text","text":"a"}]},{"role":"user","content":"go"}]}"#;

pub(super) const ROWS: &[Row] = &[
    row(
        "`system`",
        r#"{"system":"s"}"#,
        [
            to("messages[0].content", r#""s""#),
            to("instructions", r#""s""#),
            Own,
            to("systemInstruction.parts[0].text", r#""s""#),
        ],
    ),
    row(
        "content `text`",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#,
        [
            to("messages[0].content[1].text", r#""b""#),
            to("input[0].content[1].text", r#""b""#),
            Own,
            to("contents[0].parts[1].text", r#""b""#),
        ],
    ),
    row(
        "content `image` of `base64`",
        r#"{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}"#,
        [
            to("messages[0].content[0].image_url.url", r#""data:image/png;base64,AAAA""#),
            to("input[0].content[0].image_url", r#""data:image/png;base64,AAAA""#),
            Own,
            to("contents[0].parts[0].inlineData.data", r#""AAAA""#),
        ],
    ),
    row(
        "content `document` of `base64`",
        r#"{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}]}"#,
        [
            to("messages[0].content[0].file.file_data", r#""data:application/pdf;base64,AAAA""#),
            to("input[0].content[0].file_data", r#""data:application/pdf;base64,AAAA""#),
            Own,
            to("contents[0].parts[0].inlineData.data", r#""AAAA""#),
        ],
    ),
    row(
        "content of a `file` source",
        r#"{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}]}"#,
        [Refused("messages[0].content[0]"), Refused("messages[0].content[0]"), Own, Refused("messages[0].content[0]")],
    ),
    row(
        "content `tool_use`",
        CALLED,
        [
            to("messages[1].tool_calls[0].function.arguments", r#""{\"a\":1}""#),
            to("input[1].arguments", r#""{\"a\":1}""#),
            Own,
            to("contents[1].parts[0].functionCall.args", r#"{"a":1}"#),
        ],
    ),
    row(
        "content `tool_result`",
        CALLED,
        [
            to("messages[2].content", r#""done""#),
            to("input[2].output", r#""done""#),
            Own,
            to("contents[2].parts[0].functionResponse.response", r#"{"output":"done"}"#),
        ],
    ),
    row(
        "`is_error` of a `tool_result`",
        FAILED,
        [
            to("messages[2].content", r#""Error: no""#),
            to("input[2].output", r#""Error: no""#),
            Own,
            to("contents[2].parts[0].functionResponse.response", r#"{"error":"no"}"#),
        ],
    ),
    row(
        "content `thinking` with Anthropic's signature",
        THOUGHT,
        [Dropped("thinking"), Dropped("thinking"), Own, Dropped("thinking")],
    ),
    row(
        "`cache_control`",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#,
        [Dropped("cache_control"), Dropped("cache_control"), Own, Dropped("cache_control")],
    ),
    row(
        "`tools[]`",
        r#"{"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}}}]}"#,
        [
            to("tools[0].function.name", r#""f""#),
            to("tools[0].name", r#""f""#),
            Own,
            to("tools[0].functionDeclarations[0].name", r#""f""#),
        ],
    ),
    row(
        "`tools[]` of Anthropic's own",
        r#"{"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
        [Refused("tools[0]"), Refused("tools[0]"), Own, Refused("tools[0]")],
    ),
    row(
        "`tool_choice`",
        r#"{"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}}"#,
        [
            to("tool_choice", r#""required""#),
            to("tool_choice", r#""required""#),
            Own,
            to("toolConfig.functionCallingConfig.mode", r#""ANY""#),
        ],
    ),
    row(
        "`tool_choice.disable_parallel_tool_use`",
        r#"{"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#,
        [
            to("parallel_tool_calls", "false"),
            to("parallel_tool_calls", "false"),
            Own,
            Dropped("tool_choice.disable_parallel_tool_use"),
        ],
    ),
    row(
        "`max_tokens`",
        r#"{"max_tokens":100}"#,
        [
            to("max_completion_tokens", "100"),
            to("max_output_tokens", "100"),
            Own,
            to("generationConfig.maxOutputTokens", "100"),
        ],
    ),
    row(
        "`temperature`",
        r#"{"temperature":0.5}"#,
        [to("temperature", "0.5"), to("temperature", "0.5"), Own, to("generationConfig.temperature", "0.5")],
    ),
    row(
        "`top_p`",
        r#"{"top_p":0.5}"#,
        [to("top_p", "0.5"), to("top_p", "0.5"), Own, to("generationConfig.topP", "0.5")],
    ),
    row("`top_k`", r#"{"top_k":5}"#, [Dropped("top_k"), Dropped("top_k"), Own, to("generationConfig.topK", "5")]),
    row(
        "`stop_sequences`",
        r#"{"stop_sequences":["X"]}"#,
        [to("stop", r#"["X"]"#), Dropped("stop_sequences"), Own, to("generationConfig.stopSequences", r#"["X"]"#)],
    ),
    row(
        "`thinking` of `enabled`",
        r#"{"thinking":{"type":"enabled","budget_tokens":16384}}"#,
        [
            to("reasoning_effort", r#""high""#),
            to("reasoning.effort", r#""high""#),
            Own,
            to("generationConfig.thinkingConfig.thinkingBudget", "16384"),
        ],
    ),
    row(
        "`output_config.effort`",
        r#"{"output_config":{"effort":"high"}}"#,
        [
            to("reasoning_effort", r#""high""#),
            to("reasoning.effort", r#""high""#),
            Own,
            to("generationConfig.thinkingConfig.thinkingLevel", r#""HIGH""#),
        ],
    ),
    row(
        "`output_config.format`",
        r#"{"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#,
        [
            to("response_format.json_schema.schema.type", r#""object""#),
            to("text.format.type", r#""json_schema""#),
            Own,
            to("generationConfig.responseMimeType", r#""application/json""#),
        ],
    ),
    row(
        "`metadata.user_id`",
        r#"{"metadata":{"user_id":"u"}}"#,
        [to("user", r#""u""#), to("user", r#""u""#), Own, Dropped("metadata.user_id")],
    ),
    row(
        "`service_tier`",
        r#"{"service_tier":"standard_only"}"#,
        [Dropped("service_tier"), Dropped("service_tier"), Own, Dropped("service_tier")],
    ),
    row(
        "`context_management`",
        r#"{"context_management":{"edits":[{"type":"a"}]}}"#,
        [Dropped("context_management"), Dropped("context_management"), Own, Dropped("context_management")],
    ),
    row(
        "`mcp_servers`",
        r#"{"mcp_servers":[{"type":"url","name":"a","url":"https://a"}]}"#,
        [Refused("mcp_servers"), Refused("mcp_servers"), Own, Refused("mcp_servers")],
    ),
    row("`stream`", r#"{"stream":true}"#, [to("stream", "true"), to("stream", "true"), Own, Heeded]),
];
