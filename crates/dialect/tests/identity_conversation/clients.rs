//! Real clients, in few words: where each puts what it tells of itself, and what it writes otherwise from turn to turn.
//! Seen in captures of Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0, OpenCode 1.18.33, Cline 3.0.65, Qwen Code
//! 0.24.4 and Aider 0.86.2, and in runs of the first four and Qwen Code against a stand-in that were stopped, taken up
//! again after a commit, and read side by side.

use super::script::{ANSWERS, FIRST, NEXT, respelled};
use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// What a client runs in.
#[derive(Clone)]
pub struct World {
    pub caller: &'static str,
    pub model: &'static str,
    pub session: &'static str,
    pub directory: &'static str,
    pub rules: &'static str,
    pub tool: &'static str,
    // What may change within a conversation.
    pub day: u32,
    pub commit: &'static str,
    pub files: &'static str,
}

pub type Headers = Vec<(&'static str, String)>;

#[derive(Clone, Copy)]
pub struct Client {
    pub name: &'static str,
    pub dialect: Dialect,
    /// The client tells its session.
    pub session: Option<fn(&World) -> Headers>,
    /// The body of request `turn`, which holds the answers to those before.
    pub body: fn(&World, usize) -> Value,
}

pub const CLIENTS: [Client; 7] = [
    Client {
        name: "Claude Code",
        dialect: Dialect::Messages,
        session: Some(|world| vec![("x-claude-code-session-id", world.session.into())]),
        body: claude_code,
    },
    Client {
        name: "Codex",
        dialect: Dialect::Responses,
        session: Some(|world| vec![("session-id", world.session.into()), ("thread-id", world.session.into())]),
        body: codex,
    },
    Client { name: "Gemini CLI", dialect: Dialect::Gemini, session: None, body: gemini_cli },
    Client {
        name: "OpenCode",
        dialect: Dialect::Chat,
        session: Some(|world| vec![("x-session-affinity", world.session.into())]),
        body: opencode,
    },
    Client {
        name: "OpenCode, Messages",
        dialect: Dialect::Messages,
        session: Some(|world| vec![("x-session-id", world.session.into())]),
        body: opencode_messages,
    },
    Client { name: "Cline", dialect: Dialect::Chat, session: None, body: cline },
    Client { name: "Qwen Code", dialect: Dialect::Chat, session: None, body: qwen_code },
];

fn schema() -> Value {
    json!({"type":"object","properties":{"path":{"type":"string"}}})
}

fn chat_tools(world: &World) -> Value {
    let tool =
        |name: &str| json!({"type":"function","function":{"name":name,"description":world.tool,"parameters":schema()}});
    json!([tool("read"), tool("exec")])
}

/// Marks the last part of the last message for the provider's cache, as if none before had been.
fn marked(messages: &mut [Value]) {
    let last = messages.last_mut().and_then(|message| message["content"].as_array_mut()?.last_mut()).unwrap();
    last["cache_control"] = json!({"type":"ephemeral"});
}

/// The prompt in three blocks, the first of which changes with the user's first words; the repository's state in a
/// reminder before these; its surroundings and the date in a system message after them, in blocks at first and later as a
/// string; results that it adds reminders to, and takes them out of again.
fn claude_code(world: &World, turn: usize) -> Value {
    let World { directory, day, commit, .. } = world;
    let reminder = format!(
        "<system-reminder>\n# gitStatus\nStatus:\n?? c.txt\n\nRecent commits:\n{commit} first\n</system-reminder>"
    );
    let surroundings = format!(
        "# Environment\n - Primary working directory: {directory}\n - Platform: linux\n\nToday's date is 2026-12-{day:02}."
    );
    let mut messages =
        vec![json!({"role":"user","content":[{"type":"text","text":reminder},{"type":"text","text":FIRST}]})];
    messages.push(if turn == 0 {
        json!({"role":"system","content":[{"type":"text","text":surroundings,"cache_control":{"type":"ephemeral"}}]})
    } else {
        json!({"role":"system","content":surroundings})
    });
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        let mut said = vec![json!({"type":"text","text":answer.text})];
        if !answer.thought.is_empty() {
            said.insert(0, json!({"type":"thinking","thinking":answer.thought,"signature":"c2ln"}));
        }
        let mut results = Vec::new();
        for (at, (name, arguments, result)) in answer.calls.iter().enumerate() {
            let id = format!("toolu_{number}_{at}");
            said.push(json!({"type":"tool_use","id":id,"name":name,"input":respelled(arguments)}));
            let newest = number + 1 == turn;
            let todo = "\n\n<system-reminder>\nThe list of tasks is empty. Never mention this.\n</system-reminder>\n";
            let content = if newest { format!("{result}{todo}") } else { (*result).to_owned() };
            results.push(json!({"tool_use_id":id,"type":"tool_result","content":content,"is_error":false}));
        }
        messages.push(json!({"role":"assistant","content":said}));
        messages.push(json!({"role":"user","content":if results.is_empty() { vec![json!({"type":"text","text":NEXT})] } else { results }}));
    }
    if turn > 0 {
        marked(&mut messages);
    }
    let tool = |name: &str| json!({"name":name,"description":world.tool,"input_schema":schema()});
    json!({"model":world.model,"max_tokens":9,"messages":messages,"tools":[tool("read"), tool("exec")],
        "system":[{"type":"text","text":format!("x-anthropic-billing-header: cc_version=2.1.332.{turn:03}; cc_entrypoint=cli;")},
            {"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}},
            {"type":"text","text":world.rules,"cache_control":{"type":"ephemeral"}}],
        "metadata":{"user_id":json!({"device_id":"d","session_id":world.session}).to_string()}})
}

/// Developer messages, its surroundings in a user's message, and items that are only added to; metadata in any order.
fn codex(world: &World, turn: usize) -> Value {
    let World { directory, day, .. } = world;
    let text =
        |role: &str, text: &str| json!({"type":"message","role":role,"content":[{"type":"input_text","text":text}]});
    let context = format!(
        "<environment_context>\n  <cwd>{directory}</cwd>\n  <shell>bash</shell>\n  <current_date>2026-12-{day:02}</current_date>\n\
         </environment_context>"
    );
    let mut input = vec![text("developer", world.rules), text("user", &context), text("user", FIRST)];
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        if !answer.thought.is_empty() {
            input.push(json!({"type":"reasoning","id":format!("rs_{number}"),"summary":[{"type":"summary_text","text":answer.thought}],"encrypted_content":"c2ln"}));
        }
        input.push(json!({"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":answer.text,"annotations":[]}]}));
        for (at, (name, arguments, _)) in answer.calls.iter().enumerate() {
            input.push(json!({"type":"function_call","call_id":format!("call_{number}_{at}"),"name":name,"arguments":arguments}));
        }
        for (at, (_, _, result)) in answer.calls.iter().enumerate() {
            input.push(json!({"type":"function_call_output","call_id":format!("call_{number}_{at}"),"output":result}));
        }
        if answer.calls.is_empty() {
            input.push(text("user", NEXT));
        }
    }
    let tool = |name: &str| json!({"type":"function","name":name,"description":world.tool,"strict":false,"parameters":schema()});
    json!({"model":world.model,"input":input,"tools":[tool("read"), tool("exec")],"prompt_cache_key":world.session,
        "client_metadata":{"turn_id":format!("t{turn}")}})
}

