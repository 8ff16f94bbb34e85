//! How long it takes to know a request and its conversation again, for an agent's request of about 60 KB:
//! `cargo run --release --example identity_speed -p turnkeep-dialect`.

#![allow(clippy::print_stdout)] // its output is what it is for

use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;
use turnkeep_base::Dialect;
use turnkeep_dialect::identity::{history, request};
use turnkeep_dialect::request::{ClientRequest, Operation, read};

const ROUNDS: u32 = 4;
const RUNS: u32 = 2_000;

fn tools(dialect: Dialect) -> Vec<Value> {
    let property = |number: u32| {
        let name = format!("argument_{number}");
        let inner = json!({"type":"string","description":"What this argument of the tool is for, in a line or two of text.","enum":["one","two"]});
        (name, inner)
    };
    let tool = |number: u32| {
        let name = format!("tool_{number}");
        let text =
            "Runs a command in the user's shell and gives what it printed.\n\nUse it with care: it is not undone.\n"
                .repeat(4);
        let properties: serde_json::Map<String, Value> = (0..6).map(property).collect();
        let schema = json!({"type":"object","properties":properties,"required":["argument_0"],"additionalProperties":false,
            "$schema":"http://json-schema.org/draft-07/schema#"});
        match dialect {
            Dialect::Chat => json!({"type":"function","function":{"name":name,"description":text,"parameters":schema}}),
            Dialect::Responses | Dialect::Messages | Dialect::Gemini => {
                json!({"name":name,"description":text,"input_schema":schema})
            }
        }
    };
    (0..24).map(tool).collect()
}

fn body(dialect: Dialect) -> Vec<u8> {
    let system = "You are an agent.\n - Follow the user's words.\n - Today's date: 2026-11-30.\nAnswer \"briefly\".\n"
        .repeat(120);
    let mut messages = vec![json!({"role":"user","content":"Make the tests pass.\nAll of them."})];
    for turn in 0..8 {
        let (id, output) = (format!("call_{turn}"), "line of output, with \"quotes\"\n".repeat(30));
        let said = "I will look at the file first.";
        match dialect {
            Dialect::Chat => {
                messages.push(json!({"role":"assistant","content":said,"tool_calls":[{"id":id,"type":"function",
                    "function":{"name":"tool_1","arguments":"{\"argument_0\": \"cat src/main.rs\", \"argument_1\": 7}"}}]}));
                messages.push(json!({"role":"tool","tool_call_id":id,"content":output}));
            }
            Dialect::Responses | Dialect::Messages | Dialect::Gemini => {
                messages.push(json!({"role":"assistant","content":[{"type":"text","text":said},
                    {"type":"tool_use","id":id,"name":"tool_1","input":{"argument_0":"cat src/main.rs","argument_1":7}}]}));
                messages
                    .push(json!({"role":"user","content":[{"type":"tool_result","tool_use_id":id,"content":output}]}));
            }
        }
    }
    let mut body = json!({"model":"m","max_tokens":4096,"messages":messages,"tools":tools(dialect),"stream":true});
    match dialect {
        Dialect::Chat => {
            if let Some(messages) = body["messages"].as_array_mut() {
                messages.insert(0, json!({"role":"system","content":system}));
            }
        }
        Dialect::Responses | Dialect::Messages | Dialect::Gemini => {
            body["system"] = json!([{"type":"text","text":system,"cache_control":{"type":"ephemeral"}}])
        }
    }
    body.to_string().into_bytes()
}

fn read_again(request: &ClientRequest) -> bool {
    read(request.dialect, request.operation, request.body.clone()).is_ok()
}

fn main() {
    let key = [7; 32];
    for dialect in [Dialect::Chat, Dialect::Messages] {
        let Ok(read) = read(dialect, Operation::Generate, body(dialect).into()) else { continue };
        println!("{dialect}: {} bytes", read.body.len());
        let time = |what: &str, work: &dyn Fn()| {
            work();
            // The best of many short runs: the machine may have other things to do.
            let run = |_| {
                let started = Instant::now();
                (0..ROUNDS).for_each(|_| work());
                started.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
            };
            println!("  {what}: {:.1} us", (0..RUNS).map(run).fold(f64::INFINITY, f64::min));
        };
        time("read (the check that every request passes)", &|| {
            black_box(read_again(black_box(&read)));
        });
        time("request", &|| {
            black_box(request(&key, black_box(&read)));
        });
        time("turn (read from the body)", &|| {
            black_box(black_box(&read).turn().is_ok());
        });
        let Ok(turn) = read.turn() else { continue };
        time("history (of the turn)", &|| {
            black_box(history(&key, black_box(&turn)));
        });
    }
}
