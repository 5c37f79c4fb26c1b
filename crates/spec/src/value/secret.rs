//! A text that is never printed.

use secrecy::{ExposeSecret, SecretString};

/// A password. `Debug` and serialisation hide it.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

impl Secret {
    /// Keeps a text from being printed.
    pub fn new(text: &str) -> Self {
        Self(SecretString::from(text))
    }

    /// The text, for those who must have it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(secret.expose(), "hunter2");
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[secret]\"");
        assert_ne!(secret, Secret::new("hunter3"));
    }
}