/// Its surroundings before the user's first words. After it was started anew: the files as they are now, texts without the
/// white space around them, other ids, each result twice.
fn gemini_cli(world: &World, turn: usize) -> Value {
    let World { directory, day, files, .. } = world;
    let anew = turn == ANSWERS.len();
    let context = format!(
        "<session_context>\nToday's date is Tuesday, December {day}, 2026.\nMy operating system is: linux\n\
         - **Workspace Directories:**\n  - {directory}\n- **Directory Structure:**\n\n{directory}/\n{files}\n\n</session_context>"
    );
    let mut contents = vec![json!({"role":"user","parts":[{"text":context},{"text":FIRST}]})];
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        let mut said = vec![json!({"text":if anew { answer.text.trim() } else { answer.text }})];
        let mut results = Vec::new();
        for (at, (name, arguments, result)) in answer.calls.iter().enumerate() {
            let id = if anew { format!("{name}__fc-{number}-{at}") } else { format!("fc-{number}-{at}") };
            let signature = if anew { "skip_thought_signature_validator" } else { "c2ln" };
            said.push(
                json!({"functionCall":{"id":id,"name":name,"args":respelled(arguments)},"thoughtSignature":signature}),
            );
            let result = json!({"functionResponse":{"id":id,"name":name,"response":{"output":result}}});
            results.extend(std::iter::repeat_n(result, if anew { 2 } else { 1 }));
        }
        contents.push(json!({"role":"model","parts":said}));
        contents
            .push(json!({"role":"user","parts":if results.is_empty() { vec![json!({"text":NEXT})] } else { results }}));
    }
    let tool = |name: &str| json!({"name":name,"description":world.tool,"parametersJsonSchema":schema()});
    json!({"contents":contents,"systemInstruction":{"role":"user","parts":[{"text":world.rules}]},
        "tools":[{"functionDeclarations":[tool("read"), tool("exec")]}]})
}

