//! What the keys of a long conversation cost: `cargo run --release --example keys_speed -p turnkeep-dialect`.
//!
//! All keys of a history of 120 messages and 320 KiB, besides the system prompt of 16 KiB and 40 tools, in one pass over the
//! turn that was read from the body. *agent*: calls and their results; *talk*: everybody says as much. Each figure is the
//! least of many runs in CPU time of the thread, so that what else the machine does falls out. A line is a case and its
//! figures between tabs: nanoseconds for the keys, for reading the turn, and for adding an answer of 2 KiB and one call to
//! what is known; then bytes of the history, and messages. `turnkeep-bench conversations` reads them.

#![allow(clippy::print_stdout)] // its output is what it is for

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};
use turnkeep_base::Dialect;
use turnkeep_dialect::identity::{answered, history};
use turnkeep_dialect::recorded::Recorded;
use turnkeep_dialect::reply::Facts;
use turnkeep_dialect::request::{self, ClientRequest, InPath, Operation, StreamForm};

// As the gateway has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MESSAGES: usize = 120;
const HISTORY: usize = 320 << 10;
const SYSTEM: usize = 16 << 10;
const TOOLS: usize = 40;
/// Runs between two readings of the clock.
const RUNS: u64 = 4;
const KEY: [u8; 32] = [7; 32];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn filled(line: &str, bytes: usize) -> String {
    line.chars().cycle().take(bytes).collect()
}

/// Part `number` of a history: who speaks, and what.
fn message(dialect: Dialect, number: usize, agent: bool) -> Vec<Value> {
    let line = "    let answer = reader.next(\"line\")?; // as before, <of> the file\n";
    let assistant = number % 2 == 1;
    let bytes = match (agent, assistant) {
        (true, true) => 30,
        (true, false) => 2 * HISTORY / MESSAGES - 90,
        (false, _) => HISTORY / MESSAGES,
    };
    let text = filled(line, bytes);
    let calls = agent && assistant && number + 1 < MESSAGES;
    let result = agent && !assistant && number > 0;
    let id = format!("call_{}", (number - usize::from(result)) / 2);
    let input = json!({"path":"crates/a/src/main.rs","lines":[1, 20.0]});
    match dialect {
        Dialect::Chat if calls => vec![json!({"role":"assistant","content":text,"tool_calls":[
            {"id":id,"type":"function","function":{"name":"tool_1","arguments":input.to_string()}}]})],
        Dialect::Chat if result => vec![json!({"role":"tool","tool_call_id":id,"content":text})],
        Dialect::Messages if calls => vec![json!({"role":"assistant","content":[
            {"type":"text","text":text}, {"type":"tool_use","id":id,"name":"tool_1","input":input}]})],
        Dialect::Messages if result => {
            vec![json!({"role":"user","content":[{"type":"tool_result","tool_use_id":id,"content":text}]})]
        }
        Dialect::Chat | Dialect::Messages => {
            vec![json!({"role":if assistant { "assistant" } else { "user" },"content":text})]
        }
        Dialect::Responses if calls => vec![
            json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":text}]}),
            json!({"type":"function_call","call_id":id,"name":"tool_1","arguments":input.to_string()}),
        ],
        Dialect::Responses if result => vec![json!({"type":"function_call_output","call_id":id,"output":text})],
        Dialect::Responses => {
            let kind = if assistant { "output_text" } else { "input_text" };
            vec![
                json!({"type":"message","role":if assistant { "assistant" } else { "user" },"content":[{"type":kind,"text":text}]}),
            ]
        }
        Dialect::Gemini if calls => {
            vec![
                json!({"role":"model","parts":[{"text":text},{"functionCall":{"id":id,"name":"tool_1","args":input}}]}),
            ]
        }
        Dialect::Gemini if result => vec![json!({"role":"user","parts":[
            {"functionResponse":{"id":id,"name":"tool_1","response":{"output":text}}}]})],
        Dialect::Gemini => vec![json!({"role":if assistant { "model" } else { "user" },"parts":[{"text":text}]})],
    }
}

