//! Secrets that a command prints, as the configuration gives them.

use super::{UPSTREAM, only_error, parse, parse_with};
use crate::config::SecretRef;
use std::time::Duration;

fn with(secret: &str) -> String {
    UPSTREAM.replace("{ env = \"OPENAI_API_KEY\" }", secret)
}

fn command(secret: &str) -> (Vec<String>, Duration) {
    match parse(&with(secret)).upstreams[0].accounts[0].credential.secret().cloned() {
        Some(SecretRef::Command { words, every }) => (words, every),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_is_run_again_every_50_minutes_unless_it_says_otherwise() {
    assert_eq!(command("{ command = [\"print-token\"] }"), (vec!["print-token".into()], Duration::from_secs(3000)));
    let (words, every) = command("{ command = [\"print-token\", \"--for\", \"\"], every = \"10s\" }");
    assert_eq!((words, every), (vec!["print-token".into(), "--for".into(), String::new()], Duration::from_secs(10)));
}

#[test]
fn a_program_that_is_named_by_its_path_is_found_from_the_folder_of_the_file() {
    assert_eq!(command("{ command = [\"bin/token\", \"bin/token\"] }").0, ["conf/bin/token", "bin/token"]);
    assert_eq!(command("{ command = [\"/usr/bin/token\"] }").0, ["/usr/bin/token"]);
}

#[test]
fn a_mistake_in_a_command_is_told_with_the_way_to_write_it() {
    let secret = "upstreams[0].accounts[0].secret";
    let wrong = [
        ("{ command = [] }", ".command", "names no program"),
        ("{ command = [\" \"] }", ".command[0]", "names the program"),
        ("{ command = \"print token\" }", ".command", "[\"PROGRAM\", \"ARGUMENT\"]"),
        ("{ command = [\"x\", 1] }", ".command[1]", "must be a string"),
        ("{ command = [\"x\"], every = \"9s\" }", ".every", "from 10s to 1d"),
        ("{ command = [\"x\"], every = \"25h\" }", ".every", "from 10s to 1d"),
        ("{ command = [\"x\"], env = \"A\" }", "", "keep one"),
        ("{ env = \"A\", every = \"1m\" }", ".every", "only a command is run again"),
        ("{ comand = [\"x\"] }", ".comand", "did you mean \"command\"?"),
    ];
    for (text, key, part) in wrong {
        let errors = super::errors(&with(text));
        let found = errors.iter().find(|error| error.key == format!("{secret}{key}"));
        let found = found.unwrap_or_else(|| panic!("{text}: {errors:?}"));
        assert!(found.message.contains(part), "{text}: {found}");
    }
}

#[test]
fn only_an_account_s_secret_may_come_from_a_command() {
    let key = "[[keys]]\nname = \"a\"\nsecret = { command = [\"x\"] }\n";
    assert!(only_error(key).1.contains("only an account's secret"));
    let master = "[store]\nmaster_key = { command = [\"x\"], every = \"1m\" }\n";
    assert!(only_error(master).1.contains("only an account's secret"));
}

#[test]
fn a_secret_in_a_variable_may_be_all_digits() {
    let variables = [("TURNKEEP_UPSTREAMS__OPENAI__ACCOUNTS__MAIN__SECRET", "1234567890")];
    let config = parse_with(UPSTREAM, &variables).unwrap();
    let secret = config.upstreams[0].accounts[0].credential.secret();
    assert!(matches!(secret, Some(SecretRef::Env(name)) if name == variables[0].0), "{secret:?}");
}
