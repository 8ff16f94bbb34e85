//! What tells one configuration from another, for people who compare two: a digest of its keys and values without anything
//! that is a secret, or that could be guessed from a digest.
//!
//! It is made of the document after the environment's overrides, so that another build of the same file gives the same one.

use super::document::{Node, Value};

/// What stands for a value that is left out.
const LEFT_OUT: &str = "left out";

/// The digest of a document.
pub(super) fn of(root: &Node) -> String {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, root, How::Shown);
    let hex = hasher.finalize().to_hex();
    format!("blake3:{}", hex.get(..32).unwrap_or(&hex))
}

/// How the values below a key go in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// As they are.
    Shown,
    /// A secret: only the place where it is found.
    Secret,
    /// Values of free names, which may be secrets: the names alone.
    Names,
    /// A program: without its arguments.
    Program,
}

impl How {
    fn below(self, key: &str) -> How {
        match (self, key) {
            (_, "secret" | "master_key") => How::Secret,
            (_, "command") => How::Program,
            (How::Secret, "env" | "file" | "every") => How::Shown,
            (How::Shown, "headers" | "env") => How::Names,
            (how, _) => how,
        }
    }
}

fn add(hasher: &mut blake3::Hasher, node: &Node, how: How) {
    match (&node.value, how) {
        (Value::Table(entries), _) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|a, b| a.key.cmp(&b.key));
            put(hasher, "table", &sorted.len().to_string());
            for entry in sorted {
                put(hasher, "key", &entry.key);
                add(hasher, &entry.node, how.below(&entry.key));
            }
        }
        (Value::List(nodes), How::Program) => {
            put(hasher, "program", "");
            if let Some(first) = nodes.first() {
                add(hasher, first, How::Shown);
            }
        }
        (Value::List(nodes), How::Shown | How::Secret | How::Names) => {
            put(hasher, "list", &nodes.len().to_string());
            nodes.iter().for_each(|node| add(hasher, node, how));
        }
        (_, How::Secret | How::Names) => put(hasher, "value", LEFT_OUT),
        (Value::Text(text), How::Shown | How::Program) => put(hasher, "text", &without_user(text)),
        (Value::Integer(number), How::Shown | How::Program) => put(hasher, "integer", &format!("{number:?}")),
        (Value::Float(_, text), How::Shown | How::Program) => put(hasher, "float", text),
        (Value::Boolean(value), How::Shown | How::Program) => put(hasher, "boolean", &value.to_string()),
        (Value::Date(text), How::Shown | How::Program) => put(hasher, "date", text),
    }
}

fn put(hasher: &mut blake3::Hasher, kind: &str, text: &str) {
    hasher.update(kind.as_bytes());
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// A URL without the user and password before its host.
fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    fn digest(text: &str, environment: &[(&str, &str)]) -> String {
        let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Config::parse(text, Path::new("turnkeep.toml"), environment).unwrap().digest.unwrap()
    }

    const PLAIN: &str = r#"
allow_plain_secrets = true
[[upstreams]]
name = "a"
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
proxy = "http://user:one@127.0.0.1:8080"
headers = { x-team = "one" }
[[upstreams.accounts]]
name = "b"
secret = "one"
"#;

    #[test]
    fn another_secret_header_or_proxy_password_is_the_same_configuration_and_another_number_is_not() {
        let one = digest(PLAIN, &[]);
        assert_eq!(
            one,
            digest(&PLAIN.replace("one", "two").replace("x-team =", "# words\n").replace("# words\n", "x-team ="), &[])
        );
        assert_ne!(one, digest(&PLAIN.replace(":9/", ":8/"), &[]));
        assert_ne!(one, digest(PLAIN, &[("TURNKEEP_TUNING__BUDGET", "5")]));
        assert_eq!(
            digest(&format!("{PLAIN}\n[tuning]\nbudget = 5 # five\n"), &[]),
            digest(PLAIN, &[("TURNKEEP_TUNING__BUDGET", "5")]),
        );
    }

    #[test]
    fn where_a_secret_is_found_is_part_of_it() {
        let by = |place: &str| digest(&PLAIN.replace("secret = \"one\"", &format!("secret = {place}")), &[]);
        assert_ne!(by(r#"{ env = "A" }"#), by(r#"{ env = "B" }"#));
        let command = |word: &str| by(&format!(r#"{{ command = ["{word}", "token"], every = "1m" }}"#));
        assert_ne!(command("p"), command("q"));
        let argument = |word: &str| by(&format!(r#"{{ command = ["p", "{word}"], every = "1m" }}"#));
        assert_eq!(argument("token"), argument("other"));
    }
}
