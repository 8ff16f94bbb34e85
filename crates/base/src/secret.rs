//! A credential. It cannot be formatted, compared or cloned by accident; it is wiped when dropped.

use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A secret text. `Debug` prints `[secret]`; there is no `Display`. Cloning shares one copy.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: String) -> Self {
        Secret(Arc::new(Zeroizing::new(text)))
    }

    /// The text itself. Call it only where the secret leaves for its upstream, or is hashed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        let secret = Secret::new("sk-very-secret".into());
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.expose(), "sk-very-secret");
    }
}
