//! An agent's request of 320 KiB in each dialect: a system prompt, 40 tools with their schemas, and 60 messages, half of
//! which call a tool or bring what it gave.

use serde_json::{Map, Value, json};
use turnkeep_base::Dialect;

const TOOLS: usize = 40;
/// Pairs of a call and its result.
const STEPS: usize = 29;
/// Bytes of the whole, about.
const SIZE: usize = 320 << 10;
/// Bytes of it that the results are not, about; what is over is left to them.
const SYSTEM: usize = 32 << 10;

fn filled(line: &str, bytes: usize) -> String {
    line.chars().cycle().take(bytes).collect()
}

fn schema() -> Value {
    let property = |number: u32| {
        let inner = json!({"type":"string","enum":["one","two","three"],
            "description":"What this argument of the tool is for, in a line or two of text with a \"quote\" in it."});
        (format!("argument_{number}"), inner)
    };
    let properties: Map<String, Value> = (0..8).map(property).collect();
    json!({"type":"object","properties":properties,"required":["argument_0"]})
}

fn tool(dialect: Dialect, number: usize) -> Value {
    let (name, schema) = (format!("tool_{number}"), schema());
    let about = filled("Runs a command in the user's shell.\n\nUse it with care: it is not undone. ", 1200);
    match dialect {
        Dialect::Chat => json!({"type":"function","function":{"name":name,"description":about,"parameters":schema}}),
        Dialect::Responses => json!({"type":"function","name":name,"description":about,"parameters":schema}),
        Dialect::Messages => json!({"name":name,"description":about,"input_schema":schema}),
        Dialect::Gemini => json!({"name":name,"description":about,"parametersJsonSchema":schema}),
    }
}

/// One call and its result, of so many bytes.
fn step(dialect: Dialect, number: usize, bytes: usize, out: &mut Vec<Value>) {
    let (id, said) = (format!("call_{number}"), "I will look at the file first.");
    let result = filled("    let answer = reader.next(\"line\")?; // as before\n", bytes);
    let input = json!({"argument_0":"cat src/main.rs","argument_1":"one"});
    match dialect {
        Dialect::Chat => {
            out.push(json!({"role":"assistant","content":said,"tool_calls":[{"id":id,"type":"function",
                "function":{"name":"tool_1","arguments":input.to_string()}}]}));
            out.push(json!({"role":"tool","tool_call_id":id,"content":result}));
        }
        Dialect::Responses => {
            out.push(json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":said}]}));
            out.push(json!({"type":"function_call","call_id":id,"name":"tool_1","arguments":input.to_string()}));
            out.push(json!({"type":"function_call_output","call_id":id,"output":result}));
        }
        Dialect::Messages => {
            out.push(json!({"role":"assistant","content":[{"type":"text","text":said},
                {"type":"tool_use","id":id,"name":"tool_1","input":input}]}));
            out.push(json!({"role":"user","content":[{"type":"tool_result","tool_use_id":id,"content":result}]}));
        }
        Dialect::Gemini => {
            out.push(
                json!({"role":"model","parts":[{"text":said},{"functionCall":{"id":id,"name":"tool_1","args":input}}]}),
            );
            out.push(json!({"role":"user","parts":[{"functionResponse":{"id":id,"name":"tool_1",
                "response":{"output":result}}}]}));
        }
    }
}

fn with_results(dialect: Dialect, bytes: usize) -> Vec<u8> {
    let system = filled("You are an agent.\n - Follow the user's words, and answer \"briefly\".\n", SYSTEM);
    let (ask, go_on) = ("Make the tests pass.\nAll of them.", "And now the rest.");
    let mut turns = Vec::new();
    turns.push(match dialect {
        Dialect::Gemini => json!({"role":"user","parts":[{"text":ask}]}),
        Dialect::Chat | Dialect::Responses | Dialect::Messages => json!({"role":"user","content":ask}),
    });
    for number in 0..STEPS {
        step(dialect, number, bytes, &mut turns);
    }
    turns.push(match dialect {
        Dialect::Gemini => json!({"role":"user","parts":[{"text":go_on}]}),
        Dialect::Chat | Dialect::Responses | Dialect::Messages => json!({"role":"user","content":go_on}),
    });
    let tools: Vec<Value> = (0..TOOLS).map(|number| tool(dialect, number)).collect();
    let body = match dialect {
        Dialect::Chat => {
            turns.insert(0, json!({"role":"system","content":system}));
            json!({"model":"m","max_completion_tokens":4096,"messages":turns,"tools":tools,"stream":true})
        }
        Dialect::Responses => json!({"model":"m","max_output_tokens":4096,"instructions":system,"input":turns,
            "tools":tools,"stream":true,"store":false}),
        Dialect::Messages => json!({"model":"m","max_tokens":4096,"system":[{"type":"text","text":system,
            "cache_control":{"type":"ephemeral"}}],"messages":turns,"tools":tools,"stream":true}),
        Dialect::Gemini => json!({"systemInstruction":{"parts":[{"text":system}]},"contents":turns,
            "tools":[{"functionDeclarations":tools}],"generationConfig":{"maxOutputTokens":4096}}),
    };
    body.to_string().into_bytes()
}

/// The request's body.
pub fn body(dialect: Dialect) -> Vec<u8> {
    let bare = with_results(dialect, 0).len();
    // A result's quotes and line breaks are written in two bytes.
    let first = SIZE.saturating_sub(bare) / STEPS;
    let grown = with_results(dialect, first).len();
    let wanted = SIZE.saturating_sub(bare) * first / grown.saturating_sub(bare).max(1);
    with_results(dialect, wanted)
}
