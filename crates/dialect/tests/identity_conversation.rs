//! A conversation that an upstream keeps is found again at each next turn of the real clients, and from nowhere else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "identity_conversation/clients.rs"]
mod clients;
#[path = "identity_conversation/script.rs"]
mod script;

use clients::{CLIENTS, Client, World, aider};
use script::{TURNS, answer};
use turnkeep_base::{Dialect, Fingerprint};
use turnkeep_dialect::identity::{self, History, Whose};
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, read, read_in_path};

const KEY: [u8; 32] = [7; 32];

const WORLD: World = World {
    caller: "key/user",
    model: "m",
    session: "s-1",
    directory: "/home/u/one",
    rules: "Be brief.\nAsk before you delete.",
    tool: "Does it.",
    day: 1,
    commit: "abc1234",
    files: "├───a.rs\n└───.git/...",
};

fn request(client: &Client, world: &World, turn: usize) -> ClientRequest {
    let body = (client.body)(world, turn).to_string();
    let read = match client.dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
            read(client.dialect, Operation::Generate, body.into())
        }
        Dialect::Gemini => {
            let path = InPath { model: world.model.into(), stream: false, form: StreamForm::Events };
            read_in_path(Operation::Generate, path, body.into())
        }
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", client.name))
}

fn key(client: &Client, world: &World, request: &ClientRequest, history: &History, answer: Fingerprint) -> Fingerprint {
    let headers = client.session.map(|headers| headers(world)).unwrap_or_default();
    let find = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let (session, within) = (identity::session(request, &find), identity::session_within(request, &find));
    let (session, within) = (session.as_deref(), within.as_deref());
    let whose = Whose { scope: world.caller, model: &request.model, session, within };
    identity::conversation(&KEY, &whose, history.prefix, answer)
}

/// The key under which the conversation is kept after a turn.
fn kept(client: &Client, world: &World, turn: usize) -> Fingerprint {
    let request = request(client, world, turn);
    let history = identity::history(&KEY, &request.turn().unwrap());
    let [streamed, plain] = answer(client.dialect, turn).map(|answer| {
        identity::answered(&KEY, &history, &answer).unwrap_or_else(|| panic!("{}, turn {turn}", client.name))
    });
    assert_eq!(streamed, plain, "{}, turn {turn}", client.name);
    key(client, world, &request, &history, streamed)
}

/// The key under which a turn looks for its conversation.
fn sought(client: &Client, world: &World, turn: usize) -> Option<Fingerprint> {
    let request = request(client, world, turn);
    let history = identity::history(&KEY, &request.turn().unwrap());
    let last = history.answers.last().copied().filter(|_| history.can_go_on())?;
    Some(key(client, world, &request, &history, last))
}

#[test]
fn every_turn_of_every_client_after_the_first_finds_the_conversation() {
    for client in &CLIENTS {
        assert_eq!(sought(client, &WORLD, 0), None, "{}", client.name);
        for turn in 0..TURNS {
            assert_eq!(
                sought(client, &WORLD, turn + 1),
                Some(kept(client, &WORLD, turn)),
                "{}, turn {turn}",
                client.name
            );
        }
    }
}

#[test]
fn the_next_day_another_commit_and_new_files_make_no_difference() {
    let later =
        World { day: 2, commit: "def5678", files: "├───a.rs\n├───b.rs\n└───.git/...", ..WORLD };
    for client in &CLIENTS {
        for turn in 0..TURNS {
            assert_eq!(
                sought(client, &later, turn + 1),
                Some(kept(client, &WORLD, turn)),
                "{}, turn {turn}",
                client.name
            );
        }
    }
}

#[test]
fn another_prompt_tool_directory_model_user_or_session_misses() {
    let others: [(&str, World); 6] = [
        ("system prompt", World { rules: "Be brief.\nNever ask.", ..WORLD }),
        ("tool", World { tool: "Does it well.", ..WORLD }),
        ("directory", World { directory: "/home/u/two", ..WORLD }),
        ("model", World { model: "n", ..WORLD }),
        ("user", World { caller: "key/other", ..WORLD }),
        ("session", World { session: "s-2", ..WORLD }),
    ];
    for client in &CLIENTS {
        for (what, other) in &others {
            if *what == "session" && client.session.is_none() {
                continue;
            }
            for turn in 0..TURNS {
                let (here, there) = (kept(client, &WORLD, turn), sought(client, other, turn + 1));
                assert!(there.is_some(), "{}: {what}", client.name);
                assert_ne!(there, Some(here), "{}: {what}", client.name);
            }
        }
    }
}

#[test]
fn a_name_for_the_conversation_is_part_of_its_key_and_the_clients_session_stays_one() {
    let client = Client {
        session: Some(|world| {
            let name = if world.session.ends_with('1') { "blue" } else { "red" };
            vec![("x-turnkeep-conversation", name.into()), ("x-claude-code-session-id", world.session.into())]
        }),
        ..CLIENTS[0]
    };
    let here = kept(&client, &WORLD, 0);
    assert_eq!(sought(&client, &WORLD, 1), Some(here));
    assert_ne!(sought(&CLIENTS[0], &WORLD, 1), Some(here), "without the name");
    for (session, what) in [("s-11", "the same name in another session"), ("s-2", "another name")] {
        assert_ne!(sought(&client, &World { session, ..WORLD }, 1), Some(here), "{what}");
    }
}

#[test]
fn a_turn_finds_its_own_conversation_and_not_that_of_an_earlier_turn() {
    for client in &CLIENTS {
        let kept: Vec<Fingerprint> = (0..TURNS).map(|turn| kept(client, &WORLD, turn)).collect();
        for turn in 0..TURNS {
            let found = kept.iter().position(|kept| sought(client, &WORLD, turn + 1) == Some(*kept));
            assert_eq!(found, Some(turn), "{}", client.name);
        }
    }
}

#[test]
fn a_client_that_writes_its_history_anew_each_turn_is_sent_whole_each_time() {
    let aider = Client { name: "Aider", dialect: Dialect::Chat, session: None, body: aider };
    let kept: Vec<Fingerprint> = (0..TURNS).map(|turn| kept(&aider, &WORLD, turn)).collect();
    for turn in 1..=TURNS {
        let sought = sought(&aider, &WORLD, turn);
        assert!(sought.is_some_and(|sought| !kept.contains(&sought)), "turn {turn}");
    }
}