/// Chat messages; what a client does with the answers' texts and arguments is its own.
fn chat(
    world: &World,
    turn: usize,
    system: &str,
    first: Value,
    text: fn(&str) -> Value,
    result: fn(&str) -> Value,
) -> Value {
    let mut messages = vec![json!({"role":"system","content":system}), json!({"role":"user","content":first})];
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        let call = |(at, (name, arguments, _)): (usize, &(&str, &str, &str))| json!({"id":format!("call_{number}_{at}"),"type":"function","function":{"name":name,"arguments":respelled(arguments).to_string()}});
        let calls: Vec<Value> = answer.calls.iter().enumerate().map(call).collect();
        let mut said = json!({"role":"assistant","content":text(answer.text)});
        if !calls.is_empty() {
            said["tool_calls"] = json!(calls);
        }
        messages.push(said);
        for (at, (_, _, said)) in answer.calls.iter().enumerate() {
            messages.push(json!({"role":"tool","tool_call_id":format!("call_{number}_{at}"),"content":result(said)}));
        }
        if answer.calls.is_empty() {
            messages.push(json!({"role":"user","content":NEXT}));
        }
    }
    json!({"model":world.model,"messages":messages,"tools":chat_tools(world)})
}

fn opencode_prompt(World { directory, day, rules, .. }: &World) -> String {
    format!(
        "{rules}\n<env>\n  Working directory: {directory}\n  Platform: linux\n  Today's date: Tue Dec {day:02} 2026\n</env>\nSkills follow."
    )
}

/// Surroundings and date within the prompt.
fn opencode(world: &World, turn: usize) -> Value {
    chat(world, turn, &opencode_prompt(world), json!(FIRST), |text| json!(text), |result| json!(result))
}

/// The same in Messages: the cache marks of the last two messages move.
fn opencode_messages(world: &World, turn: usize) -> Value {
    let mut messages = vec![json!({"role":"user","content":[{"type":"text","text":FIRST}]})];
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        let (mut said, mut results) = (vec![json!({"type":"text","text":answer.text})], Vec::new());
        for (at, (name, arguments, result)) in answer.calls.iter().enumerate() {
            let id = format!("toolu_{number}_{at}");
            said.push(json!({"type":"tool_use","id":id,"name":name,"input":respelled(arguments)}));
            results.push(json!({"type":"tool_result","tool_use_id":id,"content":result}));
        }
        messages.push(json!({"role":"assistant","content":said}));
        messages.push(json!({"role":"user","content":if results.is_empty() { vec![json!({"type":"text","text":NEXT})] } else { results }}));
    }
    marked(&mut messages);
    let before = messages.len() - 1;
    if before > 0 {
        marked(&mut messages[..before]);
    }
    let tool = |name: &str| json!({"name":name,"description":world.tool,"input_schema":schema()});
    json!({"model":world.model,"max_tokens":9,"messages":messages,"tools":[tool("read"), tool("exec")],
        "system":[{"type":"text","text":opencode_prompt(world),"cache_control":{"type":"ephemeral"}}]})
}

/// The directory within the prompt.
fn cline(world: &World, turn: usize) -> Value {
    let system = format!("{}\n\nCurrent Working Directory: {}\n", world.rules, world.directory);
    chat(world, turn, &system, json!(FIRST), |text| json!(text), |result| json!(result))
}

/// The repository's state in the prompt, and reminders before the user's first words, of which the date's goes when it is
/// started anew.
fn qwen_code(world: &World, turn: usize) -> Value {
    let World { directory, day, commit, files, rules, .. } = world;
    let system = format!(
        "{rules}\n\nThe repository at the start:\n```text\ngit: Status:\ngit: ?? c.txt\ngit: {commit} first\n```\n\n# Memory\nNone."
    );
    let context = format!(
        "<system-reminder>\nWe are setting up the context for our chat.\nToday's date is Tuesday, December {day}, 2026.\n\
         I'm currently working in the directory: {directory}\nHere is the folder structure:\n\n{directory}/\n{files}\n</system-reminder>"
    );
    let date = format!("<system-reminder>\nThe current date is: Tuesday, December {day}, 2026.\n</system-reminder>");
    let mut first = vec![
        json!({"type":"text","text":context}),
        json!({"type":"text","text":date}),
        json!({"type":"text","text":FIRST}),
    ];
    if turn == ANSWERS.len() {
        first.remove(1);
    }
    chat(world, turn, &system, json!(first), |text| json!(text), |result| json!([{"type":"text","text":result}]))
}

/// It writes its conversation anew each turn: examples, what was said, then the files as they are and a promise of the
/// assistant's about them, and then the user's words.
pub fn aider(world: &World, turn: usize) -> Value {
    let mut messages = vec![json!({"role":"system","content":world.rules})];
    for (number, answer) in ANSWERS.iter().enumerate().take(turn) {
        messages.push(json!({"role":"user","content":if number == 0 { FIRST } else { NEXT }}));
        messages.push(json!({"role":"assistant","content":answer.text}));
    }
    messages.push(json!({"role":"user","content":format!("I have added these files to the chat:\n{}", world.files)}));
    messages.push(json!({"role":"assistant","content":"Ok, any changes I propose will be to those files."}));
    messages.push(json!({"role":"user","content":if turn == 0 { FIRST } else { NEXT }}));
    json!({"model":world.model,"messages":messages})
}