fn tools(dialect: Dialect) -> Value {
    let property = |number: u32| {
        let inner = json!({"type":"string","description":"What this argument of the tool is for, in a line of text."});
        (format!("argument_{number}"), inner)
    };
    let properties: serde_json::Map<String, Value> = (0..8).map(property).collect();
    let schema = json!({"type":"object","properties":properties,"required":["argument_0"]});
    let about = filled("Runs a command in the user's shell.\n\nUse it with care: it is not undone. ", 1200);
    let tool = |number: usize| {
        let name = format!("tool_{number}");
        match dialect {
            Dialect::Chat => {
                json!({"type":"function","function":{"name":name,"description":about,"parameters":schema}})
            }
            Dialect::Responses => json!({"type":"function","name":name,"description":about,"parameters":schema}),
            Dialect::Messages => json!({"name":name,"description":about,"input_schema":schema}),
            Dialect::Gemini => json!({"name":name,"description":about,"parametersJsonSchema":schema}),
        }
    };
    let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
    if dialect == Dialect::Gemini { json!([{"functionDeclarations":tools}]) } else { json!(tools) }
}

fn body(dialect: Dialect, agent: bool) -> String {
    let system = filled("You are an agent.\n - Today's date: 2026-11-30\n - Answer \"briefly\".\n", SYSTEM);
    // The last is the user's.
    let mut list: Vec<Value> = (0..=MESSAGES).flat_map(|number| message(dialect, number, agent)).collect();
    let tools = tools(dialect);
    let body = match dialect {
        Dialect::Chat => {
            list.insert(0, json!({"role":"system","content":system}));
            json!({"model":"m","messages":list,"tools":tools})
        }
        Dialect::Responses => json!({"model":"m","instructions":system,"input":list,"tools":tools}),
        Dialect::Messages => json!({"model":"m","max_tokens":9,"system":system,"messages":list,"tools":tools}),
        Dialect::Gemini => json!({"systemInstruction":{"parts":[{"text":system}]},"contents":list,"tools":tools}),
    };
    body.to_string()
}

fn read(dialect: Dialect, agent: bool) -> Outcome<ClientRequest> {
    let body = body(dialect, agent).into();
    let read = match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => request::read(dialect, Operation::Generate, body),
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
            request::read_in_path(Operation::Generate, path, body)
        }
    };
    read.map_err(|error| format!("{dialect}: {error:?}").into())
}

/// CPU time of this thread, nanoseconds.
fn cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or_default()
}

/// The least time of one run, nanoseconds.
fn least(each: Duration, mut work: impl FnMut()) -> u64 {
    work();
    let (began, mut least) = (Instant::now(), u64::MAX);
    while began.elapsed() < each {
        let before = cpu();
        (0..RUNS).for_each(|_| work());
        least = least.min((cpu() - before) / RUNS);
    }
    least
}

fn main() -> Outcome<()> {
    let each = std::env::args().nth(1).and_then(|each| each.parse().ok()).unwrap_or(400);
    let each = Duration::from_millis(each);
    let call = json!({"id":"c","type":"function","function":{"name":"tool_1","arguments":"{\"path\": \"a\"}"}});
    let said =
        json!({"role":"assistant","content":filled("I will look at the file first. ", 2 << 10),"tool_calls":[call]});
    let answer =
        json!({"object":"chat.completion","choices":[{"index":0,"message":said,"finish_reason":"tool_calls"}]});
    let bytes = answer.to_string().into();
    let answer = Recorded { dialect: Dialect::Chat, stream: false, bytes, facts: Facts::default() };
    for (what, agent) in [("agent", true), ("talk", false)] {
        for dialect in Dialect::ALL {
            let request = read(dialect, agent)?;
            let turn = request.turn().map_err(|error| format!("{dialect}: {error:?}"))?;
            let whole = history(&KEY, &turn);
            if !whole.can_go_on() || answered(&KEY, &whole, &answer).is_none() {
                return Err(format!("{what}, {dialect}: has no keys").into());
            }
            let keys = least(each, || {
                black_box(history(&KEY, black_box(&turn)));
            });
            let reading = least(each, || {
                black_box(black_box(&request).turn().is_ok());
            });
            let adding = least(each, || {
                black_box(answered(&KEY, &whole, black_box(&answer)));
            });
            println!("keys\t{what}\t{dialect}\t{keys}\t{reading}\t{adding}\t{HISTORY}\t{MESSAGES}");
        }
    }
    Ok(())
}
