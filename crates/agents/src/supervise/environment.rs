//! The environment of a child: cleared, and then what is named here.

use super::ProcessSpec;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What a child gets of the gateway's own environment: where programs are, its language, where temporary files go.
const PASSED_ON: &[&str] = &["PATH", "LANG", "TMPDIR"];

/// All variables of the child. `own` gives the gateway's; `added` are the service's, and what the operator named wins.
pub(super) fn variables(
    spec: &ProcessSpec,
    own: impl Fn(&str) -> Option<OsString>,
    added: &[(String, String)],
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    for &name in PASSED_ON {
        if let Some(value) = own(name) {
            all.insert(name.into(), value);
        }
    }
    if let Some(home) = &spec.home {
        all.insert("HOME".into(), home.clone().into_os_string());
    }
    for (name, value) in added {
        all.insert(name.into(), value.into());
    }
    for (name, value) in &spec.env {
        all.insert(name.into(), value.expose().into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::{Launch, ProcessLimits};
    use turnkeep_base::Secret;

    #[test]
    fn nothing_but_what_is_named_reaches_a_child_and_the_operator_has_the_last_word() {
        let spec = ProcessSpec {
            name: "a".into(),
            command: vec!["a".into()],
            home: Some("/home/of/a".into()),
            env: BTreeMap::from([("LANG".to_owned(), Secret::new("de".into()))]),
            directory: "/".into(),
            limits: ProcessLimits::default(),
            launch: Launch::System,
        };
        let own = |name: &str| Some(OsString::from(format!("our-{name}")));
        let all = variables(&spec, own, &[("ADDED".into(), "1".into())]);
        let all: Vec<_> = all.iter().map(|(name, value)| (name.to_str(), value.to_str())).collect();
        let expected =
            [("ADDED", "1"), ("HOME", "/home/of/a"), ("LANG", "de"), ("PATH", "our-PATH"), ("TMPDIR", "our-TMPDIR")];
        assert_eq!(all, expected.map(|(name, value)| (Some(name), Some(value))));
    }
}
