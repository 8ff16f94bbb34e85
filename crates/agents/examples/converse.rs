//! Holds a conversation with an agent of the Agent Client Protocol, as the gateway does, to see whether it can be used:
//!
//! ```sh
//! printf 'hello\nand again\n' | cargo run -p turnkeep-agents --example converse -- HOME [NAME=VALUE…] -- gemini --acp
//! ```
//!
//! Each line of the input is a turn. The variables are the agent's; nothing else of the environment reaches it but `PATH`,
//! `LANG` and `TMPDIR`.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_agents::acp::{Acp, AcpAccount, AcpSpec, ToolActivity};
use turnkeep_base::{AccountId, Secret};
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_dialect::turn::{At, Body, Message, Part, Role, Turn};
use turnkeep_engine::ports::{Ask, Happening, Native, Writing};
use turnkeep_policy::conversations::Conversation;

type Failed = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().ok_or("usage: converse HOME [NAME=VALUE…] -- COMMAND…")?;
    let variables: Vec<String> = arguments.by_ref().take_while(|argument| argument != "--").collect();
    let pair =
        |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));
    let env: BTreeMap<String, Secret> = variables.iter().filter_map(pair).collect();
    let home = std::path::absolute(home)?;
    let mut spec = AcpSpec::new("agent", arguments.collect(), home.join("conversations"));
    spec.tool_activity = ToolActivity::Notes;
    spec.accounts.insert("me".into(), AcpAccount { home: Some(home), env, auth_method: None });
    let acp = Acp::new(spec);
    let mut conversation = None;
    for line in std::io::stdin().lock().lines() {
        conversation = turn(&acp, &line?, conversation).await?;
    }
    Ok(())
}

async fn turn(acp: &Acp, said: &str, resume: Option<Conversation>) -> Result<Option<Conversation>, Failed> {
    let at = At::Content { message: 0, part: 0 };
    let parts = vec![Part { body: Body::Text(said.into()), at, cache: None }];
    let messages = vec![Message { role: Role::User, at: At::Message(0), parts }];
    let how = Writing { model: "default", goes_on: resume.is_some(), stream: true };
    println!("> {said}{}", if resume.is_some() { " (goes on)" } else { "" });
    let body = acp.write(&Turn { messages, ..Turn::default() }, how)?.body;
    let ask = Ask {
        body,
        model: Arc::from("default"),
        account: AccountId { upstream: "agent".into(), account: "me".into() },
        secret: Secret::new(String::new()),
        caller: "me".into(),
        resume,
        reread: false,
        time_left: Duration::from_secs(600),
        trace: Default::default(),
    };
    let began = Instant::now();
    let mut answer = acp.send(ask).await.map_err(|failed| failed.fault.to_string())?;
    while let Some(happening) = poll_fn(|cx| answer.poll_next(cx)).await {
        match happening.map_err(|fault| fault.to_string())? {
            Happening::Event(Event::Delta { delta: Delta::Text(text), .. }) => println!("{text}"),
            Happening::Event(Event::Delta { delta: Delta::Thinking(text), .. }) => println!("({})", text.trim_end()),
            Happening::Event(Event::Finish { reason, .. }) => println!("[{reason:?} after {:?}]", began.elapsed()),
            Happening::Event(Event::Usage(usage)) => println!("[{usage:?}]"),
            Happening::Event(_) | Happening::Alive | Happening::Units(_) => {}
        }
    }
    Ok(answer.conversation())
}
