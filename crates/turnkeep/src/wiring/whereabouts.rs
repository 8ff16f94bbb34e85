//! Where an account's conversations are kept: at another place nobody goes on with them. Clocks, headers, a proxy, a
//! refreshed secret and the bounds of a process change nothing of that.

use crate::config::{Account, Credential, Upstream};
use std::path::PathBuf;
use turnkeep_base::Fingerprint;

/// What decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whereabouts {
    kind: &'static str,
    base_url: Option<String>,
    /// Of a process.
    command: Option<Vec<String>>,
    home: Option<PathBuf>,
    organization: Option<String>,
}

/// What digests are made of, and nothing else is.
const CONTEXT: &str = "turnkeep: where an account's conversations are kept, first form";

impl Whereabouts {
    /// Of an account of this upstream; one of the store's has nothing of its own.
    pub(super) fn of(upstream: &Upstream, account: Option<&Account>) -> Whereabouts {
        let (home, organization) = match account.map(|account| &account.credential) {
            Some(Credential::Surroundings { home, .. }) => (Some(home.clone()), None),
            Some(Credential::Member { organization, .. }) => (None, Some(organization.clone())),
            Some(Credential::Secret(_)) | None => (None, None),
        };
        Whereabouts {
            kind: upstream.speaks.kind().name(),
            base_url: upstream.speaks.remote().map(|remote| remote.base_url.clone()),
            command: upstream.speaks.process().map(|process| process.command.clone()),
            home,
            organization,
        }
    }

    /// The same for the same place in every run.
    pub(super) fn digest(&self) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        let Whereabouts { kind, base_url, command, home, organization } = self;
        let home = home.as_ref().map(|home| home.as_os_str().as_encoded_bytes());
        let parts = [
            Some(kind.as_bytes()),
            base_url.as_deref().map(str::as_bytes),
            home,
            organization.as_deref().map(str::as_bytes),
        ];
        let words = command.iter().flatten().map(|word| Some(word.as_bytes()));
        // Each with its length, so that no two places are written alike.
        for part in parts.into_iter().chain(words) {
            match part {
                None => hasher.update(&[0]),
                Some(bytes) => hasher.update(&[1]).update(&(bytes.len() as u64).to_be_bytes()).update(bytes),
            };
        }
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        Fingerprint(digest)
    }

    /// The keys of the configuration in which it is another place than before, if it is.
    pub(super) fn changed_since(&self, before: &Whereabouts) -> Option<String> {
        let Whereabouts { kind, base_url, command, home, organization } = self;
        let keys = [
            ("kind", *kind != before.kind),
            ("base_url", *base_url != before.base_url),
            ("command", *command != before.command),
            ("home", *home != before.home),
            ("organization", *organization != before.organization),
        ];
        let changed: Vec<&str> = keys.iter().filter(|(_, changed)| *changed).map(|(key, _)| *key).collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Whereabouts {
        Whereabouts { kind: "devin", base_url: Some("http://a".into()), command: None, home: None, organization: None }
    }

    #[test]
    fn each_part_of_a_place_makes_another_one_and_is_named() {
        let others = [
            ("kind", Whereabouts { kind: "cascade", ..place() }),
            ("base_url", Whereabouts { base_url: Some("http://b".into()), ..place() }),
            ("command", Whereabouts { command: Some(vec!["http://a".into()]), ..place() }),
            ("home", Whereabouts { home: Some("http://a".into()), ..place() }),
            ("organization", Whereabouts { organization: Some("http://a".into()), ..place() }),
            ("base_url, home", Whereabouts { base_url: None, home: Some("http://a".into()), ..place() }),
        ];
        let mut digests = vec![place().digest()];
        for (key, other) in others {
            assert_eq!(other.changed_since(&place()).as_deref(), Some(key));
            digests.push(other.digest());
        }
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 7);
        assert_eq!(place().changed_since(&place()), None);
    }

    #[test]
    fn words_of_a_command_are_told_apart() {
        let of = |words: &[&str]| {
            let command = Some(words.iter().map(|word| (*word).to_owned()).collect());
            Whereabouts { command, ..place() }.digest()
        };
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
        assert_ne!(of(&["a", ""]), of(&["a"]));
    }

    #[test]
    fn a_digest_is_the_same_in_every_version_for_it_is_written_down() {
        assert_eq!(place().digest().to_string(), "e64673febb8e82c8c410ebc2a9e120ab");
    }
}
