//! Who a turn is for: the scope within which answers and conversations may be used again.

use std::fmt;
use std::sync::Arc;

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallerScope {
    /// One person or program: a key that is not shared, or a user of a shared key whom a trusted proxy names.
    Scoped {
        /// The key's name.
        key: Arc<str>,
        /// The user behind a shared key.
        user: Option<Arc<str>>,
    },
    /// A shared key, and nobody knows for whom. Nothing is kept for it that another could be given.
    Bare {
        /// The key's name.
        key: Arc<str>,
    },
}

impl CallerScope {
    /// A key of one person or program.
    pub fn of_key(key: impl Into<Arc<str>>) -> Self {
        CallerScope::Scoped { key: key.into(), user: None }
    }

    /// The key's name.
    pub fn key(&self) -> &Arc<str> {
        match self {
            CallerScope::Scoped { key, .. } | CallerScope::Bare { key } => key,
        }
    }

    /// The owner's name of everything that is kept for it. Two for which something is kept never share one, as no key's name
    /// holds a slash.
    pub fn owner(&self) -> Arc<str> {
        match self {
            CallerScope::Scoped { key, user: None } | CallerScope::Bare { key } => key.clone(),
            CallerScope::Scoped { user: Some(_), .. } => self.to_string().into(),
        }
    }

    /// Answers may be kept for it.
    pub fn is_scoped(&self) -> bool {
        match self {
            CallerScope::Scoped { .. } => true,
            CallerScope::Bare { .. } => false,
        }
    }
}

impl fmt::Display for CallerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallerScope::Scoped { key, user: Some(user) } => write!(f, "{key}/{user}"),
            CallerScope::Scoped { key, user: None } | CallerScope::Bare { key } => f.write_str(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_the_key_or_a_user_behind_it_and_whatever_the_user_is_called_no_other_key() {
        let of = |key: &str, user: Option<&str>| {
            CallerScope::Scoped { key: key.into(), user: user.map(Arc::from) }.owner().to_string()
        };
        assert_eq!((of("team", None).as_str(), of("team", Some("ann")).as_str()), ("team", "team/ann"));
        assert_ne!(of("team", Some("a/b")), of("team", Some("a")));
        assert!(of("team", Some("")).starts_with("team/"), "a slash stands behind the key, and in no key");
    }
}
