//! One name, or a list of them: who has one store should not have to write it as a list.

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

/// For `deserialize_with`.
///
/// # Errors
/// What else is there instead.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(Names)
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, told: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        told.write_str("a name, \"127.0.0.1:6379\", or a list of names")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Vec<String>, E> {
        Ok(vec![name.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        Ok(names)
    }
}
